#!/usr/bin/env python3
"""publish.py FOLDER: adds what a folder of artifacts needs to be downloaded and trusted: a list of materials (SPDX) of each, the indexes of an apt
repository (dists) and of a Helm repository (index.yaml), SHA256SUMS, and signatures.

The files stay where they are: the indexes name them in FOLDER. $SOURCE_DATE_EPOCH is the time in all of them. $GPUMETER_SIGNING_KEY, a key of GPG,
(its id, or the private key itself, armoured and without a passphrase), signs SHA256SUMS and the apt repository. The same artifacts result in the same files; only signatures contain the time at which they were made.
"""
from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from datetime import datetime, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "deb"))
from sbom import document, file_entry, own_package, relation, described_as  # noqa: E402

# The end of a package's version names the release of Debian that it is for (packaging/deb/in-root).
CODENAMES = {"deb12": "bookworm", "deb13": "trixie"}
ARCHIVES = (".deb", ".rpm", ".tar.gz", ".tgz", ".whl")
TIME = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)


def run(*command: str | Path, **options: Any) -> bytes:
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, **options).stdout


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def unpack(archive: Path, folder: Path) -> None:
    if archive.suffix == ".deb":
        run("dpkg-deb", "-x", archive, folder)
    elif archive.suffix == ".whl":
        run(sys.executable, "-m", "zipfile", "-e", archive, folder)
    elif archive.suffix == ".rpm":
        run("tar", "-xzf", "-", "-C", folder, input=run("rpm2archive", "-", stdin=archive.open("rb")))
    else:
        run("tar", "-xzf", archive, "-C", folder)


def libraries(tree: Path) -> list[dict[str, object]]:
    """Debian's packages of the libraries in a bundle, which it lists next to their licences."""
    listed = [path for path in tree.rglob("packages") if path.is_file()]
    rows = [line.split() for path in listed for line in path.read_text().splitlines()]
    return [described_as(name, version, architecture, source, "", (listed[0].parent / name).read_text(errors="replace"))
            for name, version, architecture, source in rows]


def materials(archive: Path, version: str) -> str:
    """The list of the package itself if it has one, and otherwise that of the archive's files."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        unpack(archive, tree)
        own = tree / "usr/share/doc/gpumeter/sbom.spdx.json"
        if archive.suffix == ".deb" and own.exists():
            return own.read_text()
        packages = [{**own_package(version), "packageFileName": archive.name,
                     "checksums": [{"algorithm": "SHA256", "checksumValue": sha256(archive.read_bytes())}]}, *libraries(tree)]
        files = [file_entry(path, str(path.relative_to(tree))) for path in sorted(tree.rglob("*")) if path.is_file() and not path.is_symlink()]
    relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-gpumeter")]
    relations += [relation("SPDXRef-gpumeter", "CONTAINS", str(entry["SPDXID"])) for entry in (*packages[1:], *files)]
    return document(archive.name, packages, files, relations)


def stanza(package: Path) -> str:
    """What apt must know of a package (deb-src-control(5), "Packages" of a repository)."""
    data = package.read_bytes()
    return f"{run('dpkg-deb', '--field', package).decode().rstrip()}\nFilename: {package.name}\nSize: {len(data)}\nSHA256: {sha256(data)}\n"


def apt_repository(folder: Path) -> list[Path]:
    """Writes the indexes; returns the Release file of each release of Debian."""
    found: dict[str, dict[str, list[Path]]] = {}
    for package in sorted(folder.glob("*.deb")):
        _, version, architecture = package.stem.split("_")
        found.setdefault(CODENAMES[version.rpartition("+")[2]], {}).setdefault(architecture, []).append(package)
    return [apt_release(folder / "dists" / codename, packages) for codename, packages in sorted(found.items())]


def apt_release(dist: Path, packages: dict[str, list[Path]]) -> Path:
    every = packages.pop("all", [])
    for architecture, own in packages.items():
        binary = dist / f"main/binary-{architecture}"
        binary.mkdir(parents=True)
        text = "\n".join(map(stanza, [*own, *every])).encode()
        (binary / "Packages").write_bytes(text)
        (binary / "Packages.gz").write_bytes(gzip.compress(text, mtime=0))
    rows = [f" {sha256(path.read_bytes())} {path.stat().st_size} {path.relative_to(dist)}" for path in sorted(dist.rglob("Packages*"))]
    release = dist / "Release"
    release.write_text("\n".join(["Origin: gpumeter", "Label: gpumeter", f"Suite: {dist.name}", f"Codename: {dist.name}",
                                  f"Date: {format_datetime(TIME)}", f"Architectures: {' '.join(sorted(packages))}", "Components: main",
                                  "Description: gpumeter for this release of Debian", "SHA256:", *rows]) + "\n")
    return release


def helm_repository(folder: Path, version: str) -> None:
    chart = folder / f"gpumeter-{version}.tgz"
    with tarfile.open(chart) as tar:
        facts = yaml.safe_load(tar.extractfile("gpumeter/Chart.yaml").read())
    created = TIME.isoformat().replace("+00:00", "Z")
    entry = {**facts, "created": created, "digest": sha256(chart.read_bytes()), "urls": [chart.name]}
    index = {"apiVersion": "v1", "entries": {"gpumeter": [entry]}, "generated": created}
    (folder / "index.yaml").write_text(yaml.safe_dump(index, sort_keys=True))


def sign(key: str, folder: Path, releases: list[Path], keyring: str) -> None:
    home = ["--homedir", keyring] if key.startswith("-----BEGIN PGP") else []
    if home:
        run("gpg", *home, "--batch", "--quiet", "--import", input=key.encode())
    chosen = [] if home else ["--local-user", key]

    def gpg(*words: str | Path) -> None:
        run("gpg", *home, "--batch", "--yes", *chosen, *words)
    gpg("--armor", "--output", folder / "gpumeter.asc", "--export", *chosen[1:])
    gpg("--armor", "--output", folder / "SHA256SUMS.asc", "--detach-sign", folder / "SHA256SUMS")
    for release in releases:
        gpg("--armor", "--output", release.with_name("Release.gpg"), "--detach-sign", release)
        gpg("--output", release.with_name("InRelease"), "--clear-sign", release)


def main(folder: Path) -> None:
    [wheel] = folder.glob("*.whl")
    version = wheel.name.split("-")[1]
    for archive in sorted(path for path in folder.iterdir() if path.name.endswith(ARCHIVES)):
        (folder / f"{archive.name}.spdx.json").write_text(materials(archive, version))
    releases = apt_repository(folder)
    helm_repository(folder, version)
    listed = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    (folder / "SHA256SUMS").write_text("".join(f"{sha256(path.read_bytes())}  {path.relative_to(folder)}\n" for path in listed))
    if key := os.environ.get("GPUMETER_SIGNING_KEY"):
        with tempfile.TemporaryDirectory() as keyring:
            sign(key, folder, releases, keyring)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
