#!/usr/bin/env python3
"""collectors/nvidia's declarations of NVML against NVIDIA's own headers of three releases, from the Python package registry."""
import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "build/interop/nvml_headers/headers"
# Releases 11.8 (driver 520), 12.9 (575) and the newest.
PACKAGES = ("nvidia-nvml-dev-cu11", "nvidia-nvml-dev-cu12", "nvidia-nvml-dev")


def header_of(package: str) -> Path:
    """The installed nvml.h. Two of the packages install the same path, so each has a folder of its own."""
    folder = HEADERS / package
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--upgrade"]
    done = subprocess.run([*pip, "--target", str(folder), package], capture_output=True, text=True, timeout=120)
    found = list(folder.rglob("nvml.h"))
    if not found:
        raise unittest.SkipTest(f"no registry has {package}: {(done.stderr.strip().splitlines() or ['pip says nothing'])[-1]}")
    return found[0]


class NvmlHeadersTest(unittest.TestCase):
    def compare(self, package: str) -> None:
        header = header_of(package)
        release = next((HEADERS / package).glob("*.dist-info")).stem
        done = subprocess.run([sys.executable, "-B", str(ROOT / "tests/gpu/abi_test.py")], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "NVML_HEADER": str(header)})
        print(f"{release}:\n{done.stdout}{done.stderr}", flush=True)
        self.assertEqual(done.returncode, 0, f"{package}: {done.stdout}")


for name in PACKAGES:
    setattr(NvmlHeadersTest, f"test_{name.replace('-', '_')}", lambda self, name=name: self.compare(name))

if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    if len(result.skipped) == len(PACKAGES):
        print("skipped: no registry has any of the header packages")
        sys.exit(77)
    sys.exit(not result.wasSuccessful())
