#!/usr/bin/env python3
"""Given a process on a GPU, Inspector's file of that GPU and dumps of PyTorch's flight recorder in the configured places, then the daemon's page has
them under the process's run, and the log of their reader names what is wrong with a file."""
from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import at_once
from harness import BINARY, ROOT, Daemon, Page, Program, wait_until

LIBRARY = Path(os.environ.get("GPUMETER_FAKE_NVML", str(Path(BINARY).with_name("tests") / "fake_nvml/libnvidia-ml.so.1")))
DUMPS = ROOT / "tests/fixtures/nccl/flight_recorder"
UUID = "b1000000-0000-4000-8000-000000000000"
SCENARIO = """
include: a100.yaml
change:
  0:
    processes: {{compute: [{{pid: {pid}, memory: 900 MiB, sm: 0}}], graphics: []}}
"""


class Calls:
    """Executed by Python's own reader of pickles."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


class NcclFilesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-nccl-files-")))
        self.job = self.enterContext(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        self.addCleanup(self.job.kill)
        (self.folder / "a100.yaml").symlink_to(ROOT / "tests/fixtures/nvidia/a100.yaml")
        (self.folder / "scenario.yaml").write_text(SCENARIO.format(pid=self.job.pid))
        (self.folder / "gpumeter.yaml").write_text(f"""
sampling: {{fast: 1s, normal: 1s}}
pages: {{folders: [{self.folder}/pages]}}
nccl: {{users: ["{os.getuid()}"], inspector: {self.folder}, flight_recorder: [{self.folder}/rank_]}}
jobs: {{enabled: false}}
collectors: {{nvidia: {{library: {LIBRARY}}}, amd: {{enabled: false}}}}
""")

    def inspector(self, uuid: str, text: str) -> None:
        (self.folder / f"nccl_inspector_metrics_{uuid}.prom").write_text(text)

    def start(self) -> None:
        """The daemon and the reader."""
        config = self.folder / "gpumeter.yaml"
        self.daemon = self.enterContext(Daemon(f"--config.file={config}", env={"FAKE_NVML_SCENARIO": str(self.folder / "scenario.yaml")}))
        self.reader = self.enterContext(Program("gpumeter-nccl", self.daemon, config, f"--files={ROOT}/packaging/python/gpumeter-nccl-files",
                                                 pages=self.folder / "pages"))

    def page_with(self, name: str, **labels: str) -> Page:
        return wait_until(lambda: (page := self.daemon.page()).of(name, **labels) and page, f"{name}{labels} on the page\n{self.reader.log}", 30)

    def test_inspector(self) -> None:
        self.inspector(UUID, (ROOT / "tests/fixtures/nccl/inspector_v5.1.prom").read_text() + "nonsense\n")
        self.inspector(UUID.replace("b1", "c1"), "")
        self.start()
        page = self.page_with("ml_nccl_bus_bandwidth_bytes_per_second")
        labels = {"gpu": "0", "uuid": f"GPU-{UUID}", "op": "all_reduce", "size": "4GiB and more", "scope": "node"}
        self.assertAlmostEqual(page.one("ml_nccl_bus_bandwidth_bytes_per_second", **labels), 678.263e9, delta=1)
        self.assertAlmostEqual(page.one("ml_nccl_operation_duration_seconds", **labels), 9498.47e-6, delta=1e-12)
        found, = page.of("ml_nccl_bus_bandwidth_bytes_per_second", **labels)
        self.assertLessEqual({"run", "user"}, {name for name, _ in found[1]})
        self.assertEqual(page.one("gpumeter_nccl_files", source="inspector", state="unknown_gpu"), 1)
        self.assertEqual(page.one("gpumeter_nccl_files", source="inspector", state="invalid"), 1)
        self.assertIn(f"nccl_inspector_metrics_{UUID}.prom", self.reader.log)
        self.assertIn("line 11: is no sample of a metric", self.reader.log)

    def test_missing_folders_are_named_and_read_later(self) -> None:
        config = self.folder / "gpumeter.yaml"
        config.write_text(config.read_text().replace(f"inspector: {self.folder},", f"inspector: {self.folder}/later,").replace("/rank_]", "/dumps/rank_]"))
        self.start()
        for name in ("later", "dumps"):
            wait_until(lambda folder=self.folder / name: f"does not exist yet: {folder}" in self.reader.log, f"{name} is named\n{self.reader.log}", 30)
        (self.folder / "later").mkdir()
        (self.folder / "later" / f"nccl_inspector_metrics_{UUID}.prom").write_bytes((ROOT / "tests/fixtures/nccl/inspector_v5.1.prom").read_bytes())
        self.page_with("ml_nccl_bus_bandwidth_bytes_per_second")

    def test_flight_recorder(self) -> None:
        for rank, name in enumerate(("rank_0.pickle", "rank_1.json", "rank_2.pickle")):
            (self.folder / f"rank_{rank}").write_bytes((DUMPS / name).read_bytes())
        executed = self.folder / "executed"
        (self.folder / "rank_3").write_bytes(pickle.dumps({"pg_status": Calls(executed)}))
        self.start()
        page = self.page_with("ml_flight_recorder_collective", rank="2")
        self.assertEqual([page.one("ml_flight_recorder_collective", rank=str(rank), group="0", state="enqueued") for rank in range(4)],
                         [7, 7, 6, None])
        self.assertEqual(page.one("gpumeter_nccl_files", source="flight_recorder", state="invalid"), 1)
        self.assertIn("opcode STACK_GLOBAL is refused, only data is read", self.reader.log)
        self.assertFalse(executed.exists())
        pickle.loads((self.folder / "rank_3").read_bytes())
        self.assertTrue(executed.exists(), "Python's reader executes the same file")

    def test_without_files_it_ends(self) -> None:
        (self.folder / "gpumeter.yaml").write_text("nccl: {enabled: true}\n")
        self.start()
        self.assertEqual(self.reader.process.wait(30), 0)
        self.assertIn("the configuration does not enable it", self.reader.log)


if __name__ == "__main__":
    at_once.main()
