"""Inside a booted systemd, as root: the package from its installation to its purge, one line per check.

usage: booted_machine.py PACKAGE.deb ATTACK_SECONDS [BEFORE.deb]

BEFORE is the version before, by default the same package with a lower version.
"""
import subprocess
import sys
import time

from booted_attack import attack
from booted_install import install, named_gpumeter, purge, sandbox
from booted_jobs import jobs
from booted_lifecycle import clean_stop, socket_activation, watchdog, wrong_configuration
from booted_reload import lost_device, release, reload
from booted_sandbox import amd, clients_drop_in, intel_gpu, late_driver, own_programs, process_drop_in
from booted_upgrade import (newer, upgrade_from_before, upgrade_from_service_only, upgrade_with_changed_default, upgrade_with_own_addresses,
                            upgrade_with_socket)
from machine import UNIT, run, state


def main(package: str, attack_seconds: float, before_package: str = "") -> None:
    began = time.monotonic()
    print(f"booted: {run('systemctl', '--version').splitlines()[0]}", flush=True)
    print(f"{package}, version {run('dpkg-deb', '--field', package, 'Version').strip()}", flush=True)
    before = named_gpumeter()
    install(package)
    sandbox()
    attack(attack_seconds)
    for part in (jobs, reload, lost_device, release, amd, process_drop_in, intel_gpu, clients_drop_in, late_driver, own_programs, watchdog, clean_stop,
                 wrong_configuration, socket_activation):
        part()
    for upgrade in (upgrade_with_socket, upgrade_with_changed_default, upgrade_from_service_only, upgrade_with_own_addresses):
        upgrade(package)
    upgrade_from_before(package, before_package or newer(package, "~before"))
    purge(before)
    print(f"\n{state['checks']} checks in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    try:
        main(sys.argv[1], float(sys.argv[2]), *sys.argv[3:])
    except BaseException:
        subprocess.run(["journalctl", "--no-pager", "--lines=40", f"--unit={UNIT}"], stdout=sys.stderr)
        raise
