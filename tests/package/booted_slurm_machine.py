"""Inside a booted systemd, as root: a real Slurm of one node with four simulated GPUs, one line per check.

usage: booted_slurm_machine.py GPUMETER
"""
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from machine import becomes, check, given, page, run, state

PLUGINS = Path(__file__).resolve().parents[2] / "packaging/integrations/slurm"
GPUS, JOBS, TIMES = Path("/run/gpus"), Path("/run/gpumeter/slurm"), Path("/run/times")
SAMPLE = re.compile(r"(\w+)\{(.*)\} (\S+)")

SLURM_CONF = """
ClusterName=lab
SlurmctldHost=node1
AuthType=auth/munge
SlurmUser=slurm
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
ReturnToService=2
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
PrologFlags=Contain,Alloc
GresTypes=gpu,shard
Prolog=/etc/slurm/prolog
Epilog=/etc/slurm/epilog
TaskProlog=/etc/slurm/task-prolog
NodeName=node1 CPUs=8 Gres=gpu:a100:4,shard:8 State=UNKNOWN
PartitionName=gpu Nodes=node1 Default=YES MaxTime=60 State=UP
"""
GRES_CONF = "NodeName=node1 Name=gpu Type=a100 File=/dev/nvidia[0-3]\nNodeName=node1 Name=shard Count=8\n"
GPUMETER = """
web: {{listen: ["127.0.0.1:10478"]}}
collectors:
  amd: {{enabled: false}}
  nvidia: {{enabled: false}}
  drm: {{enabled: false}}
  simulated:
    enabled: true
    devices: 4
    duty: {duty}
    processes: ["0=/run/gpus/0,busy=0.6", "1=/run/gpus/1,busy=0.6", "2=/run/gpus/2,busy=0.6", "3=/run/gpus/3,busy=0.6"]
"""
# A job that works on the GPUs that it was given: the simulated driver lists it there.
WORK = "for i in $(echo ${{SLURM_JOB_GPUS:-$CUDA_VISIBLE_DEVICES}} | tr , ' '); do echo $$ >> /run/gpus/$i; done; exec sleep {seconds}"


def prepare_machine() -> None:
    """A network in which names resolve, writable cgroups, users, and files that stand for GPUs."""
    script = """
ip link add v0 type veth peer name v1; ip addr add 10.9.9.1/24 dev v0; ip link set lo up; ip link set v0 up; ip link set v1 up
printf '127.0.0.1 localhost\\n10.9.9.1 node1\\n' > /etc/hosts; hostname node1
for c in freezer memory cpuset devices; do umount /sys/fs/cgroup/$c; mount -t cgroup -o $c cgroup /sys/fs/cgroup/$c; done
mount -o remount,rw /sys/fs/cgroup
useradd -m -u 2001 alice; useradd -m -u 2002 bob
for i in 0 1 2 3; do [ -e /dev/nvidia$i ] || mknod -m 666 /dev/nvidia$i c 195 $i || touch /dev/nvidia$i; done
mkdir -p /run/gpus /run/times /etc/slurm /var/spool/slurmctld /var/spool/slurmd /var/log/slurm
chmod 777 /run/gpus /run/times; for i in 0 1 2 3; do touch /run/gpus/$i; chmod 666 /run/gpus/$i; done
chown slurm: /var/spool/slurmctld /var/log/slurm
"""
    subprocess.run(["sh", "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def timed(name: str) -> None:
    """Slurm runs the plugin through a script that notes its time in milliseconds."""
    path = Path("/etc/slurm", name)
    path.write_text(f"#!/bin/bash\nbegun=$(date +%s%N); {PLUGINS}/gpumeter-{name}; status=$?\n"
                    f"echo $(( ($(date +%s%N) - begun) / 1000 )) >> {TIMES}/{name}; exit $status\n")
    path.chmod(0o755)


def start_slurm() -> None:
    Path("/etc/slurm/slurm.conf").write_text(SLURM_CONF)
    Path("/etc/slurm/gres.conf").write_text(GRES_CONF)
    Path("/etc/slurm/cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nConstrainDevices=no\n")
    Path("/etc/default/gpumeter-slurm").write_text("JOB_NAMES=yes\n")
    for name in ("prolog", "epilog", "task-prolog"):
        timed(name)
    for unit in ("munge", "slurmctld", "slurmd"):
        run("systemctl", "restart", unit)
    becomes("Slurm has its node", lambda: run("sinfo", "-h", "-o", "%t %G").strip(), "idle gpu:a100:4,shard:a100:8")


def configure(duty: str) -> None:
    Path("/etc/gpumeter-test.yaml").write_text(GPUMETER.format(duty=duty))


def start_gpumeter(binary: str) -> None:
    configure("0.37")
    run("systemd-run", "--quiet", "--unit=gpumeter-test", "--property=User=nobody", "--property=RuntimeDirectory=gpumeter",
        "--property=RuntimeDirectoryPreserve=yes", "--property=StateDirectory=gpumeter", "--property=ProtectSystem=strict",
        "--property=ProtectControlGroups=yes", binary, "--config.file=/etc/gpumeter-test.yaml")
    becomes("gpumeter reads four GPUs", lambda: len(samples("gpu_up")), 4)


def samples(name: str, **labels: str) -> list[tuple[dict[str, str], float]]:
    found = []
    for line in page():
        if (sample := SAMPLE.fullmatch(line)) and sample[1] == name:
            has = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', sample[2]))
            if labels.items() <= has.items():
                found.append((has, float(sample[3])))
    return found


def total(name: str, **labels: str) -> float:
    return sum(value for _, value in samples(name, **labels))


def given_gpus(job: str) -> list[str]:
    return sorted(labels["gpu"] for labels, _ in samples("gpu_allocation_info", workload=job, source="slurm"))


def facts(job: str, *names: str) -> list[str]:
    found = samples("gpu_workload_info", kind="slurm_job", workload=job)
    return [found[0][0].get(name, "") for name in names] if len(found) == 1 else [f"{len(found)} series"]


def submit(user: str, name: str, gpus: int, command: str, *more: str) -> str:
    said = run("runuser", "-u", user, "--", "sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", f"--job-name={name}",
               *([f"--gpus={gpus}"] if gpus else []), "--ntasks=1", *more, f"--wrap={command}")
    return said.strip().partition(";")[0]


def cancel(job: str) -> None:
    run("scancel", job)
    becomes(f"the job {job} has ended", lambda: run("squeue", "-h", "-j", job).strip() if job in run("squeue", "-h", "-o", "%i")
            else "", "")


def work() -> None:
    given("given jobs of alice, an array and a short srun of bob")
    long = submit("alice", "bert-base", 2, WORK.format(seconds=600))
    becomes("sbatch: two GPUs are given to it", lambda: given_gpus(long), ["0", "1"])
    becomes("with names", lambda: facts(long, "user", "slurm_job_name", "slurm_partition", "source"),
            ["alice", "bert-base", "gpu", "process"])
    array = submit("bob", "sweep", 1, WORK.format(seconds=600), "--array=1-2")
    numbers = ("user", "slurm_job_name", "slurm_array_job", "slurm_array_task")
    tasks = lambda: sorted(labels["slurm_array_task"] for labels, _ in samples("gpu_workload_info", slurm_array_job=array))  # noqa: E731
    becomes("array: both tasks by their numbers", tasks, ["1", "2"])
    first, = [labels["workload"] for labels, _ in samples("gpu_workload_info", slurm_array_task="1")]
    check("and names", facts(first, *numbers), ["bob", "sweep", array, "1"])
    run("scontrol", "requeue", first)
    becomes("requeue: its GPU is free", lambda: given_gpus(first), [])
    cancel(array)
    begun = time.monotonic()
    srun = subprocess.Popen(["runuser", "-u", "bob", "--", "srun", "-J", "short", "--gpus=1", "sh", "-c", WORK.format(seconds=4)],
                            cwd="/tmp", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    short = lambda: [labels["workload"] for labels, _ in samples("gpu_workload_info", slurm_job_name="short")]  # noqa: E731
    becomes("srun of 4 s: it is on the page", lambda: len(short()), 1)
    job, = short()
    before = total("gpu_energy_joules_total", gpu="2")
    becomes("with its GPU", lambda: given_gpus(job), ["2"])
    check("and ends well", srun.wait(60), 0)
    becomes("its GPU is free", lambda: given_gpus(job), [])
    print(f"     {time.monotonic() - begun:.1f} s, {total('gpu_workload_energy_joules_total', workload=job):.0f} J of "
          f"{total('gpu_energy_joules_total', gpu='2') - before:.0f} J of its GPU", flush=True)
    whole = page()
    parts: dict[str, list[float]] = {}
    for line in whole:
        if (sample := SAMPLE.fullmatch(line)) and sample[1] in ("gpu_workload_energy_joules_total", "gpu_energy_joules_total"):
            gpu = re.search(r'gpu="(\d+)"', sample[2])
            parts.setdefault(gpu[1], [0, 0])[sample[1] == "gpu_energy_joules_total"] += float(sample[3])
    check("energy of the workloads is that of each GPU", [gpu for gpu, (own, all_) in parts.items() if abs(own - all_) > 1e-3 * all_], [])
    print("     " + ", ".join(f"GPU {gpu}: {own:.1f} of {all_:.1f} J" for gpu, (own, all_) in sorted(parts.items())), flush=True)
    check("a GPU that works is not idle", total("gpu_allocated_idle_seconds_total", workload=long), 0)
    cancel(long)
    becomes("cancelled: its GPUs are free", lambda: given_gpus(long), [])
    check("and its file is gone", sorted(path.name for path in JOBS.iterdir()), [])


def shards() -> None:
    given("given two users' shards")
    jobs = [submit(user, "part", 0, WORK.format(seconds=600), "--gres=shard:1") for user in ("alice", "bob")]
    becomes("both are on the first GPU", lambda: [given_gpus(job) for job in jobs], [["0"], ["0"]])
    becomes("each of its user", lambda: [facts(job, "user") for job in jobs], [["alice"], ["bob"]])
    for job in jobs:
        cancel(job)


def held_but_idle() -> None:
    given("given a job that holds a GPU without a process on it, and idle GPUs")
    configure("0")
    run("systemctl", "kill", "--signal=HUP", "gpumeter-test")
    job = submit("alice", "notebook", 1, "sleep 600")
    becomes("the GPU is given to it", lambda: given_gpus(job), ["0"])
    becomes("it has a name without a process", lambda: facts(job, "user", "slurm_job", "slurm_job_name", "source"),
            ["alice", job, "notebook", "allocation"])
    becomes("its idle time grows", lambda: total("gpu_allocated_idle_seconds_total", workload=job) >= 20)
    since, = [value for _, value in samples("gpu_allocation_start_timestamp_seconds", workload=job)]
    check("since its start", abs(time.time() - since) < 120, True)
    given("when slurmd and the job are killed before the epilog")
    run("systemctl", "kill", "--signal=KILL", "slurmd")
    subprocess.run(["sh", "-c", "pkill -KILL slurmstepd; sleep 1; find /sys/fs/cgroup/freezer -path '*slurm_node1*' -name cgroup.procs "
                    "-exec cat {} + | xargs -r kill -KILL; sleep 1; "
                    "find /sys/fs/cgroup/*/slurm_node1 -depth -type d -path '*job_*' -exec rmdir {} +"], stderr=subprocess.DEVNULL)
    check("its file stays", (JOBS / job).exists(), True)
    check("and so does the allocation, for a minute", given_gpus(job), ["0"])
    os.utime(JOBS / job, (time.time() - 61, time.time() - 61))
    becomes("then it ends by itself", lambda: given_gpus(job), [])


def forgeries() -> None:
    given("given a user who would misname others")
    JOBS.joinpath("99").write_text("SLURM_JOB_ID=99\nSLURM_JOB_UID=2001\nSLURM_JOB_USER=alice\nSLURM_JOB_GPUS=3\n")
    JOBS.joinpath("99.name").write_text("SLURM_JOB_NAME=mine\n")
    os.mkfifo(JOBS / "99.pipe", 0o600)
    os.chown(JOBS / "99.pipe", 2001, 2001)
    as_bob = ["runuser", "-u", "bob", "--", "sh", "-c"]
    for what, command in (("another's name", f"echo SLURM_JOB_NAME=bad > {JOBS}/99.name"), ("to another's pipe", f"echo SLURM_JOB_NAME=bad 1<>{JOBS}/99.pipe"), ("another's file", f"echo x > {JOBS}/99"),
                          ("a file of one's own", f"echo x > {JOBS}/100"), ("its end", f"rm -f {JOBS}/99")):
        check(f"bob cannot write {what}", subprocess.run([*as_bob, command], stderr=subprocess.DEVNULL).returncode != 0, True)
    job = submit("alice", "hers", 1, "sleep 600")
    becomes("alice names her job", lambda: facts(job, "slurm_job_name", "user"), ["hers", "alice"])
    cancel(job)
    becomes("and the names of the other stay", lambda: facts("99", "slurm_job_name", "user"), ["mine", "alice"])


def report_times() -> None:
    for name in ("prolog", "epilog", "task-prolog"):
        times = [int(line) / 1000 for line in (TIMES / name).read_text().split()]
        print(f"     {name}: {len(times)} times, median {statistics.median(times):.1f} ms, longest {max(times):.1f} ms", flush=True)


def main() -> int:
    print("booted: a machine of its own", flush=True)
    prepare_machine()
    start_gpumeter(sys.argv[1])
    start_slurm()
    work()
    check("no prolog or epilog drained the node", run("sinfo", "-h", "-o", "%t").strip() in ("idle", "mix", "comp"), True)
    shards()
    forgeries()
    held_but_idle()
    report_times()
    print(f"{state['checks']} checks")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AssertionError as error:
        print(error)
        print(subprocess.run("tail -15 /var/log/slurm/*.log; squeue; sinfo; ls -la /run/gpumeter/slurm; journalctl -u gpumeter-test -n 20 --no-pager; "
                             "curl -s http://127.0.0.1:10478/metrics | grep -E 'allocation|workload_info'", shell=True,
                             capture_output=True, text=True).stdout)
        sys.exit(1)
