#!/usr/bin/env python3
"""Given Slurm's prolog and `gpumeter allocate`, then the page has who was given which GPU, by name, until the epilog."""
import contextlib
import os
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import Daemon, promtool_findings, run, wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
PLUGINS = ROOT / "packaging/integrations/slurm"
JOB = {"SLURM_JOB_ID": "7", "SLURM_JOB_UID": str(os.getuid()), "SLURM_JOB_USER": "alice", "SLURM_JOB_ACCOUNT": "nlp",
       "SLURM_JOB_PARTITION": "gpu", "SLURM_JOB_GPUS": "1", "SLURM_JOB_START_TIME": "1700000000"}


class AllocationsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="gpumeter-allocations-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.jobs = self.folder / "slurm"
        (self.folder / "defaults").write_text(f"FOLDER={self.jobs}\nJOB_NAMES=yes\n")

    def plugin(self, name: str, **variables: str) -> None:
        """Each ends well, whatever it is given, and prints nothing."""
        said = subprocess.run([PLUGINS / f"gpumeter-{name}"], capture_output=True, text=True, timeout=30,
                              env={"GPUMETER_SLURM_DEFAULTS": str(self.folder / "defaults"), **variables})
        self.assertEqual((said.returncode, said.stdout, said.stderr), (0, "", ""))

    def test_page(self) -> None:
        state = self.folder / "state"
        config = self.folder / "gpumeter.yaml"
        config.write_text(f"allocations: {{slurm: {self.jobs}, manual: {self.folder}/manual}}\npaths: {{state: {state}}}\n"
                          "collectors: {simulated: {enabled: true, devices: 2, duty: 0}}\n")
        with Daemon(f"--config.file={config}", "--collector.disable-defaults", state=str(state)) as daemon:
            def given(source: str) -> list[str]:
                return sorted(dict(labels)["gpu"] for _, labels in daemon.page().of("gpu_allocation_info", source=source))

            self.plugin("prolog", **JOB)
            self.plugin("task-prolog", SLURM_JOB_ID="7", SLURM_JOB_NAME="bert", SLURM_ARRAY_JOB_ID="6", SLURM_ARRAY_TASK_ID="2")
            wait_until(lambda: given("slurm") == ["1"], "the job's GPU is on the page")
            named = {"kind": "slurm_job", "workload": "7", "source": "allocation", "slurm_job": "7", "slurm_account": "nlp",
                     "slurm_partition": "gpu", "slurm_job_name": "bert", "slurm_array_job": "6", "slurm_array_task": "2", "user": "alice"}
            wait_until(lambda: daemon.page().one("gpu_workload_info", **named) == 1, "the job has its names")
            wait_until(lambda: (state / "devices.json").exists(), "the indexes are saved")
            self.assertEqual(daemon.page().one("gpu_allocation_start_timestamp_seconds", workload="7"), 1700000000)
            self.assertEqual(daemon.page().one("gpu_allocated_idle_seconds_total", workload="7"), 0)

            def allocate(*words: str) -> subprocess.CompletedProcess:
                return run("allocate", *words, f"--config.file={config}")

            self.assertEqual(allocate().stdout, "no GPU is allocated by hand\n")
            said = allocate("set", "lab", "--gpu", "0,1", "--user=bob", "--kind", "vm")
            self.assertEqual((said.returncode, said.stdout), (0, "2 GPU(s) are allocated to lab\n"), said.stderr)
            wait_until(lambda: given("manual") == ["0", "1"], "the GPUs by hand are on the page")
            wait_until(lambda: daemon.page().one("gpu_workload_info", kind="vm", workload="lab", user="bob", source="allocation"), "named")
            self.assertRegex(allocate("list").stdout, r"(?m)^lab vm bob \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ SIM-1-0,SIM-1-1$")
            for words, why in ((("set", "x", "--gpu=7"), "no GPU 7 is known"), (("set", "../x", "--gpu=0"), "a workload's name has"),
                               (("clear", "lab"), "no allocation of the kind other"), (("set", "x"), "requires --gpu"),
                               (("clear",), "requires the name"), (("drop", "x"), "must be set, clear or list")):
                self.assertIn(why, allocate(*words).stderr)
                self.assertNotEqual(allocate(*words).returncode, 0)
            self.assertEqual(promtool_findings(daemon.fetch("/metrics").text), "")

            self.assertEqual(allocate("clear", "lab", "--kind=vm").returncode, 0)
            self.plugin("epilog", SLURM_JOB_ID="7")
            wait_until(lambda: not daemon.page().of("gpu_allocation_info"), "nothing is given")
            wait_until(lambda: not list(self.jobs.iterdir()), "the folder is empty")
            self.jobs.chmod(0o777)
            wait_until(lambda: "allocations are not read" in daemon.log, "a folder of anybody is refused")

    def test_a_reload_and_a_restart(self) -> None:
        state = self.folder / "state"
        config = self.folder / "gpumeter.yaml"

        def configure(folder: str) -> None:
            config.write_text(f"allocations: {{slurm: {self.jobs}, manual: {self.folder}/{folder}}}\npaths: {{state: {state}}}\n"
                              "collectors: {simulated: {enabled: true, devices: 1, duty: 0}}\n")

        def daemon() -> Daemon:
            return Daemon(f"--config.file={config}", "--collector.disable-defaults", state=str(state))

        def idle(page) -> float | None:
            return page.one("gpu_allocated_idle_seconds_total", workload="lab")

        def saved() -> float:
            """The idle seconds in the file of figures."""
            file = state / "figures.state"
            lines = file.read_text().splitlines() if file.exists() else []
            return max((float(line.rsplit("\t", 1)[1]) for line in lines if line.startswith("idle\t")), default=0)

        configure("manual")
        with daemon() as first:
            wait_until(lambda: (state / "devices.json").exists(), "the indexes are saved")
            self.assertEqual(run("allocate", "set", "lab", "--gpu=0", f"--config.file={config}").returncode, 0)
            wait_until(lambda: (idle(first.page()) or 0) > 0, "the GPU was idle for a while", 60)
            configure("elsewhere")
            first.send(signal.SIGHUP)
            wait_until(lambda: not first.page().of("gpu_allocation_info"), "the other folder is read: it has nothing")
            configure("manual")
            seen = idle(first.page()) or 0
            first.send(signal.SIGHUP)
            wait_until(lambda: first.page().of("gpu_allocation_info", workload="lab"), "the first folder is read again")
            self.assertIn("configuration reloaded", first.log)
            self.assertNotIn("needs a restart", first.log)
            seen = max(seen, idle(first.page()) or 0)
            self.assertGreater(seen, 0)
            # A busy disk may delay the last write of a stop beyond its half second.
            wait_until(lambda: saved() >= seen, "the counter is saved", 60)
        with daemon() as second:
            wait_until(lambda: second.page().of("gpu_allocation_info", workload="lab"), "the allocation holds")
            wait_until(lambda: idle(second.page()) is not None, "its counter is there", 60)
            self.assertGreaterEqual(idle(second.page()), seen)

    def test_plugins_touch_nothing_else(self) -> None:
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        self.jobs.symlink_to(elsewhere)
        self.plugin("prolog", **JOB)
        (elsewhere / "7").write_text("other")
        self.plugin("epilog", SLURM_JOB_ID="7")
        self.assertEqual([path.name for path in elsewhere.iterdir()], ["7"])
        self.jobs.unlink()
        for number in ("", "../7", "7;id", "7 8"):
            self.plugin("prolog", **{**JOB, "SLURM_JOB_ID": number})
            self.plugin("epilog", SLURM_JOB_ID=number)
            self.plugin("task-prolog", SLURM_JOB_ID=number, SLURM_JOB_NAME="x")
        self.assertFalse(self.jobs.exists())
        self.plugin("prolog", **{**JOB, "SLURM_JOB_ACCOUNT": "nlp\nSLURM_JOB_USER=root"})
        self.assertNotIn("root", (self.jobs / "7").read_text())
        self.assertEqual((self.jobs / "7").stat().st_mode & 0o777, 0o644)

    def name_of_7(self) -> str:
        return wait_until(lambda: (self.jobs / "7.name").exists() and (self.jobs / "7.name").read_text(), "the name is read", 10)

    def test_the_first_task_names_the_job(self) -> None:
        self.plugin("prolog", **JOB)
        self.plugin("task-prolog", SLURM_JOB_ID="7", SLURM_JOB_NAME="other", SLURM_LOCALID="1")
        for name in ("bert", "step"):
            self.plugin("task-prolog", SLURM_JOB_ID="7", SLURM_JOB_NAME=name)
            self.assertEqual(self.name_of_7(), "SLURM_JOB_NAME=bert\n")
        self.plugin("epilog", SLURM_JOB_ID="7")
        self.assertEqual(list(self.jobs.iterdir()), [])

    def readers(self) -> int:
        return sum(each.read_bytes().startswith(b"dd\0") for each in Path("/proc").glob("[0-9]*/cmdline") if each.exists() and self.is_in(each))

    def is_in(self, cmdline: Path) -> bool:
        with contextlib.suppress(OSError):
            return os.readlink(cmdline.parent / "cwd") == str(self.jobs)
        return False

    def test_a_job_without_a_name_leaves_no_process(self) -> None:
        self.plugin("prolog", **JOB)
        wait_until(self.readers, "root waits for the name")
        self.plugin("epilog", SLURM_JOB_ID="7")
        wait_until(lambda: not self.readers() and not list(self.jobs.iterdir()), "nobody waits any more, and nothing is left")

    def test_a_job_cannot_fill_the_folder(self) -> None:
        """It writes as much as it can, and keeps the pipe open over the epilog."""
        self.plugin("prolog", **JOB)
        writer = os.open(self.jobs / "7.pipe", os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, writer)
        written = 0
        with contextlib.suppress(BlockingIOError):
            while written < 64 << 20:
                written += os.write(writer, b"SLURM_JOB_NAME=" + b"x" * 4000 + b"\n")
        self.assertLess(written, 2 << 20)
        self.assertEqual(len(self.name_of_7()), 2048)
        self.assertFalse((self.jobs / "7.pipe").exists())
        self.plugin("epilog", SLURM_JOB_ID="7")
        self.assertEqual(list(self.jobs.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
