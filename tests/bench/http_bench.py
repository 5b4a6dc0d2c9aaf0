#!/usr/bin/env python3
"""Compares the ready page, while 8 lanes commit each second, with two servers of a static body of the same bytes: libmicrohttpd,
and nginx with sendfile. All use the same number of threads. wrk asks over keep-alive connections, in turns, so that all have the
same conditions.

usage: http_bench.py BUILD_FOLDER        (built with GPUMETER_BENCH=ON; needs wrk, and nginx for its column)
"""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from bench import FULL, Row, free_port, table, verdict, wait_until

ROUNDS, SECONDS, CONNECTIONS = (9, 5, 32) if FULL else (5, 2, 32)
OF_MICROHTTPD, OF_NGINX = 1.0, 0.9  # the bars
OPENMETRICS = "Accept: application/openmetrics-text;version=1.0.0"
GZIP = "Accept-Encoding: gzip"
NGINX_CONF = """
daemon off; worker_processes 2; error_log stderr crit; pid {folder}/pid; {user}
events {{ worker_connections 256; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; open_file_cache max=10;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4;
  scgi_temp_path {folder}/t5;
  server {{ listen 127.0.0.1:{port} reuseport; root {folder}; default_type text/plain; }}
}}
"""
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


class Nginx:
    """nginx that serves a page as the file /identity and gzipped as /gzip; `port` is None if it is not installed."""

    def __init__(self, baseline: str) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="gpumeter-bench-")
        self.port = free_port() if shutil.which("nginx") else None
        self.process = None
        if self.port is None:
            return
        for path, name in (("/", "identity"), ("/gzip", "gzip")):
            Path(self.folder.name, name).write_bytes(urllib.request.urlopen(f"http://127.0.0.1:{baseline}{path}").read())
        config = Path(self.folder.name, "conf")
        user = "user root;" if os.geteuid() == 0 else ""  # only root may name a user
        config.write_text(NGINX_CONF.format(folder=self.folder.name, port=self.port, user=user))
        self.process = subprocess.Popen(["nginx", "-p", self.folder.name, "-c", str(config), "-e", "stderr"])
        wait_until(lambda: answers(self.url("/")), "nginx serves", 10)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{'gzip' if path == '/gzip' else 'identity'}"

    def __enter__(self) -> "Nginx":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
        self.folder.cleanup()


def answers(url: str) -> bool:
    try:
        return urllib.request.urlopen(url).status == 200
    except OSError:
        return False


def measure(server: str, series: int, form: str, headers: list[str], path: str) -> list[float]:
    """Requests per second: ours, libmicrohttpd's, and nginx's if it is installed."""
    with subprocess.Popen([server, str(series), form], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        ours, baseline, _ = process.stdout.readline().split()
        with Nginx(baseline) as nginx:
            cases = [(f"http://127.0.0.1:{ours}/metrics", headers), (f"http://127.0.0.1:{baseline}{path}", headers)]
            if nginx.port is not None:
                cases.append((nginx.url(path), []))
            rounds = [[requests_per_second(*case) for case in cases] for _ in range(ROUNDS)]
        process.stdin.close()
    return [statistics.median(each) for each in zip(*rounds)]


def row(what: str, ours: float, peer: str, its: float, bar: float) -> Row:
    return Row(f"{what}: requests a second against {peer}", f"{ours:.0f}, {its:.0f}: {ours / its:.2f} x", f">= {bar} x",
               verdict(ours / its >= bar))


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    if shutil.which("wrk") is None:
        print("wrk is not installed: apt-get install wrk", file=sys.stderr)
        return 1
    rows = []
    for series, form, headers, path in CASES:
        rates = measure(f"{sys.argv[1]}/tests/bench/bench_http_server", series, form, headers, path)
        name = f"{series} series, {form}{', gzip' if GZIP in headers else ''}"
        rows.append(row(name, rates[0], "libmicrohttpd's static body", rates[1], OF_MICROHTTPD))
        if len(rates) > 2:
            rows.append(row(name, rates[0], "nginx with sendfile", rates[2], OF_NGINX))
        print(f"{rows[-1].what}: {rows[-1].figure}", file=sys.stderr, flush=True)
    table("ready page while 8 lanes commit", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
