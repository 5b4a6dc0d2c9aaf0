#!/usr/bin/env python3
"""Given a job on a simulated GPU, when the daemon restarts in the middle, then energy, workloads and runs go on; after a crash no
counter is lower than on the last page; a damaged file is reported and set aside."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import at_once
from harness import ROOT, Daemon, Page, wait_until
from jobs import Folder, dropped
from protobuf_test import PROTOBUF, fields, messages
from workloads_test import machine

JOB = {"kind": "slurm_job", "workload": "4711"}
OWN = ("gpu_energy_joules_total", "gpu_busy_seconds_total", "gpu_throttle_seconds_total", "gpu_observed_seconds_total",
       "gpu_workload_energy_joules_total", "gpu_workload_busy_seconds_total")


# Sends steps as fast as the daemon takes them, and prints how many were accepted and what ended it.
SENDER = """
import errno, os, socket, sys
out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
out.connect(sys.argv[1])
sent = 0
try:
    while True:
        sent += out.send(b"ml.steps:1|c|#run:last") > 0
except OSError as error:
    print(sent, errno.errorcode[error.errno])
"""


def own_counters(page: Page) -> dict:
    return {key: value for key, value in page.items() if key[0] in OWN}


def starts(daemon: Daemon) -> dict[tuple, bytes]:
    """The times at which the counters of the device began, which only the protobuf page has."""
    found = {}
    for message in messages(daemon.fetch("/metrics", {"Accept": PROTOBUF}).body):
        parts = list(fields(message))
        name, metrics = dict(parts)[1].decode(), [list(fields(value)) for number, value in parts if number == 4]
        for metric in metrics if name in OWN else ():
            counter = dict(fields(dict(metric)[3]))
            if 3 in counter:
                found[name, *(value for number, value in metric if number == 1)] = counter[3]
    return found


def costs(daemon: Daemon, path: str = "") -> list[dict]:
    return json.loads(daemon.fetch("/api/v1/workloads" + path).text)["workloads"]


def written(folder: Path, config: dict) -> str:
    path = folder / "gpumeter.yaml"
    path.write_text(json.dumps(config))  # JSON is YAML
    return f"--config.file={path}"


class Xid(unittest.TestCase):
    """An XID that the first daemon saw is a reason of the second one, and its counters began when those of the first did."""

    def holds(self, daemon: Daemon) -> bool:
        return bool(daemon.page().of("gpu_health_reason", reason="xid_79"))

    def check(self, end) -> None:
        state = self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-state-"))
        with Daemon("--simulate=1", "--simulate-event=xid:79 0 after 1s", state=state) as first:
            wait_until(lambda: self.holds(first), "the reason of the XID", 20)
            wait_until(lambda: "gpu_xid_errors_total,xid=79" in "".join(path.read_text() for path in Path(state).rglob("figures.*")), "a copy", 20)
            began = starts(first)
            end(first)
        self.assertGreater(len(began), 3)
        with Daemon("--simulate=1", state=state) as second:
            wait_until(lambda: second.page().of("gpu_health"), "a judgement", 20)
            self.assertTrue(self.holds(second), second.log)
            later = starts(second)
            self.assertEqual({key: later.get(key) for key in began}, began)

    def test_after_a_crash(self):
        self.check(lambda daemon: daemon.process.kill())

    def test_after_a_stop(self):
        self.check(lambda daemon: daemon.stop())


class Restart(unittest.TestCase):
    """Two GPUs; a job's process works on GPU 0."""

    def setUp(self):
        self.machine = self.enterContext(machine())
        self.state = self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-state-"))
        self.figures = Path(self.state, "figures.state")
        self.runtime = Path(self.state, "run", "figures.state")
        self.jobs = self.enterContext(Folder())
        self.pid = self.machine.start("/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0")
        listed = self.machine.pid_file("on-0", [self.pid])
        off = {"enabled": False}
        self.flag = written(self.machine.folder, {
            "paths": {"procfs": str(self.machine.procfs)},
            "jobs": {"socket": self.jobs.datagram, "stream_socket": self.jobs.stream},
            "collectors": {"simulated": {"enabled": True, "devices": 2, "processes": [f"0={listed},busy=0.5,memory=1GiB"]},
                           "nvidia": off, "amd": off}})

    def start(self, env: dict | None = None) -> Daemon:
        return self.enterContext(Daemon(self.flag, state=self.state, env={"RUNTIME_DIRECTORY": str(self.runtime.parent)} if env is None else env))

    def work(self, daemon: Daemon) -> Page:
        """Until the job has used energy."""
        wait_until(lambda: sum(daemon.page().of("gpu_workload_energy_joules_total", gpu="0", **JOB).values()) > 100, "the job works")
        return daemon.page()

    def test_a_job_goes_on(self):
        first = self.start()
        self.jobs.send("_e{9,4}:run_start|bert|t:info", "ml.steps:40|c\nml.step:40|g\nml.target:0.7|g|#metric:top1,direction:max\n"
                       "ml.eval:0.71|g|#metric:top1")
        wait_until(lambda: first.page().of("ml_time_to_solution_seconds"), "the target is reached")
        before = self.work(first)
        began = costs(first, "/slurm_job/4711")[0]
        self.assertEqual(first.stop()[0], 0)
        again = self.start()
        wait_until(lambda: again.page().of("gpu_workload_memory_used_bytes", gpu="0", **JOB), "its process is seen again")
        after = again.page()
        for key, value in own_counters(before).items():
            self.assertGreaterEqual(after.get(key, -1), value, key)
        energy = [page.one("gpu_workload_energy_joules_total", gpu="0", **JOB) for page in (before, after)]
        print("energy of the job before and after, in joules:", energy, "steps:", before.one("ml_steps_total"), after.one("ml_steps_total"))
        parts = sum(after.of("gpu_workload_energy_joules_total", gpu="0").values())
        self.assertAlmostEqual(parts, after.one("gpu_energy_joules_total", gpu="0"), delta=1e-6 * parts)
        for family in ("ml_steps_total", "ml_step", "ml_eval_best_value", "ml_target_value", "ml_time_to_solution_seconds",
                       "ml_run_start_timestamp_seconds"):
            self.assertEqual(after.of(family), before.of(family), family)
        starts = [page.one("gpu_workload_energy_joules_created", gpu="0", **JOB) for page in (before, after)]
        self.assertAlmostEqual(*starts, delta=0.5)  # by two readings of the two clocks
        cost, = costs(again, "/slurm_job/4711")
        self.assertEqual((cost["state"], cost["labels"]["slurm_job"]), ("running", "4711"))
        self.assertAlmostEqual(cost["start_timestamp_seconds"], began["start_timestamp_seconds"], delta=0.1)
        self.assertGreaterEqual(cost["joules"], began["joules"])
        self.machine.end(self.pid)
        ended = wait_until(lambda: next((c for c in costs(again, "/slurm_job/4711") if c["state"] == "ended"), None), "it has ended")
        self.assertGreater(ended["gpu_seconds"], 0)
        self.assertEqual(ended["peak_memory_bytes"], 1 << 30)
        line = again.fetch("/api/v1/workloads/slurm_job/4711?format=text").text
        self.assertRegex(line, r"^kind=slurm_job workload=4711 state=ended .*gpu_seconds=[0-9.]+ .*joules=[0-9.]+ ")
        self.assertEqual(again.fetch("/api/v1/workloads/slurm_job/1").status, 404)

    def test_after_a_crash_no_counter_is_lower_than_on_the_last_page(self):
        self.crash({"RUNTIME_DIRECTORY": str(self.runtime.parent)}, self.runtime)

    def test_nor_without_the_runtime_folder_of_systemd(self):
        self.crash({}, Path(self.state, "figures.copy"))

    def crash(self, env: dict, copy: Path):
        first = self.start(env)
        self.jobs.send("ml.steps:40|c\nml.steps:2|c")
        wait_until(lambda: first.page().of("ml_steps_total"), "the run is on the page")
        last = self.work(first)
        for _ in range(2):  # a copy that is being written was begun before the page
            copied = copy.stat().st_mtime_ns
            wait_until(lambda: copy.stat().st_mtime_ns > copied, "the page is in the copy", 5)
        first.process.kill()
        first.process.wait()
        self.assertFalse(self.figures.exists(), "the state folder is written after 10 s")
        again = self.start(env)
        wait_until(lambda: again.page().of("gpu_workload_memory_used_bytes", gpu="0", **JOB), "its process is seen again")
        wait_until(lambda: again.page().of("ml_steps_total"), "the run goes on")
        page = again.page()
        for key, value in {**own_counters(last), **last.of("ml_steps_total")}.items():
            self.assertGreaterEqual(page.get(key, -1), value, key)
        self.assertEqual(again.stop()[0], 0)
        self.assertFalse(copy.exists(), "figures.state has the figures")

    def test_what_jobs_sent_before_the_end_is_there_or_counted(self):
        """The socket is the daemon's own; its sender is connected, as statsd clients are, and sends until it is refused."""
        first = self.start({})
        with subprocess.Popen([sys.executable, "-c", SENDER, self.jobs.datagram], text=True, stdout=subprocess.PIPE) as sender:
            wait_until(lambda: first.page().of("ml_steps_total"), "the run is on the page")
            self.assertEqual(first.stop()[0], 0)
            sent, refused = sender.communicate(timeout=30)[0].split()
        self.assertEqual(refused, "EPIPE")
        page = wait_until(lambda: (again := self.start({}).page()).of("ml_steps_total") and again, "the run goes on")
        there, lost = page.one("ml_steps_total"), sum(dropped(page).values())
        print("steps sent:", sent, "there:", there, "counted as dropped:", dropped(page))
        self.assertEqual(there + lost, int(sent))

    def test_names_of_slurm_stay_after_the_epilog_and_a_restart(self):
        folder = Path(self.state, "slurm")
        defaults = Path(self.state, "defaults")
        defaults.write_text(f"FOLDER={folder}\nJOB_NAMES=yes\n")

        def plugin(name: str, **variables: str) -> None:
            subprocess.run([ROOT / f"packaging/integrations/slurm/gpumeter-{name}"], check=True, timeout=30,
                           env={"GPUMETER_SLURM_DEFAULTS": str(defaults), "SLURM_JOB_ID": "4711", **variables})

        config = json.loads(Path(self.flag.partition("=")[2]).read_text())
        self.flag = written(self.machine.folder, {**config, "allocations": {"slurm": str(folder)}})
        plugin("prolog", SLURM_JOB_UID=str(os.getuid()), SLURM_JOB_USER="alice", SLURM_JOB_ACCOUNT="nlp", SLURM_JOB_PARTITION="gpu",
               SLURM_JOB_GPUS="0", SLURM_JOB_START_TIME="1700000000")
        plugin("task-prolog", SLURM_JOB_NAME="bert", SLURM_ARRAY_JOB_ID="6", SLURM_ARRAY_TASK_ID="2")
        names = {"slurm_account": "nlp", "slurm_partition": "gpu", "slurm_job_name": "bert", "slurm_array_job": "6", "slurm_array_task": "2"}
        first = self.start()
        self.work(first)
        wait_until(lambda: first.page().of("gpu_workload_info", **JOB, **names), "it has its names")
        self.machine.end(self.pid)
        plugin("epilog")
        wait_until(lambda: not first.page().of("gpu_allocation_info"), "the epilog is known")
        wait_until(lambda: costs(first, "/slurm_job/4711")[0]["state"] == "ended", "the job has ended")
        for daemon in (first, None):
            if not daemon:
                self.assertEqual(first.stop()[0], 0)
                daemon = self.start()
                wait_until(lambda: daemon.page().of("gpu_workload_energy_joules_total", gpu="0", **JOB), "its energy is there again")
            wait_until(lambda: daemon.page().of("gpu_workload_info", **JOB, **names), "the names stay")
            self.assertEqual(costs(daemon, "/slurm_job/4711")[0]["labels"].items() & names.items(), names.items())
            self.assertIn(" slurm_account=nlp slurm_array_job=6 slurm_array_task=2 slurm_job_name=bert slurm_partition=gpu ",
                          daemon.fetch("/api/v1/workloads/slurm_job/4711?format=text").text)

    def test_a_damaged_file_is_set_aside(self):
        first = self.start()
        before = self.work(first)
        self.assertEqual(first.stop()[0], 0)
        text = self.figures.read_text()
        self.figures.write_text(text.replace("gpu_energy", "gpu_enerGy", 1))
        again = self.start()
        self.assertIn("the figures of the last run are lost: their file is damaged; it was renamed to figures.state.bad", again.log)
        self.assertIn("its checksum does not match", again.log)
        self.assertTrue(Path(self.state, "figures.state.bad").exists())
        self.assertLess(again.page().one("gpu_observed_seconds_total", gpu="0", tier="fast"),
                        before.one("gpu_observed_seconds_total", gpu="0", tier="fast"))


if __name__ == "__main__":
    at_once.main()
