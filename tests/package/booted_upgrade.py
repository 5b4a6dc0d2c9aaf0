"""Newer versions of the package over an edited configuration, with the socket and with the service; the package over the version before it."""
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from booted_lifecycle import Scrapes
from machine import (CONFIG, DROP_INS, UNIT, becomes, check, configure, drop_in, given, gpus, is_active, is_enabled, no_drop_ins, page, restart,
                     run, show, simulated, value)

WORK = Path("/var/tmp/gpumeter-test")
NEW_DEFAULT = "\n# A line that the new version's configuration has.\n"


def version() -> str:
    return run("dpkg-query", "--show", "--showformat=${Version}", "gpumeter")


def newer(package: str, addition: str, edit: Callable[[Path], object] = lambda tree: None) -> str:
    """The package once more, with a higher version and with what `edit` does to its files."""
    tree, made = WORK / "tree", WORK / f"gpumeter{addition}.deb"
    shutil.rmtree(tree, ignore_errors=True)
    WORK.mkdir(parents=True, exist_ok=True)
    run("dpkg-deb", "-R", package, str(tree))
    control = tree / "DEBIAN/control"
    old = run("dpkg-deb", "--field", package, "Version").strip()
    control.write_text(control.read_text().replace(f"Version: {old}", f"Version: {old}{addition}"))
    edit(tree)
    run("dpkg-deb", "-Zgzip", "-z1", "--build", "--root-owner-group", str(tree), str(made))  # a thirtieth of the time of xz
    return str(made)


def change_default(tree: Path) -> None:
    path = tree / CONFIG.relative_to("/")
    path.write_text(path.read_text() + NEW_DEFAULT)


def runs_what_is_installed() -> bool:
    """The kernel marks the program of a process whose file was replaced."""
    return os.readlink(f"/proc/{show('MainPID')}/exe") == "/usr/bin/gpumeter"


def upgrade_with_socket(package: str) -> None:
    given("given the socket and an edited configuration, when a newer version is installed:")
    edited, old = CONFIG.read_text(), version()
    upgrade = newer(package, "+1")
    with Scrapes() as scrapes:
        run("apt-get", "install", "--yes", upgrade)
    check("it is the newer one", version(), f"{old}+1")
    check("every scrape meanwhile was answered", (set(scrapes.seen), len(scrapes.seen) > 1), ({200}, True))
    print(f"       {len(scrapes.seen)} of them")
    check("the configuration is as edited", CONFIG.read_text(), edited)
    check("the socket listens, and the service is not enabled beside it",
          (is_active("gpumeter.socket"), is_enabled("gpumeter.socket"), is_enabled(UNIT)), ("active", "enabled", "disabled"))
    becomes("what answers is the new program", runs_what_is_installed)
    becomes("with the edited configuration", lambda: gpus(up=1), 2)


def upgrade_with_changed_default(package: str) -> None:
    given("given the service, an edited configuration and nobody to ask, when a version with another default is installed:")
    run("systemctl", "disable", "--now", "gpumeter.socket")
    run("systemctl", "enable", "--now", UNIT)
    edited, old = CONFIG.read_text(), version()
    keep = ["-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"]
    run("apt-get", "install", "--yes", *keep, newer(package, "+2", change_default),
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    check("it is the newer one", version(), old.replace("+1", "+2"))
    check("the configuration is as edited", CONFIG.read_text(), edited)
    check("the new default lies beside it", Path(f"{CONFIG}.dpkg-dist").read_text().endswith(NEW_DEFAULT), True)
    check("the service runs, and the socket stays off", (is_active(), is_active("gpumeter.socket")), ("active", "inactive"))
    check("it is the new program", runs_what_is_installed(), True)
    becomes("with the edited configuration", lambda: gpus(up=1), 2)


def forget_socket() -> None:
    """As a version leaves the machine that did not enable gpumeter.socket: the service holds the port itself."""
    run("systemctl", "disable", "--now", "gpumeter.socket")
    # It refuses to work for anybody but dpkg.
    run("deb-systemd-helper", "purge", "gpumeter.socket", env={**os.environ, "DPKG_MAINTSCRIPT_PACKAGE": "gpumeter"})
    run("systemctl", "enable", UNIT)
    restart()
    becomes("the service holds the port itself", lambda: (gpus(up=1), is_active("gpumeter.socket")), (2, "inactive"))


def upgrade_from_service_only(package: str) -> None:
    given("given a version whose service held the port itself, when a newer one is installed:")
    forget_socket()
    run("apt-get", "install", "--yes", "-o", "Dpkg::Options::=--force-confold", newer(package, "+3"))
    check("the socket holds the port, now and at the next boot",
          (is_active("gpumeter.socket"), is_enabled("gpumeter.socket")), ("active", "enabled"))
    check("the service runs", (is_active(), runs_what_is_installed()), ("active", True))
    becomes("with the edited configuration", lambda: gpus(up=1), 2)
    run("systemctl", "stop", UNIT)
    becomes("a scrape starts it, on that socket", lambda: gpus(up=1), 2)


def upgrade_with_own_addresses(package: str) -> None:
    given("given the same and a web.listen of its own:")
    edited = 'web:\n  listen: ["127.0.0.1:10478"]\n' + CONFIG.read_text()
    CONFIG.write_text(edited)
    forget_socket()
    run("apt-get", "install", "--yes", "-o", "Dpkg::Options::=--force-confold", newer(package, "+4"))
    check("the socket stays off", (is_active("gpumeter.socket"), is_enabled("gpumeter.socket")), ("inactive", "disabled"))
    becomes("and the service serves there", lambda: (is_active(), gpus(up=1)), ("active", 2))


# gpumeter integrates them, so nothing else would continue them.
KEPT = ("gpu_energy_joules_total", "gpu_observed_seconds_total", "ml_steps_total")
STEPS = 'ml_steps_total{run="long",user="root",split="train"}'
LOST = 'gpu_up{gpu="2",uuid="SIM-1-2",vendor="simulated",model="Simulated GPU"}'
JOB = """
import socket, sys
out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
out.sendto(b"ml.steps:7|c|#run:long", "/run/gpumeter/jobs.sock")
sys.stdin.read()
"""


def kept() -> dict[str, float]:
    return {series: float(number) for series, _, number in (line.rpartition(" ") for line in page()) if series.startswith(KEPT)}


def administrators_files() -> dict[str, tuple[str, int]]:
    """Text and mode of everything that an administrator wrote."""
    files = [*CONFIG.parent.iterdir(), *DROP_INS.iterdir()]
    return {str(path): (path.read_text(), path.stat().st_mode) for path in sorted(files)}


def indexes() -> dict[str, int]:
    return {device["uuid"]: device["index"] for device in json.loads(Path("/var/lib/gpumeter/devices.json").read_text())["devices"]}


def observed() -> float:
    """Seconds of GPU 0, in the counter that counts least."""
    return min((number for series, number in kept().items() if series.startswith('gpu_observed_seconds_total{gpu="0"')), default=0)


def age() -> float:
    """Seconds since the service's process started."""
    return time.monotonic() - int(show("ExecMainStartTimestampMonotonic")) / 1e6


def installed_before(before: str) -> None:
    """The version before with three GPUs, of which one is then lost, a web.yml, a drop-in and edited defaults."""
    no_drop_ins()
    run("apt-get", "purge", "--yes", "gpumeter")
    run("apt-get", "install", "--yes", before)
    (CONFIG.parent / "web.yml").write_text("http_server_config: {headers: {X-Frame-Options: deny}}\n")
    drop_in("own.conf", "[Service]\nNice=3\n")
    for devices in (3, 2):
        configure(f"web: {{config_file: {CONFIG.parent}/web.yml}}\n" + simulated(devices))
        restart()
        becomes(f"version {version()} reads {devices} GPUs", lambda: gpus(up=1), devices)
    becomes("and reports the third as lost", lambda: value(LOST), "0")


def upgrade_from_before(package: str, before: str) -> None:
    given(f"given {before}, with state and files of an administrator, when {package} is installed:")
    installed_before(before)
    with subprocess.Popen(["/usr/bin/python3", "-c", JOB], stdin=subprocess.PIPE) as job:
        becomes("a run has 7 steps", lambda: value(STEPS), "7")
        becomes("the GPU was observed for 3 s", lambda: observed() > 3)
        old, files, known = kept(), administrators_files(), indexes()
        with Scrapes() as scrapes:
            run("apt-get", "install", "--yes", "-o", "Dpkg::Options::=--force-confold", package)
            becomes("the new program answers", lambda: runs_what_is_installed() and gpus(up=1) == 2)
        check("it is the new version", version(), run("dpkg-deb", "--field", package, "Version").strip())
        check("every scrape meanwhile was answered", set(scrapes.seen), {200})
        check("the GPU was observed for longer than the new program runs", observed() > age() + 2, True)
        new = kept()
        check("no counter is missing or lower", [series for series, number in old.items() if not new.get(series, -1) >= number], [])
        for series, number in old.items():
            print(f"       {series.partition(',vendor')[0]}: {number:.1f}, then {new[series]:.1f}")
        check("the run goes on", new[STEPS], 7)
        check("the lost GPU is known", value(LOST), "0")
        check("files and indexes are unchanged", (administrators_files(), indexes()), (files, known))
        check("the drop-in is in force", show("Nice"), "3")
        job.stdin.close()
    no_drop_ins()
    (CONFIG.parent / "web.yml").unlink()
