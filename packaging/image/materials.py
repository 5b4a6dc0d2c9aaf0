#!/usr/bin/env python3
"""materials.py ROOTFS: prints the image's list of materials as SPDX 2.3 JSON: its Debian packages, and each file with its checksum.

The same image results in the same list; $SOURCE_DATE_EPOCH is the time of creation.
"""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "deb"))
from sbom import described_as, document, file_entry, relation  # noqa: E402


def control(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w-]+): (.*)$", path.read_text(), re.M))


def described(fields: dict[str, str], rootfs: Path, distribution: str) -> dict[str, object]:
    """A package. Its source is named only if it differs from the package; a version in brackets is the source's own."""
    name = fields["Package"]
    notice = (rootfs / "usr/share/doc" / name / "copyright").read_text(errors="replace")
    found = described_as(name, fields["Version"], fields["Architecture"], fields.get("Source", name).split()[0], fields.get("Homepage", ""), notice,
                         distribution)
    return {**found, "supplier": "NOASSERTION", "licenseDeclared": "Apache-2.0"} if name == "gpumeter" else found


def materials(rootfs: Path) -> str:
    system = dict(re.findall(r'^(\w+)="?([^"\n]*)', (rootfs / "usr/lib/os-release").read_text(), re.M))
    packages = [described(control(path), rootfs, system["ID"]) for path in sorted((rootfs / "var/lib/dpkg/status.d").iterdir())]
    files = [file_entry(path, str(path.relative_to(rootfs))) for path in sorted(rootfs.rglob("*")) if path.is_file() and not path.is_symlink()]
    [version] = [package["versionInfo"] for package in packages if package["name"] == "gpumeter"]
    return document(f"gpumeter-image-{version}", packages, files,
                    [relation("SPDXRef-DOCUMENT", "DESCRIBES", str(entry["SPDXID"])) for entry in (*packages, *files)])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(materials(Path(sys.argv[1])), end="")
