#!/usr/bin/env python3
"""Invoices: 24 h of a cluster in a real Prometheus, by the rules of the mixin with prices, against the cluster's own sums.

The cluster is a list of jobs. From it come the pages of its machines and, without Prometheus, the joules, GPU hours, CO2 and money of
each payer. promtool writes the pages into a database, Prometheus evaluates the rules over them, and the queries of docs/cost.md give
the invoices.
"""
import json
import math
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging/grafana/preview"))
from live import Prometheus, render_rules  # noqa: E402

SKIPPED = 77
WITHIN = 0.005
HOUR, DAY, SCRAPE, STEP = 3600, 86400, 30, 60
BEGIN = 1_760_000_400  # a whole hour
FROM, TO = BEGIN + HOUR, BEGIN + HOUR + DAY  # of the invoices; jobs cross both
END = TO + 600
STAYS = 600  # seconds for which the page keeps the series of a job that ended
IDLE_WATTS = 60
PUE, PER_KWH = 1.3, 0.25
PRICES = {"NVIDIA A100.*": 1.2, "NVIDIA H100.*": 2.5}
FACTOR = 'ceems_emissions_gCo2_kWh{provider="rte",country_code="FR"}'
COST = {"pue": PUE, "pricePerKwh": PER_KWH, "pricePerGpuHour": PRICES, "co2GramsPerKwh": f"max(last_over_time({FACTOR}[2h]))", "openCost": True}
Gpu = tuple[str, int]
MIG = ("kube", 3)
PAYERS = ("user", "slurm_account", "k8s_namespace")


@dataclass(frozen=True, eq=False)
class Job:
    """It works at `watts` for the first `busy` seconds of every `period`, and is idle at a fifth of that for the rest."""
    kind: str
    name: str
    facts: dict[str, str]
    gpus: tuple[Gpu, ...]
    start: int
    end: int
    watts: float = 500
    busy: int = 240
    period: int = 300
    is_given: bool = True  # by Slurm or the kubelet
    has_process: bool = True
    part: float = 1  # of the GPU, which is then a partition
    tokens: float = 0

    def busy_seconds(self, at: float) -> float:
        elapsed = min(max(at - self.start, 0), self.end - self.start) if self.has_process else 0
        return elapsed // self.period * self.busy + min(elapsed % self.period, self.busy)

    def idle_seconds(self, at: float) -> float:
        return min(max(at - self.start, 0), self.end - self.start) - self.busy_seconds(at)

    def joules(self, at: float) -> float:
        """On each of its GPUs."""
        return self.watts * (self.busy_seconds(at) + self.idle_seconds(at) / 5) if self.has_process else 0

    @property
    def labels(self) -> dict[str, str]:
        return {"kind": self.kind, "workload": self.name}


def slurm(number: int, user: str, gpus: tuple[Gpu, ...], start: int, end: int, **more) -> Job:
    return Job("slurm_job", str(number), {"user": user, "slurm_account": "nlp" if user in ("ann", "eve") else "vision"}, gpus, start, end, **more)


def pod(name: str, namespace: str, gpu: Gpu, start: int, end: int, **more) -> Job:
    return Job("pod", f"uid-{name}", {"k8s_namespace": namespace, "k8s_pod": name, "k8s_container": "main"}, (gpu,), start, end, **more)


def cluster() -> list[Job]:
    chance, jobs = random.Random(31), []
    for slot in ("slurm1", (0, 1)), ("slurm1", (2, 3)), ("slurm2", (0, 1)), ("slurm2", (2, 3)):
        gpus, at = tuple((slot[0], gpu) for gpu in slot[1]), BEGIN + chance.randint(60, HOUR)
        while at < END:  # a third of the jobs end within five minutes
            length = chance.choice((chance.randint(20, 300), chance.randint(600, 4 * HOUR), chance.randint(600, 4 * HOUR)))
            jobs.append(slurm(len(jobs) + 1, chance.choice(("ann", "bob", "eve")), gpus, at, at + length, watts=chance.randint(200, 700),
                              busy=chance.choice((30, 240, 300)), has_process=chance.random() < 0.9))
            at += length + chance.randint(30, HOUR)
    jobs.append(slurm(999, "ann", (("slurm3", 0), ("slurm3", 1)), BEGIN + 7, END, busy=300, tokens=5000))
    for name, start, end in (("one", 2, 9), ("two", 5, 20)):  # time slices
        jobs.append(pod(name, "lab", ("kube", 0), FROM + start * HOUR, FROM + end * HOUR, watts=150, busy=100))
    jobs.append(pod("chat", "web", ("kube", 1), BEGIN + 61, END, watts=300, busy=60, period=60, tokens=300))
    for name, part in (("small", 0.125), ("large", 0.5)):
        jobs.append(pod(name, "lab", MIG, FROM + HOUR, FROM + 22 * HOUR, watts=400 * part, part=part))
    jobs.append(Job("systemd_unit", "train.service", {"user": "eve"}, (("desk", 0),), FROM + 4 * HOUR + 11, FROM + 15 * HOUR, is_given=False))
    return jobs


JOBS = cluster()
GPUS = sorted({gpu for job in JOBS for gpu in job.gpus} | {("kube", 2)})


def factor(at: float) -> float:
    """Grams of CO2 per kWh, another every half an hour: nights with wind, evenings with gas."""
    return 45 + 25 * math.sin(at // 1800 / 48 * math.tau)


def hour_price(gpu: Gpu) -> float:
    return PRICES["NVIDIA A100.*" if gpu[0] == "slurm2" else "NVIDIA H100.*"]


@cache
def on(gpu: Gpu) -> list[Job]:
    return [job for job in JOBS if gpu in job.gpus]


def unattributed(gpu: Gpu, at: float) -> float:
    """Joules of the GPU while no process uses it."""
    empty, used_until = 0.0, float(BEGIN)
    for job in sorted((job for job in on(gpu) if job.has_process and job.start < at), key=lambda job: job.start):
        empty += max(job.start - used_until, 0)
        used_until = max(used_until, min(job.end, at))
    return IDLE_WATTS * (empty + at - used_until)


# The cluster's own sums. A bill has the amounts of one payer.
@dataclass
class Bill:
    kwh: float = 0
    grams: float = 0
    energy: float = 0
    time: float = 0
    idle: float = 0  # part of time


def energy_of(bill: Bill, joules) -> None:
    for a, b in pairwise(range(FROM, TO + 1, 1800)):
        kwh = (joules(b) - joules(a)) / 3.6e6 * PUE
        bill.kwh, bill.grams, bill.energy = bill.kwh + kwh, bill.grams + kwh * factor(a), bill.energy + kwh * PER_KWH


def held(gpu: Gpu) -> Iterator[tuple[Job | None, int, int, float]]:
    """Who holds which part of the GPU, and when; None: nobody."""
    times = sorted({FROM, TO} | {at for job in on(gpu) for at in (job.start, job.end) if FROM < at < TO})
    for a, b in pairwise(times):
        holders = [job for job in on(gpu) if job.start <= a < job.end]
        whole = max(sum(job.part for job in holders), 1)
        yield from ((job, a, b, job.part / whole) for job in holders)
        yield None, a, b, 1 - sum(job.part for job in holders) / whole


def bills() -> dict[object, Bill]:
    """By job, and None for what nobody uses."""
    found = defaultdict(Bill)
    for gpu in GPUS:
        energy_of(found[None], lambda at: unattributed(gpu, at))
        for job in on(gpu):
            energy_of(found[job], job.joules)
        for job, a, b, part in held(gpu):
            found[job].time += (b - a) / HOUR * part * hour_price(gpu)
            if job and job.is_given:
                found[job].idle += (job.idle_seconds(b) - job.idle_seconds(a)) / HOUR * part * hour_price(gpu)
    return found


BILLS = bills()


def sums(label: str, amount: str) -> dict[str, float]:
    """An amount by a label of the jobs; what has no user is under ""."""
    found = defaultdict(float)
    for job, bill in BILLS.items():
        payer = job.facts.get(label, "") if job else ""
        if payer or label == "user":
            found[payer] += getattr(bill, amount)
    return found


# The pages of the machines, as OpenMetrics with times.
def series_text(name: str, labels: dict[str, object]) -> str:
    return f"{name}{{{','.join(f'{key}={json.dumps(str(each))}' for key, each in labels.items())}}}"


def samples(name: str, labels: dict[str, object], start: int, end: int, value: Callable[[int], float]) -> Iterator[str]:
    text = series_text(name, labels)
    phase = zlib.crc32(labels["job"].encode() + str(labels["instance"]).encode()) % SCRAPE  # Prometheus spreads the scrapes of its targets
    first = -(-(max(start, BEGIN) - phase) // SCRAPE) * SCRAPE + phase
    return (f"{text} {value(at)!r} {at}" for at in range(first, min(end, END) + 1, SCRAPE))


def one(_: int) -> int:
    return 1


def device(gpu: Gpu) -> dict[str, object]:
    return {"job": "gpumeter", "instance": f"{gpu[0]}:10478", "gpu": gpu[1], "uuid": f"GPU-{gpu[0]}-{gpu[1]}"}


def gpu_page(gpu: Gpu) -> Iterator[str]:
    model = "NVIDIA A100-SXM4-80GB" if gpu[0] == "slurm2" else "NVIDIA H100 80GB HBM3"
    nobody = {**device(gpu), "kind": "unattributed", "workload": "unattributed"}
    yield from samples("gpu_info", {**device(gpu), "model": model}, BEGIN, END, one)
    yield from samples("gpu_memory_size_bytes", {**device(gpu), "memory": "vram"}, BEGIN, END, lambda at: 80e9)
    yield from samples("gpu_workload_energy_joules_total", nobody, BEGIN, END, lambda at: unattributed(gpu, at))
    users = [job for job in on(gpu) if job.has_process]
    yield from samples("gpu_workload_share_ratio", nobody, BEGIN, END, lambda at: int(not any(job.start <= at < job.end for job in users)))
    for job in on(gpu):
        yield from job_page(job, gpu, users)


def job_page(job: Job, gpu: Gpu, users: list[Job]) -> Iterator[str]:
    stays, labels = job.end + STAYS, {**device(gpu), **job.labels}
    if job.has_process:
        split = ({"part": "active"}, {"part": "idle"}) if gpu[0] == "kube" else ({},)
        for part in split:
            yield from samples("gpu_workload_energy_joules_total", {**labels, **part}, job.start, stays, lambda at: job.joules(at) / len(split))
        yield from samples("gpu_workload_busy_seconds_total", labels, job.start, stays, job.busy_seconds)
        yield from samples("gpu_workload_share_ratio", labels, job.start, stays,
                           lambda at: int(at < job.end) / max(sum(each.start <= at < each.end for each in users), 1))
    if job.is_given:
        place = {**labels, "partition": f"{job.name}:1"} if job.part < 1 else labels
        yield from samples("gpu_allocation_info", {**place, "source": "slurm"}, job.start, job.end - 1, one)
        yield from samples("gpu_allocated_idle_seconds_total", place, job.start, stays, job.idle_seconds)
    if job.part < 1:
        yield from samples("gpu_partition_memory_size_bytes", {**device(gpu), "partition": f"{job.name}:1"}, BEGIN, END, lambda at: 80e9 * job.part)


def whole_job_page(job: Job) -> Iterator[str]:
    """What it has once, on all its GPUs: its facts, its run or its server."""
    stays, target = job.end + STAYS, {key: device(job.gpus[0])[key] for key in ("job", "instance")}
    yield from samples("gpu_workload_info", {**target, **job.labels, **job.facts, "source": "process"}, job.start, stays, one)
    if job.kind == "slurm_job" and job.has_process:
        run = {"run": f"run-{job.name}", "user": job.facts["user"]}
        yield from samples("ml_run_start_timestamp_seconds", {**target, **run}, job.start, stays, lambda at: job.start)
        yield from samples("ml_last_update_timestamp_seconds", {**target, **run}, job.start, stays, lambda at: at)
        yield from samples("ml_energy_joules_total", {**target, **run}, job.start, stays, lambda at: len(job.gpus) * job.joules(at))
        yield from samples("ml_tokens_total", {**target, **run, "kind": "train", "split": "train"}, job.start, stays, lambda at: job.tokens * (at - job.start))
        for gpu in job.gpus:
            yield from samples("ml_run_gpu_info", {**device(gpu), **run, "pid": 7, "source": "process"}, job.start, job.end - 1, one)
    if job.name == "uid-chat":
        server = {**target, "server": "vllm", "port": 8000}
        yield from samples("ml_server_tokens_total", {**server, "kind": "output"}, job.start, stays, lambda at: job.tokens * (at - job.start))
        yield from samples("ml_server_energy_joules_total", server, job.start, stays, job.joules)
        yield from samples("ml_server_info", {**server, **device(job.gpus[0]), **job.labels, "model": "m"}, job.start, stays, one)


def pages() -> Iterator[str]:
    for machine in sorted({gpu[0] for gpu in GPUS}):
        yield from samples("up", {"job": "gpumeter", "instance": f"{machine}:10478"}, BEGIN, END, one)
    yield from samples("ceems_emissions_gCo2_kWh", {"job": "ceems", "instance": "grid:9010", "provider": "rte", "country_code": "FR"}, BEGIN, END, factor)
    for gpu in GPUS:
        yield from gpu_page(gpu)
    for job in JOBS:
        yield from whole_job_page(job)


def needed(rules: list[dict]) -> list[dict]:
    """The records of costs, and those that they read."""
    found = [rule for rule in rules if re.search("kilowatt_hours|co2|cost|DCGM", rule["record"])]
    for rule in found:
        found += [other for other in rules if other["record"] in rule["expr"] and other not in found]
    return found


def levels(rules: list[dict]) -> Iterator[list[dict]]:
    """Rules by what they read: those of a level read pages and records of the levels before."""
    while rules:
        names = {rule["record"] for rule in rules}
        level = [rule for rule in rules if not any(name in rule["expr"] for name in names)]
        yield level
        rules = [rule for rule in rules if rule not in level]


def evaluated(prometheus: Prometheus, rule: dict) -> list[str]:
    """The rule's samples once a minute, whose series have the record's name."""
    found = []
    for series in prometheus.ask("query_range", query=rule["expr"], start=BEGIN, end=TO, step=STEP):
        labels = {key: each for key, each in series["metric"].items() if key != "__name__"} | rule.get("labels", {})
        text = series_text(rule["record"], labels)
        found += [(at, f"{text} {value} {at}") for at, value in series["values"]]
    return [line for _, line in sorted(found)]


class Cluster:
    """Prometheus with the pages and the records. A series ends with its last sample, as if Prometheus had marked it stale."""

    def __init__(self, folder: str):
        self.folder = folder

    def server(self) -> Prometheus:
        return Prometheus(self.folder, {}, flags=(f"--query.lookback-delta={SCRAPE}s", "--storage.tsdb.retention.time=100y"))

    def write(self, lines: Iterable[str]) -> None:
        Path(self.folder, "pages").write_text("\n".join(lines) + "\n# EOF\n")
        subprocess.run(["promtool", "tsdb", "create-blocks-from", "--max-block-duration=48h", "openmetrics", f"{self.folder}/pages",
                        f"{self.folder}/data"], capture_output=True, check=True, timeout=60)

    def fill(self) -> None:
        self.write(pages())
        render_rules(self.folder, COST)
        groups = yaml.safe_load(Path(self.folder, "jobs.yml").read_text())["groups"]
        for level in levels(needed([rule for group in groups for rule in group["rules"]])):
            with self.server() as prometheus:
                prometheus.wait_until_ready()
                recorded = [line for rule in level for line in evaluated(prometheus, rule)]
            self.write(recorded)


def amount(record: str, by: str, matchers: str = "") -> str:
    """The query of docs/cost.md for a day."""
    return f"sum by ({by}) (sum_over_time({record}{matchers}[1d:1m])) / 60"


class InvoicesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        machines = Cluster(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        machines.fill()
        cls.prometheus = cls.enterClassContext(machines.server())
        cls.prometheus.wait_until_ready()

    def ask(self, query: str, by: str, at: int = TO) -> dict[str, float]:
        return {series["metric"].get(by, ""): float(series["value"][1]) for series in self.prometheus.ask("query", query=query, time=at)}

    def compare(self, what: str, found: dict[str, float], truth: dict[str, float], within: float = WITHIN) -> None:
        self.assertEqual(sorted(found), sorted(truth), what)
        for payer in truth:
            off = found[payer] / truth[payer] - 1
            print(f"{what:28} {payer or '-':8} {found[payer]:10.3f}, truth {truth[payer]:10.3f}, off by {off:+.3%}")
            with self.subTest(what, payer=payer):
                self.assertLess(abs(off), within)

    def test_the_bills(self):
        for label in PAYERS:
            record = f"{label}:gpu_workload_"
            self.compare("kWh", self.ask(amount(f"{record}energy_kilowatt_hours:per_hour", label), label), sums(label, "kwh"))
            self.compare("grams of CO2", self.ask(amount(f"{record}co2_grams:per_hour", label), label), sums(label, "grams"))
            for item in ("energy", "time"):
                self.compare(f"money, {item}", self.ask(amount(f"{record}cost:per_hour", label, f'{{item="{item}"}}'), label), sums(label, item))

    def test_the_document_has_the_query(self):
        self.assertIn(amount("user:gpu_workload_cost:per_hour", "user"), (ROOT / "docs/cost.md").read_text())

    def test_the_joules(self):
        truth = {user: kwh * 3.6e6 / PUE for user, kwh in sums("user", "kwh").items()}
        self.compare("joules", self.ask("sum by (user) (sum_over_time(user:gpu_workload_energy_joules:rate5m[1d:1m])) * 60", "user"), truth)

    def test_all_bills_are_the_price_of_all_gpus(self):
        whole = sum(hour_price(gpu) for gpu in GPUS) * DAY / HOUR
        self.compare("money, all GPUs", self.ask(amount("user:gpu_workload_cost:per_hour", "item", '{item="time"}'), "item"), {"time": whole})

    def test_idle_money(self):
        self.compare("idle", self.ask(amount("instance:gpu_idle_cost:per_hour", "item"), "item"),
                     {"energy": BILLS[None].energy, "time": BILLS[None].time})
        for label in PAYERS:
            found = self.ask(amount(f"{label}:gpu_allocated_idle_cost:per_hour", label), label)
            truth = {payer: each for payer, each in sums(label, "idle").items() if each}
            self.compare("held and idle", {payer: each for payer, each in found.items() if each}, truth)

    def test_runs(self):
        truth = {"energy": defaultdict(float), "time": defaultdict(float)}
        for job, bill in BILLS.items():
            if job and job.kind == "slurm_job" and job.has_process:
                for item, each in truth.items():
                    each[job.facts["user"]] += getattr(bill, item)
        for item, each in truth.items():
            self.compare(f"runs, {item}", self.ask(amount("run:ml_cost:per_hour", "user", f'{{item="{item}"}}'), "user"), each)

    def test_a_million_tokens(self):
        for record, name, gpus in (("run_kind:ml", "999", 2), ("server_kind:ml_server", "uid-chat", 1)):
            job, = (job for job in JOBS if job.name == name)
            kwh = gpus * job.watts / job.tokens / 3.6 * PUE
            at = FROM + 12 * HOUR + 600
            for amount_of, value in (("energy_kilowatt_hours", kwh), ("co2_grams", kwh * factor(at))):
                self.compare(f"{amount_of} per Mtoken", self.ask(f"{record}_{amount_of}:per_million_tokens", "", at), {"": value})
            self.compare("money per Mtoken", self.ask(f"{record}_cost:per_million_tokens", "item", at),
                         {"energy": kwh * PER_KWH, "time": gpus * 2.5 / (job.tokens * HOUR / 1e6)})

    def test_opencost_reads_the_use_of_containers(self):
        """Its query, of modules/prometheus-source/pkg/prom/metricsquerier.go."""
        query = 'avg(avg_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{container!=""}[1d])) by (container, pod, namespace, uid)'
        found = {series["metric"]["pod"]: series for series in self.prometheus.ask("query", query=query, time=TO)}
        self.assertEqual(found["one"]["metric"], {"container": "main", "pod": "one", "namespace": "lab", "uid": "uid-one"})
        self.assertEqual(sorted(found), ["chat", "large", "one", "small", "two"])
        self.assertAlmostEqual(float(found["chat"]["value"][1]), 1, delta=WITHIN)


if __name__ == "__main__":
    if not all(map(shutil.which, ("prometheus", "promtool", "jsonnet"))):
        print("skipped: there is no prometheus or no jsonnet (packages prometheus, jsonnet)")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
