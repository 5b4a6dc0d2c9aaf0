"""Builds the wheel and the source archive of the package in this folder, for pip (PEP 517), with the standard library only."""
from __future__ import annotations

import base64
import hashlib
import io
import re
import tarfile
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
Requires-Python: >=3.8
"""
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
            wheel.writestr(path, content)
    return name


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    name = f"{NAME}.tar.gz"
    with tarfile.open(Path(sdist_directory) / name, "w:gz") as archive:
        for path in [HERE / "pyproject.toml", HERE / "gpumeter_build.py", HERE / "README.md", *_sources()]:
            archive.add(path, f"{NAME}/{path.relative_to(HERE)}")
        facts = tarfile.TarInfo(f"{NAME}/PKG-INFO")
        facts.size = len(METADATA.encode())
        archive.addfile(facts, io.BytesIO(METADATA.encode()))
    return name


def _sources() -> "list[Path]":
    return sorted(path for path in PACKAGE.iterdir() if path.suffix == ".py" or path.name == "py.typed")


def _record(files: Dict[str, bytes]) -> bytes:
    lines = [f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip('=')},{len(content)}"
             for path, content in files.items()]
    return "\n".join([*lines, f"{INFO}/RECORD,,", ""]).encode()
