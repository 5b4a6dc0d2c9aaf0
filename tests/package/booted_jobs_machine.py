"""Inside a booted systemd, as root: jobs from their first message to their GPUs' energy, one line per check.

usage: booted_jobs_machine.py PACKAGE.deb
"""
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from shlex import quote

from machine import CONFIG, PATIENCE, UNIT, becomes, check, given, page, restart, run, show, state

HERE = Path(__file__).resolve().parent
PIDS = Path("/run/train")
SAMPLE = re.compile(r"(\w+)\{(.*)\} (\S+)")
Samples = list[tuple[dict[str, str], float]]

# Who computes on what: the driver's process lists, which a simulated GPU takes from the files that the jobs write.
CONFIGURATION = """
collectors:
  amd: {enabled: false}
  nvidia: {enabled: false}
  simulated:
    enabled: true
    devices: 3
    processes:
      - "0=/run/train/a,busy=0.6,memory=4GiB"
      - "0=/run/train/b,busy=0.05,memory=1GiB"
      - "1=/run/train/session,busy=0.5"
      - "0=/run/train/task0,busy=0.5"
      - "1=/run/train/task1,busy=0.5"
      - "2=/run/train/task2,busy=0.5"
"""


def samples(name: str, lines: list[str] | None = None, **labels: str) -> Samples:
    found = []
    for line in page() if lines is None else lines:
        if (sample := SAMPLE.fullmatch(line)) and sample[1] == name:
            has = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', sample[2]))
            if labels.items() <= has.items():
                found.append((has, float(sample[3])))
    return found


def one(name: str, lines: list[str] | None = None, **labels: str) -> float | None:
    """The only such sample; None where there is none."""
    found = samples(name, lines, **labels)
    assert len(found) <= 1, f"{name}{labels}: {found}"
    return found[0][1] if found else None


def unit(name: str, *arguments: str) -> None:
    Path(f"/run/systemd/system/{name}.service").write_text(
        f"[Service]\nExecStart=/usr/bin/python3 -B \"{HERE}/trainer.py\" {' '.join(arguments)}\n")
    run("systemctl", "daemon-reload")
    run("systemctl", "start", name)


def said(name: str) -> list[dict[str, float]]:
    lines = run("journalctl", "--no-pager", "--output=cat", f"--unit={name}").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def energy_of_parts(lines: list[str], gpu: str) -> float:
    return sum(joules for _, joules in samples("gpu_workload_energy_joules_total", lines, gpu=gpu))


def worst_sums() -> tuple[float, float]:
    """Over 20 pages: how far shares are from 1, and the parts' energy from the device's, in parts of it."""
    shares = energies = 0.0
    for _ in range(20):
        lines = page()
        for has, joules in samples("gpu_energy_joules_total", lines):
            parts = samples("gpu_workload_share_ratio", lines, gpu=has["gpu"])
            shares = max(shares, abs(1 - sum(share for _, share in parts)))
            energies = max(energies, abs(energy_of_parts(lines, has["gpu"]) / joules - 1))
        time.sleep(0.15)
    return shares, energies


def install(package: str) -> None:
    given("the package, three simulated GPUs, nobody on them")
    # Images of Debian for containers forbid that an installation starts services.
    Path("/usr/sbin/policy-rc.d").unlink(missing_ok=True)
    run("apt-get", "install", "--yes", package)
    run("useradd", "--create-home", "--uid=1234", "alice")
    PIDS.mkdir()
    PIDS.chmod(0o1777)
    CONFIG.write_text(CONFIGURATION)
    restart()
    becomes("the jobs' sockets listen", lambda: show("ActiveState", "gpumeter-jobs.socket"), "active")
    becomes("nobody has all of each GPU", lambda: [value for _, value in samples("gpu_workload_share_ratio",
                                                                                kind="unattributed")], [1.0] * 3)


def train() -> None:
    given("one unit with one rank, one with eight of different speed, and a login session")
    unit("train-a", "resnet50", "/run/train/a", "--steps=60", "--solve-at=40", "--hold")
    unit("train-b", "skewed", "/run/train/b", "--steps=30,31,32,33,34,35,36,37", "--hold")
    session = subprocess.Popen(["su", "-l", "alice", "-c", f"exec /usr/bin/python3 -B {quote(str(HERE))}/trainer.py notebook /run/train/session"
                                                           " --steps=20 --hold"], stdin=subprocess.DEVNULL)
    state["session"] = session
    becomes("steps of the one rank", lambda: one("ml_steps_total", run="resnet50"), 60.0)
    becomes("steps of the eight, summed", lambda: one("ml_steps_total", run="skewed"), float(sum(range(30, 38))))
    becomes("the step of the eight is the highest", lambda: one("ml_step", run="skewed"), 37.0)
    becomes("steps of the session's", lambda: one("ml_steps_total", run="notebook", user="alice"), 20.0)
    check("no step of the eight counts as lost", one("ml_lost_steps_total", run="skewed") or 0.0, 0.0)
    check("nor as a restart", one("ml_run_restarts_total", run="skewed") or 0.0, 0.0)
    check("samples are 32 a step", one("ml_samples_total", run="resnet50", split="train"), 60 * 32.0)


def look_at_runs() -> None:
    given("what the runs took")
    lines = page()
    solved, = said("train-a")
    off = abs((one("ml_time_to_solution_seconds", lines, run="resnet50", metric="top1") or 0) - solved["solved_after"])
    check(f"time to solution is what the job measured itself, {solved['solved_after']:.2f} s, within 1 s", off < 1, True)
    loading = one("ml_phase_seconds_total", lines, run="resnet50", phase="data_loading") or 0
    forward = one("ml_phase_seconds_total", lines, run="resnet50", phase="forward") or 1
    print(f"       phases: data_loading {loading:.2f} s, forward {forward:.2f} s")
    check("data loading took its quarter", 0.2 < loading / (loading + forward) < 0.35, True)
    steps = one("ml_step_duration_seconds_count", lines, run="skewed") or 0
    took = one("ml_step_duration_seconds_sum", lines, run="skewed") or 1
    print(f"       eight ranks: {8 * steps / took:.1f} steps/s together, {took / steps * 1000:.1f} ms a step")
    # each rank sleeps 50 ms and 5 ms for its number
    check("a step of the eight took 50 to 85 ms and what sleeping adds", 0.050 <= took / steps < 0.110, True)


def look_at_gpus() -> None:
    given("whose the GPUs are")
    becomes("the units and the session have their GPUs", lambda: sorted(
        (has["gpu"], has["kind"], has["workload"]) for has, _ in samples("gpu_workload_memory_used_bytes")), [
            ("0", "systemd_unit", "train-a.service"), ("0", "systemd_unit", "train-b.service")])
    becomes("runs are joined to GPUs", lambda: sorted((has["run"], has["user"], has["gpu"]) for has, _ in
                                                     samples("ml_run_gpu_info")),
            [("notebook", "alice", "1"), ("resnet50", "root", "0"), ("skewed", "root", "0")])
    kinds = {(has["kind"], has["workload"]): has.get("user") for has, _ in samples("gpu_workload_info")}
    print(f"       workloads: {kinds}")
    check("the session is its user's", [user for (kind, _), user in kinds.items() if kind == "session"], ["alice"])
    shares = {has["workload"]: share for has, share in samples("gpu_workload_share_ratio", gpu="0")}
    print(f"       shares of GPU 0: {shares}")
    off_shares, off_energies = worst_sums()
    print(f"       worst of 20 pages: shares off by {off_shares:.2e}, energies by {off_energies:.2e}")
    check("shares sum to 1 on 20 pages", off_shares < 1e-9, True)
    check("energies of the workloads are the device's within 0.1 % on 20 pages", off_energies < 0.001, True)
    lines = page()
    unit_joules = one("gpu_workload_energy_joules_total", lines, gpu="0", workload="train-a.service") or 0
    run_joules = one("ml_energy_joules_total", lines, run="resnet50") or 0
    print(f"       resnet50 {run_joules:.1f} J, its unit {unit_joules:.1f} J")
    check("the run's energy is its unit's, but for a second or two", abs(run_joules - unit_joules) < 0.25 * unit_joules, True)
    check("a GPU that nobody uses is nobody's", samples("gpu_workload_share_ratio", lines, gpu="2")[0][0]["kind"], "unattributed")


def lose_steps() -> None:
    given("the one-rank job dies at step 60 and goes on from a checkpoint at step 50")
    run("systemctl", "kill", "--signal=KILL", "train-a")
    becomes("it is gone", lambda: show("ActiveState", "train-a.service") in ("failed", "inactive"))
    run("systemctl", "reset-failed", "train-a")
    time.sleep(2)  # the daemon looks once a second who is there
    unit("train-a", "resnet50", "/run/train/a", "--resume=50", "--steps=15", "--hold")
    becomes("steps go on", lambda: one("ml_steps_total", run="resnet50"), 75.0)
    check("step", one("ml_step", run="resnet50"), 65.0)
    check("restarts", one("ml_run_restarts_total", run="resnet50"), 1.0)
    check("lost steps", one("ml_lost_steps_total", run="resnet50"), 10.0)


def restart_daemon() -> None:
    given("the daemon restarts while a job goes on")
    run("systemctl", "stop", UNIT)
    subprocess.run(["python3", "-c", "import socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                    "for i in range(5): s.sendto(b'ml.steps:1|c|#run:queued\\n', '/run/gpumeter/jobs.sock')"], check=True)
    run("systemctl", "start", UNIT)
    becomes("what was sent meanwhile is read, though its sender has ended", lambda: one("ml_steps_total", run="queued"), 5.0)


def leave() -> None:
    given("all jobs end")
    run("systemctl", "stop", "train-a", "train-b")
    subprocess.run(["pkill", "-u", "alice"], check=False)
    state["session"].wait(PATIENCE)
    becomes("no run has a GPU any more", lambda: [
        value for _, value in samples("ml_run_gpu_info")], [])
    becomes("the energies of what was there stay", lambda: len(samples("gpu_workload_energy_joules_total", gpu="0")) >= 1)


def slurm_job() -> None:
    given("three tasks of a Slurm job, each in a control group of its own and on a GPU of its own, of which only rank 0 reports")
    tasks = subprocess.Popen(["systemd-run", "--scope", "--unit=node1_slurmstepd", "--property=Delegate=yes", "/usr/bin/python3", "-B",
                              f"{HERE}/trainer.py", "bert", "/run/train/task", "--steps=100,100,100", "--tasks=job_7/step_0/user",
                              "--hold"], stdin=subprocess.DEVNULL)
    becomes("the job has its GPUs", lambda: sorted(has["gpu"] for has, _ in samples("gpu_workload_memory_used_bytes", workload="7")
                                                   + samples("gpu_workload_share_ratio", workload="7") if has["kind"] == "slurm_job"),
            ["0", "1", "2"])
    becomes("so has its run, by the process of rank 0 and by the job", lambda: sorted(
        (has["gpu"], has["source"]) for has, _ in samples("ml_run_gpu_info", run="bert")),
            [("0", "process"), ("1", "workload"), ("2", "workload")])
    time.sleep(8)
    lines = page()
    job_joules = sum(joules for _, joules in samples("gpu_workload_energy_joules_total", lines, workload="7"))
    run_joules = one("ml_energy_joules_total", lines, run="bert") or 0
    print(f"       bert {run_joules:.1f} J, its job {job_joules:.1f} J")
    check("the run's energy is its job's, but for two seconds or so", -1 < job_joules - run_joules < 0.3 * job_joules, True)
    scancel(tasks)


def scancel(tasks: subprocess.Popen[bytes]) -> None:
    given("the job is cancelled as Slurm does: SIGTERM to all of its processes, then SIGKILL")
    job = Path("/sys/fs/cgroup/system.slice/node1_slurmstepd.scope/job_7")
    pids = [int(pid) for group in job.rglob("cgroup.procs") for pid in group.read_text().split()]
    check("the control groups have its three tasks", len(pids), 3)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        time.sleep(1)
    tasks.wait(PATIENCE)
    becomes("its run was aborted", lambda: [has["status"] for has, _ in samples("ml_run_stop_timestamp_seconds", run="bert")], ["aborted"])
    becomes("and has no GPU any more", lambda: samples("ml_run_gpu_info", run="bert"), [])


def main(package: str) -> None:
    began = time.monotonic()
    print(f"booted: {run('systemctl', '--version').splitlines()[0]}", flush=True)
    install(package)
    for part in (train, look_at_runs, look_at_gpus, lose_steps, restart_daemon, leave, slurm_job):
        part()
    print(f"\n{state['checks']} checks in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except BaseException:
        print("\n".join(line for line in page() if line.startswith(("ml_", "gpu_workload", "gpumeter_jobs"))), file=sys.stderr)
        subprocess.run(["journalctl", "--no-pager", "--lines=40", f"--unit={UNIT}"], stdout=sys.stderr)
        raise
