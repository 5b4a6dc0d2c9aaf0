#!/usr/bin/env python3
"""Given a process that listens and whose child holds a GPU, when gpumeter-servers finds it, then its page has the server's own figures, the
child's energy, and nothing of servers that misbehave. Whatever happens to the program, the daemon goes on, and the other way round."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from contextlib import contextmanager
from pathlib import Path

from harness import CAP_SYS_PTRACE, STOP, Daemon, Program, free_port, may_give, promtool_findings, run, wait_until

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures/servers"
NAME = "gpumeter-servers"
AT_ONCE = 2.0  # seconds of a scrape
BAD = ("redirect", "endless", "slow", "cut", "missing")


@contextmanager
def servers(folder: Path, *pages: str, program: Path = HERE / "model_server.py", user: int | None = None):
    process = subprocess.Popen([sys.executable, program, folder / "engine.pid", *pages],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=user)
    try:
        yield [int(port) for port in process.stdout.readline().split()]
    finally:
        process.communicate("")


def config(folder: Path, **keys) -> Path:
    simulated = {"enabled": True, "devices": 2, "processes": [f"1={folder / 'engine.pid'},busy=0.5,memory=2GiB"]}
    path = folder / "gpumeter.yaml"  # JSON is YAML
    path.write_text(json.dumps({"sampling": {"normal": "1s"}, "servers": keys, "pages": {"folders": [str(folder)], "trusted": [str(os.geteuid())]}, "collectors": {
        "simulated": simulated, "nvidia": {"enabled": False}, "amd": {"enabled": False}}}))
    return path


class ModelServersTest(unittest.TestCase):
    def test_reads_what_it_finds_and_survives_what_misbehaves(self) -> None:
        with tempfile.TemporaryDirectory(prefix="gpumeter-servers-") as name:
            folder = Path(name)
            bad = [f"{mode}:{FIXTURES / 'vllm.prom'}" for mode in BAD]
            with servers(folder, f"chunked:{FIXTURES / 'vllm.prom'}", f"plain:{FIXTURES / 'sglang.prom'}", *bad) as ports:
                found, named, closed = ports[0], ports[1], free_port()
                targets = [f"http://127.0.0.1:{port}/metrics" for port in (named, *ports[2:], closed)]
                file = config(folder, enabled=True, ports=[str(found)], targets=targets)
                with Daemon(f"--config.file={file}") as daemon, Program(NAME, daemon, file) as program:
                    self.check(program, found, named, [*ports[2:], closed])
                    self.assertIn("gpumeter-servers.service", daemon.log, "the daemon says who does the work")
                    self.assertEqual(program.stop(), 0)
                    self.assertFalse(program.file.exists(), "its page leaves with it")
                    log = program.log
        for error in ("HTTP status 307", "HTTP status 404", "connection refused", "no complete answer in time",
                      "the answer is longer than 8 MiB", "the answer ends too early"):
            self.assertEqual(log.count(error), 1, f"{error}\n{log}")

    def check(self, program: Program, found: int, named: int, bad: list[int]) -> None:
        mine = {"server": "vllm", "port": str(found)}
        page = wait_until(lambda: (p := program.page()).one("ml_server_info", gpu="1", uuid="SIM-1-1", **mine) and p,
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
        wait_until(lambda: program.page().one("ml_server_energy_joules_total", **mine) > before, "the engine's energy grows")
        self.assertEqual(promtool_findings(program.file.read_text()), "")

    def test_neither_waits_for_the_other(self) -> None:
        with tempfile.TemporaryDirectory(prefix="gpumeter-servers-") as name, servers(Path(name), f"plain:{FIXTURES / 'vllm.prom'}") as ports:
            folder = Path(name)
            file = config(folder, enabled=True, ports=[str(ports[0])])
            with Daemon(f"--config.file={file}") as daemon:
                program = self.enterContext(Program(NAME, daemon, file, pages=folder))
                wait_until(lambda: program.page().of("ml_server_info", gpu="1"), "the server's GPU is known", 30)
                shown = wait_until(lambda: daemon.page().of("ml_server_tokens_total", kind="output"), "the daemon shows the page", 30)
                self.assertEqual(shown, program.page().of("ml_server_tokens_total", kind="output"), "as it is, without an author")
                program.process.send_signal(signal.SIGSTOP)  # it hangs
                self.look(daemon)
                program.process.kill()
                program.process.wait()
                self.look(daemon)
                program.file.write_bytes(os.urandom(4096))
                wait_until(lambda: not daemon.page().of("ml_server_tokens_total"), "garbage is not shown", 30)
                self.look(daemon)
                again = self.enterContext(Program(NAME, daemon, file, pages=folder))
                wait_until(lambda: again.file.read_bytes().startswith(b"# gpumeter: expires ") and again.page().of("ml_server_info", gpu="1"), "the page is replaced", 30)
                status, seconds = daemon.stop()
                self.assertEqual(status, 0)
                self.assertLess(seconds, STOP)
                wait_until(lambda: "the daemon does not answer" in again.log, "the program misses the daemon", 30)
                before = again.file.stat().st_mtime_ns
                wait_until(lambda: again.file.stat().st_mtime_ns > before, "the program goes on", 30)
                self.assertTrue(again.page().of("ml_server_info", gpu="1"), "the last answer stays in force")
                with Daemon(f"--config.file={file}", f"--path.api={daemon.api}"):
                    wait_until(lambda: "the daemon answers again" in again.log, "the program finds it", 30)
                file.write_text("servers: {enabled: false}\n")
                self.assertEqual(again.stop(signal.SIGHUP), 0, "a reload without its section ends it")
                self.assertFalse(again.file.exists())

    def look(self, daemon: Daemon) -> None:
        """A scrape comes at once, and the devices are read."""
        before = daemon.page().one("gpu_observed_seconds_total", gpu="0", tier="fast")

        def is_read() -> bool:
            asked = time.monotonic()
            now = daemon.page().one("gpu_observed_seconds_total", gpu="0", tier="fast")
            self.assertLess(time.monotonic() - asked, AT_ONCE)
            return now > before
        wait_until(is_read, "the devices are read", 10)

    @unittest.skipUnless(may_give(CAP_SYS_PTRACE) and shutil.which("setpriv"), "requires root with CAP_SYS_PTRACE, and setpriv")
    def test_finds_the_servers_of_other_users_with_the_capability_of_its_unit(self) -> None:
        with tempfile.TemporaryDirectory(prefix="gpumeter-servers-") as name:
            folder = Path(name)
            folder.chmod(0o777)
            program, page = (Path(shutil.copy(file, folder)) for file in (HERE / "model_server.py", FIXTURES / "vllm.prom"))
            with servers(folder, f"plain:{page}", program=program, user=4711) as (port,):
                file = config(folder, enabled=True, ports=[str(port)])
                alone = ["setpriv", "--bounding-set=-all,+sys_ptrace"]
                with Daemon(f"--config.file={file}") as daemon, Program(NAME, daemon, file, wrap=alone) as program:
                    wait_until(lambda: program.page().one("ml_server_info", server="vllm", port=str(port), gpu="1"), "the server is known", 30)

    def test_rejects_what_is_no_port_and_no_page(self) -> None:
        with tempfile.TemporaryDirectory(prefix="gpumeter-servers-") as name:
            folder = Path(name)
            for key, value, problem in (("ports", ["0"], 'must be ports from 1 to 65535, not "0"'),
                                        ("targets", ["127.0.0.1:8000"], 'must be addresses with a port, such as '
                                         '"http://127.0.0.1:8000/metrics", not "127.0.0.1:8000"'),
                                        ("targets", ["http://a:1", "http://a:1"], 'must list each page once, not "http://a:1" twice')):
                checked = run(f"--config.file={config(folder, **{key: value})}", "--check-config")
                self.assertEqual(checked.returncode, 2, checked.stdout)
                self.assertIn(f"servers.{key}: {problem}", checked.stdout + checked.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
