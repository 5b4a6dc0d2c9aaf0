"""Inside a booted systemd, as root: filters of devices made by systemd, gpumeter-held in its unit, and the page, one line per check.

usage: booted_held_machine.py GPUMETER
"""
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

from machine import becomes, check, given, page, run, state

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path("/run/gpumeter-held")
TREE = Path("/run/tree")
NODES = Path("/dev/gpumeter-test")  # systemd takes only paths below /dev; 242 is for local use, and no driver has it here
MAJOR = 242
UNIT = Path("/etc/systemd/system/gpumeter-held.service")
GPUS = 8
SCENARIO = "include: h100_8.yaml\nchange: {" + ", ".join(f"{gpu}: {{utilization: {{gpu: 0 %, memory: 0 %}}}}" for gpu in range(GPUS)) + "}\n"


def node(gpu: int) -> Path:
    return NODES / f"nvidia{gpu}"


def start_gpumeter(binary: Path) -> list[dict[str, str]]:
    """The daemon over the fake NVML. Returns the labels of its GPUs."""
    os.environ["GPUMETER_BINARY"] = str(binary)
    # By its path, because this folder has a module of the same name.
    fake = importlib.util.spec_from_file_location("nvidia_machine", ROOT / "tests/fakes/nvml/machine.py")
    module = importlib.util.module_from_spec(fake)
    fake.loader.exec_module(module)
    nvidia = module.Machine(SCENARIO)
    (nvidia.folder / "sys/fs").mkdir()
    (nvidia.folder / "sys/fs/cgroup").symlink_to("/sys/fs/cgroup")
    run("systemd-run", "--quiet", "--unit=gpumeter-test", "--property=RuntimeDirectory=gpumeter", "--property=StateDirectory=gpumeter",
        "--property=ProtectControlGroups=yes", *(f"--setenv={name}={value}" for name, value in nvidia.env.items()), str(binary),
        *nvidia.arguments, "--web.listen-address=127.0.0.1:10478")
    state["nvidia"] = nvidia  # its folder has to stay
    gpus = lambda: [dict(re.findall(r'(\w+)="([^"]*)"', line)) for line in page() if line.startswith("gpu_info{")]  # noqa: E731
    becomes(f"gpumeter shows {GPUS} GPUs", lambda: len(gpus()), GPUS)
    return sorted(gpus(), key=lambda labels: int(labels["gpu"]))


def lay_gpus(gpus: list[dict[str, str]]) -> None:
    """The GPUs as NVIDIA's driver would show them."""
    NODES.mkdir(parents=True)
    for gpu, labels in enumerate(gpus):
        os.mknod(node(gpu), stat.S_IFCHR | 0o666, os.makedev(MAJOR, gpu))
        folder = TREE / "proc/driver/nvidia/gpus" / labels["pci_address"]
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"Model: \t\t NVIDIA H100 80GB HBM3\nDevice Minor: \t {gpu}\n")


def job(number: int, *gpus: int, is_filtered: bool = True) -> Path:
    """The control group of a job in a scope with a name like Slurm's, with a filter by systemd."""
    scope = f"n{number}_slurmstepd.scope"
    rules = ["-p", "DevicePolicy=closed", *(word for gpu in gpus for word in ("-p", f"DeviceAllow={node(gpu)} rw"))]
    subprocess.Popen(["systemd-run", "--quiet", "--scope", f"--unit={scope}", "-p", "Delegate=yes", *(rules if is_filtered else []),
                      "sleep", "1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    folder = Path("/sys/fs/cgroup/system.slice", scope)
    becomes(f"the group of job {number} is made", lambda: (folder / "cgroup.procs").exists())
    leaf = folder / f"job_{number}/step_extern/slurm"
    leaf.mkdir(parents=True)
    return leaf


def install(binary: Path, *options: str) -> None:
    shutil.copy(binary.with_name("gpumeter-held"), "/usr/sbin/gpumeter-held")
    # A container is what this test boots.
    text = (ROOT / "systemd/gpumeter-held.service").read_text().replace("ConditionVirtualization=!container\n", "")
    UNIT.write_text(text)
    Path("/etc/default/gpumeter-held").write_text(
        f'GPUMETER_HELD_OPTIONS="--path.dev={NODES} --path.procfs={TREE}/proc --settle=0 {" ".join(options)}"\n')
    run("systemctl", "daemon-reload")


def look() -> None:
    run("systemctl", "start", "gpumeter-held")


def lines(job_number: int) -> list[str]:
    return (FOLDER / f"slurm_job:{job_number}").read_text().splitlines()


def gpus_of(number: int, answer: str) -> list[int]:
    addresses = [labels["pci_address"] for labels in state["gpus"]]
    return sorted(addresses.index(value) for name, _, value in (line.partition("=") for line in lines(number)) if name == answer)


def held() -> list[str]:
    return sorted(line for line in page() if line.startswith("gpu_allocation_info{"))


def series(gpu: int, number: int) -> str:
    return (f'gpu_allocation_info{{gpu="{gpu}",uuid="{state["gpus"][gpu]["uuid"]}",kind="slurm_job",workload="{number}",source="cgroup"}} 1')


def cpu_microseconds(leaf: Path) -> int:
    return int(re.search(r"usage_usec (\d+)", (leaf / "cpu.stat").read_text())[1])


def filters() -> list[Path]:
    given("given jobs with systemd's device filters, and one without a filter")
    leaves = [job(7, 0, 1), job(8, 2), job(9), job(10, is_filtered=False)]
    became = time.monotonic()
    look()
    print(f"     one pass over four new jobs in its unit: {(time.monotonic() - became) * 1000:.0f} ms", flush=True)
    answers = {number: [gpus_of(number, "ALLOWED"), gpus_of(number, "DENIED")] for number in (7, 8, 9, 10)}
    check("allowed and denied nodes are told apart", answers,
          {7: [[0, 1], [2, 3, 4, 5, 6, 7]], 8: [[2], [0, 1, 3, 4, 5, 6, 7]], 9: [[], [*range(GPUS)]], 10: [[*range(GPUS)], []]})
    becomes("the page has exactly the GPUs that filters permit", held, [series(0, 7), series(1, 7), series(2, 8)])
    becomes("the job without a process has its name", lambda: len([line for line in page() if line.startswith(
        'gpu_workload_info{kind="slurm_job",workload="7"') and 'slurm_job="7"' in line and 'source="allocation"' in line]), 1)
    return leaves


def traces(leaves: list[Path]) -> None:
    given("given the groups that were entered")
    check("no process is left in one", [(leaf / "cgroup.procs").read_text() for leaf in leaves], [""] * len(leaves))
    print(f"     CPU time charged to each: {[cpu_microseconds(leaf) for leaf in leaves]} us", flush=True)
    used = [int((leaf / "memory.current").read_text()) for leaf in leaves if (leaf / "memory.current").exists()]
    print(f"     memory charged to each: {used or 'no controller'} bytes", flush=True)
    before = [cpu_microseconds(leaf) for leaf in leaves]
    look()
    check("a second pass enters none again", [cpu_microseconds(leaf) for leaf in leaves], before)
    for folder in (leaves[1], leaves[1].parent, leaves[1].parent.parent):
        folder.rmdir()
    becomes("a group can be removed, and its job holds nothing", held, [series(0, 7), series(1, 7)])
    look()
    check("and its file is gone", sorted(path.name for path in FOLDER.glob("slurm_job:*")),
          ["slurm_job:10", "slurm_job:7", "slurm_job:9"])


def frozen() -> None:
    given("given a job whose processes are frozen")
    leaf = job(11, 3)
    (leaf / "cgroup.freeze").write_text("1")
    becomes("(it is frozen)", lambda: "frozen 1" in (leaf / "cgroup.events").read_text())
    look()
    check("it is not entered", lines(11), ["WORKLOAD=11", "KIND=slurm_job", "STATE=pending", f"GROUP={leaf.parents[1].stat().st_ino}"])
    (leaf / "cgroup.freeze").write_text("0")
    becomes("(it is thawed)", lambda: "frozen 0" in (leaf / "cgroup.events").read_text())
    look()
    becomes("then it is", held, [series(0, 7), series(1, 7), series(3, 11)])


def by_name(binary: Path) -> None:
    given("given an administrator who states that Slurm manages all GPUs")
    install(binary, "--managed=nvidia")
    look()
    becomes("a job that may open all of them holds all", held,
            sorted([series(0, 7), series(1, 7), *(series(gpu, 10) for gpu in range(GPUS)), series(3, 11)]))


def idle() -> None:
    given("given idle GPUs")
    counted = re.compile(r'gpu_allocated_idle_seconds_total\{gpu="3",.*workload="11"\} (\S+)')
    becomes("the time in which they are held counts",
            lambda: any((found := counted.fullmatch(line)) and float(found[1]) >= 10 for line in page()))


def rights() -> None:
    given("given the unit")
    check("it has no capability", run("systemctl", "show", "--value", "--property=CapabilityBoundingSet", "gpumeter-held").strip(), "")
    exposure = run("systemd-analyze", "security", "--no-pager", "gpumeter-held").splitlines()[-1]
    print(f"     {exposure}", flush=True)
    check("others cannot write its folder", stat.S_IMODE(FOLDER.stat().st_mode), 0o755)


def main() -> int:
    print("booted: a machine of its own", flush=True)
    binary = Path(sys.argv[1])
    state["gpus"] = start_gpumeter(binary)
    lay_gpus(state["gpus"])
    install(binary)
    leaves = filters()
    traces(leaves)
    frozen()
    idle()
    by_name(binary)
    rights()
    print(f"{state['checks']} checks")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AssertionError as error:
        print(error)
        print(subprocess.run(f"journalctl -u gpumeter-held -u gpumeter-test -n 30 --no-pager; head -50 {FOLDER}/*; "
                             "curl -s http://127.0.0.1:10478/metrics | grep -E 'allocation|workload_info|^gpu_info'", shell=True,
                             capture_output=True, text=True).stdout)
        sys.exit(1)
