#!/usr/bin/env python3
"""systemd accepts the units without a complaint, alone and with each drop-in, and rates the services' exposure at most
2.0 of 10."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter"))
DROP_INS = sorted((ROOT / "packaging/systemd").glob("*.conf"))
UNITS = ("gpumeter.service", "gpumeter.socket", "gpumeter-jobs.socket", "gpumeter-benchmark.service", "gpumeter-benchmark.timer",
         "gpumeter-held.service", "gpumeter-held.timer")
MOST_EXPOSED = 20  # tenths

if not shutil.which("systemd-analyze"):
    print("skipped: systemd-analyze is not installed")
    sys.exit(77)


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", "--no-pager", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)


class UnitTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        service = (ROOT / "systemd/gpumeter.service").read_text()
        # Only for the test that the program exists: it is not installed here.
        (self.folder / "gpumeter.service").write_text(service.replace("/usr/bin/gpumeter", BINARY))
        benchmark = (ROOT / "systemd/gpumeter-benchmark.service").read_text()
        (self.folder / "gpumeter-benchmark.service").write_text(benchmark.replace("/usr/bin/gpumeter-benchmark", f"{BINARY}-benchmark"))
        held = (ROOT / "systemd/gpumeter-held.service").read_text()
        (self.folder / "gpumeter-held.service").write_text(held.replace("/usr/sbin/gpumeter-held", f"{BINARY}-held"))
        for unit in UNITS:
            if not unit.endswith(".service"):
                shutil.copy(ROOT / "systemd" / unit, self.folder)

    def verify(self) -> str:
        units = [str(self.folder / name) for name in UNITS]
        said = analyze("verify", "--man=no", "--recursive-errors=no", *units)
        return said.stdout + ("" if said.returncode == 0 else f"exit {said.returncode}")

    def drop_in(self, text: str) -> None:
        named = re.search(r"Copy to /etc/systemd/system/([\w.-]+)\.d/", text)
        unit = named[1] if named else "gpumeter-jobs.socket" if "[Socket]" in text else "gpumeter.service"
        for folder in self.folder.glob("*.d"):
            shutil.rmtree(folder)
        (self.folder / f"{unit}.d").mkdir()
        (self.folder / f"{unit}.d/test.conf").write_text(text)

    def test_verify(self) -> None:
        self.assertEqual(self.verify(), "")

    def test_verify_with_each_drop_in(self) -> None:
        self.assertGreater(len(DROP_INS), 0)
        for drop_in in DROP_INS:
            with self.subTest(drop_in=drop_in.name):
                self.drop_in(drop_in.read_text())
                self.assertEqual(self.verify(), "")

    def test_verify_sees_a_mistake_in_a_drop_in(self) -> None:
        self.drop_in("[Service]\nCapabilityBoundingSett=\n")
        self.assertIn("CapabilityBoundingSett", self.verify())
        self.drop_in("[Socket]\nSocketMod=0600\n")
        self.assertIn("SocketMod", self.verify())

    def test_exposure(self) -> None:
        for unit in ("gpumeter.service", "gpumeter-benchmark.service", "gpumeter-held.service"):
            with self.subTest(unit=unit):
                said = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", str(self.folder / unit))
                self.assertEqual(said.returncode, 0, said.stdout)
                print(re.search(r"Overall exposure level.*", said.stdout).group())


if __name__ == "__main__":
    unittest.main(verbosity=2)
