"""A user without rights holds as much of the service's port as possible, and requests more, while Prometheus scrapes."""
import http.client
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

from booted_lifecycle import port_taken_by_nobody
from machine import becomes, check, configure, drop_in, given, gpus, journal, no_drop_ins, restart, run, show, simulated

ATTACKER = Path(__file__).resolve().parent.parent / "e2e/http_attacker.py"
WATCHDOG_SECONDS = 3


class Prometheus:
    """A scrape every 50 ms, each on a connection of its own, until the end of the block."""

    def __enter__(self) -> "Prometheus":
        self.seconds: list[float] = []
        self.lost: list[str] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.scrape)
        self.thread.start()
        return self

    def scrape(self) -> None:
        while not self.over.wait(0.05):
            began = time.monotonic()
            client = http.client.HTTPConnection("127.0.0.1", 10478, timeout=10)
            try:
                client.request("GET", "/metrics")
                answer = client.getresponse()
                whole = answer.read()
                if answer.status != 200 or not whole:
                    self.lost.append(str(answer.status))
            except OSError as error:
                self.lost.append(str(error))
            finally:
                client.close()
            self.seconds.append(time.monotonic() - began)

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def __str__(self) -> str:
        ordered = sorted(self.seconds)
        return (f"{len(ordered)} scrapes, {len(self.lost)} lost, median {ordered[len(ordered) // 2] * 1000:.1f} ms, "
                f"99 % {ordered[int(len(ordered) * 0.99)] * 1000:.1f} ms, longest {ordered[-1] * 1000:.1f} ms")


def attack(seconds: float) -> None:
    given(f"given WatchdogSec={WATCHDOG_SECONDS}s, 300 idle, 20 trickling and a stream of half-closed connections of nobody:")
    configure(simulated(devices=8))
    drop_in("test.conf", f"[Service]\nWatchdogSec={WATCHDOG_SECONDS}s\n")
    restart()
    becomes("it reads its GPUs", lambda: gpus(up=1), 8)
    pid, restarts = show("MainPID"), show("NRestarts")
    nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "/usr/bin/python3", "-I", "-", "10478", str(seconds)]
    pings: set[int] = set()
    with Prometheus() as prometheus, ATTACKER.open() as program, subprocess.Popen(nobody, stdin=program, stdout=subprocess.PIPE,
                                                                                text=True) as attacker:
        while attacker.poll() is None:
            pings.add(int(show("WatchdogTimestampMonotonic")))
            time.sleep(0.2)
        held = attacker.stdout.read().strip() if attacker.stdout else ""
    print(f"       {os.cpu_count()} processors; the attacker: {held}\n       {prometheus}")
    check("the attacker was connected", attacker.returncode == 0 and "connections=" in held, True)
    print(f"       lost: {prometheus.lost}")
    # All slots change hands in about 20 ms under this stream: a scraper that is off its processor for longer, with
    # its request unsent, is the oldest idle connection itself.
    check("hardly a scrape was lost", len(prometheus.lost) * 100 <= len(prometheus.seconds), True)
    check("the same process runs, without a restart", (show("MainPID"), show("NRestarts")), (pid, restarts))
    gaps = [(later - earlier) / 1e6 for earlier, later in zip(sorted(pings), sorted(pings)[1:])]
    print(f"       {len(pings)} pings, {max(gaps):.2f} s apart at the most")
    check("no ping was missed", (len(journal("does not answer")), max(gaps) < WATCHDOG_SECONDS), (0, True))
    check("its port is not to be had", port_taken_by_nobody(), "[Errno 98] Address already in use")
    no_drop_ins()
    run("systemctl", "stop", "gpumeter.socket", "gpumeter")
    configure(simulated(devices=1))
    shutil.rmtree("/var/lib/gpumeter")  # or seven of these GPUs would be missed from now on
    restart()
    limits = [show(name) for name in ("MemoryMax", "TasksMax", "CPUWeight")]
    check("(its limits are in force)", limits, [str(512 << 20), "512", "50"])
    run("systemctl", "reset-failed", "gpumeter")
