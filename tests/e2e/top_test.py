#!/usr/bin/env python3
"""`gpumeter top` as a person sees it: in a terminal of tmux with 80 x 24, and through a pipe."""
from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from harness import BINARY, Daemon, free_port, wait_until
from jobs import Folder

TOP = str(Path(BINARY).with_name("gpumeter-top"))
EVIL = "evil\x1b[2J\x1b]0;title\x07\u202eback"


class Screen:
    """A terminal of 80 x 24 by default, in which a command runs; its shell stays when the command ends."""

    def __init__(self, *command: str, environment: dict[str, str] | None = None, size: tuple[int, int] = (80, 24)) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="gpumeter-top-")
        self.socket = str(Path(self.folder.name, "tmux"))
        variables = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PS1": "$ ", **(environment or {})}
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "env", *(f"{k}={v}" for k, v in variables.items()),
                  "sh", "-c", 'stty -g >"$0"/before; "$@"; status=$?; stty -g >"$0"/after; echo "status $status"; exec sleep 600', self.folder.name, *command)

    def tmux(self, *arguments: str) -> str:
        done = subprocess.run(["tmux", "-S", self.socket, *arguments], capture_output=True, text=True, timeout=30, env={**os.environ, "LC_ALL": "C.UTF-8"})
        assert done.returncode == 0, done.stderr
        return done.stdout

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None:
        self.tmux("kill-server")
        self.folder.cleanup()

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def text(self) -> str:
        return self.tmux("capture-pane", "-p")

    def shows(self, *texts: str) -> list[str]:
        """The lines of the screen as soon as it shows all the texts."""
        try:
            wait_until(lambda: all(text in self.text() for text in texts), f"{texts} on the screen")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.text()}") from None
        return self.text().splitlines()

    def is_restored(self) -> bool:
        before, after = (Path(self.folder.name, name).read_text() for name in ("before", "after"))
        return before == after and self.tmux("display", "-p", "#{alternate_on} #{cursor_flag}").split() == ["0", "1"]


class FakeDaemon:
    """Serves documents that no simulated GPU has: the health of a machine, or no answer at all."""

    def __init__(self, series: list[dict], health: dict | None = None) -> None:
        self.series, self.health, self.gate = series, health, threading.Event()
        self.gate.set()
        self.paths: list[str] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                fake.paths.append(self.path)
                fake.gate.wait(60)
                documents = {"/api/v1/series": {"series": fake.series}, "/api/v1/health": fake.health}
                document = documents.get(self.path.partition("?")[0])
                body = json.dumps(document).encode() if document else b"none"
                self.send_response(200 if document else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a client that left
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self) -> "FakeDaemon":
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()


def series(name: str, value: float, **labels: str) -> dict:
    return {"name": name, "labels": labels, "value": value, "age_seconds": 0.1}


def once(url: str, *flags: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    return subprocess.run([TOP, "--url", url, *flags], capture_output=True, timeout=60, stdin=subprocess.DEVNULL,
                          env={**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})})


def gpus_in(lines: list[str]) -> list[int]:
    """The GPUs' numbers as listed."""
    first = next(i for i, line in enumerate(lines) if line.startswith("GPU "))
    found = []
    for line in lines[first + 1:]:
        if not line.strip():
            break
        if not line.startswith("    "):  # the note of a GPU
            found.append(int(line.split()[0]))
    return found


class TopTest(unittest.TestCase):
    def test_a_person_looks_at_eight_gpus(self) -> None:
        with Daemon("--simulate=8", "--simulate-event=lose 5 after 1s", "--simulate-event=overheat 3 after 1s") as daemon:
            wait_until(lambda: daemon.page().one("gpu_up", gpu="5") == 0, "GPU 5 is lost")
            with Screen(BINARY, "top", f"--url=127.0.0.1:{daemon.port}", "--interval=200ms") as screen:
                lines = screen.shows("8 GPUs", "HELD BY", "q quit")
                self.assertEqual(len(lines), 24)
                wait_until(lambda: gpus_in(screen.text().splitlines())[0] == 5, "the worst is the first")
                lines = screen.text().splitlines()
                self.assertEqual(sorted(gpus_in(lines)), list(range(8)))
                lost = next(line for line in lines if line.startswith("  5 "))
                self.assertNotIn("0%", lost)
                screen.press("g")
                screen.shows("by gpu")
                self.assertEqual(gpus_in(screen.text().splitlines()), list(range(8)))
                screen.press("t")
                screen.shows("by temperature")
                wait_until(lambda: gpus_in(screen.text().splitlines())[0] == 3, "the hot GPU is the first")
                screen.press("r")
                screen.shows("by temperature, reversed")
                screen.press("r", "Home", "Enter")
                screen.shows("GPU 3  Simulated GPU", "SIM-1-3", "Temperature  core", "Throttled", "thermal", "PCIe", "Links")
                screen.press("Escape")
                screen.shows("HELD BY")
                screen.press("?")
                screen.shows("reverse the order")
                screen.press("?", "j")
                screen.shows("No job reports")
                self.check_resize(screen)
                screen.press("q")
                screen.shows("status 0")
                self.assertTrue(screen.is_restored())

    def check_resize(self, screen: Screen) -> None:
        screen.press("j")
        screen.tmux("resize-window", "-x", "50", "-y", "10")
        wait_until(lambda: len(screen.text().splitlines()) == 10 and "STATE" in screen.text() and "HELD BY" not in screen.text(), "a small screen")
        screen.tmux("resize-window", "-x", "160", "-y", "40")
        screen.shows("HELD BY")

    def test_jobs_and_names_that_control_terminals(self) -> None:
        with Folder() as folder, folder.daemon() as daemon, FakeDaemon([series("ml_step", 7, run=EVIL, user="mallory"), series("gpu_up", 1, gpu="0", uuid="u")]) as fake:
            folder.send("ml.steps:5|c|#run:resnet50\nml.loss:2.5|g|#run:resnet50")
            wait_until(lambda: daemon.page().of("ml_steps_total", run="resnet50"), "the run")
            printed = once(f"127.0.0.1:{daemon.port}").stdout.decode()
            self.assertRegex(printed, r"(?m)^resnet50 +\S+ +running +5 ")
            with Screen(TOP, f"--url={fake.url}") as screen:
                lines = screen.shows("\nevil", "1 GPU")
                self.assertTrue(any(line.startswith("evil\ufffd[2J\ufffd]0;") for line in lines), lines)
                self.assertNotEqual(screen.tmux("display", "-p", "#{pane_title}").strip(), "title")
                screen.press("q")
                screen.shows("status 0")
            for charset in ("C", "C.UTF-8"):
                raw = once(fake.url, environment={"LC_ALL": charset}).stdout
                self.assertFalse(set(raw) & (set(range(32)) - {10}), raw)
                self.assertNotIn("\u202e".encode(), raw)
            self.assertTrue(once(fake.url, environment={"LC_ALL": "C"}).stdout.isascii())

    def test_health_says_why_and_what_to_do(self) -> None:
        reason = {"reason": "xid_79", "severity": "failed", "action": "reboot", "text": "XID 79: the GPU has fallen off the bus", "value": 1,
                  "since_seconds": 192, "alert": "GpuXid", "runbook": "gpuxid"}
        missing = {"reason": "devices_missing", "severity": "failed", "action": "reboot", "text": "1 of 2 expected GPUs are read"}
        health = {"devices": [{"gpu": "0", "uuid": "GPU-0", "vendor": "nvidia", "model": "NVIDIA H100", "pci_address": "0000:17:00.0",
                               "state": "failed", "since_seconds": 192, "reasons": [reason]}], "machine": [missing], "state": "failed"}
        with FakeDaemon([series("gpu_up", 1, gpu="0", uuid="GPU-0", model="NVIDIA H100")], health) as fake:
            printed = once(fake.url).stdout.decode()
            for text in ("1 failed", "1 of 2 expected GPUs are read", "GPU 0: failed", "XID 79: the GPU has fallen off the bus", "do: reboot", "for 3m12s"):
                self.assertIn(text, printed)
            with Screen(TOP, "--url", fake.url) as screen:
                lines = screen.shows("1 of 2 expected GPUs are read", "0 failed")
                row = next(place for place, line in enumerate(lines) if line.startswith("  0 failed"))
                self.assertEqual(lines[row + 1], "    XID 79: the GPU has fallen off the bus (reboot)")
                screen.press("Enter")
                screen.shows("XID 79: the GPU has fallen off the bus", "do: reboot", "alert GpuXid")

    def test_a_host_that_stops_answering_freezes_nothing(self) -> None:
        with FakeDaemon([series("gpu_up", 1, gpu="0", uuid="GPU-0")]) as fake, Screen(TOP, "--url", fake.url, "--interval=200ms") as screen:
            screen.shows("1 GPU  1 up")
            fake.gate.clear()
            screen.shows("No answer for ")
            screen.press("?")
            screen.shows("reverse the order")
            screen.press("?", "q")
            screen.shows("status 0")
            self.assertTrue(screen.is_restored())
            self.assertLessEqual(sum(path.startswith("/api/v1/health") for path in fake.paths), 1, "a daemon without health is not asked each time")

    def test_signals_restore_the_terminal(self) -> None:
        with FakeDaemon([series("gpu_up", 1, gpu="0", uuid="GPU-0")]) as fake:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                with Screen(TOP, "--url", fake.url) as screen:
                    screen.shows("1 GPU")
                    found = subprocess.run(["pgrep", "-f", f"^{TOP} --url {fake.url}"], capture_output=True, text=True, check=True).stdout.split()
                    self.assertEqual(len(found), 1)
                    os.kill(int(found[0]), number)
                    screen.shows("status 0")
                    self.assertTrue(screen.is_restored())

    def test_a_pipe_gets_one_table(self) -> None:
        with Daemon("--simulate=2") as daemon:
            wait_until(lambda: daemon.page().of("gpu_power_watts"), "values")
            done = subprocess.run([BINARY, "top", "--url", f"http://127.0.0.1:{daemon.port}/", "--sort=gpu"], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            lines = done.stdout.splitlines()
            self.assertEqual(gpus_in(lines), [0, 1])
            self.assertRegex(next(line for line in lines if line.startswith("  0 ")), r"^  0 \w+ +Simulated GPU +\d+% .* \d+/450 ")
            self.assertFalse([line for line in lines if line != line.rstrip() or "\x1b" in line])
            self.assertLessEqual(max(map(len, lines)), 160)
            full = subprocess.run(["sh", "-c", 'exec "$0" "$@" >/dev/full', TOP, "--url", f"127.0.0.1:{daemon.port}"], capture_output=True, text=True, timeout=60)
            self.assertEqual(full.returncode, 1)
            self.assertIn("stdout cannot be written", full.stderr)

    def test_a_wide_terminal_has_plots_and_users(self) -> None:
        with Folder() as folder, folder.daemon("--simulate=8") as daemon, \
                Screen(BINARY, "top", f"--url=127.0.0.1:{daemon.port}", "--interval=200ms", "--sort=gpu", size=(200, 50)) as screen:
            folder.send("ml.steps:5|c|#run:resnet50")
            lines = screen.shows("8 GPUs", "GPU 0, last 5 minutes", "Utilization ", "Temperature ", "resnet50")
            self.assertEqual(len(lines), 50)
            wait_until(lambda: "\u2588" in screen.text().split("Temperature ")[1], "a plot")
            screen.press("Down")
            screen.shows("GPU 1, last 5 minutes", "Power ")

    def test_scripts_read_json(self) -> None:
        with Daemon("--simulate=2") as daemon:
            url = f"127.0.0.1:{daemon.port}"
            wait_until(lambda: daemon.page().of("gpu_power_watts"), "values")
            done = once(url, "--json", "--once")
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            line, = done.stdout.decode("ascii").splitlines()
            self.assertEqual([(gpu["gpu"], gpu["state"]) for gpu in json.loads(line)["gpus"]], [("0", "ok"), ("1", "ok")])
            with subprocess.Popen([TOP, "--url", url, "--json", "--interval=100ms"], stdout=subprocess.PIPE, text=True) as stream:
                begin = time.monotonic()
                for _ in range(4):
                    self.assertEqual(len(json.loads(stream.stdout.readline())["gpus"]), 2)
                self.assertGreaterEqual(time.monotonic() - begin, 0.25)
                daemon.stop()
                wait_until(lambda: "connect" in json.loads(stream.stdout.readline()).get("error", ""), "an error in the stream")
                stream.stdout.close()
                self.assertEqual(stream.wait(30), -signal.SIGPIPE, "it ends with its reader")
            gone = once(url, "--json", "--once")
            self.assertEqual((gone.returncode, gone.stdout), (1, b""))
        with FakeDaemon([]) as fake:
            self.assertIn(b"status 404", once(fake.url, "--json", "--once").stderr)

    def test_a_unix_socket(self) -> None:
        with tempfile.TemporaryDirectory(prefix="gpumeter-top-") as folder, \
                Daemon("--simulate=2", f"--web.listen-address=unix:{folder}/web.sock", wait=False):
            def seen() -> list[int]:
                done = once(f"unix:{folder}/web.sock")
                return gpus_in(done.stdout.decode().splitlines()) if done.returncode == 0 else []

            wait_until(lambda: b"Simulated GPU" in once(f"unix:{folder}/web.sock").stdout, "a table")
            self.assertEqual(seen(), [0, 1])
            nobody = once(f"unix:{folder}/none.sock")
            self.assertIn(f"{folder}/none.sock".encode(), nobody.stderr)
            self.assertEqual(nobody.returncode, 1)

    def test_errors(self) -> None:
        nobody = once(f"127.0.0.1:{free_port()}")
        self.assertEqual((nobody.returncode, nobody.stdout), (1, b""))
        self.assertIn(b"connect", nobody.stderr)
        self.assertIn(b"--url", nobody.stderr)
        with FakeDaemon([]) as fake:
            self.assertEqual(once(fake.url + "/nothing").returncode, 1)
        for flag in ("--sort=\x1b[2J", "--interval=never", "--interval=1ms", "--url=ftp://x", "--bogus", "word"):
            done = once("127.0.0.1:1", flag)
            self.assertEqual(done.returncode, 2, flag)
            self.assertIn(b"Try 'gpumeter-top --help'", done.stderr)
            self.assertNotIn(b"\x1b", done.stderr, "nothing of the caller reaches the terminal unchanged")
        with Daemon("--simulate=1") as daemon, Screen(TOP, f"--url=127.0.0.1:{daemon.port}", environment={"TERM": "nonsense"}) as screen:
            screen.shows("nonsense", "status 1")


if __name__ == "__main__":
    if not shutil.which("tmux"):
        print("skipped: tmux is not installed")
        sys.exit(77)
    unittest.main(verbosity=2)
