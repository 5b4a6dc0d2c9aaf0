"""A training loop whose run is "loop": DogStatsD lines to the socket $JOBS, if set. Prints the processor time of a step as the loop's
thread sees it, and that of the thread that polls, when its time is over. usage: kineto_loop.py SECONDS [SLOW_AFTER]"""
import contextlib
import os
import socket
import sys
import time
from pathlib import Path

begun = set(os.listdir("/proc/self/task"))
import torch  # noqa: E402 - its threads are those that begin here

torch.set_num_threads(1)
seconds, slow_after = float(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1e9
out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(64, 256)


def step() -> None:
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()


def processor_seconds(task: str) -> "float | None":
    """None: the thread has ended."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/self/task/{task}/schedstat").read_text().split()[0]) / 1e9
    return None


for _ in range(50):
    step()
threads = [task for task in os.listdir("/proc/self/task") if task not in begun]
before = {task: taken for task in threads if (taken := processor_seconds(task)) is not None}
print("ready", flush=True)
start, steps, worked = time.monotonic(), 0, time.thread_time()
while (now := time.monotonic()) - start < seconds:
    step()
    steps += 1
    if jobs := os.environ.get("JOBS"):
        time.sleep(0.5 if now - start > slow_after else 0.02)
        with contextlib.suppress(OSError):  # no daemon runs
            out.sendto(f"ml.steps:1|c|#run:loop\nml.step.seconds:{time.monotonic() - now}|d|#run:loop".encode(), jobs)
worked = time.thread_time() - worked
others = sum(taken - began for task, began in before.items() if (taken := processor_seconds(task)) is not None)
print(steps, worked, others, time.monotonic() - start, flush=True)
