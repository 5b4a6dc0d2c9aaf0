#!/usr/bin/env python3
"""8 NVIDIA GPUs (the fake NVML): calls per second, CPU and memory of the daemon, and a cycle compared with its bare calls.

usage: nvidia_bench.py BUILD_FOLDER        (built with GPUMETER_BENCH=ON)
"""
import subprocess
import sys
import time
from pathlib import Path

from bench import FULL, Daemon, Row, at_most, resident_mib, table, wait_until
from micro_bench import medians

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "fakes/nvml"))
from machine import LIBRARY, SCENARIOS, Machine  # noqa: E402

GPUS = 8
SCENARIO = SCENARIOS / "h100_8.yaml"
NO_GPUS = Path(__file__).resolve().parent / "no_gpus.yaml"
SETTLE_SECONDS = 15  # past the first pass of the normal tier
WINDOW_SECONDS = 300 if FULL else 60  # whole passes of the slow tier


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100  # utime, stime (proc(5)); USER_HZ is 100 on Linux


def observed(daemon: Daemon) -> float:
    return daemon.page().one("gpu_observed_seconds_total", gpu="0", tier="fast") or 0


def calls_until_stopped(daemon: Daemon, machine: Machine) -> tuple[float, int]:
    """Seconds since it was started, and all its calls, by the fake's own count."""
    _, stopping = daemon.stop()
    return time.monotonic() - daemon.started - stopping, int(machine.report.read_text().split()[1])


def daemons() -> list[Row]:
    """Two daemons side by side; what the longer one did more is what a daemon does in the steady state."""
    with Machine(SCENARIO) as one, Machine(SCENARIO) as other, Daemon(*one.arguments, env=one.env, detail=None) as short, \
            Daemon(*other.arguments, env=other.env, detail=None) as long:
        wait_until(lambda: observed(short) and observed(long), "all are read", 60)
        time.sleep(SETTLE_SECONDS)
        of_one = sum(1 for line in short.fetch("/metrics").text.splitlines() if line.startswith("gpu_") and 'gpu="0"' in line)
        until_short, few = calls_until_stopped(short, one)
        before, started = cpu_seconds(long.process.pid), time.monotonic()
        time.sleep(WINDOW_SECONDS)
        cpu = (cpu_seconds(long.process.pid) - before) / (time.monotonic() - started)
        memory = resident_mib(long.process.pid)
        until_long, many = calls_until_stopped(long, other)
    rate = (many - few) / (until_long - until_short) / GPUS
    full, empty, bare = holder(SCENARIO, LIBRARY), holder(NO_GPUS, LIBRARY), holder(SCENARIO)
    return [at_most(f"NVML calls a second and GPU, over {WINDOW_SECONDS} s", rate, 25, "calls"),
            at_most("series of one H100 by default", of_one, 130, "series", 0),
            Row("CPU of the daemon with 8 NVIDIA GPUs, the fake NVML included", f"{cpu:.2%} of one"),
            at_most("resident: the daemon with 8 NVIDIA GPUs, the fake included", memory, 16, "MiB"),
            Row("resident: 8 handles of the fake; the fake without GPUs; neither", f"{full:.1f}, {empty:.1f}, {bare:.1f} MiB"),
            Row("resident: the daemon less what the fake keeps of 8 GPUs", f"{memory - full + empty:.1f} MiB")]


def holder(scenario: Path, *library: Path) -> float:
    """Resident MiB of a process that holds the handles of all GPUs, or of the same without a library."""
    program = [f"{sys.argv[1]}/tests/bench/bench_nvml_holder", *map(str, library)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env={"FAKE_NVML_SCENARIO": str(scenario)}) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        memory = resident_mib(process.pid)
        process.communicate()
    return memory


def main() -> None:
    table("8 NVIDIA GPUs, by the fake NVML", daemons())
    found = medians(f"{sys.argv[1]}/tests/bench/bench_nvidia")
    ours, bare = found["BM_cycle/fast/iterations:20/manual_time"], found["bare_fast/iterations:20/manual_time"]
    table("CPU of a fast pass over 8 GPUs",
          [Row("fast pass of 8 NVIDIA GPUs, and the same calls by themselves", f"{ours:.0f} us: {ours / bare:.2f} x", f"{bare:.0f} us")])


if __name__ == "__main__":
    main()
