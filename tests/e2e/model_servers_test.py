#!/usr/bin/env python3
"""Given a process that listens and whose child holds a GPU, when the daemon finds it, then the page has the server's own figures, the
child's energy, and nothing of servers that misbehave."""
import json
import subprocess
import sys
import tempfile
import unittest
from contextlib import contextmanager
from pathlib import Path

from harness import TEXT, Daemon, free_port, promtool_findings, run, wait_until

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures/servers"
BAD = ("redirect", "endless", "slow", "cut", "missing")


@contextmanager
def servers(folder: Path, *pages: str):
    process = subprocess.Popen([sys.executable, HERE / "model_server.py", folder / "engine.pid", *pages],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield [int(port) for port in process.stdout.readline().split()]
    finally:
        process.communicate("")


def config(folder: Path, **keys) -> str:
    simulated = {"enabled": True, "devices": 2, "processes": [f"1={folder / 'engine.pid'},busy=0.5,memory=2GiB"]}
    path = folder / "gpumeter.yaml"  # JSON is YAML
    path.write_text(json.dumps({"sampling": {"normal": "1s"}, "servers": keys, "collectors": {
        "simulated": simulated, "nvidia": {"enabled": False}, "amd": {"enabled": False}}}))
    return f"--config.file={path}"


class ModelServersTest(unittest.TestCase):
    def test_reads_what_it_finds_and_survives_what_misbehaves(self) -> None:
        with tempfile.TemporaryDirectory(prefix="gpumeter-servers-") as name:
            folder = Path(name)
            bad = [f"{mode}:{FIXTURES / 'vllm.prom'}" for mode in BAD]
            with servers(folder, f"chunked:{FIXTURES / 'vllm.prom'}", f"plain:{FIXTURES / 'sglang.prom'}", *bad) as ports:
                found, named, closed = ports[0], ports[1], free_port()
                targets = [f"http://127.0.0.1:{port}/metrics" for port in (named, *ports[2:], closed)]
                flags = config(folder, enabled=True, ports=[str(found)], targets=targets)
                with Daemon(flags) as daemon:
                    self.check(daemon, found, named, [*ports[2:], closed])
                    status, _ = daemon.stop()
                    self.assertEqual(status, 0)
                    log = daemon.log
        for error in ("HTTP status 307", "HTTP status 404", "connection refused", "no complete answer in time",
                      "the answer has more than 8388608 bytes", "the answer ends too early"):
            self.assertEqual(log.count(error), 1, f"{error}\n{log}")

    def check(self, daemon: Daemon, found: int, named: int, bad: list[int]) -> None:
        mine = {"server": "vllm", "port": str(found)}
        page = wait_until(lambda: (p := daemon.page()).one("ml_server_info", gpu="1", uuid="SIM-1-1", **mine) and p,
                          "the server's GPU is known", 30)
        self.assertEqual(page.one("ml_server_up", **mine), 1)
        self.assertEqual(page.one("ml_server_tokens_total", kind="input", **mine), 3000)
        self.assertEqual(page.one("ml_server_tokens_total", kind="output", **mine), 7307644)
        self.assertEqual(page.one("ml_server_requests_waiting", **mine), 11)
        self.assertEqual(page.one("ml_server_cache_utilization_ratio", **mine), 0.375)
        self.assertEqual(page.one("ml_server_time_to_first_token_seconds_bucket", le="0.5", **mine), 18)
        self.assertEqual(page.one("ml_server_time_to_first_token_seconds_count", **mine), 33)
        self.assertFalse(page.of("ml_server_info", gpu="0"))
        other = {"server": "sglang", "port": str(named)}
        self.assertEqual(page.one("ml_server_tokens_total", kind="output", **other), 7557572)
        self.assertFalse(page.of("ml_server_info", gpu="1", **other), "its process is not asked for: the port is not among servers.ports")
        for port in bad:
            self.assertEqual(page.one("ml_server_up", port=str(port)), 0)
        self.assertEqual(len(page.of("ml_server_tokens_total")), 4)
        before = page.one("ml_server_energy_joules_total", **mine)
        wait_until(lambda: daemon.page().one("ml_server_energy_joules_total", **mine) > before, "the engine's energy grows")
        self.assertEqual(promtool_findings(daemon.fetch("/metrics", {"Accept": TEXT}).text), "")

    def test_rejects_what_is_no_port_and_no_page(self) -> None:
        with tempfile.TemporaryDirectory(prefix="gpumeter-servers-") as name:
            folder = Path(name)
            for key, value, problem in (("ports", ["0"], 'must be ports from 1 to 65535, not "0"'),
                                        ("targets", ["127.0.0.1:8000"], 'must be addresses with a port, such as '
                                         '"http://127.0.0.1:8000/metrics", not "127.0.0.1:8000"'),
                                        ("targets", ["http://a:1", "http://a:1"], 'must list each page once, not "http://a:1" twice')):
                checked = run(config(folder, **{key: value}), "--check-config")
                self.assertEqual(checked.returncode, 2, checked.stdout)
                self.assertIn(f"servers.{key}: {problem}", checked.stdout + checked.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
