#!/usr/bin/env python3
"""The scan of /proc for clients of DRM devices, among 2000 processes that hold 50 descriptors each.

usage: drm_scan_bench.py BUILD_FOLDER        (built with GPUMETER_BENCH=ON)
"""
import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from bench import Row, at_most, table

PROCESSES, DESCRIPTORS = 2000, 50
SCANS = 120  # ten minutes at the default interval
CORE_PERCENT = 1


@contextmanager
def crowd():
    """Children of this process, forked by one of them; all end with it."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(DESCRIPTORS + 64, 256), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    ready, tell = os.pipe()
    leader = os.fork()
    if leader == 0:
        os.setpgid(0, 0)
        for _ in range(DESCRIPTORS - len(os.listdir("/proc/self/fd")) + 1):
            os.open("/dev/null", os.O_RDONLY)
        for _ in range(PROCESSES - 1):
            if os.fork() == 0:
                signal.pause()
        os.write(tell, b"x")
        signal.pause()
    try:
        os.read(ready, 1)
        time.sleep(1)
        yield leader
    finally:
        os.killpg(leader, signal.SIGKILL)
        os.waitpid(leader, 0)


def facts(leader: int) -> tuple[int, int]:
    """Number of the crowd's processes, and of the descriptors of all processes of the machine."""
    crowd_size = descriptors = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            crowd_size += os.getpgid(int(process.name)) == leader
            descriptors += len(os.listdir(process / "fd"))
        except OSError:
            pass
    return crowd_size, descriptors


def main() -> None:
    program = f"{sys.argv[1]}/tests/bench/bench_drm_scan"
    with crowd() as leader:
        processes, descriptors = facts(leader)
        said = subprocess.run([program, str(SCANS)], stdout=subprocess.PIPE, text=True, check=True).stdout
    got = json.loads(said)
    table(f"scan for DRM clients among {processes} processes, {descriptors} descriptors in all", [
        Row("scan for DRM clients: first round over all processes, CPU", f"{got['first_round_cpu_ms']:.0f} ms in {got['first_round_scans']} scans"),
        Row("scan for DRM clients: a later scan, CPU; the longest, wall", f"{got['scan_cpu_ms']:.1f} ms; {got['scan_longest_ms']:.1f} ms"),
        at_most("scan for DRM clients every 5 s, of a core", got["core_percent"], CORE_PERCENT, "%", 2),
        Row("scan for DRM clients: memory", f"{got['memory_kib']} KiB"),
    ])


if __name__ == "__main__":
    main()
