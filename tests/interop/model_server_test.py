#!/usr/bin/env python3
"""A real Triton on the processor: the daemon finds it by its listening port and shows what Triton's own page shows.

The processor is no GPU, so the program `tritonserver` is put on a simulated one."""
import subprocess
import sys
import unittest
import urllib.request
from contextlib import contextmanager
from pathlib import Path

try:
    import pytriton  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HERE = Path(__file__).resolve().parent
from server_pages import watched  # noqa: E402  (finds the harness)
from harness import Daemon, free_port, wait_until  # noqa: E402


def children(pid: int) -> list[int]:
    own = [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    return own + [later for child in own for later in children(child)]


@contextmanager
def triton():
    """Yields the process that asks it, and the port of its page."""
    http, grpc, metrics = (free_port() for _ in range(3))
    process = subprocess.Popen([sys.executable, "-B", HERE / "triton_server.py", *map(str, (http, grpc, metrics))],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        while (line := process.stdout.readline()) != "ready\n":
            assert line, "Triton did not start"
        yield process, metrics
    finally:
        process.communicate("", timeout=90)


def own_page(port: int) -> dict[str, float]:
    """Values by series, as they are written."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {series: float(value) for series, value in (line.rsplit(" ", 1) for line in lines)}


class ModelServerTest(unittest.TestCase):
    def test_triton(self) -> None:
        with triton() as (client, port):
            server = next(pid for pid in children(client.pid) if Path(f"/proc/{pid}/comm").read_text() == "tritonserver\n")
            with watched(server, port, "tritonserver") as daemon:
                for asked in range(1, 6):
                    client.stdin.write("\n")
                    client.stdin.flush()
                    self.assertEqual(client.stdout.readline(), "0 1 2\n")
                    self.compare(daemon, port, asked)

    def compare(self, daemon: Daemon, port: int, asked: int) -> None:
        mine = {"server": "triton", "port": str(port)}
        page = wait_until(lambda: (p := daemon.page()).one("ml_server_requests_total", **mine) == asked and p,
                          f"{asked} requests are on the page", 30)
        own = own_page(port)
        self.assertEqual(own['nv_inference_request_success{model="tiny",version="1"}'], asked)
        self.assertEqual(page.one("ml_server_requests_waiting", **mine),
                         own['nv_inference_pending_request_count{model="tiny",version="1"}'])
        self.assertEqual(page.one("ml_server_info", model="tiny", gpu="0", uuid="SIM-1-0", **mine), 1)
        self.assertEqual(page.one("ml_server_up", **mine), 1)
        self.assertGreaterEqual(page.one("ml_server_energy_joules_total", **mine), 0)
        self.assertFalse(page.of("ml_server_tokens_total"), "Triton itself counts no tokens")


if __name__ == "__main__":
    unittest.main(verbosity=2)
