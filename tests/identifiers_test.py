#!/usr/bin/env python3
"""Every identifier of the interfaces that gpumeter reads is used in its sources or refused with a reason (gpu/refused.txt).

The interfaces are lists in ../shared/reference ($GPUMETER_CAPTURES names its neighbour): NVML's functions and constants, and the
fields of amdgpu's gpu_metrics. $NVML_HEADER adds an nvml.h.
"""
import os
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "gpu"))
import identifiers  # noqa: E402

REFERENCE = Path(os.environ.get("GPUMETER_CAPTURES") or HERE.parent.parent / "shared/captures").resolve().parent / "reference"
# What the next header could have.
NEW = {"nvmlDeviceGetQuarks_v1": None, "NVML_FI_DEV_NVLINK_QUARKS": 400, "NVML_FI_DEV_QUARK_COUNT": 401, "NVML_GPM_METRIC_QUARKS": 500,
       "nvmlEventTypeQuark": 0x10000, "nvmlClocksEventReasonQuark": 0x800, "NVML_GPU_RECOVERY_ACTION_QUARK": 9, "NVML_NVLINK_STATE_QUARK": 4}


def nvml() -> identifiers.Interface:
    lists = [identifiers.of_table(REFERENCE / f"nvml_{kind}.tsv") for kind in ("functions", "constants")]
    header = Path(os.environ.get("NVML_HEADER", ""))
    if header.is_file():
        lists.append(identifiers.of_header(header.read_text(errors="replace")))
    return {name: number for each in lists for name, number in each.items()}


@unittest.skipUnless(REFERENCE.is_dir(), f"{REFERENCE} is missing")
class IdentifiersTest(unittest.TestCase):
    maxDiff = None

    def assert_accounted(self, interface: identifiers.Interface, used: set[str], section: str, least: int) -> None:
        self.assertGreaterEqual(len(interface), least)
        self.assertEqual(identifiers.unaccounted(interface, used, section), [])
        count = len(used & interface.keys())
        print(f"{section}: {len(interface)} identifiers, {count} used, {len(interface) - count} refused", flush=True)

    def test_nvml(self):
        interface = nvml()
        self.assert_accounted(interface, identifiers.used_of_nvml(interface), "nvml", 1600)

    def test_what_a_header_adds_is_reported(self):
        interface = nvml() | NEW
        self.assertEqual(identifiers.unaccounted(interface, identifiers.used_of_nvml(interface), "nvml"), sorted(NEW))

    def test_gpu_metrics(self):
        interface = identifiers.of_gpu_metrics(REFERENCE / "gpu_metrics_offsets.tsv")
        self.assert_accounted(interface, identifiers.used_of_gpu_metrics(), "gpu_metrics", 120)
        self.assertEqual(identifiers.stale(interface, "gpu_metrics"), [])


class SmallInterfacesTest(unittest.TestCase):
    def test_xe_hwmon(self):
        interface = identifiers.of_table(HERE / "fixtures/intel/xe_hwmon.names")
        used = identifiers.used_of_hwmon(interface)
        self.assertEqual(identifiers.unaccounted(interface | {"fan9_quark": None}, used, "xe_hwmon"), ["fan9_quark"])
        self.assertEqual(identifiers.stale(interface, "xe_hwmon"), [])

    def test_every_refusal_has_a_reason(self):
        for section in ("nvml", "gpu_metrics", "xe_hwmon"):
            self.assertEqual([pattern for pattern, reason in identifiers.refused(section).items() if not reason.endswith(".")], [])


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    sys.exit(77 if result.wasSuccessful() and result.skipped else not result.wasSuccessful())
