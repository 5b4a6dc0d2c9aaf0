"""The synthetic page of a machine with jobs: each counter grows at a known rate, so that the results of rules and dashboards
have one right answer. Serves the page by HTTP, one machine per port.

Its names and labels are the contract's; job_rules_live_test.py holds them against the catalogue.
"""
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Of collectors/jobs/wire/vocabulary.cpp: first, last fine and last bound in eighths of an octave.
BUCKET_RANGES = {"ml_step_duration_seconds": (-88, 74, 98), "ml_inference_duration_seconds": (-80, 74, 98),
                 "ml_time_to_first_token_seconds": (-64, 58, 82), "ml_inter_token_latency_seconds": (-88, 0, 60)}
BUCKETS = {family: tuple(2 ** (step / 8) for step in (*range(first, fine), *range(fine, last + 1, 6)))
           for family, (first, fine, last) in BUCKET_RANGES.items()}
SLOW = 0.2  # share of all durations that take three times as long as the rest
PEAK = 1e15
TENSOR_SHARE = 0.4  # of the peak, as every GPU counts it
Sample = tuple[str, dict[str, str], float]


@dataclass(frozen=True)
class Run:
    """All rates are per second, sums over the run's processes; `loading` and `idle` are shares."""
    name: str
    user: str
    gpus: tuple[int, ...]
    watts: float
    samples: float = 0
    tokens: dict[str, float] = field(default_factory=dict)  # by kind
    flops: float = 0
    step: float = 0.1  # seconds from step to step; a tenth of the run's time goes to no step
    loading: float = 0.1
    idle: float = 0.05
    answers: float = 0  # inference requests
    restarts_at: float = float("inf")  # seconds after its start; it loses 50 steps by it


@dataclass(frozen=True)
class JobMachine:
    gpus: int
    runs: tuple[Run, ...]
    place: str = "M"  # in the uuids


def histogram(name: str, labels: dict[str, str], seconds: float, count: float) -> Iterator[Sample]:
    """`count` durations: most of `seconds`, the rest three times as long."""
    for bound in BUCKETS[name]:
        share = (1 - SLOW) * (seconds <= bound) + SLOW * (3 * seconds <= bound)
        yield name + "_bucket", {**labels, "le": str(bound)}, count * share
    yield name + "_bucket", {**labels, "le": "+Inf"}, count
    yield name + "_sum", labels, count * seconds * (1 + 2 * SLOW)
    yield name + "_count", labels, count


STEPPING = 0.9  # share of a training run's time that its steps take


def training(run: Run, labels: dict[str, str], t: float) -> Iterator[Sample]:
    mean, lost = run.step * (1 + 2 * SLOW), 50 if t > run.restarts_at else 0
    steps = t * STEPPING / mean
    train = {**labels, "split": "train"}
    yield "ml_step", labels, int(steps) - lost
    yield "ml_steps_total", train, len(run.gpus) * steps
    yield from histogram("ml_step_duration_seconds", train, run.step, len(run.gpus) * steps)
    in_steps = len(run.gpus) * t * STEPPING
    rest = {"forward": 0.3, "backward": 0.4, "optimizer": 0.1, "communication": 0.1}
    for phase, share in {"data_loading": run.loading, **rest, "checkpoint_save": 0.05}.items():
        yield "ml_phase_seconds_total", {**labels, "phase": phase}, share * in_steps
    yield "ml_run_restarts_total", labels, int(lost > 0)
    yield "ml_lost_steps_total", labels, lost
    yield "ml_loss", train, 0.5 + 4 / (1 + t / 10)
    yield "ml_run_info", {**labels, "framework": "pytorch", "precision": "bf16", "data_parallel": str(len(run.gpus))}, 1
    for state, gib in {"allocated": 20, "reserved": 40, "peak": 36}.items():
        yield "ml_allocator_memory_bytes", {**labels, "state": state}, gib * 2**30 * len(run.gpus)
    yield "ml_out_of_memory_errors_total", labels, t // 10
    yield from evaluations(labels, t)


def evaluations(labels: dict[str, str], t: float) -> Iterator[Sample]:
    of_metric = {**labels, "metric": "top1"}
    best = 0.76 * (1 - 1 / (1 + (t // 5) / 2))
    yield "ml_eval_value", of_metric, best - 0.02 * (t // 5 % 2)
    yield "ml_eval_best_value", of_metric, best
    yield "ml_target_value", of_metric, 0.35
    if best >= 0.35:  # from 10 s on
        yield "ml_time_to_solution_seconds", of_metric, 10


ANSWERING = {"ml_inference_duration_seconds": 0.8, "ml_time_to_first_token_seconds": 0.05, "ml_inter_token_latency_seconds": 0.012}
TOKENS_OF_ANSWER = 60


def inference(run: Run, labels: dict[str, str], t: float) -> Iterator[Sample]:
    for name, seconds in ANSWERING.items():
        each = TOKENS_OF_ANSWER if name == "ml_inter_token_latency_seconds" else 1
        yield from histogram(name, labels, seconds, run.answers * each * t)


def run_page(machine: JobMachine, run: Run, t: float, now: float) -> Iterator[Sample]:
    labels = {"run": run.name, "user": run.user}
    split = {**labels, "split": "infer" if run.answers else "train"}
    yield "ml_run_start_timestamp_seconds", labels, round(now - t, 3)  # the same at each scrape
    yield "ml_last_update_timestamp_seconds", labels, now
    yield "ml_run_time_seconds", labels, t
    yield "ml_energy_joules_total", labels, run.watts * t
    yield "ml_gpu_idle_allocated_seconds_total", labels, run.idle * len(run.gpus) * t
    for cause, share in {"thermal": 0.06, "power_cap": 0.2}.items():
        yield "ml_throttled_seconds_total", {**labels, "cause": cause}, share * len(run.gpus) * t
    yield "ml_clock_lost_seconds_total", labels, 0.03 * len(run.gpus) * t
    for gpu in run.gpus:
        yield "ml_run_gpu_info", {**labels, "gpu": str(gpu), "uuid": f"{machine.place}-{gpu}",
                                   "source": "process" if gpu == 0 else "workload"}, 1
    yield "gpu_workload_info", {"kind": "systemd_unit", "workload": f"{run.name}.service", "user": run.user, "slurm_account": "nlp",
                                "k8s_namespace": "web"}, 1
    if run.samples:
        yield "ml_samples_total", split, run.samples * t
    for kind, rate in run.tokens.items():
        yield "ml_tokens_total", {**split, "kind": kind}, rate * t
    if run.flops:
        yield "ml_model_flops_total", {**labels, "dtype": "bf16"}, run.flops * t
    yield from inference(run, labels, t) if run.answers else training(run, labels, t)


def benchmarks(card: dict[str, str], began: float) -> Iterator[Sample]:
    yield "gpu_benchmark_flops", {**card, "dtype": "bf16", "backend": "cublas"}, 0.73 * PEAK
    yield "gpu_benchmark_failed", card, 0
    yield "gpu_benchmark_timestamp_seconds", card, round(began) - 3600


def device_page(machine: JobMachine, gpu: int, t: float, now: float) -> Iterator[Sample]:
    labels = {"gpu": str(gpu), "uuid": f"{machine.place}-{gpu}"}
    card = {**labels, "vendor": "simulated", "model": "Simulated GPU"}
    watts = {f"{run.name}.service": run.watts / len(run.gpus) for run in machine.runs if gpu in run.gpus}
    yield "gpu_up", card, 1
    yield "gpu_info", card, 1
    yield "gpu_observed_seconds_total", {**card, "tier": "fast"}, t
    yield "gpu_busy_seconds_total", card, 0.9 * t
    yield "gpu_tensor_peak_seconds_total", card, TENSOR_SHARE * t
    yield "gpu_energy_joules_total", card, (sum(watts.values()) + 50) * t
    yield "gpu_peak_flops", {**card, "dtype": "bf16", "source": "table"}, PEAK
    yield from benchmarks(card, now - t)
    for workload, power in {**watts, "unattributed": 50}.items():
        kind = "unattributed" if workload == "unattributed" else "systemd_unit"
        of_workload = {**labels, "kind": kind, "workload": workload}
        yield "gpu_workload_share_ratio", of_workload, power / (sum(watts.values()) + 50)
        yield "gpu_workload_energy_joules_total", of_workload, power * t
        if kind != "unattributed":
            yield "gpu_workload_memory_used_bytes", of_workload, 8 * 2**30
            yield "gpu_workload_busy_seconds_total", of_workload, 0.9 * t / len(watts)
            yield "gpu_allocation_info", {**of_workload, "source": "manual"}, 1
            yield "gpu_allocated_idle_seconds_total", of_workload, 0.1 * t


def page(machine: JobMachine, t: float, now: float) -> list[Sample]:
    samples = [sample for run in machine.runs for sample in run_page(machine, run, t, now)]
    return samples + [sample for gpu in range(machine.gpus) for sample in device_page(machine, gpu, t, now)]


def text(samples: list[Sample]) -> str:
    return "".join(line(*sample) for sample in samples)


def line(name: str, labels: dict[str, str], value: float) -> str:
    pairs = ",".join(f'{key}="{word}"' for key, word in labels.items())
    return f"{name}{{{pairs}}} {float(value)!r}\n"


def with_window(rules: str, seconds: float) -> str:
    """The rules, with so many seconds for five minutes, and as much less for the 15 s in which a young run has no record."""
    rules = rules.replace("[5m]", f"[{seconds:g}s]").replace("offset 5m", f"offset {seconds:g}s")
    return re.sub(r"\) > 15\b", f") > {15 * seconds / 300:g}", re.sub(r"\b300\b", f"{seconds:g}", rules))


class JobPage:
    """Serves a machine's page on a free port; its time begins with the first scrape. A context manager."""

    def __init__(self, machine: JobMachine):
        self.machine = machine
        self.began: float | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = outer.now().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def now(self) -> str:
        at = time.time()
        self.began = self.began or at
        return text(page(self.machine, at - self.began, at))

    def __enter__(self) -> "JobPage":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)
