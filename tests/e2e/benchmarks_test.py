#!/usr/bin/env python3
"""Given results of benchmarks on the jobs' socket, then they stand on the page beside their GPU and survive a restart; other users'
are refused."""
import os
import tempfile
import unittest

from harness import Daemon, promtool_findings, wait_until
from jobs import Folder

RUN = """gpu.benchmark.flops:1.23e15|g|#uuid:{uuid},dtype:bf16,backend:cublas
gpu.benchmark.memory_bandwidth:3e12|g|#uuid:{uuid},operation:triad
gpu.benchmark.transfer:5e10|g|#uuid:{uuid},direction:host_to_device
gpu.benchmark.failed:0|g|#uuid:{uuid}
gpu.benchmark.timestamp:1.79e9|g|#uuid:{uuid}"""


def results(daemon: Daemon) -> dict:
    """The values of the families of benchmarks, by name."""
    return {name: value for (name, _), value in daemon.page().items() if name.startswith("gpu_benchmark_")}


class BenchmarksTest(unittest.TestCase):
    def setUp(self) -> None:
        self.state = self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-state-"))
        self.folder = self.enterContext(Folder())

    def start(self) -> Daemon:
        return self.enterContext(self.folder.daemon(state=self.state))

    def test_results_stay(self) -> None:
        daemon = self.start()
        uuid, = {dict(labels)["uuid"] for _, labels in daemon.page().of("gpu_info")}
        self.folder.send(RUN.format(uuid=uuid))
        expected = {"gpu_benchmark_flops": 1.23e15, "gpu_benchmark_memory_bandwidth_bytes_per_second": 3e12,
                    "gpu_benchmark_transfer_bytes_per_second": 5e10, "gpu_benchmark_failed": 0, "gpu_benchmark_timestamp_seconds": 1.79e9}
        wait_until(lambda: results(daemon) == expected, "the results are on the page")
        self.assertEqual(daemon.page().one("gpu_benchmark_flops", gpu="0", uuid=uuid, dtype="bf16", backend="cublas"), 1.23e15)
        self.assertEqual(promtool_findings(daemon.fetch("/metrics").text), "")
        self.assertEqual(daemon.stop()[0], 0)

        again = self.start()
        wait_until(lambda: results(again) == expected, "they are on the page of the next process")
        self.folder.send("gpu.benchmark.failed:1|g|#gpu:0", RUN.format(uuid="GPU-elsewhere"))
        wait_until(lambda: set(results(again)) == {"gpu_benchmark_failed", "gpu_benchmark_timestamp_seconds"}, "no rate beside a failure")
        wait_until(lambda: again.page().of("gpumeter_jobs_dropped_total", reason="device"), "the unknown GPU's lines are counted")
        self.assertEqual(again.page().one("gpumeter_jobs_dropped_total", reason="device"), 5)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_who_may_send(self) -> None:
        daemon = self.start()
        child = os.fork()
        if child == 0:
            os.setuid(65534)
            self.folder.send("gpu.benchmark.failed:1|g|#gpu:0")
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        wait_until(lambda: daemon.page().of("gpumeter_jobs_dropped_total", reason="user"), "another user is refused")
        self.assertEqual(results(daemon), {})


if __name__ == "__main__":
    unittest.main(verbosity=2)
