#!/usr/bin/env python3
"""Given runs that end in every possible way, then the page has the script's known values for each. Prints the table."""
from __future__ import annotations

import signal
import time
import unittest
from typing import Any

import at_once
from memory_group import MemoryGroup
from run_machine import Job, Look, RunMachine
from run_table import COLUMNS, UNKNOWN, Between, is_right, printed, text, write_row

UNSENT = 11  # steps of the last second, which a process keeps for the next datagram
OVER_WITHIN = 15  # of the last process's end
SLURM = "/system.slice/slurmstepd.scope"


def unit(name: str) -> str:
    return f"/system.slice/{name}.service"


class RunLifecycle(unittest.TestCase):
    def machine(self, gpus: int = 1) -> RunMachine:
        self.on = self.enterContext(RunMachine(gpus))
        return self.on

    def ended(self, run: str) -> Look:
        """The run is over, and its figures with it."""
        try:
            self.on.when(lambda look: look.status(run) != "-", f"{run} is over", OVER_WITHIN)
        except AssertionError:
            pass  # the table shows it
        time.sleep(2.2)  # the energy of the last second
        look = self.on.look()
        assert look
        return look

    def over_too_early(self, run: str, end: float) -> bool:
        return any(look.status(run) != "-" for look in self.on.looks if look.at < end - 0.5)

    def row(self, case: str, look: Look, run: str, workloads: list[str], known: dict[str, Any], end: float = 0) -> None:
        """Page/known, a `!` in front of what is not right; then all of it has to be. What is not known is not compared. The
        run may not have been over before its `end`."""
        gpus = {gpu: source for before in self.on.looks for gpu, source in before.gpus(run).items()}
        joules = sum(look.sum("gpu_workload_energy_joules_total", workload=one) or 0 for one in workloads)
        early = " too early" if self.over_too_early(run, end) else ""
        page = {"run time": look.sum("ml_run_time_seconds", run=run), "solution": look.sum("ml_time_to_solution_seconds", run=run),
                "best": look.sum("ml_eval_best_value", run=run), "status": look.status(run) + early,
                "restarts": look.sum("ml_run_restarts_total", run=run), "lost steps": look.sum("ml_lost_steps_total", run=run),
                "steps": look.sum("ml_steps_total", run=run),
                "phases": look.sum("ml_phases_total", run=run, phase="data_loading"), "joules": look.sum("ml_energy_joules_total", run=run),
                "GPUs": " ".join(f"{gpu}{'*' if source == 'workload' else ''}" for gpu, source in sorted(gpus.items()))}
        known = {column: value for column, value in {"restarts": 0, "lost steps": 0, "joules": joules, **known}.items()
                 if value is not UNKNOWN}
        wrong = [column for column in COLUMNS if column in known and not is_right(column, page[column], known[column])]
        write_row(case, [f"{'!' if column in wrong else ''}{text(page[column])}" + (f"/{text(known[column])}" if column in known else "")
                         for column in COLUMNS])
        self.assertEqual({column: (page[column], known[column]) for column in wrong}, {}, "what the page has, what is known")
        self.never_backwards(run)

    def never_backwards(self, run: str) -> None:
        """A time that falls, or is below 0, is no time."""
        for name in ("ml_run_time_seconds", "ml_time_to_solution_seconds", "ml_last_update_timestamp_seconds"):
            times = [value for look in self.on.looks if (value := look.sum(name, run=run)) is not None]
            falls = [(one, other) for one, other in zip(times, times[1:]) if other < one - 1 or other < 0]
            self.assertEqual(falls, [], name)

    def began(self, job: Job) -> float:
        """The client's value, in whole seconds."""
        return job.wait_for("began")

    def test_last_rank_leaves_late(self) -> None:
        job = self.machine(3).job(f"""
rank = ranks(3, "{SLURM}/job_7/step_0/user")
with begin("late", gpu=rank) as run:
    train(run, 6 if rank == 0 else 2, {{1: 0.5, 1.5: 0.8}})
""")
        end, solved, start = job.ended(), job.wait_for("solved"), self.began(job)
        self.row("last rank leaves late", self.ended("late"), "late", ["7"],
                 {"run time": end - start, "solution": solved - start, "best": 0.8, "status": "success",
                  "steps": len(job.all("step")), "GPUs": "0 1 2"}, end)

    def test_first_rank_leaves_early(self) -> None:
        job = self.machine(3).job(f"""
rank = ranks(3, "{SLURM}/job_7/step_0/user")
with begin("early", gpu=rank) as run:
    train(run, 2 if rank == 0 else 6, {{1: 0.5, 1.5: 0.8}})
""")
        end, solved, start = job.ended(), job.wait_for("solved"), self.began(job)
        self.row("first rank leaves early", self.ended("early"), "early", ["7"],
                 {"run time": end - start, "solution": solved - start, "best": 0.8, "status": "success",
                  "steps": len(job.all("step")), "GPUs": "0 1 2"}, end)

    def test_rank_0_only(self) -> None:
        job = self.machine(4).job(f"""
rank = ranks(4, "{SLURM}/job_7/step_0/user")
if rank == 0:
    with begin("one", gpu=0) as run:
        train(run, 5, {{1: 0.8}})
else:
    time.sleep(1.3)
    take_gpu(rank)
    time.sleep(5)
""")
        end, solved, start = job.ended(), job.wait_for("solved"), self.began(job)
        self.row("rank 0 only", self.ended("one"), "one", ["7"],
                 {"run time": end - start, "solution": solved - start, "best": 0.8, "status": "success",
                  "steps": len(job.all("step")), "GPUs": "0 1* 2* 3*"}, end)

    def restarted(self, case: str, stop: float, down: float, known: dict[str, Any]) -> None:
        """The daemon is stopped so many seconds into the training, which has its target after 5."""
        job = self.machine().job(f"""
enter("{unit("train")}")
with begin("again", gpu=0) as run:
    train(run, 9, {{0.5: 0.4, 3: 0.5, 4: 0.6, 5: 0.8, 7.5: 0.8}})
""")
        start = self.began(job)
        time.sleep(max(0.0, start + 1.3 + stop - time.time()))
        self.on.stop()
        time.sleep(down)
        self.on.start()
        end, solved = job.ended(), job.wait_for("solved") - start
        times = {"solution": solved} if "solution" not in known else {}
        self.row(case, self.ended("again"), "again", ["train.service"],
                 {"run time": end - start, "best": 0.8, "status": "success", "GPUs": "0", "joules": UNKNOWN, **times, **known})

    def test_daemon_restarted_before_the_target(self) -> None:
        self.restarted("restarted before the target", 1.5, 0, {})

    def test_daemon_restarted_at_the_target(self) -> None:
        # The client keeps unsent lines and sends them within a second or two; otherwise the value is unknown.
        self.restarted("restarted at the target", 4.6, 0.8, {"solution": (Between(5.5, 9), None)})

    def test_daemon_restarted_after_the_target(self) -> None:
        # It is killed two seconds after the target: the copy of its figures has it.
        self.restarted("restarted after the target", 7, 0, {})

    def test_killed(self) -> None:
        program = f"""
rank = ranks(2, "{SLURM}/job_7/step_0/user")
run = begin("killed", gpu=rank)
train(run, 60, {{1: 0.5}})
"""
        job = self.machine(2).job(program)
        start = self.began(job)
        job.wait_for("evaluated", 1)
        time.sleep(3)
        killed = job.signal(signal.SIGKILL)
        job.wait()
        done = len(job.all("step"))
        self.row("kill -9", self.ended("killed"), "killed", ["7"],
                 {"run time": killed - start, "solution": None, "best": 0.5, "status": "lost",
                  "steps": Between(done - 2 * UNSENT, done), "GPUs": "0 1"}, killed)

    def test_killed_and_resumed(self) -> None:
        self.machine()
        first = self.on.job(f"""
enter("{unit("train")}")
run = begin("resumed", gpu=0)
train(run, 3, {{1: 0.5}})
run.count(samples=0)
time.sleep(1.1)
run.count(samples=0)
say("waits")
time.sleep(60)
""")
        start = self.began(first)
        first.wait_for("waits")
        time.sleep(0.3)
        first.signal(signal.SIGKILL)
        first.wait()
        done = len(first.all("step"))
        time.sleep(2.5)
        second = self.on.job(f"""
enter("{unit("train")}")
with begin("resumed", gpu=0) as run:
    run.resume({done - 5})
    train(run, 2, {{1: 0.8}}, first={done - 4})
""")
        end = second.ended()
        self.row("kill -9, resumed 5 steps back", self.ended("resumed"), "resumed", ["train.service"],
                 {"run time": end - start, "solution": second.wait_for("solved") - start, "best": 0.8, "status": "success",
                  "restarts": 1, "lost steps": 5, "steps": done + len(second.all("step")), "GPUs": "0"})

    def ended_by(self, case: str, program: str, end: Any, status: Any, gpus: int, killed: int = 0) -> None:
        """`killed`: so many of its processes get no chance to send their last steps."""
        job = self.machine(gpus).job(program)
        start = self.began(job)
        job.wait_for("evaluated", 1)
        time.sleep(2.6)  # half a second after its last datagram
        gone = end(job)
        job.wait()
        done = len(job.all("step"))
        self.row(case, self.ended("train"), "train", ["7"],
                 {"run time": gone - start, "solution": None, "best": 0.5, "status": status,
                  "steps": Between(done - gpus - killed * UNSENT, done), "GPUs": " ".join(map(str, range(gpus)))}, gone)

    def test_terminated(self) -> None:
        self.ended_by("SIGTERM", f"""
enter("{SLURM}/job_7/step_batch/user/task_0")
run = begin("train", gpu=0)
train(run, 60, {{1: 0.5}})
""", lambda job: job.signal(signal.SIGTERM), "aborted", 1)

    def test_cancelled_by_slurm(self) -> None:
        """Slurm sends SIGCONT and SIGTERM to all tasks, and SIGKILL after KillWait. One of them does not heed the first."""
        def scancel(job: Job) -> float:
            job.signal(signal.SIGCONT)
            job.signal(signal.SIGTERM)
            time.sleep(1.5)
            return job.signal(signal.SIGKILL)

        self.ended_by("scancel", f"""
import signal
rank = ranks(3, "{SLURM}/job_7/step_0/user")
if rank == 2:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
run = begin("train", gpu=rank)
train(run, 60, {{1: 0.5}})
""", scancel, "aborted", 3, killed=1)

    def test_out_of_memory(self) -> None:
        self.machine()
        group = self.enterContext(MemoryGroup(128 << 20))
        if group.reason:
            write_row("OOM kill", [f"not run: {group.reason}"])
            self.skipTest(group.reason)
        job = self.on.job(f"""
open("{group.processes}", "w").write(str(os.getpid()))
enter("{unit("train")}")
run = begin("train", gpu=0)
train(run, 3, {{1: 0.5}})
say("grows")
held = []
while True:
    held.append(bytearray(os.urandom(1 << 20)) * 16)
    run.count(samples=0)
""")
        start = self.began(job)
        self.assertEqual(job.wait(), -signal.SIGKILL)
        end = time.time()
        self.assertGreater(group.kills(), 0, "the kernel killed it for its memory")
        self.row("OOM kill", self.ended("train"), "train", ["train.service"],
                 {"run time": end - start, "solution": None, "best": 0.5, "status": "lost",
                  "steps": len(job.all("step")), "GPUs": "0"}, end)

    def two_at_once(self, case: str, run: str, groups: list[str], workloads: list[str]) -> None:
        """Of one user and one name: the second one has its workload in its label, and each its own figures."""
        self.machine(2)
        jobs = []
        for number, group in enumerate(groups):
            jobs.append(self.on.job(f"""
enter("{group}")
with begin("{run}", gpu={number}) as run:
    train(run, {3 + 2 * number}, {{1: {0.8 + 0.1 * number}}})
"""))
            jobs[-1].wait_for("began")
            time.sleep(0.5)
        ends = [job.ended() for job in jobs]
        names = [run, f"{run}@{workloads[1]}"]
        look = self.ended(names[1])
        for number, (job, name) in enumerate(zip(jobs, names)):
            start = self.began(job)
            self.row(f"{case}, {number + 1} of 2", look, name, [workloads[number]],
                     {"run time": ends[number] - start, "solution": job.wait_for("solved") - start, "best": 0.8 + 0.1 * number,
                      "status": "success", "steps": len(job.all("step")), "GPUs": str(number)}, ends[number])

    def test_array_tasks_of_one_name(self) -> None:
        self.two_at_once("array tasks", "sweep", [f"{SLURM}/job_{job}/step_batch/user/task_0" for job in (4, 3)], ["4", "3"])

    def test_two_notebooks(self) -> None:
        self.two_at_once("notebooks", "notebook", [unit("jupyter-a"), unit("jupyter-b")], ["jupyter-a.service", "jupyter-b.service"])

    def test_one_run_after_the_other_in_a_process(self) -> None:
        """As in a notebook or a sweep: what the first one had is the second one's once it has begun, the guessed GPU too."""
        job = self.machine(2).job(f"""
rank = ranks(2, "{SLURM}/job_7/step_0/user")
if rank == 0:
    for name in ("first", "second"):
        with begin(name, gpu=0 if name == "first" else None) as run:
            train(run, 6, {{1: 0.8}})
        say("left")
else:
    time.sleep(1.3)
    take_gpu(1)
    time.sleep(13.3)
""")
        left = job.wait_for("left")
        before = self.on.when(lambda look: True, "a look").sum("gpu_workload_energy_joules_total", workload="7")
        job.wait()
        ends, starts = [left, job.wait_for("left", 2)], [one["at"] for one in job.all("began")]
        look = self.ended("second")
        total = look.sum("gpu_workload_energy_joules_total", workload="7")
        assert before and total
        for number, (name, joules) in enumerate([("first", before), ("second", total - before)]):
            self.row(f"one after the other, {number + 1} of 2", look, name, [],
                     {"run time": ends[number] - starts[number], "solution": job.wait_for("solved", number + 1) - starts[number],
                      "best": 0.8, "status": "success", "joules": Between(0.65 * joules, 1.35 * joules), "GPUs": "0 1*"}, ends[number])

    def workers(self, method: str) -> None:
        """Two at a time, twice: 100 phases, none of which is a rank's."""
        job = self.machine().job(f"""
import multiprocessing
if __name__ == "__main__":
    group = "{unit("train")}"
    enter(group)
    context = multiprocessing.get_context("{method}")
    with begin("loads", gpu=0) as run:
        steps = 0
        for epoch in range(2):
            loaders = [context.Process(target=load, args=(run, group, 25)) for _ in range(2)]
            for loader in loaders:
                loader.start()
            steps = train(run, 1.5, {{0.5: 0.6 + 0.1 * epoch, 1: 0.65 + 0.15 * epoch}}, first=steps + 1)
            for loader in loaders:
                loader.join()
""")
        status = job.wait()
        if status != 0:
            write_row(f"{method} workers", [f"! the training died of the client, with {status}"])
        self.assertEqual(status, 0, "the training goes on with the client in it")
        end, start = job.ended(), self.began(job)
        self.row(f"{method} workers", self.ended("loads"), "loads", ["train.service"],
                 {"run time": end - start, "solution": job.wait_for("solved") - start, "best": 0.8, "status": "success",
                  "steps": len(job.all("step")), "phases": 100, "GPUs": "0"}, end)

    def test_fork_workers(self) -> None:
        self.workers("fork")

    def test_spawn_workers(self) -> None:
        self.workers("spawn")

    def test_forkserver_workers(self) -> None:
        self.workers("forkserver")


if __name__ == "__main__":
    with printed():
        at_once.main(9)  # more of them starve each other while their interpreters start
