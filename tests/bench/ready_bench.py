#!/usr/bin/env python3
"""From exec to READY=1 on the notify socket, on a machine with no GPU and no driver."""
import os
import socket
import subprocess
import tempfile
import time

from bench import BINARY, FULL, median_text, table
from harness import free_port

RUNS = 51 if FULL else 11


def start_to_ready(folder: str) -> float:
    """Milliseconds."""
    path = f"{folder}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(path)
        notify.settimeout(30)
        started = time.perf_counter()
        process = subprocess.Popen([BINARY, f"--path.sysfs={folder}/sys", f"--path.state={folder}/state",
                                    f"--web.listen-address=127.0.0.1:{free_port()}"],
                                   env={**os.environ, "NOTIFY_SOCKET": path}, stderr=subprocess.DEVNULL)
        while b"READY=1" not in notify.recv(4096):
            pass
        ready = time.perf_counter()
        process.terminate()
        process.wait()
    os.unlink(path)
    return 1000 * (ready - started)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/sys")
        os.mkdir(f"{folder}/state")
        runs = [start_to_ready(folder) for _ in range(RUNS)]
    table("start", [("exec to READY=1, no driver", median_text(runs, "ms"), "<= 100 ms")])


if __name__ == "__main__":
    main()
