"""A job that trains by sleeping, and reports like any job: with the client that the package installs.

usage: trainer.py RUN PIDS --steps N,... [--sleep S] [--resume STEP] [--solve-at STEP] [--hold] [--tasks FOLDER]

--steps has a number for each rank; each is a process. PIDS gets their pids, one a line, before the first step, and the
last line of the output is what the run got done, as JSON. --hold: stays when it is done, until it is killed. --tasks: each rank
has a control group of its own below that of the program, as Slurm's tasks have, and a file PIDS0, PIDS1 ..; only rank 0 reports.
"""
import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, "/usr/share/gpumeter/python")
import gpumeter  # noqa: E402


def rank(name: str, number: int, steps: int, options: argparse.Namespace) -> None:
    environ = {"RANK": str(number), "LOCAL_RANK": str(number)}
    began = time.time()
    with gpumeter.Run(name, framework="none", version="1", model="sleep", environ=environ) as run:
        run.target("top1", 0.75)
        if options.resume is not None:
            run.resume(options.resume)
        first = (options.resume or 0) + 1
        for step in range(first, first + steps):
            with run.phase("data_loading"):
                time.sleep(options.sleep * 0.25)
            with run.phase("forward"):
                time.sleep(options.sleep * (0.75 + 0.1 * number))  # the ranks are not equally fast
            run.step(samples=32, flops=1e12, step=step)
            if step == options.solve_at:
                run.eval("top1", 0.76)
                if number == 0:
                    print(json.dumps({"solved_after": time.time() - began}), flush=True)
        if options.hold:
            run.count(samples=0)
            while True:
                time.sleep(1)
                run.count(samples=0)


def task(name: str, number: int, steps: int, options: argparse.Namespace) -> None:
    below = Path("/proc/self/cgroup").read_text().splitlines()[-1].removeprefix("0::/")
    group = Path("/sys/fs/cgroup", below, options.tasks, f"task_{number}")
    group.mkdir(parents=True)
    (group / "cgroup.procs").write_text(str(os.getpid()))
    options.pids.with_name(f"{options.pids.name}{number}").write_text(f"{os.getpid()}\n")
    if number == 0:
        rank(name, number, steps, options)
    time.sleep(steps * options.sleep if not options.hold else 1e6)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("pids", type=Path)
    parser.add_argument("--steps", required=True, type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--sleep", type=float, default=0.05)
    parser.add_argument("--resume", type=int)
    parser.add_argument("--solve-at", type=int, default=-1)
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--tasks", type=Path)
    options = parser.parse_args()
    begin = task if options.tasks else rank
    start, go = os.pipe()
    children = []
    for number, steps in enumerate(options.steps):
        child = os.fork()
        if child == 0:
            os.read(start, 1)
            try:
                begin(options.run, number, steps, options)
            finally:
                sys.stdout.flush()
            sys.exit(0)
        children.append(child)
    if not options.tasks:
        options.pids.write_text("".join(f"{child}\n" for child in children))
    os.write(go, b"g" * len(children))
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
