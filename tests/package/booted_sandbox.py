"""What the service's sandbox lets it read, and what its drop-ins and its device rules add."""
import os
import re
import shutil
import sys
from pathlib import Path

from machine import becomes, check, configure, drop_in, given, no_drop_ins, page, process_status, restart, run, show, simulated

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
CARD = "mi210"  # HBM, XGMI, RAS, the compute driver's topology
SYS = Path("/srv/gpumeter-test")  # PrivateTmp and ProtectHome hide /tmp and /root
EXAMPLES = Path("/usr/share/doc/gpumeter/examples/systemd")
CAP_SYS_PTRACE = 1 << 19  # linux/capability.h
FREE_MAJOR = 242  # Documentation/admin-guide/devices.txt: 240 to 254 are for local use
OPEN = "import os, sys\ntry: os.open(sys.argv[1], os.O_RDWR)\nexcept OSError as e: print(e.strerror)"


def device_values(lines: list[str]) -> list[str]:
    """What one pass and many show alike: neither counters, nor what is of a window of time."""
    return [line for line in lines if re.match(r"gpu_", line) and not re.match(r"\w+(_total|_(max|min)_\w+)[{ ]", line)]


def amd() -> None:
    from golden_test import CARDS, GOLDEN, lay
    given(f"given the tree of a {CARD} for sysfs, the service in its sandbox")
    lay(SYS / "sys", CARDS / f"{CARD}.card")
    shutil.copy(CARDS / "amdgpu.ids", SYS)
    # A state folder of its own: no device was known before.
    configure(f"paths: {{sysfs: {SYS}/sys, procfs: {SYS}, state: /var/lib/gpumeter/amd}}\n"
              f"collectors:\n  amd: {{ids_file: {SYS}/amdgpu.ids}}\n")
    restart()
    outside = device_values((GOLDEN / f"amd_{CARD}.prom").read_text().splitlines())
    check("(the golden page has values)", len(outside) > 50, True)
    becomes("shows the values that the program shows outside", lambda: device_values(page()), outside)
    print(f"       {len(outside)} of them")
    shutil.rmtree(SYS)


def process_drop_in() -> None:
    given("given the drop-in process.conf of the package's examples, the process")
    configure(simulated(devices=1))
    drop_in("process.conf", (EXAMPLES / "process.conf").read_text())
    restart()
    status = process_status()
    check("has CAP_SYS_PTRACE and no other capability", [int(status[name], 16) for name in ("CapEff", "CapBnd")],
          [CAP_SYS_PTRACE] * 2)
    check("and can still get none", (status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
    no_drop_ins()
    restart()
    check("without it, it has none again", int(process_status()["CapEff"], 16), 0)


def opened_with(allowed: str, node: Path) -> str:
    rules = ["--property=DevicePolicy=closed", f"--property=DeviceAllow={allowed}"]
    return run("systemd-run", "--quiet", "--wait", "--pipe", *rules, "/usr/bin/python3", "-c", OPEN, str(node)).strip()


def late_driver() -> None:
    """No driver has the number: what the device rules let through ends at the kernel's "No such device or address"."""
    given("given the device of a driver whose number /proc/devices did not have when the service started,")
    assert f"\n{FREE_MAJOR} " not in Path("/proc/devices").read_text()
    node = Path("/dev/gpumeter-test")
    os.mknod(node, 0o20666, os.makedev(FREE_MAJOR, 0))
    shipped = "char-* rw"  # ProtectClock= adds a rule for clocks
    check("(the unit has its rule)", (show("DevicePolicy"), shipped in show("DeviceAllow").splitlines()), ("closed", True))
    if opened_with("char-drm rw", node) != "Operation not permitted":
        print("  --   not shown: systemd cannot enforce device rules here, as in a container without that controller")
        return
    check("it is let through", opened_with(shipped, node), "No such device or address")
