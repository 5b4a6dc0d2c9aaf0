#!/usr/bin/env python3
"""Jobs report their runs to the daemon, by our client and by others, over both sockets; the daemon restarts, reloads, and shares
its machine with another daemon."""
from __future__ import annotations

import array
import os
import re
import signal
import socket
import stat
import struct
import subprocess
import sys
import unittest
from pathlib import Path

from harness import TEXT, promtool_findings, wait_until
from harness import run as run_binary
from jobs import Folder, Job, dropped, framed, is_root, recorded, shown, value

try:
    import statsd
except ImportError:
    statsd = None

import gpumeter

MLLOG = ':::MLLOG {{"key": "{key}", "value": {value}, "time_ms": {time}, "metadata": {metadata}}}\n'
# Of runs whose processes use a GPU, and what others than the job report about it.
OF_OTHERS = re.compile(r"ml_(energy|gpu_idle|run_gpu_info|throttled|clock_lost|profile|nccl|flight_recorder|server)")
PLAIN_CLIENT = """
import socket
out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
out.setblocking(False)
out.connect({path!r})
for step in range(3):
    out.send(b"ml.steps:1|c|#run:plain\\nml.loss:%f|g|#run:plain" % (1 / (step + 1)))
"""


class JobsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = self.enterContext(Folder())

    def test_our_client(self) -> None:
        with self.folder.daemon() as daemon, Job(self.folder, "alive") as alive:
            alive.say("ml.memory:4096|g|#state:peak")
            with gpumeter.Run("resnet50", framework="pytorch", path=self.folder.datagram, environ={}) as run:
                run.batch_size(2048)
                run.world_size(8)
                run.target("top1", 0.7)
                for _ in range(5):
                    run.step(samples=256, tokens=10, flops=1e12, loss=2.5)
                with run.phase("data_loading"):
                    pass
                run.eval("top1", 0.75)
                run.inference(0.82, ttft=0.11, itl=[0.1, 0.2], input_tokens=512)
                run.loss("no number")  # rejected by the client with a log line
                run.facts(precision="bf16-mixed", data_parallel=8)
                run.failed(type("OutOfMemoryError", (RuntimeError,), {})())
                self.folder.send("ml.custom:0.003|g|#run:resnet50,metric:learning_rate")
            page = shown(daemon, {
                'ml_steps_total{run="resnet50",split="train"}': 5, 'ml_step{run="resnet50"}': 5,
                'ml_samples_total{run="resnet50",split="train"}': 1280, 'ml_tokens_total{split="train"}': 50,
                'ml_model_flops_total{dtype="bf16"}': 5e12, 'ml_loss{run="resnet50"}': 2.5,
                'ml_phases_total{phase="data_loading"}': 1, 'ml_eval_value{metric="top1"}': 0.75,
                'ml_target_value{metric="top1"}': 0.7, 'ml_custom{metric="learning_rate"}': 0.003, "ml_inter_token_latency_seconds_count": 2,
                "ml_inference_duration_seconds_sum": 0.82, 'ml_run_info{framework="pytorch",precision="bf16",data_parallel="8"}': 1,
                'ml_allocator_memory_bytes{run="alive",state="peak"}': 4096, 'ml_out_of_memory_errors_total{run="resnet50"}': 1})
            self.assertIsNotNone(value(page, 'ml_time_to_solution_seconds{metric="top1"}'))
            self.assertIsNotNone(value(page, 'ml_run_stop_timestamp_seconds{status="success"}'))
            self.assertEqual(dropped(page), {"client": 1})
            documented = {line.split("\t")[0] for line in run_binary("--print-metrics=text").stdout.splitlines()}
            self.assertEqual({name for name in page.types if name.startswith("ml_")},
                             {name.removesuffix("_total") for name in documented if name.startswith("ml_") and not OF_OTHERS.match(name)})
            text = daemon.fetch("/metrics", {"Accept": TEXT}).text
            self.assertEqual(promtool_findings(text), "")

    def test_six_lines_without_a_library(self) -> None:
        with self.folder.daemon() as daemon:
            subprocess.run([sys.executable, "-c", PLAIN_CLIENT.format(path=self.folder.datagram)], check=True, timeout=60)
            page = shown(daemon, {'ml_steps_total{run="plain"}': 3})
            self.assertAlmostEqual(value(page, 'ml_loss{run="plain"}'), 1 / 3, places=5)
            self.assertEqual(dropped(page), {})

    def test_datadogpy_as_recorded(self) -> None:
        with self.folder.daemon() as daemon:
            self.folder.send(*recorded("datadogpy, Unix datagrams"))
            page = shown(daemon, {'ml_steps_total{run="resnet50"}': 2, 'ml_samples_total{run="resnet50"}': 768,
                                  'ml_step_duration_seconds_count{run="resnet50"}': 4, 'ml_loss{run="resnet50"}': 2.5,
                                  'ml_inference_duration_seconds_sum{run="resnet50"}': 0.03,
                                  'ml_phase_seconds_total{run="resnet50",phase="data_loading"}': 0.02})
            self.assertEqual(dropped(page), {"unknown_metric": 3})  # g, k and users
            with self.folder.connection() as out:
                out.sendall(recorded("datadogpy, Unix stream")[0])
                page = shown(daemon, {'ml_steps_total{run="resnet50"}': 3})
            self.assertEqual(dropped(page), {"unknown_metric": 4})  # a

    @unittest.skipIf(statsd is None, "python3-statsd is not installed")
    def test_python3_statsd_over_the_stream(self) -> None:
        self.folder.group(os.getpid(), "/system.slice/slurmstepd.scope/job_4711/step_batch/user/task_0")
        for run, procfs in (("4711", self.folder.path / "proc"), ("unnamed", self.folder.path / "none")):
            with self.folder.daemon(f"--path.procfs={procfs}") as daemon:
                client = statsd.UnixSocketStatsClient(self.folder.stream)
                client.incr("ml.steps", 3)
                client.gauge("ml.loss", -1.5)
                client.timing("ml.infer.seconds", 31.25)
                shown(daemon, {f'ml_steps_total{{run="{run}"}}': 3, f'ml_loss{{run="{run}"}}': -1.5,
                               f'ml_inference_duration_seconds_sum{{run="{run}"}}': 0.03125})
                client.close()

    def test_frames_and_lines_that_come_in_parts_and_are_torn(self) -> None:
        with self.folder.daemon() as daemon:
            with self.folder.connection() as frames, self.folder.connection() as lines:
                whole = framed(b"ml.steps:1|c|#run:frames\nml.steps:1|c|#run:frames\n")
                for byte in whole:
                    frames.send(bytes([byte]))
                frames.sendall(framed(b"ml.steps:100|c|#run:frames")[:-1])
                lines.sendall(b"ml.steps:1|c|#run:lines\nml.steps:1|c|#run:l")
                shown(daemon, {'ml_steps_total{run="frames"}': 2, 'ml_steps_total{run="lines"}': 1})
                lines.sendall(b"ines\nml.steps:100|c|#run:lines")
            self.folder.send("ml.steps:1|c|#run:after")
            page = shown(daemon, {'ml_steps_total{run="frames"}': 2, 'ml_steps_total{run="lines"}': 2,
                                  'ml_steps_total{run="after"}': 1})
            self.assertEqual(dropped(page), {})

    def test_what_is_refused_is_counted(self) -> None:
        with self.folder.daemon() as daemon:
            self.folder.send("x" * 65537, "nonsense", "ml.nosuch:1|c", "ml.steps:nan|c", "ml.steps:-1|c", "ml.steps:1|g",
                             "ml.steps:1|c|#split:other", "ml.steps:1|c|T1000", "\n".join(["ml.steps:1|c"] * 600))
            with self.folder.connection() as out:
                out.sendall((1 << 17).to_bytes(4, "little"))
                self.assertEqual(out.recv(1), b"")  # where the next frame begins cannot be known
            page = shown(daemon, {'gpumeter_jobs_dropped_total{reason="too_long"}': 2, "ml_steps_total": 512})
            self.assertEqual(dropped(page), {"too_long": 2, "malformed": 1, "unknown_metric": 1, "bad_value": 2, "wrong_type": 1,
                                             "bad_label": 1, "bad_timestamp": 1, "too_many_lines": 88})

    @unittest.skipUnless(is_root(), "only root can name another's uid")
    def test_a_uid_that_the_process_does_not_have(self) -> None:
        with self.folder.daemon() as daemon, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            forged = array.array("B", struct.pack("iII", os.getpid(), 12345, 12345))
            control = [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, forged)]
            out.sendmsg([b"ml.steps:1|c|#run:forged"], control, 0, self.folder.datagram)
            page = shown(daemon, {'gpumeter_jobs_dropped_total{reason="identity"}': 1})
            self.assertEqual(page.of("ml_steps_total"), {})

    def test_mode_users_and_limits(self) -> None:
        me = os.geteuid()
        self.folder.configure("  socket_mode: 0640\n  users: [daemon]\n")
        with self.folder.daemon() as daemon:
            for path in (self.folder.datagram, self.folder.stream):
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o640)
            self.folder.send("ml.steps:1|c|#run:a")
            page = shown(daemon, {'gpumeter_jobs_dropped_total{reason="user"}': 1})
            self.assertEqual(page.of("ml_steps_total"), {})
            self.folder.configure(f'  socket_mode: 0640\n  users: ["{me}"]\n  limits: {{series_per_run: 9}}\n')
            daemon.send(signal.SIGHUP)
            wait_until(lambda: "configuration reloaded" in daemon.log, "a reload", 20)
            self.folder.send("ml.steps:1|c|#run:a", "ml.samples:1|c|#run:a")
            page = shown(daemon, {'ml_steps_total{run="a"}': 1, 'ml_samples_total{run="_other"}': 1})
            self.assertEqual(dropped(page), {"user": 1, "series_limit": 1})
            self.folder.configure("  socket_mode: 0666\n")
            daemon.send(signal.SIGHUP)
            wait_until(lambda: "jobs.socket_mode needs a restart" in daemon.log, "a refused reload", 20)

    def test_mllog(self) -> None:
        log = self.folder.path / "result.txt"
        self.folder.configure(f'  mllog: ["bert={log}"]\n')
        with self.folder.daemon() as daemon:
            with log.open("w") as out:
                out.write("what a job prints\n" + MLLOG.format(key="run_start", value="null", time=1600000000000, metadata="{}"))
                out.write(MLLOG.format(key="eval_accuracy", value=0.72, time=1600000060000, metadata="{}"))
            shown(daemon, {'ml_run_start_timestamp_seconds{run="bert"}': 1.6e9, 'ml_eval_value{run="bert"}': 0.72})

    def test_sockets_of_systemd_outlive_a_restart(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagram, socket.socket(socket.AF_UNIX) as stream:
            datagram.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            datagram.bind(self.folder.datagram)
            stream.bind(self.folder.stream)
            stream.listen()
            with self.folder.passed([datagram, stream]) as daemon:
                self.folder.send("ml.steps:1|c|#run:first")
                shown(daemon, {'ml_steps_total{run="first"}': 1})
                self.assertEqual(daemon.stop()[0], 0)
            # From a process that has ended when the message is read; the kernel still reports its uid.
            sender = [sys.executable, "-c", PLAIN_CLIENT.format(path=self.folder.datagram)]
            subprocess.run(sender, check=True, timeout=60)
            with self.folder.connection() as waiting:
                waiting.sendall(b"ml.steps:7|c|#run:waiting\n")
                with self.folder.passed([datagram, stream]) as daemon:
                    page = shown(daemon, {'ml_steps_total{run="plain"}': 3, 'ml_steps_total{run="waiting"}': 7})
                    self.assertEqual(dropped(page), {})
                    self.assertIn("listening for jobs on the sockets of systemd", daemon.log)
                    self.assertEqual(daemon.stop()[0], 0)
            self.assertTrue(Path(self.folder.datagram).exists())

    def test_a_second_daemon_does_not_steal_the_sockets(self) -> None:
        with self.folder.daemon() as first:
            with self.folder.daemon() as second:
                self.assertEqual(second.log.count("another process listens on this socket"), 2)
                self.assertEqual(second.stop()[0], 0)
            self.folder.send("ml.steps:1|c|#run:a")
            shown(first, {'ml_steps_total{run="a"}': 1})
            self.assertEqual(first.stop()[0], 0)
        self.assertFalse(Path(self.folder.datagram).exists())

    def test_one_that_was_killed_leaves_no_socket_in_the_way(self) -> None:
        with self.folder.daemon() as killed:
            killed.send(signal.SIGKILL)
            killed.process.wait()
        self.assertTrue(Path(self.folder.datagram).exists())
        with self.folder.daemon() as daemon:
            self.folder.send("ml.steps:1|c|#run:a")
            shown(daemon, {'ml_steps_total{run="a"}': 1})

    def test_without_a_folder_and_switched_off(self) -> None:
        # The daemon makes a folder, but not the one above it.
        nowhere = f"{self.folder.path}/not/there"
        self.folder.datagram, self.folder.stream = f"{nowhere}/jobs.sock", f"{nowhere}/stream.sock"
        self.folder.configure()
        with self.folder.daemon() as daemon:
            self.assertIn(f"enable gpumeter-jobs.socket, or give the daemon the folder {nowhere}/", daemon.log)
            self.assertEqual(dropped(daemon.page()), {})
        self.folder.configure("  enabled: false\n")
        with self.folder.daemon() as daemon:
            self.assertNotIn("not/there", daemon.log)
            self.assertEqual(daemon.page().of("gpumeter_jobs_dropped_total"), {})


if __name__ == "__main__":
    unittest.main(verbosity=2)
