#!/usr/bin/env python3
"""Given a real job of PyTorch in which one rank does not launch the operation that the others wait for, when each rank writes its flight
recorder's dump, then the page has how far each rank was."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import Daemon, Program, free_port, wait_until  # noqa: E402

try:
    import torch  # noqa: F401
    from torch._C._distributed_c10d import _dump_fr_trace_file  # noqa: F401 - of PyTorch 2.15, for any backend
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

LATE = 2
RANK = f"""
import os, sys, time, torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace_file
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, numbers = dist.get_rank(), torch.ones(4)
pair = dist.new_group([0, 1])
for _ in range(5):
    dist.all_reduce(numbers)
if rank in (0, 1):
    dist.all_reduce(numbers, group=pair)
dist.barrier()
if rank != {LATE}:
    waits = dist.all_reduce(numbers, async_op=True)
_dump_fr_trace_file(rank, includeStackTraces=True)
print("dumped", flush=True)
sys.stdin.read()
os._exit(0)
"""


class FlightRecorderTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-flight-"))).resolve()
        self.prefix = f"{self.folder}/trace_rank_"

    def job(self) -> list[subprocess.Popen]:
        environ = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "3",
                   "TORCH_FR_BUFFER_SIZE": "2000", "TORCH_FR_DUMP_TEMP_FILE": self.prefix}
        ranks = [self.enterContext(subprocess.Popen([sys.executable, "-c", RANK], env={**environ, "RANK": str(rank)}, stdin=subprocess.PIPE,
                                                    stdout=subprocess.PIPE, text=True)) for rank in range(3)]
        for rank in ranks:
            self.addCleanup(rank.kill)
        for rank in ranks:
            self.assertEqual(rank.stdout.readline(), "dumped\n")
        return ranks

    def test_the_late_rank_is_behind(self) -> None:
        ranks = self.job()
        users = ", ".join(f'"0={rank.pid},busy=0.3,memory=1GiB"' for rank in ranks)
        config = self.folder / "gpumeter.yaml"
        config.write_text(f"""
sampling: {{fast: 1s, normal: 1s}}
nccl: {{flight_recorder: ["{self.prefix}"]}}
jobs: {{enabled: false}}
collectors: {{simulated: {{enabled: true, devices: 1, processes: [{users}]}}, nvidia: {{enabled: false}}, amd: {{enabled: false}}}}
""")
        daemon = self.enterContext(Daemon(f"--config.file={config}"))
        reader = self.enterContext(Program("gpumeter-nccl", daemon, config, f"--files={ROOT}/packaging/python/gpumeter-nccl-files"))
        reader.file = reader.file.with_name("nccl-files.prom")
        page = wait_until(lambda: (page := reader.page()).one("gpumeter_nccl_files", source="flight_recorder", state="read") == 3 and page,
                          f"three dumps are read\n{reader.log}", 30)
        family = "ml_flight_recorder_collective"
        enqueued = [page.one(family, rank=str(rank), group="0", state="enqueued") for rank in range(3)]
        self.assertEqual(enqueued, [6 if rank == LATE else 7 for rank in range(3)])
        self.assertEqual([page.one(family, rank=str(rank), group="1", state="enqueued") for rank in range(3)], [1, 1, None])
        runs = {dict(labels)["run"] for _, labels in page.of(family)}
        self.assertEqual(len(runs), 1, "all ranks have the run of their processes")
        print(f"passed: operations that the ranks of PyTorch {torch.__version__} launched: {enqueued}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
