#!/usr/bin/env python3
"""Rendering, and the sampling cycle of AMD cards, by the Google Benchmark programs, next to their limits: medians of the wall time,
and for the cycle the least CPU time, because a ratio of two short runs needs a quiet moment of each.

usage: micro_bench.py BUILD_FOLDER        (built with GPUMETER_BENCH=ON)
"""
import json
import subprocess
import sys

from bench import FULL, Row, at_most, table

REPETITIONS = 31 if FULL else 9
BARS = {"render/text/800": 60, "render/openmetrics/800": 60, "render/text/35000": 5000, "render/openmetrics/35000": 5000,
        "judge_devices/8": 100, "judge_devices/1024": 20000}  # microseconds
CYCLE = 1.3  # times the bare reads


def runs(program: str) -> list[dict]:
    """All runs and their aggregates, with times in microseconds."""
    output = subprocess.run([program, f"--benchmark_repetitions={REPETITIONS}", "--benchmark_min_time=0.1",
                             "--benchmark_enable_random_interleaving=true", "--benchmark_format=json"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    scale = {"ns": 1e-3, "us": 1, "ms": 1e3}
    return [{**run, **{key: run[key] * scale[run["time_unit"]] for key in ("real_time", "cpu_time")}}
            for run in json.loads(output)["benchmarks"]]


def medians(program: str) -> dict[str, float]:
    """Wall time by name of the benchmark."""
    return {run["run_name"]: run["real_time"] for run in runs(program) if run.get("aggregate_name") == "median"}


def least_cpu(program: str) -> dict[str, float]:
    """CPU time by name of the benchmark: the least of all repetitions."""
    least: dict[str, float] = {}
    for run in runs(program):
        if run["run_type"] == "iteration":
            least[run["run_name"]] = min(run["cpu_time"], least.get(run["run_name"], run["cpu_time"]))
    return least


def of(name: str, time: float) -> Row:
    if name in BARS:
        return at_most(name, time, BARS[name], "us")
    return Row(name, f"{time:.4g} us")


def main() -> None:
    build = sys.argv[1]
    rendering = medians(f"{build}/tests/bench/bench_exporter")
    table("rendering, series in the name", [of(name, time) for name, time in sorted(rendering.items())])
    cycle = least_cpu(f"{build}/tests/bench/bench_amd")
    rows = []
    for tier in ("fast", "normal"):
        ours, bare = cycle[f"BM_cycle/{tier}"], cycle[f"bare_{tier}"]
        rows.append(at_most(f"cycle of 8 AMD cards, {tier} tier, against a bare loop of the same reads", ours / bare, CYCLE, "x", 2,
                            f" ({ours:.1f} us, {bare:.1f} us)"))
    table("sampling cycle of 8 AMD cards from sysfs", rows)


if __name__ == "__main__":
    main()
