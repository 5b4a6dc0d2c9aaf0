"""The files that the sandbox permits the service to read, and the effects of its drop-ins and device rules."""
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

from machine import (answers, becomes, check, configure, drop_in, given, no_drop_ins, page, process_status, restart, run, show,
                     simulated)

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
CARD = "mi210"  # HBM, XGMI, RAS, the compute driver's topology
SYS = Path("/srv/gpumeter-test")  # PrivateTmp and ProtectHome hide /tmp and /root
EXAMPLES = Path("/usr/share/doc/gpumeter/examples/systemd")
CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_PERFMON = 1 << 2, 1 << 19, 1 << 38  # linux/capability.h
GENERATOR, RUNTIME = "/lib/systemd/system-generators/gpumeter-generator", "/run/systemd/system"
SOCKET_DROP_IN = Path("/etc/systemd/system/gpumeter.socket.d/test.conf")
FREE_MAJOR = 242  # Documentation/admin-guide/devices.txt: 240 to 254 are for local use
NODE = Path("/dev/gpumeter-test")
OPEN = """
import os, sys, time
print("started")
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
try: os.open(sys.argv[1], os.O_RDWR)
except OSError as error: print(error.strerror)
"""


def device_values(lines: list[str]) -> list[str]:
    """The series that are the same after one pass and after many: no counters, windows of time or judgements."""
    return [line for line in lines if re.match(r"gpu_(?!health)", line) and not re.match(r"\w+(_total|_(max|min)_\w+)[{ ]", line)]


def amd() -> None:
    from golden_test import GOLDEN
    from card_tree import CARDS, lay
    given(f"given the tree of a {CARD} for sysfs, the service in its sandbox")
    lay(SYS / "sys", CARDS / f"{CARD}.card")
    shutil.copy(CARDS / "amdgpu.ids", SYS)
    # A state folder of its own: no device was known before.
    configure(f"metrics: {{detail: full}}\npaths: {{sysfs: {SYS}/sys, procfs: {SYS}, state: /var/lib/gpumeter/amd}}\n"
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
    check("has its two capabilities and no other", [int(status[name], 16) for name in ("CapEff", "CapBnd")],
          [CAP_DAC_READ_SEARCH | CAP_SYS_PTRACE] * 2)
    check("and can still get none", (status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
    no_drop_ins()
    restart()
    check("without it, it has none again", int(process_status()["CapEff"], 16), 0)


def intel_gpu() -> None:
    given("given the generator on a machine with a GPU of Intel, the process")
    if not int(re.search(r"^CapBnd:\s*(\w+)", Path("/proc/1/status").read_text(), re.M)[1], 16) & CAP_PERFMON:
        print("  --   not shown: this container has no CAP_PERFMON to give")
        return
    function = SYS / "sys/bus/pci/devices/0000:03:00.0"
    function.mkdir(parents=True)
    (function / "vendor").write_text("0x8086\n")
    (function / "class").write_text("0x030000\n")
    configure(simulated(devices=1))
    run("env", f"GPUMETER_SYSFS={SYS}/sys", GENERATOR, RUNTIME)
    run("systemctl", "daemon-reload")
    restart()
    status = process_status()
    check("has CAP_PERFMON and no other capability", [int(status[name], 16) for name in ("CapEff", "CapBnd")], [CAP_PERFMON] * 2)
    shutil.rmtree(SYS)
    shutil.rmtree(f"{RUNTIME}/gpumeter.service.d")
    run("systemctl", "daemon-reload")
    restart()
    check("without the GPU, it has none", int(process_status()["CapEff"], 16), 0)


def own_programs() -> None:
    given("given a program in a folder that the service may write, in its mounts:")
    configure(simulated(devices=1))
    restart()
    inside = ("nsenter", f"--target={show('MainPID')}", "--mount")
    for folder in ("/var/lib/gpumeter", "/run/gpumeter", "/tmp", "/dev/shm"):
        program = f"{folder}/program"
        run(*inside, "cp", "/usr/bin/true", program)
        started = subprocess.run([*inside, program], capture_output=True, text=True)
        check(f"it does not start in {folder}", (started.returncode, "Permission denied" in started.stderr), (126, True))
        run(*inside, "rm", program)


def restart_socket() -> None:
    run("systemctl", "daemon-reload")
    run("systemctl", "stop", "gpumeter")
    run("systemctl", "restart", "gpumeter.socket")
    restart()


def clients_drop_in() -> None:
    given("given the drop-in clients.conf, with addresses that this machine has (127.0.0.1, 127.0.0.10) for those in it:")
    text = (EXAMPLES / "clients.conf").read_text()
    SOCKET_DROP_IN.parent.mkdir(parents=True)
    SOCKET_DROP_IN.write_text(text.replace("=localhost", "=127.0.0.1").replace("=192.0.2.10", "=127.0.0.10"))
    restart_socket()
    allowed = sorted(show("IPAddressAllow", "gpumeter.socket").split())  # systemd gives them in any order
    check("(the socket has the rule)", allowed, ["127.0.0.1/32", "127.0.0.10/32"])
    if "does not support BPF/cgroup firewalling" in run("journalctl", "--no-pager", "--boot"):
        print("  --   not shown: systemd cannot enforce rules of addresses here, as in a container without BPF")
    else:
        check("it answers the machine and Prometheus", (answers("127.0.0.1"), answers("127.0.0.10")), (True, True))
        check("and nobody else", answers("127.0.0.11"), False)
    SOCKET_DROP_IN.unlink()
    restart_socket()
    check("without it, it answers everybody", answers("127.0.0.11"), True)


def opened_with(rule: str) -> str:
    """The result when a service under this device rule opens, as root, a node created after its start."""
    NODE.unlink(missing_ok=True)
    rules = ["--property=DevicePolicy=closed", f"--property=DeviceAllow={rule}"]
    command = ["systemd-run", "--quiet", "--wait", "--pipe", *rules, "/usr/bin/python3", "-u", "-c", OPEN, str(NODE)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout and service.stdout.readline() == "started\n"
        os.mknod(NODE, stat.S_IFCHR | 0o666, os.makedev(FREE_MAJOR, 0))
        return service.stdout.read().strip()


def late_driver() -> None:
    """No driver has the number: what the device rules let through ends at the kernel's "No such device or address"."""
    given("given a device that appears when the service runs, with a number that /proc/devices never had:")
    assert f"\n{FREE_MAJOR} " not in Path("/proc/devices").read_text()
    shipped = "char-* rw"  # ProtectClock= adds a rule for clocks
    check("(the unit has its rule)", (show("DevicePolicy"), shipped in show("DeviceAllow").splitlines()), ("closed", True))
    named = opened_with("char-drm rw")
    if named == "No such device or address":
        print("  --   not shown: systemd cannot enforce device rules here, as in a container without BPF")
        return
    check("a rule with a driver's name shuts it out", named, "Operation not permitted")
    check("the unit's rule lets it through", opened_with(shipped), "No such device or address")
