#!/usr/bin/env python3
"""materials.py ROOTFS: prints the image's list of materials as SPDX 2.3 JSON: its Debian packages, and each file with its checksum.

The same image results in the same list; $SOURCE_DATE_EPOCH is the time of creation.
"""
import hashlib
import json
import os
import re
import sys
from datetime import datetime, timezone
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "deb"))
from sbom import declared_licence, identifier, relation  # noqa: E402


def control(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w-]+): (.*)$", path.read_text(), re.M))


def described(fields: dict[str, str], rootfs: Path, distribution: str) -> dict[str, object]:
    """A package. Its source is named only if it differs from the package; a version in brackets is the source's own."""
    name, version = fields["Package"], fields["Version"]
    source = fields.get("Source", name).split()[0]
    notice = (rootfs / "usr/share/doc" / name / "copyright").read_text(errors="replace")
    purl = f"pkg:deb/{distribution}/{name}@{version.replace(':', '%3A')}?arch={fields['Architecture']}"
    return {"SPDXID": identifier(name), "name": name, "versionInfo": version, "sourceInfo": f"built from the source package {source}",
            "supplier": f"Organization: {distribution}" if name != "gpumeter" else "NOASSERTION", "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "homepage": fields.get("Homepage", "NOASSERTION"), "licenseConcluded": "NOASSERTION",
            "licenseDeclared": "Apache-2.0" if name == "gpumeter" else declared_licence(notice, source), "copyrightText": "NOASSERTION",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]}


def file_entry(path: Path, rootfs: Path) -> dict[str, object]:
    data, name = path.read_bytes(), str(path.relative_to(rootfs))
    sums = [{"algorithm": kind.upper(), "checksumValue": hashlib.new(kind, data).hexdigest()} for kind in ("sha1", "sha256")]
    return {"SPDXID": identifier(f"file-{name}"), "fileName": f"./{name}", "checksums": sums, "licenseConcluded": "NOASSERTION",
            "copyrightText": "NOASSERTION"}


def document(rootfs: Path) -> dict[str, object]:
    system = dict(re.findall(r'^(\w+)="?([^"\n]*)', (rootfs / "usr/lib/os-release").read_text(), re.M))
    packages = [described(control(path), rootfs, system["ID"]) for path in sorted((rootfs / "var/lib/dpkg/status.d").iterdir())]
    files = [file_entry(path, rootfs) for path in sorted(rootfs.rglob("*")) if path.is_file() and not path.is_symlink()]
    [version] = [package["versionInfo"] for package in packages if package["name"] == "gpumeter"]
    digest = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    created = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"gpumeter-image-{version}",
            "documentNamespace": f"https://gpumeter.invalid/spdx/image/{version}/{digest}",
            "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: gpumeter-materials"]},
            "packages": packages, "files": files,
            "relationships": [relation("SPDXRef-DOCUMENT", "DESCRIBES", str(package["SPDXID"])) for package in packages]
            + [relation("SPDXRef-DOCUMENT", "DESCRIBES", str(entry["SPDXID"])) for entry in files]}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(json.dumps(document(Path(sys.argv[1])), indent=1))
