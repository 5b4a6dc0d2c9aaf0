#!/usr/bin/env python3
"""From exec to READY=1 on the notify socket: on a machine with no GPU and no driver, and with many simulated GPUs."""
import os
import socket
import subprocess
import tempfile
import time

from bench import BINARY, FULL, Row, at_most, at_most_median, free_port, table

RUNS = 51 if FULL else 11
MANY_RUNS = 11 if FULL else 3
FEW, MANY = 256, 1024  # simulated GPUs


def start_to_ready(folder: str, *arguments: str) -> float:
    """Milliseconds."""
    path = f"{folder}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(path)
        notify.settimeout(30)
        started = time.perf_counter()
        process = subprocess.Popen([BINARY, f"--path.sysfs={folder}/sys", f"--path.state={folder}/state",
                                    f"--web.listen-address=127.0.0.1:{free_port()}", *arguments],
                                   env={**os.environ, "NOTIFY_SOCKET": path}, stderr=subprocess.DEVNULL)
        while b"READY=1" not in notify.recv(4096):
            pass
        ready = time.perf_counter()
        process.terminate()
        process.wait()
    os.unlink(path)
    return 1000 * (ready - started)


def attached(devices: int) -> float:
    """Milliseconds until all are on the page: the fastest of some runs, each with an empty state folder."""
    runs = []
    for _ in range(MANY_RUNS):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/sys")
            runs.append(start_to_ready(folder, f"--simulate={devices}"))
    return min(runs)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/sys")
        os.mkdir(f"{folder}/state")
        runs = [start_to_ready(folder) for _ in range(RUNS)]
    few, many = attached(FEW), attached(MANY)
    table("start", [
        at_most_median("exec to READY=1, no driver", runs, 100, "ms"),
        at_most(f"exec to READY=1, {MANY} simulated GPUs", many, 1000, "ms", 0),
        Row(f"the same for each GPU, of {FEW} and of {MANY}", f"{few / FEW:.2f}, {many / MANY:.2f} ms", "linear"),
    ])


if __name__ == "__main__":
    main()
