#!/usr/bin/env python3
"""merge.py TARGET ARCHIVE...: writes one OCI archive with the images of several architectures, from which a registry serves each node its own.

Each ARCHIVE is one image, by packaging/image/build. The index names the images in order, so the same archives result in the same bytes.
"""
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any

OF_INDEX = "application/vnd.oci.image.index.v1+json"
NAME = "org.opencontainers.image.ref.name"


def encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def blob_name(data: bytes) -> str:
    return f"blobs/sha256/{hashlib.sha256(data).hexdigest()}"


def members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {entry.name.removeprefix("./"): tar.extractfile(entry).read() for entry in tar if entry.isfile()}


def platform_of(image: dict[str, Any], files: dict[str, bytes]) -> dict[str, Any]:
    """The image's entry in the index, with the platform that its configuration names."""
    manifest = json.loads(files[f"blobs/{image['digest'].replace(':', '/')}"])
    config = json.loads(files[f"blobs/{manifest['config']['digest'].replace(':', '/')}"])
    return {"mediaType": image["mediaType"], "digest": image["digest"], "size": image["size"],
            "platform": {"architecture": config["architecture"], "os": config["os"]}}


def merged(archives: list[Path]) -> dict[str, bytes]:
    result: dict[str, bytes] = {}
    entries: list[dict[str, Any]] = []
    for files in map(members, sorted(archives)):
        [image] = json.loads(files["index.json"])["manifests"]
        entries.append(platform_of(image, files))
        result.update(files)
    inner = encoded({"schemaVersion": 2, "mediaType": OF_INDEX, "manifests": entries})
    digest = f"sha256:{hashlib.sha256(inner).hexdigest()}"
    return {**result, blob_name(inner): inner, "index.json": encoded({"schemaVersion": 2, "manifests": [
        {"mediaType": OF_INDEX, "digest": digest, "size": len(inner), "annotations": {NAME: image["annotations"][NAME]}}]})}


def main(target: Path, archives: list[Path]) -> None:
    with tarfile.open(archives[0]) as first:
        time = max(entry.mtime for entry in first)
    with tarfile.open(target, "w") as tar:
        for name, data in sorted(merged(archives).items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), time
            tar.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
