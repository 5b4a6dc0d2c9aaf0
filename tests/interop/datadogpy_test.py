#!/usr/bin/env python3
"""datadogpy's DogStatsd on the daemon's sockets: exactly these series, and nothing of what it sends is rejected."""
import json
import os
import subprocess
import sys
import unittest
from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("datadog")
    from datadog.dogstatsd.base import DogStatsd
except (ImportError, PackageNotFoundError) as error:
    print(f"skipped: {error}")
    sys.exit(77)

from real_run import RealRun, dropped

# A job's calls, with every kind of line. The path is that of datagrams, or unixstream:// and that of the stream.
JOB = """
import json, os, sys, time
from datadog.dogstatsd.base import DogStatsd
path, buffers, telemetry = sys.argv[1:]
statsd = DogStatsd(socket_path=path, constant_tags=["run:resnet50"], disable_buffering=buffers == "no", disable_telemetry=telemetry == "no")
statsd.event("run_start", "resnet50", tags=["framework:pytorch", "version:2.8", "model:resnet", "precision:bf16", "data_parallel:8"],
             date_happened=int(time.time()))
for step in range(1, 6):
    statsd.increment("ml.steps", tags=["split:train"])
    statsd.increment("ml.samples", 256, tags=["split:train"])
    statsd.gauge("ml.step", step)
    statsd.distribution("ml.step.seconds", 0.25, tags=["split:train"])
    statsd.histogram("ml.phase.seconds", 0.125, tags=["phase:data_loading"])
    statsd.timing("ml.infer.seconds", 500)  # milliseconds
    with statsd.timed("ml.ttft.seconds", use_ms=False):
        pass
statsd.decrement("ml.steps", 0, tags=["split:eval"])
statsd.gauge("ml.loss", 2.5, tags=["split:train"])
statsd.gauge("ml.custom", -1.5, tags=["metric:learning_rate"])
statsd.gauge("ml.eval", 0.5, tags=["metric:top1", "direction:max"])
statsd.gauge("ml.memory", 4096, tags=["state:peak"])
statsd.increment("ml.oom")
statsd.service_check("ml.ready", 0)
statsd.event("run_stop", "success")
statsd.flush()
sent = {name: getattr(statsd, name, 0) for name in ("packets_sent", "packets_dropped")}
print(json.dumps(sent), flush=True)
sys.stdin.read()  # the process lives on
"""
# Series and values that do not depend on time. The memory of a process that has stopped is not the run's any more.
PAGE = {
    ('ml_steps_total', 'train'): 5, ('ml_steps_total', 'eval'): 0, ('ml_samples_total', 'train'): 1280, ('ml_step', ''): 5,
    ('ml_step_duration_seconds_count', 'train'): 5, ('ml_step_duration_seconds_sum', 'train'): 1.25,
    ('ml_phases_total', 'data_loading'): 5, ('ml_phase_seconds_total', 'data_loading'): 0.625,
    ('ml_inference_duration_seconds_count', ''): 5, ('ml_inference_duration_seconds_sum', ''): 2.5,
    ('ml_time_to_first_token_seconds_count', ''): 5, ('ml_loss', 'train'): 2.5, ('ml_custom', 'learning_rate'): -1.5,
    ('ml_eval_value', 'top1'): 0.5, ('ml_eval_best_value', 'top1'): 0.5, ('ml_out_of_memory_errors_total', ''): 1,
    ('ml_run_restarts_total', ''): 0, ('ml_lost_steps_total', ''): 0,
    ('ml_run_info', '8 pytorch resnet bf16 2.8'): 1,  # by the labels' names
}
OF_TIME = {"ml_run_start_timestamp_seconds", "ml_run_stop_timestamp_seconds", "ml_run_time_seconds", "ml_last_update_timestamp_seconds",
           "ml_time_to_first_token_seconds_sum", "ml_gpu_idle_allocated_seconds_total", "ml_energy_joules_total"}


class DatadogpyTest(RealRun):
    def compare_job(self, path: str, buffers: str, telemetry: str = "no") -> None:
        job = subprocess.Popen([sys.executable, "-B", "-c", JOB, path, buffers, telemetry], text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, env={**os.environ, "DD_TELEMETRY_HOST": ""})
        self.addCleanup(lambda: (job.kill(), job.wait(), job.stdin.close(), job.stdout.close()))
        sent = json.loads(job.stdout.readline())
        page = self.compare("resnet50", {'ml_steps_total{split="train"}': 5, "ml_out_of_memory_errors_total": 1}, {})
        found = {}
        for (name, labels), number in page.items():
            others = {label: text for label, text in labels if label not in ("run", "user", "le")}
            if name.startswith("ml_") and dict(labels).get("run") == "resnet50" and not name.endswith(("_bucket", "_created")) and name not in OF_TIME:
                found[name, " ".join(text for _, text in sorted(others.items()))] = number
        self.assertEqual(found, PAGE)
        self.assertEqual(dropped(page), {})
        print(f"datadogpy {VERSION}, buffering: {buffers}, telemetry: {telemetry}: {len(found)} series; {sent}", flush=True)

    def test_datagrams(self) -> None:
        self.compare_job(self.folder.datagram, "no")

    def test_datagrams_of_several_lines(self) -> None:
        self.compare_job(self.folder.datagram, "yes", "yes")

    def test_a_stream(self) -> None:
        self.compare_job(f"unixstream://{self.folder.stream}", "yes")


if __name__ == "__main__":
    unittest.main(verbosity=2)
