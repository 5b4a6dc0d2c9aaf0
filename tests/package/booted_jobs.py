"""Jobs of other users report to the installed service: during a restart, to a stopped service, and with a restricted socket."""
import grp
import os
import signal
import stat
import subprocess
from pathlib import Path

from machine import UNIT, becomes, check, configure, given, is_active, is_enabled, restart, run, show, simulated, value

SOCKETS = "gpumeter-jobs.socket"
DROP_INS = Path(f"/etc/systemd/system/{SOCKETS}.d")
NARROW = Path("/usr/share/doc/gpumeter/examples/systemd/narrow-jobs.conf")
DATAGRAM, STREAM = Path("/run/gpumeter/jobs.sock"), Path("/run/gpumeter/jobs-stream.sock")
CLIENT = """
import sys
sys.path.insert(0, "/usr/share/gpumeter/python")
import gpumeter
with gpumeter.run(sys.argv[1]) as run:
    run.step()
"""
SEND = f"""
import socket, sys
out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[2])): out.sendto(b"ml.steps:1|c|#run:" + sys.argv[1].encode(), "{DATAGRAM}")
"""


def as_nobody(program: str, *arguments: str, group: str = "nogroup") -> str:
    """The last line of what went wrong; empty where nothing did."""
    said = subprocess.run(["setpriv", "--reuid=nobody", f"--regid={group}", "--clear-groups", "/usr/bin/python3", "-c", program,
                           *arguments], capture_output=True, text=True, timeout=60)
    return said.stderr.strip().rpartition("\n")[2]


def steps(run_name: str) -> str:
    return value(f'ml_steps_total{{run="{run_name}",user="nobody",split="train"}}')


def mode(path: Path) -> str:
    status = path.stat()
    return f"{path.owner()}:{grp.getgrgid(status.st_gid).gr_name} {stat.S_IMODE(status.st_mode):04o}"


def installed_sockets() -> None:
    given("given the jobs' sockets as installed")
    configure(simulated(devices=1))
    restart()
    check("they are there, and again at the next boot", (is_active(SOCKETS), is_enabled(SOCKETS)), ("active", "enabled"))
    check("in a folder of the service", mode(DATAGRAM.parent), "gpumeter:gpumeter 0755")
    check("open to every user", [mode(path).split()[1] for path in (DATAGRAM, STREAM)], ["0666", "0666"])
    check("the client of the package, as nobody,", as_nobody(CLIENT, "client"), "")
    becomes("is heard under its user's name", lambda: steps("client"), "1")


def outlive_the_service() -> None:
    given("when the service is stopped by SIGSTOP, messages come, and it is killed:")
    pid = int(show("MainPID"))
    os.kill(pid, signal.SIGSTOP)
    check("they are taken", as_nobody(SEND, "queued", "5"), "")
    os.kill(pid, signal.SIGKILL)
    becomes("the next one has read all of them, of a process that is gone", lambda: steps("queued"), "5")
    check("as another process", show("MainPID") != str(pid), True)
    given("when it is stopped and a message comes:")
    run("systemctl", "stop", UNIT)
    check("it is stopped", is_active(), "inactive")
    check("the message is taken", as_nobody(SEND, "woke", "1"), "")
    becomes("and starts it", is_active, "active")
    becomes("which reads it", lambda: steps("woke"), "1")


def narrowed() -> None:
    given("given the drop-in narrow-jobs.conf:")
    DROP_INS.mkdir(parents=True)
    (DROP_INS / "narrow.conf").write_text(NARROW.read_text())
    run("systemctl", "daemon-reload")
    run("systemctl", "stop", UNIT)
    run("systemctl", "restart", SOCKETS)
    run("systemctl", "start", UNIT)
    check("the sockets are the group's, with the service up", mode(DATAGRAM).split(":")[1], "users 0660")
    check("a user of no group is kept out", as_nobody(SEND, "out", "1"), "PermissionError: [Errno 13] Permission denied")
    check("one of the group is not", as_nobody(SEND, "in", "1", group="users"), "")
    becomes("and is heard", lambda: steps("in"), "1")
    (DROP_INS / "narrow.conf").unlink()
    DROP_INS.rmdir()
    run("systemctl", "daemon-reload")
    run("systemctl", "stop", UNIT)
    run("systemctl", "restart", SOCKETS)
    run("systemctl", "start", UNIT)


def unstartable() -> None:
    given("given a wrong configuration, the service stopped, when a message comes:")
    configure("jobs: {nosuch: 1}\n")
    run("systemctl", "stop", UNIT)
    check("it is taken", as_nobody(SEND, "lost", "1"), "")
    becomes("the sockets are given up, since no start reads it", lambda: is_active(SOCKETS), "failed")
    configure(simulated(devices=1))
    run("systemctl", "reset-failed", UNIT)
    run("systemctl", "start", UNIT)
    check("mended and started, it has them again", is_active(SOCKETS), "active")
    check("and a message", as_nobody(SEND, "again", "1"), "")
    becomes("is heard", lambda: steps("again"), "1")


def jobs() -> None:
    installed_sockets()
    outlive_the_service()
    narrowed()
    unstartable()
