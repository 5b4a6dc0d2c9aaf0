#!/usr/bin/env python3
"""The fake NVML plays every capture of nvidia-smi to the daemon, and the rows of tests/gpu/check compare the page with the
capture's own query: a row with the wrong series fails here already, without a GPU.

$GPUMETER_FAKE_NVML is the fake, $GPUMETER_CAPTURES the folder that has nvidia/ in it (../shared/captures).
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
from gpucheck import compare, rows, smi  # noqa: E402
from gpucheck.page import Page  # noqa: E402

BINARY = os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter"))
FAKE = Path(os.environ.get("GPUMETER_FAKE_NVML", "/nonexistent"))
CAPTURES = Path(os.environ.get("GPUMETER_CAPTURES", ROOT.parent / "shared/captures")) / "nvidia"


def told(capture: str, section: str) -> smi.Told:
    """The capture's query has units behind its numbers, as nvidia-smi has without `nounits`."""
    fields, line = re.search(rf"^# {section} :: query-gpu.*\n# \$ nvidia-smi --query-gpu=(\S+) --format=csv\n#+\n.*\n(\d.*)$", capture, re.M).groups()
    plain = re.sub(r"(?<=\d) (?:MiB|MHz|W|%|us|W/s|ms|seconds)(?=,|$)", "", line)
    found, = smi.parse(plain, fields.split(",")).values()
    return found


def played(capture: Path, section: str, folder: Path) -> Page:
    scenario = folder / "scenario.yaml"
    with scenario.open("w") as out:
        subprocess.run([sys.executable, "-B", str(ROOT / "tests/fakes/nvml/from_nvidia_smi.py"), str(capture), "--section", section],
                       stdout=out, check=True, timeout=60)
    environment = {"FAKE_NVML_SCENARIO": str(scenario), "LD_LIBRARY_PATH": str(FAKE.parent), "PATH": "/usr/bin:/bin"}
    said = subprocess.run([BINARY, "--once", f"--path.state={folder}", f"--path.sysfs={folder}", f"--config.file={os.devnull}",
                           "--metrics.detail=full"],
                          env=environment, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    return Page(said.stdout)


class Replay(unittest.TestCase):
    def test_every_capture(self) -> None:
        for capture in sorted(CAPTURES.glob("*.txt")):
            for section in ("idle", "load"):
                with self.subTest(capture.name, section=section), tempfile.TemporaryDirectory(prefix="gpucheck-") as folder:
                    self.hold(told(capture.read_text(), section), played(capture, section, Path(folder)), f"{capture.name}, {section}")

    def hold(self, query: smi.Told, page: Page, title: str) -> None:
        results = [(row, compare.compare(row, query, [page], query["uuid"])) for row in rows.ROWS]
        counted = Counter(result.verdict for _, result in results)
        print(f"{title}: {dict(counted)}")
        self.assertGreater(counted["same"], 20)
        # `nvidia-smi -q`, which the scenario is made of, and the query were asked one after the other.
        self.assertEqual([result for row, result in results if result.verdict == "differs" and not row.moving], [])
        self.assertEqual([result for row, result in results if result.verdict == "absent" and not self.left_out(row, query)], [])

    @staticmethod
    def left_out(row: rows.Row, query: smi.Told) -> bool:
        """Of a card in MIG mode `nvidia-smi -q` prints no histogram, so that the scenario has none."""
        return row.family == "gpu_row_remap_banks" and query.get("mig.mode.current") == "Enabled"


if __name__ == "__main__":
    if not FAKE.is_file() or not CAPTURES.is_dir():
        print("skipped: no fake NVML ($GPUMETER_FAKE_NVML), or no captures of nvidia-smi")
        sys.exit(77)
    unittest.main(verbosity=2)
