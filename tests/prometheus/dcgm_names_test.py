#!/usr/bin/env python3
"""dcgm-exporter's names: compares the two rule packs, their page in docs/, our catalogue and dcgm-exporter's lists.

The cases that say which value and which labels come out are in dcgm.yml (4.8) and dcgm49.yml, which rules_test.py runs with all others.
"""
import functools
import json
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RULES = {version: ROOT / f"packaging/prometheus/dcgm-names-{version}.yml" for version in ("4.8", "4.9")}
CASES = {"4.8": "dcgm.yml", "4.9": "dcgm49.yml"}
INFO = {"4.8": "gpu:dcgm_labels:info", "4.9": "gpu:dcgm_labels_4_9:info"}
PAGE = (ROOT / "docs/dcgm-exporter.md").read_text()

# Names of NVIDIA/dcgm-exporter's etc/default-counters.csv and etc/dcp-metrics-included.csv (versions 4.5.3-4.8.2), without
# the prefix DCGM_; those that are on without a change, then those commented out, then what the exporter makes itself.
DEFAULT = """FI_DEV_SM_CLOCK FI_DEV_MEM_CLOCK FI_DEV_MEMORY_TEMP FI_DEV_GPU_TEMP FI_DEV_POWER_USAGE FI_DEV_TOTAL_ENERGY_CONSUMPTION
FI_DEV_PCIE_REPLAY_COUNTER FI_DEV_GPU_UTIL FI_DEV_MEM_COPY_UTIL FI_DEV_ENC_UTIL FI_DEV_DEC_UTIL FI_DEV_XID_ERRORS FI_DEV_FB_FREE
FI_DEV_FB_USED FI_DEV_FB_RESERVED FI_DEV_NVLINK_BANDWIDTH_TOTAL FI_DEV_VGPU_LICENSE_STATUS FI_DEV_UNCORRECTABLE_REMAPPED_ROWS
FI_DEV_CORRECTABLE_REMAPPED_ROWS FI_DEV_ROW_REMAP_FAILURE FI_PROF_GR_ENGINE_ACTIVE FI_PROF_PIPE_TENSOR_ACTIVE FI_PROF_DRAM_ACTIVE
FI_PROF_PCIE_TX_BYTES FI_PROF_PCIE_RX_BYTES""".split()
OPTIONAL = """FI_DEV_POWER_VIOLATION FI_DEV_THERMAL_VIOLATION FI_DEV_SYNC_BOOST_VIOLATION FI_DEV_BOARD_LIMIT_VIOLATION
FI_DEV_RELIABILITY_VIOLATION FI_DEV_ECC_SBE_VOL_TOTAL FI_DEV_ECC_DBE_VOL_TOTAL FI_DEV_ECC_SBE_AGG_TOTAL FI_DEV_ECC_DBE_AGG_TOTAL
FI_DEV_RETIRED_SBE FI_DEV_RETIRED_DBE FI_DEV_RETIRED_PENDING FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL
FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL FI_PROF_SM_ACTIVE FI_PROF_SM_OCCUPANCY
FI_PROF_PIPE_FP64_ACTIVE FI_PROF_PIPE_FP32_ACTIVE FI_PROF_PIPE_FP16_ACTIVE EXP_XID_ERRORS_COUNT""".split()
WITHOUT_EQUIVALENT = """FI_DEV_PCIE_TX_THROUGHPUT FI_DEV_PCIE_RX_THROUGHPUT FI_DEV_LOW_UTIL_VIOLATION
FI_DEV_NVLINK_BANDWIDTH_L0 EXP_CLOCK_EVENTS_COUNT EXP_CLOCK_EVENTS_TOTAL EXP_XID_ERRORS_TOTAL EXP_GPU_HEALTH_STATUS EXP_P2P_STATUS""".split()
LABELS = """FI_DRIVER_VERSION FI_NVML_VERSION FI_DEV_BRAND FI_DEV_SERIAL FI_DEV_OEM_INFOROM_VER FI_DEV_ECC_INFOROM_VER
FI_DEV_POWER_INFOROM_VER FI_DEV_INFOROM_IMAGE_VER FI_DEV_VBIOS_VERSION FI_SYSTEM_DRIVER_VERSION""".split()
# In no list of its own, yet in dashboards.
BEYOND = {"FI_DEV_FB_TOTAL", "FI_PROF_NVLINK_TX_BYTES", "FI_PROF_NVLINK_RX_BYTES"}

# What dashboards ask, by dashboard: the two revisions of Grafana's 12239, "NVIDIA DCGM Exporter Dashboard".
DASHBOARDS = {
    "12239": ['max(DCGM_FI_DEV_GPU_TEMP{Hostname=~"$Hostname", gpu=~"$gpu"}) by (Hostname, gpu, uuid)',
              'sum(max(DCGM_FI_DEV_POWER_USAGE{Hostname=~"$Hostname", gpu=~"$gpu"}) by (gpu))',
              'max(DCGM_FI_DEV_SM_CLOCK{Hostname=~"$Hostname", gpu=~"$gpu"} * 1000000) by (Hostname, UUID, gpu)',
              'max(DCGM_FI_PROF_GR_ENGINE_ACTIVE{Hostname=~"$Hostname", gpu=~"$gpu"}) by (Hostname, gpu, GPU_I_ID, GPU_I_PROFILE)',
              'max(DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{Hostname=~"$Hostname", gpu=~"$gpu"}) by (Hostname, gpu, GPU_I_ID, GPU_I_PROFILE)',
              'max(DCGM_FI_DEV_FB_USED{Hostname=~"$Hostname", gpu=~"$gpu"}) by (Hostname, gpu, GPU_I_ID, GPU_I_PROFILE)',
              'label_values(DCGM_FI_DEV_FB_FREE, Hostname)', 'label_values(DCGM_FI_DEV_FB_FREE{Hostname=~"$Hostname"}, gpu)'],
    "12239, first revision": ['DCGM_FI_DEV_GPU_TEMP{instance=~"${instance}", gpu=~"${gpu}"}', 'DCGM_FI_DEV_GPU_UTIL{gpu=~"${gpu}"}',
                              'DCGM_FI_DEV_POWER_USAGE{gpu=~"${gpu}"}', 'DCGM_FI_DEV_MEM_COPY_UTIL{gpu=~"${gpu}"}',
                              'DCGM_FI_DEV_SM_CLOCK{gpu=~"${gpu}"} * 1000000', 'DCGM_FI_DEV_FB_USED{gpu=~"${gpu}"}']}


def records(version: str = "4.8") -> dict[str, str]:
    group, = yaml.safe_load(RULES[version].read_text())["groups"]
    return {rule["record"]: rule["expr"] for rule in group["rules"]}


@functools.cache
def table() -> list[dict]:
    """The rows from which both packs are rendered."""
    rows = subprocess.run(["jsonnet", str(ROOT / "packaging/mixin/dcgm/rows.libsonnet")], capture_output=True, text=True, check=True)
    return json.loads(rows.stdout)


def new_names() -> set[str]:
    return {row["new"] for row in table() if row["new"]}


def catalogue() -> set[str]:
    return set(re.findall(r'(?:gauge|counter)\("(\w+)"', (ROOT / "collectors/api/catalog.hpp").read_text()))


def known(name: str, families: set[str]) -> bool:
    """A partition's families are made from the device's rows: gpu_partition_X where there is a gpu_X."""
    return name in families or name.replace("gpu_partition_", "gpu_", 1) in families


def prefixed(*lists: list[str]) -> set[str]:
    return {f"DCGM_{name}" for names in lists for name in names}


class DcgmNames(unittest.TestCase):
    def test_promtool_accepts_the_rules(self):
        said = subprocess.run(["promtool", "check", "rules", *map(str, RULES.values())], capture_output=True, text=True, timeout=60)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)

    def test_each_name_that_has_an_equivalent_is_recorded_and_no_other(self):
        recorded = {name for name in records() if name.startswith("DCGM_")}
        self.assertEqual(recorded, prefixed(DEFAULT, OPTIONAL, sorted(BEYOND)))
        self.assertEqual({row["old"] for row in table() if row["isDefault"]}, prefixed(DEFAULT))
        self.assertEqual({name for name in records("4.9") if name.startswith("DCGM_")}, new_names())

    def test_the_old_name_of_the_file_is_the_pack_of_4_8(self):
        self.assertEqual((ROOT / "packaging/prometheus/dcgm-names.yml").read_text(), RULES["4.8"].read_text())

    def test_as_many_defaults_change_as_the_release_notes_of_4_9_count(self):
        """23 renamed fields, the driver's version among them, and 11 changed units."""
        defaults = [row for row in table() if row["isDefault"]]
        self.assertEqual(sum(row["old"] != row["new"] for row in defaults) + 1, 23)
        self.assertEqual(sum(row["oldUnit"] != row["newUnit"] for row in defaults), 11)

    def test_the_page_under_these_names_has_the_same_rows(self):
        """exporter/dcgm/view.cpp, without the rates, which a page cannot have. e2e_dcgm_page compares the values."""
        rows = re.findall(r'\{"(DCGM_\w+)", "(\w*)"', (ROOT / "exporter/dcgm/view.cpp").read_text())
        self.assertEqual(rows, [(row["old"], row["new"] or "") for row in table() if not re.search(r"rate\(|increase\(", row["value"])])

    def test_each_record_has_a_case(self):
        for version, cases in CASES.items():
            text = (HERE / cases).read_text()
            self.assertEqual([name for name in records(version) if name.startswith("DCGM_") and name not in text], [])

    def test_the_rules_ask_for_names_of_the_catalogue(self):
        families, own = catalogue(), set(records()) | set(records("4.9"))
        for record, expr in [*records().items(), *records("4.9").items()]:
            names = set(re.findall(r"\bgpu_\w+", re.sub(r'gpu:[\w:]+|"[^"]*"', "", expr)))
            self.assertEqual({name for name in names if not known(name, families)}, set(), record)
            self.assertLessEqual(set(re.findall(r"gpu:[\w:]+", expr)), own, record)

    def test_the_rules_ask_for_words_of_the_collector(self):
        """error="crc_flits" is a valid matcher that matches nothing."""
        sources = "".join(path.read_text() for path in sorted((ROOT / "collectors/nvidia").rglob("*.*pp")))
        words = {word for expr in records().values() for matchers in re.findall(r"\{([^}]*)\}", expr)
                 for word in re.findall(r'\w+="([^"]*)"', matchers)}
        self.assertGreater(len(words), 20)
        self.assertEqual({word for word in words if f'"{word}"' not in sources}, set())

    def test_each_record_is_of_nvidia_cards_only(self):
        for version, info in INFO.items():
            for record, expr in records(version).items():
                if record.startswith("DCGM_"):
                    self.assertRegex(expr, r"\* on \(job, instance, uuid\) group_left \(gpu, device, UUID, modelName, [^)]+\) " + info + "$", record)
            self.assertIn('gpu_info{vendor="nvidia"}', records(version)[info])
        self.assertNotIn("Hostname", RULES["4.9"].read_text())

    def test_dashboards_find_their_names_and_labels(self):
        labels = set(re.findall(r"\w+", records()["gpu:dcgm_labels:info"])) | {"GPU_I_ID", "GPU_I_PROFILE", "instance"}
        for dashboard, queries in DASHBOARDS.items():
            for query in queries:
                self.assertLessEqual(set(re.findall(r"DCGM_\w+", query)), set(records()), dashboard)
                asked = re.findall(r"(\w+)=~", query) + re.findall(r"\w+", "".join(re.findall(r"by \(([^)]*)\)", query)))
                self.assertLessEqual(set(asked), labels, dashboard)

    def test_the_page_has_each_name_of_its_lists(self):
        self.assertEqual(prefixed(DEFAULT, OPTIONAL, WITHOUT_EQUIVALENT, LABELS, sorted(BEYOND)) | new_names(),
                         set(re.findall(r"DCGM_\w+[A-Z0]\b", PAGE)))

    def test_the_page_has_both_names_and_units_of_each_row(self):
        lines = re.findall(r"^\| `(DCGM_\w+)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \| `(\w+)", PAGE, re.M)
        expected = [(row["old"], row["oldUnit"] or "count", f"`{row['new']}`" if row["new"] else "not read", row["newUnit"] or "count") for row in table()]
        self.assertEqual([line[:4] for line in lines], expected)
        self.assertEqual([line[0] for line, row in zip(lines, table()) if line[4] not in row["value"]], [])

    def test_the_page_names_what_exists_here(self):
        families = catalogue() | {"gpumeter_pci_devices"}
        named = set(re.findall(r"`((?:gpu|gpumeter)_\w+)", PAGE))
        self.assertGreater(len(named), 40)
        self.assertEqual({name for name in named if not known(name, families)}, set())

    def test_page_and_rules_say_the_same(self):
        """The first name of ours in a row of the page, with its matchers, is in the rule of that row."""
        rows = re.findall(r"^\| `(DCGM_\w+)` \| `(gpu_\w+)(\{[^}]*\})?`", PAGE, re.M)
        self.assertGreater(len(rows), 45)
        for dcgm, family, matchers in rows:
            if dcgm in records():
                self.assertIn(family, records()[dcgm], dcgm)
                self.assertIn((matchers or "").strip("{}"), records()[dcgm], dcgm)


if __name__ == "__main__":
    if not shutil.which("promtool") or not shutil.which("jsonnet"):
        print("skipped: there is no promtool or no jsonnet (packages prometheus, jsonnet)")
        sys.exit(77)
    unittest.main(verbosity=2)
