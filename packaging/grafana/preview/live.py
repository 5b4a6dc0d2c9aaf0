"""A real Prometheus that scrapes simulated GPUs, and a panel's queries as Grafana would send them."""
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import dashboards

TESTS = dashboards.FOLDER.parent.parent / "tests"
MIXIN = dashboards.FOLDER.parent / "mixin"
COST = {"pue": 1.3, "co2GramsPerKwh": 50, "pricePerKwh": 0.25, "pricePerGpuHour": 2.5}
sys.path[:0] = [str(TESTS / "e2e"), str(TESTS / "prometheus")]
from harness import Daemon, free_port, wait_until  # noqa: E402
from job_page import JobMachine, JobPage  # noqa: E402

SCRAPE_SECONDS = 1
# Every tier at the pace of the scrapes, so that a short run shows what a long one would.
SAMPLING = "sampling: {fast: 1s, normal: 1s, slow: 1s}\n"


@dataclass(frozen=True)
class Machine:
    """A daemon to be scraped: its configuration and further flags."""
    config: str
    flags: tuple[str, ...] = ()
    results: tuple[str, ...] = ()  # datagrams of benchmarks


def results(gpu: int, speed: float = 1) -> str:
    """What gpumeter-benchmark would send for a simulated GPU with this speed."""
    flops = {"fp64 cublas": 3e13, "fp32 cublas": 5e13, "tf32 cublas": 3.6e14, "bf16 cublas": 7.3e14, "fp16 cublas": 7.4e14, "int8 cublas": 1.4e15,
             "fp8 cublaslt": 1.3e15, "fp32 opencl": 2e13}
    lines = [f"gpu.benchmark.flops:{rate * speed:g}|g|#gpu:{gpu},dtype:{kind.split()[0]},backend:{kind.split()[1]}" for kind, rate in flops.items()]
    lines += [f"gpu.benchmark.memory_bandwidth:{rate * speed:g}|g|#gpu:{gpu},operation:{operation}" for operation, rate in (("copy", 2.7e12), ("triad", 2.8e12))]
    return "\n".join([*lines, f"gpu.benchmark.transfer:5e10|g|#gpu:{gpu},direction:host_to_device", f"gpu.benchmark.failed:0|g|#gpu:{gpu}",
                      f"gpu.benchmark.timestamp:{time.time() - 7200:.0f}|g|#gpu:{gpu}"])


def simulated(devices: int, events: list[str]) -> Machine:
    """`events`: what happens to its GPUs, as `gpumeter --simulate-event` has it. Its GPUs have results of benchmarks, and the third is slow."""
    options = {"enabled": True, "devices": devices, "events": events}
    return Machine(f"collectors: {json.dumps({'amd': {'enabled': False}, 'simulated': options})}\n", results=tuple(results(gpu, 0.8 if gpu == 2 else 1) for gpu in range(devices)))


def render_rules(folder: str | Path, cost: Mapping[str, object]) -> None:
    """Writes rules.yml and jobs.yml of a site that knows its costs."""
    site = f"(import 'render.libsonnet')((import 'mixin.libsonnet') + {{ _config+:: {{ cost+: {json.dumps(cost)} }} }})"
    shown = f"local all = {site}; {{ [name]: all[name] for name in ['rules.yml', 'jobs.yml'] }}"
    subprocess.run(["jsonnet", "-S", "-J", MIXIN, "-m", folder, "-e", shown], stdout=subprocess.DEVNULL, check=True, timeout=120)


class QueryError(Exception):
    pass


@dataclass(frozen=True)
class Series:
    labels: dict[str, str]
    points: list[tuple[float, float]]


@dataclass(frozen=True)
class Window:
    start: float
    end: float
    step: float

    @property
    def rate_interval(self) -> str:
        """Grafana's $__rate_interval: four scrapes at least, and a step and a scrape."""
        return f"{max(self.step + SCRAPE_SECONDS, 4 * SCRAPE_SECONDS):g}s"


class Prometheus:
    """Debian's server with an empty database of its own; a context manager."""

    def __init__(self, folder: str, targets: dict[str, int], rules: Sequence[str] = (), flags: Sequence[str] = ()):
        """`targets`: the ports to scrape, by the instance that each is to be called. `rules`: files of rules in the folder."""
        jobs = [{"targets": [f"127.0.0.1:{port}"], "labels": {"instance": name}} for name, port in targets.items()]
        seconds = f"{SCRAPE_SECONDS}s"
        config = {"global": {"scrape_interval": seconds, "evaluation_interval": seconds}, "rule_files": list(rules),
                  "scrape_configs": [{"job_name": "gpumeter", "static_configs": jobs}]}
        Path(folder, "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = open(f"{folder}/prometheus.log", "wb")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={self.url.removeprefix('http://')}", *flags], stdout=self.log, stderr=self.log)

    def __enter__(self) -> "Prometheus":
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        self.process.wait(30)
        self.log.close()

    def ask(self, path: str, **query) -> list[dict]:
        return self.api(path, **query)["result"]

    def api(self, path: str, **query) -> dict:
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # Prometheus does not answer queries yet
                raise
            raise QueryError(f"{json.load(error).get('error')}\n{query.get('query')}") from None

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=30):
                return True
        except OSError:  # it does not listen yet, or reads its database
            return False

    def wait_until_ready(self) -> None:
        wait_until(self.is_ready, "Prometheus is ready", 60)

    def scrapes(self) -> int:
        """How many there were of the target that has the fewest."""
        try:
            counts = self.ask("query", query="min(count_over_time(up[1h]))")
        except OSError:
            return 0
        return int(counts[0]["value"][1]) if counts else 0

    def wait_for_scrapes(self, count: int) -> None:
        wait_until(lambda: self.scrapes() >= count, f"{count} scrapes", count * SCRAPE_SECONDS + 60, every=0.5)

    def evaluate(self, target: dict, variables: dict[str, str], window: Window) -> list[Series]:
        """The result of a target: one point per series if it asks for the last value only."""
        query = dashboards.substitute(target["expr"], {**dashboards.PLACES, **variables, "__rate_interval": window.rate_interval, "__range": f"{window.end - window.start:.0f}s"})
        if target.get("instant"):
            found = self.ask("query", query=query, time=window.end)
            return [Series(series["metric"], [number(series["value"])]) for series in found]
        found = self.ask("query_range", query=query, start=window.start, end=window.end, step=window.step)
        return [Series(series["metric"], [number(point) for point in series["values"]]) for series in found]


def number(point: list) -> tuple[float, float]:
    return float(point[0]), float(point[1])


@contextmanager
def scene(machines: Mapping[str, Machine | JobMachine]) -> Iterator[Prometheus]:
    """The daemons, and the pages of machines with jobs, by the name that their instance is to have, scraped."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gpumeter-grafana-"))
        ports = {}
        for name, machine in machines.items():
            if isinstance(machine, JobMachine):
                ports[name] = stack.enter_context(JobPage(machine)).port
                continue
            config = Path(folder, f"{name}.yaml")
            config.write_text(f"{SAMPLING}jobs: {{socket: {folder}/{name}.sock, stream_socket: {folder}/{name}.stream}}\n{machine.config}")
            ports[name] = stack.enter_context(Daemon(f"--config.file={config}", *machine.flags)).port
            send(machine.results, f"{folder}/{name}.sock")
        render_rules(folder, COST)
        yield stack.enter_context(Prometheus(folder, ports, ("rules.yml", "jobs.yml")))


def send(datagrams: Sequence[str], path: str) -> None:
    """Waits while the queue of the socket is full."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        for datagram in datagrams:
            out.sendto(datagram.encode(), path)
