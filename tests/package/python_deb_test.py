#!/usr/bin/env python3
"""python3-gpumeter, which lies next to the package that $GPUMETER_DEB names: it contains what the wheel contains, for each Python 3."""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEB = os.environ.get("GPUMETER_DEB", "")
MODULES = Path("usr/lib/python3/dist-packages")


def output(*command: str | Path, **options: object) -> str:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, timeout=60, **options).stdout


class PythonDebTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        [cls.deb] = Path(DEB).parent.glob("python3-gpumeter_*_all.deb")
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        output("dpkg-deb", "-x", cls.deb, cls.folder / "tree")
        output(sys.executable, "-B", ROOT / "packaging/python/gpumeter_build.py", cls.folder)
        [cls.wheel] = cls.folder.glob("*.whl")

    def test_it_has_the_files_of_the_wheel(self) -> None:
        with zipfile.ZipFile(self.wheel) as wheel:
            expected = {name: wheel.read(name) for name in wheel.namelist() if not name.endswith("/RECORD")}
        modules = self.folder / "tree" / MODULES
        # dh_python3 adds the name of the installer and removes nothing.
        found = {str(path.relative_to(modules)): path.read_bytes() for path in modules.rglob("*") if path.is_file() and path.name != "INSTALLER"}
        self.assertEqual(sorted(found), sorted(expected))
        self.assertEqual(found, expected)

    def test_python_imports_it_and_knows_its_version(self) -> None:
        program = "import gpumeter, importlib.metadata as m; print(m.version('gpumeter'), gpumeter.__version__, gpumeter.__file__)"
        modules = self.folder / "tree" / MODULES
        version = output("dpkg-deb", "--field", self.deb, "Version").strip()
        said = output(sys.executable, "-B", "-W", "error", "-c", program, env={"PYTHONPATH": str(modules)}, cwd=self.folder)
        self.assertEqual(said.split(), [version, version, str(modules / "gpumeter/__init__.py")])

    def test_it_needs_python_alone(self) -> None:
        self.assertEqual(output("dpkg-deb", "--field", self.deb, "Depends").strip(), "python3:any")
        self.assertEqual(output("dpkg-deb", "--field", self.deb, "Architecture").strip(), "all")
        self.assertTrue((self.folder / "tree" / MODULES / "gpumeter/py.typed").exists(), "type checkers ignore modules without it (PEP 561)")


if __name__ == "__main__":
    if not DEB or not list(Path(DEB).parent.glob("python3-gpumeter_*_all.deb")):
        print("skipped: no python3-gpumeter next to $GPUMETER_DEB: ./dev package builds one")
        sys.exit(77)
    unittest.main(verbosity=2)
