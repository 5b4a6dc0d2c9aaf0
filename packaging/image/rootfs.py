#!/usr/bin/env python3
"""rootfs.py DEB SUITE FOLDER: fills FOLDER/rootfs with what the image contains.

The image contains the daemon of DEB and the services, the libraries that they load, and nothing that starts another program: neither a shell nor a
package manager. mmdebstrap resolves the dependencies and verifies Debian's signatures; KEPT names the files that are copied.
"""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# Packages in addition to the libraries: the lists of cards' names, the distribution's name for scanners, and the program with which
# the manifest's init container hands the state folder to the daemon's user.
ADDITIONAL = ("base-files", "coreutils", "libdrm-common", "pci.ids")
LIBRARY = re.compile(r"(usr/)?lib(64)?/([^/]+-linux-gnu[^/]*/)?[^/]+\.so(\.[^/]*)?")
KEPT = re.compile(r"usr/share/libdrm/.+|usr/share/misc/pci\.ids|usr/lib/os-release|(usr/)?bin/chown")
# gpumeter-held stays out: it moves a process of the host's root into control groups of the host, which a container must not be able to do.
# gpumeter-nccl-files too: it is written in Python.
PROGRAMS = ("gpumeter", "gpumeter-commands", "gpumeter-nccl", "gpumeter-profiler", "gpumeter-servers")
OWN = re.compile(rf"usr/bin/({'|'.join(PROGRAMS)})|etc/gpumeter/gpumeter\.yaml|usr/share/doc/gpumeter/sbom\.spdx\.json")
# The daemon's user. Kubernetes checks `runAsNonRoot` against a number. This one belongs to no user of Debian or Fedora.
USER = 65532
PASSWD = f"root:x:0:0:root:/root:/sbin/nologin\ngpumeter:x:{USER}:{USER}:gpumeter:/var/lib/gpumeter:/sbin/nologin\n" \
         "nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n"
GROUP = f"root:x:0:\ngpumeter:x:{USER}:\nnogroup:x:65534:\n"


def run(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked_packages(deb: Path, work: Path) -> list[str]:
    """Debian's packages of the libraries that the programs themselves load, by the list of materials in the package."""
    run("dpkg-deb", "-x", str(deb), str(work / "own"))
    materials = json.loads((work / "own/usr/share/doc/gpumeter/sbom.spdx.json").read_text())
    names = {package["SPDXID"]: package["name"] for package in materials["packages"]}
    loading = {f"SPDXRef-file-{program}" for program in PROGRAMS}
    return sorted({names[relation["relatedSpdxElement"]] for relation in materials["relationships"]
                   if relation["spdxElementId"] in loading and relation["relationshipType"] == "DYNAMIC_LINK"})


def download(deb: Path, suite: str, work: Path) -> Path:
    """The archives of these packages and their dependencies, which apt chose and verified."""
    architecture = run("dpkg-deb", "--field", str(deb), "Architecture").strip()
    names = [*linked_packages(deb, work), *ADDITIONAL]
    subprocess.run(["mmdebstrap", "--quiet", "--variant=extract", f"--architectures={architecture}", "--skip=cleanup/apt/cache",
                    f"--include={','.join(names)}", suite, str(work / "debian")], check=True)
    return work / "debian/var/cache/apt/archives"


def merged(name: str) -> str:
    """The path after the merge of /usr, which Debian's newer packages have already."""
    return name if re.match(r"(usr|etc|var)/", name) else f"usr/{name}"


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        target.symlink_to(re.sub(r"^/lib", "/usr/lib", os.readlink(source)))
    else:
        shutil.copyfile(source, target)
        target.chmod(0o755 if source.stat().st_mode & 0o111 else 0o644)


def field(deb: Path, name: str) -> str:
    return run("dpkg-deb", "--field", str(deb), name).strip()


def unpack(archives: list[Path], work: Path) -> dict[Path, Path]:
    """The unpacked tree of each archive."""
    trees = {archive: work / "trees" / archive.name for archive in archives}
    (work / "trees").mkdir()
    for archive, tree in trees.items():
        run("dpkg-deb", "-x", str(archive), str(tree))
    return trees


def files(tree: Path) -> list[str]:
    return sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_symlink() or path.is_file())


def needed(program: Path, libraries: dict[str, Path]) -> set[str]:
    """The names of all libraries that the program loads at its start."""
    found: set[str] = set()
    rest = [program]
    while rest:
        names = re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", str(rest.pop())))
        rest += [libraries[name] for name in names if name not in found]
        found.update(names)
    return found


def wanted(trees: dict[Path, Path], programs: list[Path]) -> dict[Path, list[str]]:
    """The files of each archive that the image contains. A driver's library, which the container's runtime adds, may need any
    library of glibc, so these are all kept."""
    listed = {deb: files(tree) for deb, tree in trees.items()}
    libraries = {name.rsplit("/", 1)[-1]: trees[deb] / name for deb, names in listed.items() for name in names if LIBRARY.fullmatch(name)}
    loaded = {path.resolve() for program in programs for path in (libraries[name] for name in needed(program, libraries))}

    def keeps(deb: Path, name: str) -> bool:
        if not LIBRARY.fullmatch(name):
            return KEPT.fullmatch(name) is not None
        return deb.name.startswith("libc6_") or (trees[deb] / name).resolve() in loaded
    return {deb: [name for name in names if keeps(deb, name)] for deb, names in listed.items()}


def notice(package: str, trees: list[Path]) -> Path:
    """The package's copyright. Packages of one source may share that of another, by a link in place of the folder."""
    [folder] = [path for tree in trees if os.path.lexists(path := tree / "usr/share/doc" / package)]
    return notice(os.readlink(folder), trees) if folder.is_symlink() else folder / "copyright"


def add_package(deb: Path, trees: dict[Path, Path], names: list[str], rootfs: Path) -> None:
    """Copies the files, the package's copyright, and its control data to where scanners look for packages of an image without dpkg."""
    package = field(deb, "Package")
    for name in names:
        copy(trees[deb] / name, rootfs / merged(name))
    copy(notice(package, list(trees.values())), rootfs / "usr/share/doc" / package / "copyright")
    folder = rootfs / "var/lib/dpkg/status.d"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / package).write_text(run("dpkg-deb", "--field", str(deb)))


def add_system(rootfs: Path) -> None:
    for name in ("lib", "lib64", "bin"):
        (rootfs / "usr" / name).mkdir(exist_ok=True)
        (rootfs / name).symlink_to(f"usr/{name}")
    # Mount points: a runtime cannot create them in a root that is read-only.
    for name in ("dev", "proc", "sys", "tmp", "run/gpumeter", "var/lib/gpumeter", "var/log/pods", "var/lib/kubelet/pod-resources",
                 "var/lib/kubelet/pods-api"):
        (rootfs / name).mkdir(parents=True, exist_ok=True)
    (rootfs / "etc/os-release").symlink_to("../usr/lib/os-release")
    for name, text in (("passwd", PASSWD), ("group", GROUP), ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")):
        (rootfs / "etc" / name).write_text(text)


def main(deb: Path, suite: str, work: Path) -> None:
    rootfs = work / "rootfs"
    rootfs.mkdir()
    trees = unpack(sorted(download(deb, suite, work).glob("*.deb")), work)
    programs = [*(work / "own/usr/bin" / name for name in PROGRAMS), *(path for tree in trees.values() for path in tree.glob("bin/chown"))]
    for archive, names in wanted(trees, programs).items():
        if names:
            add_package(archive, trees, names, rootfs)
    add_package(deb, {deb: work / "own"}, [name for name in files(work / "own") if OWN.fullmatch(name)], rootfs)
    add_system(rootfs)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    os.umask(0o022)
    main(Path(sys.argv[1]).resolve(), sys.argv[2], Path(sys.argv[3]).resolve())
