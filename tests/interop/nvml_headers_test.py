#!/usr/bin/env python3
"""Compares collectors/nvidia's declarations of NVML with NVIDIA's own headers of three releases, from the Python package registry."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/gpu"))
import identifiers  # noqa: E402

HEADERS = ROOT / "build/interop/nvml_headers/headers"
# What a header that fits no more could look like, and the word under which abi_test.py has to report it.
MUTATIONS = {
    "NVML_FI_DEV_MEMORY_TEMP": (r"(NVML_FI_DEV_MEMORY_TEMP\s+)82", r"\g<1>820"),
    "NVML_GPM_METRIC_SM_OCCUPANCY": (r"(NVML_GPM_METRIC_SM_OCCUPANCY\s+= )3", r"\g<1>334"),
    "NVML_VALUE_TYPE_SIGNED_INT": (r"(NVML_VALUE_TYPE_SIGNED_INT = )5", r"\g<1>4"),
    "NVML_MEMORY_LOCATION_SRAM": (r"(NVML_MEMORY_LOCATION_SRAM\s+= )7", r"\g<1>6"),
    "NVML_NVLINK_ERROR_DL_RECOVERY": (r"(NVML_NVLINK_ERROR_DL_RECOVERY = )1", r"\g<1>0"),
    "NVML_TEMPERATURE_GPU:": (r"(NVML_TEMPERATURE_GPU\s+= )0", r"\g<1>3"),
    "NVML_GRID_LICENSE_STATE_LICENSED": (r"(NVML_GRID_LICENSE_STATE_LICENSED\s+)5", r"\g<1>6"),
    "NVML_ERROR_GPU_IS_LOST": (r"(NVML_ERROR_GPU_IS_LOST\s+= )15", r"\g<1>16"),
    "nvmlUtilization_t": (r"(typedef struct nvmlUtilization_st\s*\{)", r"\g<1> unsigned int added;"),
    "version of MemoryV2": (r"NVML_STRUCT_VERSION\(Memory, 2\)", "(NVML_STRUCT_VERSION(Memory, 2) + 1)"),
    "prototype nvmlDeviceGetPciInfo_v3": (r"(DECLDIR nvmlDeviceGetPciInfo_v3\(nvmlDevice_t device, )nvmlPciInfo_t", r"\g<1>nvmlUtilization_t"),
    "prototype nvmlDeviceGetMinorNumber": (r"(DECLDIR nvmlDeviceGetMinorNumber\(nvmlDevice_t device, unsigned )int", r"\g<1>long"),
    "prototype nvmlGpmSampleAlloc": (r"(DECLDIR nvmlGpmSampleAlloc\()", r"\g<1>unsigned int added, "),
}
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


def compared(header: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-B", str(ROOT / "tests/gpu/abi_test.py")], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "NVML_HEADER": str(header)})


class NvmlHeadersTest(unittest.TestCase):
    def test_a_header_that_differs_fails(self):
        text = header_of(PACKAGES[-1]).read_text(errors="replace")
        for before, after in MUTATIONS.values():
            text, count = re.subn(before, after, text)
            self.assertGreater(count, 0, before)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "nvml.h").write_text(text)
            done = compared(Path(folder, "nvml.h"))
        self.assertEqual(done.returncode, 1, done.stderr)
        reported = [line for line in done.stdout.splitlines() if ": ours " in line]
        for word in MUTATIONS:
            self.assertTrue(any(word in line for line in reported), f"not reported: {word}; but {reported}")

    def test_every_identifier_of_the_newest_is_used_or_refused(self):
        interface = identifiers.of_header(header_of(PACKAGES[-1]).read_text(errors="replace"))
        used = identifiers.used_of_nvml(interface)
        self.assertEqual(identifiers.unaccounted(interface, used, "nvml"), [])
        print(f"{len(interface)} identifiers, {len(used & interface.keys())} used", flush=True)

    def compare(self, package: str) -> None:
        header = header_of(package)
        release = next((HEADERS / package).glob("*.dist-info")).stem
        done = compared(header)
        print(f"{release}:\n{done.stdout}{done.stderr}", flush=True)
        self.assertEqual(done.returncode, 0, f"{package}: {done.stdout}")
        if package == PACKAGES[-1]:  # what the newest lacks is a name of ours that NVML never had
            lacking = re.findall(r"^(?:structs|prototypes|field ids|GPM ids|enum orders): .*this header: (?!none).*", done.stdout, re.M)
            self.assertEqual(lacking, [])


for name in PACKAGES:
    setattr(NvmlHeadersTest, f"test_{name.replace('-', '_')}", lambda self, name=name: self.compare(name))

if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    if len(result.skipped) > len(PACKAGES):
        print("skipped: no registry has any of the header packages")
        sys.exit(77)
    sys.exit(not result.wasSuccessful())
