"""Jobs that come and go: a program that forks a new run again and again, by datagrams and by streams, with users and workloads of
their own where it is root. Its runs end with success, with a failure, without a word, or by SIGKILL.

Usage: jobs.py FOLDER RUNS_A_SECOND SEED       until SIGTERM or the end of its parent; then prints the number of runs and ends
"""
from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from own_group import put_into  # noqa: E402

GPUS = 8
SLURM = "/system.slice/slurmstepd.scope/job_{}/step_0/user/task_0"
ENDS = ("success", "failure", "silence", "kill", "torn")


def begin_lines(run: str) -> str:
    return f"_e{{9,{len(run)}}}:run_start|{run}|d:{int(time.time())}|#run:{run}"


def step_lines(run: str, step: int, dice: random.Random) -> str:
    tags = f"#run:{run}"
    return "\n".join([f"ml.steps:1|c|{tags},split:train", f"ml.step:{step}|g|{tags}", f"ml.samples:64|c|{tags},split:train",
                      f"ml.loss:{dice.uniform(0.1, 3):.4f}|g|{tags},split:train",
                      f"ml.phase.seconds:{dice.uniform(0.01, 0.3):.3f}|h|{tags},phase:forward",
                      f"ml.phase.seconds:{dice.uniform(0.01, 0.3):.3f}|h|{tags},phase:backward"])


class Channel:
    """One of the two sockets."""

    def __init__(self, folder: Path, is_stream: bool) -> None:
        self.is_stream = is_stream
        self.out = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM if is_stream else socket.SOCK_DGRAM)
        self.out.connect(str(folder / ("stream.sock" if is_stream else "jobs.sock")))

    def send(self, text: str) -> None:
        payload = text.encode()
        self.out.sendall(len(payload).to_bytes(4, "little") + payload if self.is_stream else payload)


def live(folder: Path, number: int, dice: random.Random) -> None:
    """The life of one run, in a process of its own. No two runs of a soak have one name."""
    run, end = f"run-{os.getppid()}-{number}", dice.choice(ENDS)
    put_into(folder / "proc", os.getpid(), SLURM.format(number) if number % 3 else "/user.slice/user-1000.slice/session-1.scope")
    if os.geteuid() == 0:
        uid = 30000 + (number if number % 10 == 0 else number % 6)
        os.setgid(uid)
        os.setuid(uid)
    channel = Channel(folder, is_stream=number % 4 == 0)
    channel.send(begin_lines(run))
    until, step = time.monotonic() + dice.uniform(3, 30), 0
    while time.monotonic() < until:
        step += 1
        channel.send(step_lines(run, step, dice))
        if step == 5 and number % 5 == 0 and os.fork() == 0:  # a process of the run that leaves without a word
            channel.send(step_lines(run, step, dice))
            os._exit(0)
        time.sleep(dice.uniform(0.2, 1))
    if end in ("success", "failure"):
        channel.send(f"_e{{8,{len(end)}}}:run_stop|{end}|d:{int(time.time())}|#run:{run}")
    if end == "torn" and channel.is_stream:
        channel.out.sendall(b"\xff\x00\x00\x00ml.steps:1|c")
    if end == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


class Nursery:
    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._dice = folder, random.Random(seed)
        self._running: dict[int, int] = {}  # pid: gpu
        self.born = 0

    def spawn(self) -> None:
        dice = random.Random(self._dice.random())
        number = self.born = self.born + 1
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            status = 1
            try:
                live(self._folder, number, dice)
                status = 0
            finally:
                os._exit(status)
        self._running[pid] = self._dice.randrange(GPUS)
        self.show()

    def reap(self) -> None:
        while self._running and (pid := os.waitpid(-1, os.WNOHANG)[0]):
            del self._running[pid]
            shutil.rmtree(self._folder / "proc" / str(pid), ignore_errors=True)
            self.show()

    def show(self) -> None:
        """Which processes use which GPU."""
        for gpu in range(GPUS):
            path = self._folder / f"gpu-{gpu}.pids"
            fresh = path.with_suffix(".new")
            fresh.write_text("".join(f"{pid}\n" for pid, on in self._running.items() if on == gpu))
            fresh.rename(path)

    def end(self) -> None:
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)
        while self._running:
            self.reap()
            time.sleep(0.01)


def main(folder: Path, rate: float, seed: int) -> None:
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    nursery, parent = Nursery(folder, seed), os.getppid()
    while not ended and os.getppid() == parent:
        nursery.spawn()
        nursery.reap()
        time.sleep(1 / rate)
    nursery.end()
    if ended:
        print(nursery.born, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
