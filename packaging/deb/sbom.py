#!/usr/bin/env python3
"""sbom.py BUILD USR VERSION: prints the package's list of materials as SPDX 2.3 JSON.

USR is the folder with bin and sbin of the installed programs, BUILD the folder in which ninja built them. The list names the Debian package of
each library that a program loads at its start or, if it loads none, contains, and of each library whose headers were compiled into it. The same input
results in the same output; $SOURCE_DATE_EPOCH is the time of creation.
"""
import hashlib
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

# Names of Debian's machine-readable copyright files that differ from SPDX's.
SPDX_NAMES = {"Expat": "MIT", "MIT/X11": "MIT", "Zlib": "Zlib", "zlib": "Zlib", "curl": "curl",
              "BSD-3-Clause": "BSD-3-Clause", "BSD-3-clause": "BSD-3-Clause", "BSD-2-clause": "BSD-2-Clause", "ISC": "ISC",
              "Apache-2.0": "Apache-2.0", "LGPL-2+": "LGPL-2.0-or-later", "LGPL-2.1": "LGPL-2.1-only", "MIT": "MIT",
              "LGPL-2.1+": "LGPL-2.1-or-later", "GPL-2+": "GPL-2.0-or-later", "GPL-3+": "GPL-3.0-or-later"}
# Source packages whose copyright files are prose, or name only licences of parts.
PROSE = {"glibc": "LGPL-2.1-or-later", "gcc": "GPL-3.0-or-later WITH GCC-exception-3.1", "libdrm": "MIT", "yaml-cpp": "MIT", "fmtlib": "MIT"}
# Headers of the kernel declare its interface and contain no code of a library. A cross compiler has those of the kernel and of glibc in one package.
NO_CODE = {"linux", "cross-toolchain-base"}


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout


@cache
def host(name: str) -> str:
    """A name of the architecture for which the package is built."""
    return output("dpkg-architecture", f"-qDEB_HOST_{name}").strip()


def programs(folder: Path) -> list[Path]:
    return sorted(path for name in ("bin", "sbin") for path in (folder / name).iterdir() if path.read_bytes()[:4] == b"\x7fELF")


def libraries(program: Path) -> dict[str, str]:
    """Path by soname of the libraries that the program itself names. They are those of the package's architecture, which may not be that
    of the machine."""
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-dW", str(program)))
    folders = [Path(parent, host("MULTIARCH")) for parent in ("/lib", "/usr/lib")]
    # A static part of the compiler's library is in a folder of its own; the loader has a fixed name.
    return {name: str(next(path for folder in [*folders, Path("/lib"), Path("/lib64")] if (path := folder / name).exists())) for name in needed}


def archives(program: Path) -> set[str]:
    """The archives of a program without libraries: those of the language."""
    return set() if libraries(program) else {os.path.realpath(output(f"{host('GNU_TYPE')}-g++", f"-print-file-name={name}").strip()) for name in ("libc.a", "libstdc++.a")}


def compiled_headers(build: Path) -> set[str]:
    """The system's headers of all objects, as ninja recorded them."""
    found = re.findall(r"^ +(/usr/\S+)$", output("ninja", "-C", str(build), "-t", "deps"), re.M)
    return {os.path.realpath(path) for path in found}


def owners(paths: set[str]) -> set[str]:
    """The Debian packages of these files. dpkg may know a path by its name before the merge of /usr."""
    names = sorted(paths | {path.removeprefix("/usr") for path in paths} | {os.path.realpath(path) for path in paths})
    found = subprocess.run(["dpkg-query", "-S", *names], capture_output=True, text=True).stdout
    by_path = {path: owner for owner, path in re.findall(r"^(?:\S+, )*(\S+): (\S+)$", found, re.M)}
    unknown = [path for path in paths if not {path, path.removeprefix("/usr"), os.path.realpath(path)} & set(by_path)]
    if unknown:
        sys.exit(f"sbom.py: no package contains {', '.join(sorted(unknown))}")
    return {owner for path in paths for owner in (by_path.get(path) or by_path.get(path.removeprefix("/usr"))
                                                 or by_path[os.path.realpath(path)],)}


@cache
def facts(package: str) -> dict[str, str]:
    fields = ("binary:Package", "Version", "source:Package", "Architecture", "Homepage")
    values = output("dpkg-query", "-W", "-f", "\n".join(f"${{{field}}}" for field in fields), package).split("\n")
    known = {**dict(zip(fields, values)), "name": values[0].split(":")[0]}
    known["source:Package"] = known["source:Package"].removesuffix("-cross")  # gcc-12-cross compiles for another architecture from gcc-12
    return known


def declared_licence(text: str, source: str) -> str:
    """The licence of most files, if the copyright file is machine-readable and its licence has a name in SPDX."""
    stanza = re.search(r"^Files: *\*\s*\n(?:.*\n)*?License: *(.+)$", text, re.M)
    words = re.split(r" (?:and|or) ", stanza[1].strip()) if stanza else []
    if not words or any(word not in SPDX_NAMES for word in words):
        return PROSE.get(re.sub(r"-\d+$", "", source), "NOASSERTION")
    joined = re.sub(r" (and|or) ", lambda word: word[0].upper(), stanza[1].strip())
    return " ".join(SPDX_NAMES.get(word, word) for word in joined.split(" "))


def identifier(name: str) -> str:
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]", "-", name)


def distribution() -> str:
    found = re.search(r"^ID=\"?(\w+)", Path("/etc/os-release").read_text(), re.M)
    return found[1] if found else "debian"


def described_as(name: str, version: str, architecture: str, source: str, homepage: str, notice: str, system: str = "debian") -> dict[str, object]:
    """A package of the distribution; `notice`: its copyright file."""
    purl = f"pkg:deb/{system}/{name}@{version.replace(':', '%3A')}?arch={architecture}"
    return {"SPDXID": identifier(name), "name": name, "versionInfo": version, "sourceInfo": f"built from the source package {source}",
            "supplier": f"Organization: {system}", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "homepage": homepage or "NOASSERTION", "licenseConcluded": "NOASSERTION", "licenseDeclared": declared_licence(notice, source),
            "copyrightText": "NOASSERTION",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]}


def described(package: str) -> dict[str, object]:
    known = facts(package)
    path = Path("/usr/share/doc", known["name"], "copyright")
    return described_as(known["name"], known["Version"], known["Architecture"], known["source:Package"], known["Homepage"],
                        path.read_text(errors="replace") if path.exists() else "", distribution())


def own_package(version: str) -> dict[str, object]:
    return {"SPDXID": "SPDXRef-gpumeter", "name": "gpumeter", "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "supplier": "NOASSERTION", "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION"}


def file_entry(path: Path, name: str, **facts_known: object) -> dict[str, object]:
    data = path.read_bytes()
    sums = [{"algorithm": kind.upper(), "checksumValue": hashlib.new(kind, data).hexdigest()} for kind in ("sha1", "sha256")]
    return {"SPDXID": identifier(f"file-{name}"), "fileName": f"./{name}", "checksums": sums, "licenseConcluded": "NOASSERTION",
            "copyrightText": "NOASSERTION", **facts_known}


def relation(element: str, kind: str, related: str) -> dict[str, str]:
    return {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": related}


def document(name: str, packages: list[dict[str, object]], files: list[dict[str, object]], relations: list[dict[str, str]]) -> str:
    """An SPDX document, whose namespace follows from its content; $SOURCE_DATE_EPOCH is the time of creation."""
    digest = hashlib.sha256(json.dumps([files, relations]).encode()).hexdigest()
    created = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
    return json.dumps({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
                       "documentNamespace": f"https://gpumeter.invalid/spdx/{name}/{digest}",
                       "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: gpumeter-sbom"]},
                       "packages": packages, "files": files, "relationships": relations}, indent=1) + "\n"


def materials(build: Path, folder: Path, version: str) -> str:
    """The document of the installed programs."""
    files = [file_entry(path, f"usr/{path.parent.name}/{path.name}", SPDXID=identifier(f"file-{path.name}"), fileTypes=["BINARY"],
                        licenseConcluded="Apache-2.0") for path in programs(folder)]
    linked = {path.name: owners(set(libraries(path).values())) for path in programs(folder)}
    dynamic = set().union(*linked.values())
    contained = {path.name: owners(archives(path)) for path in programs(folder)}
    sources = {facts(package)["source:Package"] for package in dynamic} | NO_CODE
    static = {package for package in owners(compiled_headers(build)) if facts(package)["source:Package"] not in sources}
    inside = set().union(*contained.values())
    relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-gpumeter")]
    relations += [relation("SPDXRef-gpumeter", "CONTAINS", str(entry["SPDXID"])) for entry in files]
    for kind, packages_of in (("DYNAMIC_LINK", linked), ("STATIC_LINK", contained)):
        relations += [relation(identifier(f"file-{name}"), kind, identifier(facts(package)["name"]))
                      for name, packages in sorted(packages_of.items()) for package in sorted(packages)]
    relations += [relation("SPDXRef-gpumeter", "STATIC_LINK", identifier(facts(package)["name"])) for package in sorted(static)]
    packages = [own_package(version), *(described(package) for package in sorted(dynamic | static | inside))]
    return document(f"gpumeter-{version}", packages, files, relations)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    print(materials(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]), end="")
