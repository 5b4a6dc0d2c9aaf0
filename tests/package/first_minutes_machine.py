"""Inside a booted systemd, as root: the commands of the README's first ten minutes, one after the other, with what they print.

usage: first_minutes_machine.py PACKAGE.deb
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from machine import check, given, run

README = Path(__file__).resolve().parents[2] / "README.md"
PATIENCE = 300  # s: the fault comes after one minute, the alert within two more; generous, for a busy machine
# What a command must print, at the latest after a while.
EXPECTED = {
    "gpumeter --list-devices": r"",
    "promtool check config": r"SUCCESS",
    "promtool query instant": r'gpu="1".*=> 0\.\d*[1-9]',
    "amtool ": r"GpuOverheating.*GPU 1",
}
# What Debian's packages need in a container without a network, and a Grafana that only starts.
FILES = {
    "/etc/default/prometheus-alertmanager": 'ARGS="--cluster.listen-address="\n',
    "/etc/systemd/system/prometheus.service.d/container.conf": "[Service]\nPrivateDevices=no\n",
    "/etc/systemd/system/grafana-server.service": "[Service]\nExecStart=/bin/sleep infinity\n",
}
# The package is built already, and root needs no sudo.
SHIMS = {"dev": 'mkdir -p build && cp "$PACKAGE" build/\n', "bin/sudo": 'exec "$@"\n'}


def commands() -> list[str]:
    section = re.search(r"^## The first ten minutes$(.*?)^## ", README.read_text(), re.M | re.S)
    assert section
    return [line for block in re.findall(r"^```sh\n(.*?)^```$", section[1], re.M | re.S) for line in block.splitlines()]


def prepare(folder: Path) -> None:
    # Images of Debian for containers forbid that an installation starts services.
    Path("/usr/sbin/policy-rc.d").unlink(missing_ok=True)
    for name, script in SHIMS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("#!/bin/sh\n" + script)
        (folder / name).chmod(0o755)
    for name, text in FILES.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    for kind in ("dashboards", "datasources"):
        Path("/etc/grafana/provisioning", kind).mkdir(parents=True, exist_ok=True)
    # This machine has them; on another one, their installation starts them.
    run("systemctl", "daemon-reload")
    run("systemctl", "restart", "prometheus", "prometheus-alertmanager")


def execute(command: str, folder: Path, package: str) -> None:
    """Runs it as a user types it, again and again if what it must print comes with time."""
    wanted = next((text for start, text in EXPECTED.items() if command.startswith(start)), "")
    env = {**os.environ, "PACKAGE": package, "PATH": f"{folder}/bin:{os.environ['PATH']}", "DEBIAN_FRONTEND": "noninteractive"}
    began = time.monotonic()
    while True:
        said = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        printed = said.stdout + said.stderr
        if said.returncode or re.search(wanted, printed, re.S) or time.monotonic() - began > PATIENCE:
            break
        time.sleep(2)
    print(f"$ {command}    # {time.monotonic() - began:.0f} s\n{printed.rstrip()}", flush=True)
    check("it succeeds and prints what it should", (said.returncode, bool(re.search(wanted, printed, re.S))), (0, True))


def dashboards() -> None:
    given("given the provisioning for Grafana")
    source = Path("/etc/grafana/provisioning/datasources/gpumeter.yaml").read_text()
    url = re.search(r"url: (\S+)", source)
    assert url
    with urllib.request.urlopen(f"{url[1]}/-/ready", timeout=10) as answer:
        check("its source is this Prometheus", answer.status, 200)
    folder = re.search(r"path: (\S+)", Path("/etc/grafana/provisioning/dashboards/gpumeter.yaml").read_text())
    assert folder
    titles = [json.loads(path.read_text())["uid"] for path in sorted(Path(folder[1]).glob("*.json"))]
    check("its folder has the three dashboards", titles, ["gpumeter-fleet", "gpumeter-gpu", "gpumeter-jobs"])


def main(package: str) -> None:
    began = time.monotonic()
    print(f"booted: {run('systemctl', '--version').splitlines()[0]}", flush=True)
    asked = commands()
    check("each expected command is in the README", [start for start in EXPECTED if not any(each.startswith(start) for each in asked)], [])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        prepare(folder)
        for command in asked:
            execute(command, folder, package)
    dashboards()
    print(f"\n{len(asked)} commands in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1])
