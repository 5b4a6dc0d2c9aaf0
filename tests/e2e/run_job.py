"""Building blocks of the jobs of run_lifecycle_test.py. Runs in their processes, with the real client."""
from __future__ import annotations

import atexit
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "packaging/python"))
import gpumeter  # noqa: E402
from own_group import put_into  # noqa: E402

MACHINE = Path(os.environ["RUN_MACHINE"])
STEP_SECONDS = 0.1
TARGET = 0.75

gpumeter._outbox.REMIND_SECONDS = 1.0  # a minute in a job


def enter(group: str) -> None:
    """Into a control group by the /proc that the daemon reads. Once for each process."""
    if not (MACHINE / "proc" / str(os.getpid())).exists():
        put_into(MACHINE / "proc", os.getpid(), group)


def take_gpu(number: int) -> None:
    with (MACHINE / f"gpu{number}").open("a") as pids:
        pids.write(f"{os.getpid()}\n")


def say(what: str, **facts: object) -> None:
    """To the test. One write, so that the lines of several processes do not mix."""
    os.write(1, (json.dumps({"what": what, "at": time.time(), **facts}) + "\n").encode())


def ranks(count: int, group: str) -> int:
    """The number of this rank: as Slurm's tasks, each is a process in a control group of its own. The parent ends when the
    last of them has."""
    children = []
    for rank in range(count):
        if (child := os.fork()) == 0:
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count))
            enter(f"{group}/task_{rank}")
            return rank
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    sys.exit(0)


def begin(name: str, gpu: int | None = None) -> gpumeter.Run:
    """A run that is known before its process takes the GPU, so that all of the GPU's energy is the run's."""
    run = gpumeter.Run(name)
    atexit.register(say, "ended")
    say("began")
    run.target("top1", TARGET)
    run.count(samples=0)
    time.sleep(1.3)
    if gpu is not None:
        take_gpu(gpu)
    return run


def train(run: gpumeter.Run, seconds: float, evals: dict[float, float] | None = None, first: int = 1) -> int:
    """Steps for so long, and evaluations after these seconds. The number of the last step."""
    due, began, step = sorted((evals or {}).items()), time.monotonic(), first - 1
    while time.monotonic() - began < seconds:
        time.sleep(STEP_SECONDS)
        step += 1
        say("step", step=step)
        run.step(samples=1, step=step)
        while due and time.monotonic() - began >= due[0][0]:
            value = due.pop(0)[1]
            run.eval("top1", value)
            say("solved" if value >= TARGET else "evaluated", value=value)
    return step


def load(run: gpumeter.Run, group: str, phases: int) -> None:
    """A worker that loads data for the training: what it measures is the run's."""
    enter(group)
    for _ in range(phases):
        with run.phase("data_loading"):
            time.sleep(0.01)
