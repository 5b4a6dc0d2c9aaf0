"""Start and end of the service: the watchdog, a clean stop, a wrong configuration and the bundle that reports it, and a socket that stays open."""
import os
import signal
import subprocess
import tarfile
import tempfile
import threading
import time

from machine import (IPV4, IPV6, UNIT, becomes, check, configure, drop_in, given, gpus, is_active, journal, no_drop_ins,
                     restart, run, show, simulated, status_of)


def watchdog() -> None:
    given("given WatchdogSec=3s (a drop-in of this test; 30s is shipped), when the process is stopped by SIGSTOP:")
    configure(simulated(devices=1))
    drop_in("test.conf", "[Service]\nWatchdogSec=3s\n")
    restart()
    pid, times = show("MainPID"), int(show("NRestarts"))
    os.kill(int(pid), signal.SIGSTOP)
    becomes("systemd restarts it", lambda: int(show("NRestarts")) > times)
    becomes("it serves again", lambda: (is_active(), status_of(IPV4)), ("active", 200))
    check("as another process", show("MainPID") != pid, True)
    check("and the journal says why", len(journal("Watchdog timeout")) > 0, True)
    no_drop_ins()


def clean_stop() -> None:
    configure(simulated(devices=2))
    restart()
    given("when it is stopped, and its socket:")
    began = time.monotonic()
    run("systemctl", "stop", "gpumeter.socket", "gpumeter")
    seconds = time.monotonic() - began
    exited = "1"  # CLD_EXITED
    check("it ended by itself, with exit 0", [show(name) for name in ("Result", "ExecMainCode", "ExecMainStatus")],
          ["success", exited, "0"])
    print(f"       after {seconds:.2f} s")
    check("nobody serves", status_of(IPV4), 0)


def wrong_configuration() -> None:
    given("when it is started with a configuration that is wrong:")
    configure("web: {config_file: web.yml}\n")
    run("systemctl", "start", "--no-block", "gpumeter")
    becomes("it fails", lambda: is_active(), "failed")
    check("with exit 2, and is not restarted", (show("ExecMainStatus"), show("NRestarts")), ("2", "0"))
    check("and the journal names file, line and key", len(journal("/etc/gpumeter/gpumeter.yaml:1: web.config_file: ")), 1)
    with tempfile.TemporaryDirectory() as folder:
        run("gpumeter", "bundle", f"{folder}/bundle.tar.gz")
        with tarfile.open(f"{folder}/bundle.tar.gz") as archive:
            log, = (archive.extractfile(member).read().decode() for member in archive if member.name.endswith("log/daemon.log"))
    wrong = [line for line in log.splitlines() if "gpumeter.yaml:1: web.config_file: " in line]
    # The socket starts the service again for the bundle's own questions, up to its limit.
    check("a bundle has the lines of the journal", (wrong != [] and wrong[0].split()[1].startswith("gpumeter["), os.uname().nodename in log), (True, False))
    configure(simulated(devices=2))
    run("systemctl", "reset-failed", "gpumeter", "gpumeter.socket")


class Scrapes:
    """Scrapes one after the other until the end of the block."""

    def __enter__(self) -> "Scrapes":
        self.seen: list[int] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.scrape)
        self.thread.start()
        return self

    def scrape(self) -> None:
        while not self.over.is_set():
            self.seen.append(status_of(IPV6))
            time.sleep(0.01)  # the rest of the machine needs its cores too

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


def port_taken_by_nobody() -> str:
    """The error; empty if there was none."""
    take = "import socket; socket.create_server(('127.0.0.1', 10478))"
    said = subprocess.run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "/usr/bin/python3", "-c", take],
                          capture_output=True, text=True, timeout=60)
    return said.stderr.strip().rpartition("OSError: ")[2].partition(" (while")[0]


def socket_activation() -> None:
    given("given gpumeter.socket enabled, and not the service:")
    run("systemctl", "disable", "--now", UNIT)
    run("systemctl", "enable", "--now", "gpumeter.socket")
    check("the socket is there, the service is not", (is_active("gpumeter.socket"), is_active()), ("active", "inactive"))
    check("a scrape is answered", status_of(IPV4), 200)
    becomes("since it starts the service", is_active, "active")
    check("::1 is served as well", status_of(IPV6), 200)
    pid = show("MainPID")
    with Scrapes() as scrapes:
        restart()
        becomes("restarted, it reads its GPUs", lambda: gpus(up=1), 2)
    check("as another process", show("MainPID") != pid, True)
    check("every scrape meanwhile was answered", (set(scrapes.seen), len(scrapes.seen) > 1), ({200}, True))
    print(f"       {len(scrapes.seen)} of them")
    run("systemctl", "stop", UNIT)
    check("stopped, its port is not to be had", port_taken_by_nobody(), "[Errno 98] Address already in use")
    check("stopped, it is started by the next scrape", (is_active(), status_of(IPV4)), ("inactive", 200))
    becomes("and active again", is_active, "active")
    configure('web: {listen: [":10478"]}\n' + simulated(devices=2))
    restart()
    becomes("it warns of a web.listen that it does not use", lambda: len(journal("web.listen is not used")), 1)
    configure(simulated(devices=2))
    restart()
