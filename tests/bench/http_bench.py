#!/usr/bin/env python3
"""Compares the ready page with libmicrohttpd serving a static body of the same size from the same number of threads, by wrk
over keep-alive connections, in turns so that both have the same conditions.

usage: http_bench.py BUILD_FOLDER        (built with GPUMETER_BENCH=ON; needs wrk)
"""
import os
import re
import shutil
import statistics
import subprocess
import sys

FULL = os.environ.get("BENCH_FULL") == "1"
ROUNDS, SECONDS, CONNECTIONS = (9, 5, 32) if FULL else (5, 2, 32)
OPENMETRICS = "Accept: application/openmetrics-text;version=1.0.0"
GZIP = "Accept-Encoding: gzip"
CASES = [  # series, format, the scraper's headers, path of the static body
    (800, "text", [], "/"),
    (800, "text", [GZIP], "/gzip"),
    (800, "openmetrics", [OPENMETRICS], "/"),
    (800, "openmetrics", [OPENMETRICS, GZIP], "/gzip"),
    (8000, "text", [], "/"),
    (8000, "text", [GZIP], "/gzip"),
    (8000, "openmetrics", [OPENMETRICS], "/"),
    (8000, "openmetrics", [OPENMETRICS, GZIP], "/gzip"),
]


def requests_per_second(url: str, headers: list[str]) -> float:
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "--timeout", "10s"]
    for header in headers:
        command += ["-H", header]
    output = subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in output or "Socket errors" in output:
        raise SystemExit(f"wrk on {url}:\n{output}")
    return float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1])


def measure(server: str, series: int, form: str, headers: list[str], path: str) -> tuple[float, float]:
    with subprocess.Popen([server, str(series), form], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        ours, baseline, _ = process.stdout.readline().split()
        rounds = [(requests_per_second(f"http://127.0.0.1:{ours}/metrics", headers),
                   requests_per_second(f"http://127.0.0.1:{baseline}{path}", headers)) for _ in range(ROUNDS)]
        process.stdin.close()
    return statistics.median(r[0] for r in rounds), statistics.median(r[1] for r in rounds)


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    if shutil.which("wrk") is None:
        print("wrk is not installed: apt-get install wrk", file=sys.stderr)
        return 1
    print(f"{'page':<32}{'gpumeter/s':>12}{'static/s':>12}{'ratio':>8}   bar")
    for series, form, headers, path in CASES:
        ours, static = measure(f"{sys.argv[1]}/tests/bench/bench_http_server", series, form, headers, path)
        name = f"{series} series, {form}{', gzip' if GZIP in headers else ''}"
        print(f"{name:<32}{ours:>12.0f}{static:>12.0f}{ours / static:>8.2f}   >= 0.90", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
