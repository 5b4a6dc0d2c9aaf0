#!/usr/bin/env python3
"""The client in an empty environment: installed by pip from its folder without a network, and copied next to a job."""
from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

from receiver import CLIENT, Receiver, gpumeter

JOB = """
import gpumeter, pathlib
with gpumeter.run("installed") as run:
    run.step(samples=3)
print(pathlib.Path(gpumeter.__file__).parent.parent)
"""
HAS_VENV = all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))


class InstallTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def works(self, python: str | Path, where: Path, **environ: str) -> None:
        with Receiver() as receiver:
            ended = subprocess.run([python, "-B", "-W", "error", "-c", JOB], cwd=self.folder, capture_output=True, text=True,
                                   timeout=60, env={"GPUMETER_SOCKET": receiver.path, **environ})
            self.assertEqual((ended.stderr, ended.stdout), ("", f"{where}\n"))
            lines = [line.split("|d:")[0] for line in receiver.lines()]
        self.assertEqual(lines, ["_e{9,9}:run_start|installed", "ml.step:1|g|#run:installed",
                                 "ml.steps:1|c|#run:installed,split:train", "ml.samples:3|c|#run:installed,split:train",
                                 "_e{8,7}:run_stop|success"])

    @unittest.skipUnless(HAS_VENV, "python3-venv is not installed")
    def test_pip_install_of_the_folder_into_an_empty_environment(self) -> None:
        made = subprocess.run([sys.executable, "-m", "venv", self.folder / "env"], capture_output=True, text=True, timeout=300)
        if made.returncode:
            self.skipTest(f"no environment can be made here: {made.stdout.splitlines()[:1]}")
        python = self.folder / "env/bin/python"
        before = {path: path.stat().st_mtime_ns for path in CLIENT.rglob("*") if "__pycache__" not in str(path)}
        offline = {**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run([python, "-m", "pip", "install", "--quiet", CLIENT], check=True, env=offline, timeout=300)
        self.assertEqual(before, {path: path.stat().st_mtime_ns for path in CLIENT.rglob("*") if "__pycache__" not in str(path)},
                         "the folder may be one that its user cannot write into")
        [site] = (self.folder / "env/lib").glob("python3*/site-packages")
        self.works(python, site)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--editable", CLIENT], check=True, env=offline,
                       timeout=300)
        self.works(python, CLIENT)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--force-reinstall", CLIENT], check=True, env=offline, timeout=300)
        installed = {path.name for path in (site / "gpumeter").iterdir()} - {"__pycache__"}
        self.assertEqual(installed, {path.name for path in (CLIENT / "gpumeter").iterdir()} - {"__pycache__"})
        subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "gpumeter"], check=True, env=offline, timeout=300)
        self.assertFalse((site / "gpumeter").exists())

    def wheel_of(self, source: Path) -> dict[str, bytes]:
        """The contents of the wheel that the folder's own backend builds, called as pip calls it."""
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        subprocess.run([sys.executable, "-B", "-c", "import sys, gpumeter_build; gpumeter_build.build_wheel(sys.argv[1])", folder],
                       cwd=source, check=True, timeout=60)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}

    def test_the_record_of_the_wheel_has_the_hash_of_each_file(self) -> None:
        files = self.wheel_of(CLIENT)
        record = next(name for name in files if name.endswith(".dist-info/RECORD"))
        rows = {path: (kind, size) for path, kind, size in csv.reader(io.StringIO(files.pop(record).decode()))}
        self.assertEqual(rows.pop(record), ("", ""))
        self.assertEqual(rows, {path: ("sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("="),
                                       str(len(content))) for path, content in files.items()})

    def test_the_source_archive_builds_the_same_wheel(self) -> None:
        build = "import sys, gpumeter_build; gpumeter_build.build_sdist(sys.argv[1])"
        subprocess.run([sys.executable, "-B", "-c", build, self.folder], cwd=CLIENT, check=True, timeout=60)
        with tarfile.open(self.folder / f"gpumeter-{gpumeter.__version__}.tar.gz") as archive:
            archive.extractall(self.folder)
        source = self.folder / f"gpumeter-{gpumeter.__version__}"
        wheel = self.wheel_of(source)
        self.assertEqual(wheel, self.wheel_of(CLIENT))
        [metadata] = [content for name, content in wheel.items() if name.endswith("/METADATA")]
        self.assertEqual((source / "PKG-INFO").read_bytes(), metadata, "archives without it are refused by package registries")

    def test_the_same_folder_makes_the_same_archives(self) -> None:
        for name, zone in (("first", "UTC"), ("second", "Asia/Kathmandu")):
            (self.folder / name).mkdir()
            said = subprocess.run([sys.executable, "-B", CLIENT / "gpumeter_build.py", self.folder / name], capture_output=True, text=True,
                                  check=True, timeout=60, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "TZ": zone}).stdout
        built = sorted(Path(line).name for line in said.split())
        self.assertEqual(built, [f"gpumeter-{gpumeter.__version__}-py3-none-any.whl", f"gpumeter-{gpumeter.__version__}.tar.gz"])
        for name in built:
            self.assertTrue((self.folder / "first" / name).read_bytes() == (self.folder / "second" / name).read_bytes(), name)

    def test_the_archives_can_be_installed_by_pip(self) -> None:
        subprocess.run([sys.executable, "-B", CLIENT / "gpumeter_build.py", self.folder], check=True, timeout=60, capture_output=True)
        for archive in (*self.folder.glob("*.whl"), *self.folder.glob("*.tar.gz")):
            target = self.folder / f"installed-{archive.suffix[1:]}"
            pip = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--target", target, archive],
                                 capture_output=True, text=True, timeout=120, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
            if "No module named pip" in pip.stderr:
                self.skipTest("python3-pip is not installed")
            self.assertEqual(pip.returncode, 0, pip.stderr)
            self.assertTrue((target / "gpumeter/py.typed").is_file())

    def test_a_copy_beside_the_job(self) -> None:
        shutil.copytree(CLIENT / "gpumeter", self.folder / "gpumeter", ignore=shutil.ignore_patterns("__pycache__"))
        self.works(sys.executable, self.folder)

    def test_its_version_is_the_daemon_s(self) -> None:
        project = (CLIENT.parent.parent / "CMakeLists.txt").read_text()
        self.assertEqual(re.findall(r"^project\(gpumeter VERSION (\S+)", project, re.M), [gpumeter.__version__])


if __name__ == "__main__":
    unittest.main(warnings="error")
