"""Builds the wheel and the source archive of the package in this folder, for pip (PEP 517), with the standard library only.

`gpumeter_build.py FOLDER` writes both into FOLDER. The same folder results in the same archives; $SOURCE_DATE_EPOCH is the time in them.
"""
from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import re
import sys
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any, Dict, Optional

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "gpumeter"
VERSION = re.findall(r'^__version__ = "(.+)"$', (PACKAGE / "__init__.py").read_text(), re.MULTILINE)[0]
NAME = f"gpumeter-{VERSION}"
INFO = f"{NAME}.dist-info"
METADATA = f"""Metadata-Version: 2.1
Name: gpumeter
Version: {VERSION}
Summary: Reports a job's progress to the gpumeter daemon of the machine
License: Apache-2.0
Requires-Python: >=3.8
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{(HERE / "README.md").read_text(encoding="utf-8")}"""
# The oldest time that a zip archive can hold, if none is given.
TIME = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))
WHEEL = "Wheel-Version: 1.0\nGenerator: gpumeter\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Optional[str] = None) -> str:
    return _wheel(wheel_directory, {f"gpumeter/{path.name}": path.read_bytes() for path in _sources()})


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: Optional[str] = None) -> str:
    return _wheel(wheel_directory, {"gpumeter.pth": f"{HERE}\n".encode()})


def _wheel(folder: str, files: Dict[str, bytes]) -> str:
    name = f"{NAME}-py3-none-any.whl"
    files.update({f"{INFO}/METADATA": METADATA.encode(), f"{INFO}/WHEEL": WHEEL.encode()})
    files[f"{INFO}/RECORD"] = _record(files)
    with zipfile.ZipFile(Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, time.gmtime(TIME)[:6])
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            wheel.writestr(entry, content)
    return name


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    name = f"{NAME}.tar.gz"
    files = {str(path.relative_to(HERE)): path.read_bytes()
             for path in [HERE / "pyproject.toml", HERE / "gpumeter_build.py", HERE / "README.md", *_sources()]}
    with open(Path(sdist_directory) / name, "wb") as out, gzip.GzipFile("", "wb", fileobj=out, mtime=TIME) as packed, \
            tarfile.open(fileobj=packed, mode="w") as archive:
        for path, content in {**files, "PKG-INFO": METADATA.encode()}.items():
            entry = tarfile.TarInfo(f"{NAME}/{path}")
            entry.size, entry.mtime = len(content), TIME
            archive.addfile(entry, io.BytesIO(content))
    return name


def _sources() -> "list[Path]":
    return sorted(path for path in PACKAGE.iterdir() if path.suffix == ".py" or path.name == "py.typed")


def _record(files: Dict[str, bytes]) -> bytes:
    lines = [f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip('=')},{len(content)}"
             for path, content in files.items()]
    return "\n".join([*lines, f"{INFO}/RECORD,,", ""]).encode()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for built in (build_wheel(sys.argv[1]), build_sdist(sys.argv[1])):
        print(Path(sys.argv[1]) / built)
