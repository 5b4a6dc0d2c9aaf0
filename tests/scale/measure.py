#!/usr/bin/env python3
"""A real Prometheus with the shipped rules scrapes a fleet of nodes of eight H100s, replayed by one process. Prints a table.

usage: measure.py [--nodes 100,400,1000] [--minutes 6] [--interval 15] [--detail full] [--without-rules] [--limit-gib 8] [--nice 19]

The pages are those of the default, or of another value of metrics.detail. Everything runs at nice 19 unless told otherwise: a
machine that other work keeps busy needs a lower value for a large fleet. A run ends early if Prometheus takes more memory than the
limit. Nothing is asserted. The fleet and its mix of jobs are those of fleet.py. The rules have their usual windows of 5 minutes, so
that a shorter run shows less work.
"""
import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "tests/e2e")]
from harness import free_port, wait_until  # noqa: E402
from recording import record  # noqa: E402

RULES = ("rules.yml", "jobs.yml", "alerts.yml")
SETTLE = 60  # seconds after the start that are not measured: new series cost more than known ones


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="100,400,1000", type=lambda text: [int(each) for each in text.split(",")])
    parser.add_argument("--minutes", default=6, type=float)
    parser.add_argument("--interval", default=15, type=int, help="seconds, of scrapes and rules")
    parser.add_argument("--detail", choices=("standard", "full"), help="of the pages; the default: the daemon's")
    parser.add_argument("--limit-gib", default=8, type=float)
    parser.add_argument("--nice", default=19, type=int)
    parser.add_argument("--without-rules", action="store_true")
    return parser.parse_args()


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def samples(text: str) -> dict[str, float]:
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))}


class Prometheus:
    """Debian's server with an empty database; a context manager."""

    def __init__(self, folder: Path, nodes: int, fleet: int, interval: int, rules: bool):
        targets = [f"n{number}:10478" for number in range(nodes)]
        places = [{"source_labels": ["__address__"], "regex": "(.+):.+", "target_label": "__metrics_path__", "replacement": "/$1"},
                  {"source_labels": ["__address__"], "target_label": "instance"},
                  {"target_label": "__address__", "replacement": f"127.0.0.1:{fleet}"}]
        seconds = f"{interval}s"
        config = {"global": {"scrape_interval": seconds, "scrape_timeout": seconds if interval < 10 else "10s", "evaluation_interval": seconds},
                  "rule_files": [str(ROOT / "packaging/prometheus" / name) for name in RULES] if rules else [],
                  "scrape_configs": [{"job_name": "gpumeter", "static_configs": [{"targets": targets}], "relabel_configs": places}]}
        (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        self.folder, self.url = folder, f"http://127.0.0.1:{free_port()}"
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={self.url.removeprefix('http://')}"], stdout=self.log, stderr=self.log)

    def __enter__(self) -> "Prometheus":
        wait_until(lambda: b"Server is ready" in (self.folder / "log").read_bytes(), "Prometheus is ready")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()

    def own(self) -> dict[str, float]:
        return samples(get(f"{self.url}/metrics"))

    def query(self, query: str) -> float:
        found = json.loads(get(f"{self.url}/api/v1/query?query=" + urllib.request.quote(query)))["data"]["result"]
        return float(found[0]["value"][1]) if found else float("nan")

    def resident(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    def write_ahead_log(self) -> int:
        return sum(path.stat().st_size for path in (self.folder / "data/wal").glob("*") if path.is_file())


@dataclass
class Result:
    nodes: int
    figures: dict[str, str]


def measure(recording: Path, nodes: int, options: argparse.Namespace) -> Result:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpumeter-scale-")))
        port = free_port()
        fleet = subprocess.Popen([sys.executable, "-B", str(HERE / "server.py"), str(recording), str(nodes), str(port)])
        stack.callback(fleet.wait)
        stack.callback(fleet.kill)
        server = stack.enter_context(Prometheus(folder, nodes, port, options.interval, not options.without_rules))
        most = watched(server, SETTLE, options.limit_gib)
        before, log, replay, began = server.own(), server.write_ahead_log(), json.loads(get(f"http://127.0.0.1:{port}/cost")), time.monotonic()
        most = max(most, watched(server, options.minutes * 60 - SETTLE, options.limit_gib))
        after, seconds = server.own(), time.monotonic() - began
        replayed = json.loads(get(f"http://127.0.0.1:{port}/cost"))
        return Result(nodes, figures(server, before, after, seconds, most, options) | {
            "write-ahead log, kB/s": f"{(server.write_ahead_log() - log) / seconds / 1e3:.0f}",
            "pages before compression, MB/s": f"{(replayed['bytes'] - replay['bytes']) / seconds / 1e6:.2f}",
            "replaying process, cores": f"{(replayed['cpu'] - replay['cpu']) / seconds:.3f}"})


def watched(server: Prometheus, seconds: float, limit: float) -> int:
    """Waits; returns the most memory that the server had."""
    most, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        most = max(most, server.resident())
        if most > limit * 2**30:
            raise MemoryError(f"Prometheus takes more than {limit} GiB")
        time.sleep(1)
    return most


def figures(server: Prometheus, before: dict, after: dict, seconds: float, most: int, options: argparse.Namespace) -> dict[str, str]:
    def rate(name: str) -> float:
        return (sum(value for key, value in after.items() if key.split("{")[0] == name)
                - sum(value for key, value in before.items() if key.split("{")[0] == name)) / seconds
    groups = {key.rpartition(";")[2].rstrip('"}'): value for key, value in after.items() if key.startswith("prometheus_rule_group_last_duration_seconds{")}
    window = f"[{options.minutes * 60 - SETTLE:.0f}s]"
    return {
        "targets up, the fewest and last": f"{server.query(f'min_over_time(sum(up){window[:-1]}:])'):.0f}, {server.query('sum(up)'):.0f}",
        "samples appended, 1/s": f"{rate('prometheus_tsdb_head_samples_appended_total'):.0f}",
        "series of scrapes, each node": f"{server.query('avg(scrape_samples_post_metric_relabeling)'):.0f}",
        "head series": f"{after['prometheus_tsdb_head_series']:.0f}",
        "series created by churn, 1/h": f"{rate('prometheus_tsdb_head_series_created_total') * 3600:.0f}",
        "resident, most, MiB": f"{most / 2**20:.0f}",
        "Go heap in use, MiB": f"{after['go_memstats_heap_inuse_bytes'] / 2**20:.0f}",
        "CPU, cores": f"{rate('process_cpu_seconds_total'):.3f}",
        "in rules, of the time": f"{rate('prometheus_rule_evaluation_duration_seconds_sum'):.1%}",
        "rule groups, s an evaluation": ", ".join(f"{name.removeprefix('gpumeter-')} {value:.3f}" for name, value in sorted(groups.items())),
        "evaluations missed": f"{sum(value for key, value in after.items() if key.startswith('prometheus_rule_group_iterations_missed_total')):.0f}",
        "scrape, median and 99 %, ms": ", ".join(f"{server.query(f'quantile({q}, quantile_over_time({q}, scrape_duration_seconds{window}))') * 1e3:.1f}" for q in (0.5, 0.99)),
    }


def main() -> int:
    options = arguments()
    os.nice(options.nice)  # of this process and its children
    with tempfile.NamedTemporaryFile(prefix="gpumeter-scale-") as recording:
        recording.write(pickle.dumps(record(detail=options.detail)))
        recording.flush()
        for nodes in options.nodes:
            print(f"\n== {nodes} nodes of 8 GPUs, detail {options.detail or 'by default'}, every {options.interval} s, {options.minutes:g} minutes"
                  f"{', without rules' if options.without_rules else ''}, load of the machine before: {os.getloadavg()[0]:.1f}", flush=True)
            for what, figure in measure(Path(recording.name), nodes, options).figures.items():
                print(f"{what:34}{figure}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
