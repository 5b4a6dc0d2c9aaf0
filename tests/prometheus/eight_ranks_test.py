#!/usr/bin/env python3
"""Eight ranks train through the Python client, another user's job ends early, and a real Prometheus with jobs.yml scrapes. The
test compares the records, from the first minute on, with the script's known values. Prints the table.

In 60 s, with windows that are as much shorter; with BENCH_FULL=1 in 400 s, with the rules as they are and a scrape each 15 s.
Needs root: two users' processes."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "tests/e2e"), str(ROOT / "packaging/grafana/preview")]
from harness import Daemon, wait_until  # noqa: E402
from job_page import with_window  # noqa: E402

SKIPPED = 77
FULL = bool(os.environ.get("BENCH_FULL"))
RANKS, PEAK = 8, 9.9e14  # of a simulated GPU, in bf16
WATTS = 90 + (420 - 90) * 0.8  # mean of a simulated GPU at this duty
TRAINER, OTHER = "daemon", "nobody"
SAMPLED = 'gpumeter_collector_last_success_timestamp_seconds{collector="simulated"}'
SAMPLE = 1  # seconds between two samples of the GPUs
RANK = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import gpumeter
sys.stdin.readline()
done = [0, 0, 0.0, 0.0]  # tokens, flops, seconds of loading and of steps
with gpumeter.run("train") as run:
    began = told = time.time()
    print(json.dumps([began, *done]), flush=True)
    while time.time() < began + float(sys.argv[2]):
        first = time.monotonic()
        with run.phase("data_loading"):
            time.sleep(0.02)
        loaded = time.monotonic()
        with run.phase("forward"):
            time.sleep(0.08)
        last = time.monotonic()
        run.step(samples=8, tokens=4096, flops=4e13, seconds=last - first)
        done = [done[0] + 4096, done[1] + 4e13, done[2] + loaded - first, done[3] + last - first]
        if time.time() > told + 0.5:
            told = time.time()
            print(json.dumps([told, *done]), flush=True)
"""


@dataclass(frozen=True)
class Pace:
    seconds: float
    window: float
    scrape: float
    looks: tuple[float, ...]
    within: float  # the first look is the hardest


PACE = Pace(400, 300, 15, (45, 60, 90, 120, 180, 240, 300, 390), 0.05) if FULL else Pace(60, 45, 2, (8, 12, 20, 30, 45, 58), 0.05)
OTHERS_SECONDS = PACE.seconds / 3


class Times(NamedTuple):
    """Unix times of a record, of the scrape and of the sample of the GPUs that it goes by."""
    recorded: float
    scraped: float
    sampled: float


class Row(NamedTuple):
    age: float
    record: str
    value: float
    low: float
    high: float
    allowed: float

    @property
    def off(self) -> float:
        return min(0.0, self.value / self.low - 1) + max(0.0, self.value / self.high - 1)


class Rank:
    """A process of one user in a Slurm job's group, on a /proc where it is in that group; it begins on command."""

    def __init__(self, machine: "RankMachine", number: int, job: int, user: str, code: str, *arguments: str):
        environ = {**os.environ, "RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": str(RANKS), "GPUMETER_SOCKET": machine.socket}
        with open(machine.log(number, job), "w") as log:
            self.process = subprocess.Popen([sys.executable, "-B", "-c", code, *arguments], user=user, env=environ, text=True,
                                            stdin=subprocess.PIPE, stdout=log)
        own = machine.procfs / str(self.process.pid)
        own.mkdir(parents=True)
        for name in ("stat", "status", "comm"):
            (own / name).symlink_to(f"/proc/{self.process.pid}/{name}")
        (own / "cgroup").write_text(f"0::/system.slice/slurmstepd.scope/job_{job}/step_0/user/task_{number}\n")

    def begin(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()


class RankMachine:
    def __init__(self, folder: Path):
        self.folder, self.procfs, self.socket = folder, folder / "proc", str(folder / "jobs.sock")
        folder.chmod(0o755)
        self.ranks = [Rank(self, n, 7, TRAINER, RANK, str(ROOT / "packaging/python"), str(PACE.seconds)) for n in range(RANKS)]
        self.other = Rank(self, RANKS, 8, OTHER, "import sys, time; sys.stdin.readline(); time.sleep(float(sys.argv[1]))", str(OTHERS_SECONDS))
        self.on_gpus = [self.pid_file(n) for n in range(RANKS + 1)]

    def pid_file(self, gpu: int) -> str:
        return f"{gpu}={self.folder / f'{gpu}.pids'},busy=0.8,memory=2GiB"

    def log(self, number: int, job: int) -> Path:
        return self.folder / f"{job}-{number}.log"

    def begin(self) -> None:
        """A GPU is used from now on."""
        for gpu, rank in enumerate([*self.ranks, self.other]):
            fresh = self.folder / f"{gpu}.new"
            fresh.write_text(f"{rank.process.pid}\n")
            fresh.rename(self.folder / f"{gpu}.pids")
            rank.begin()

    def config(self) -> str:
        off = {"enabled": False}
        simulated = {"enabled": True, "devices": RANKS + 1, "processes": self.on_gpus, "period": "1s", "duty": 0.8}
        path = self.folder / "gpumeter.yaml"
        path.write_text(json.dumps({"paths": {"procfs": str(self.procfs)}, "jobs": {"socket": self.socket, "stream_socket": ""},
                                    "collectors": {"simulated": simulated, "nvidia": off, "amd": off}}))
        return f"--config.file={path}"

    def told(self, at: float) -> list[float]:
        """Tokens, flops, seconds of loading and of steps, over all ranks, until then, interpolated between the two nearest reports."""
        sums = [0.0] * 4
        for number in range(RANKS):
            lines = [json.loads(line) for line in self.log(number, 7).read_text().splitlines() if line.endswith("]")]
            before = max((line for line in lines if line[0] <= at), default=lines[0])
            after = min((line for line in lines if line[0] > at), default=before)
            part = (at - before[0]) / (after[0] - before[0]) if after[0] > before[0] and at > before[0] else 0
            sums = [total + b + part * (a - b) for total, b, a in zip(sums, before[1:], after[1:])]
        return sums

    def stop(self) -> None:
        for rank in [*self.ranks, self.other]:
            rank.process.kill()
            rank.process.communicate()


class EightRanksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import live

        live.SCRAPE_SECONDS = PACE.scrape
        folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        rules = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        for name in ("rules.yml", "jobs.yml"):
            (rules / name).write_text(with_window((ROOT / "packaging/prometheus" / name).read_text(), PACE.window))
        cls.machine = RankMachine(folder)
        cls.addClassCleanup(cls.machine.stop)
        cls.daemon = cls.enterClassContext(Daemon(cls.machine.config()))
        cls.prometheus = cls.enterClassContext(live.Prometheus(str(rules), {"alpha": cls.daemon.port}, ("rules.yml", "jobs.yml")))
        cls.prometheus.wait_for_scrapes(2)
        cls.machine.begin()
        cls.began = time.time()
        cls.rows = [row for look in PACE.looks for row in cls.look(look)]

    @classmethod
    def recorded(cls, record: str) -> tuple[float, Times]:
        """Value, and the times of what is in it."""
        at = cls.ask(f"timestamp({record})", time.time())
        return cls.ask(record, at), Times(at, cls.ask(f"timestamp({SAMPLED})", at), cls.ask(SAMPLED, at))

    @classmethod
    def ask(cls, query: str, at: float) -> float:
        value, = cls.prometheus.ask("query", query=query, time=f"{at:.3f}")
        return float(value["value"][1])

    @classmethod
    def truth(cls, start: float, scraped: float, sampled: float) -> dict[str, float]:
        """What the script did from the start until the job's last scraped message, and until the GPUs' last scraped sample."""
        tokens, flops, loading, steps = (b - a for a, b in zip(cls.machine.told(start), cls.machine.told(scraped)))
        ran, used, others = scraped - start, sampled - start, max(0.0, min(sampled, cls.began + OTHERS_SECONDS) - start)
        return {"run_kind:ml_tokens_per_gpu:rate5m": tokens / ran / RANKS,
                "run:ml_model_flops_utilization:ratio_rate5m": flops / ran / RANKS / PEAK,
                "run_kind:ml_energy_joules_per_token:ratio_rate5m": WATTS * RANKS * used / tokens,
                "run:ml_input_bound:ratio_rate5m": loading / steps,
                f'user:gpu_workload_energy_joules:rate5m{{user="{TRAINER}"}}': WATTS * RANKS * used / PACE.window,
                f'user:gpu_workload_energy_joules:rate5m{{user="{OTHER}"}}': WATTS * others / PACE.window}

    @classmethod
    def look(cls, seconds: float) -> list[Row]:
        time.sleep(max(0.0, cls.began + seconds - time.time()))
        now = time.time()
        found = {record: cls.recorded(record) for record in cls.truth(cls.began, now, now)}
        time.sleep(1.5)  # until the ranks have reported it
        return [cls.row(record, value, times) for record, (value, times) in found.items()]

    @classmethod
    def row(cls, record: str, value: float, times: Times) -> Row:
        """Prometheus draws a rate on from the last scrape to the record's own time, if it is near: the truth is between the two."""
        start = max(cls.began, times.recorded - PACE.window)
        young = start == cls.began
        at_record = cls.truth(start, times.recorded, times.recorded)[record]
        at_scrape = cls.truth(start, times.scraped, times.sampled)[record] if young else at_record
        # A new job is found up to a sample late; a window that moves cuts between two scrapes.
        edge = SAMPLE if young else PACE.scrape
        cut = edge / PACE.window * WATTS / at_record if OTHER in record else edge / (times.recorded - cls.began)
        return Row(times.recorded - cls.began, record, value, min(at_scrape, at_record), max(at_scrape, at_record), PACE.within + cut)

    def test_the_records_are_what_the_script_did(self):
        print(f"\n{'age':>6} {'record':56} {'recorded':>12} {'truth from':>12} {'to':>12} {'off by':>8} {'allowed':>8}")
        for row in self.rows:
            print(f"{row.age:5.0f}s {row.record:56} {row.value:12.6g} {row.low:12.6g} {row.high:12.6g} {row.off:+8.2%} {row.allowed:8.2%}")
        for row in self.rows:
            with self.subTest(age=row.age, record=row.record):
                self.assertLess(abs(row.off), row.allowed)

    def test_the_energy_of_each_user_is_whole_after_a_window(self):
        """Of a job that ended long before, too. The page's counters are the daemon's own account."""
        wait_until(lambda: all(rank.process.poll() is not None for rank in self.machine.ranks), "the ranks end", 60)
        time.sleep(PACE.window + 2 * PACE.scrape)
        age, page = time.time() - self.began, self.daemon.page()
        for user, job, truth in ((TRAINER, "7", RANKS * WATTS * PACE.seconds), (OTHER, "8", WATTS * OTHERS_SECONDS)):
            query = f'sum_over_time(user:gpu_workload_energy_joules:rate5m{{user="{user}"}}[{age:.0f}s:{PACE.scrape:g}s]) * {PACE.scrape:g}'
            found, = self.prometheus.ask("query", query=query)
            counted = sum(page.of("gpu_workload_energy_joules_total", workload=job).values())
            value = float(found["value"][1])
            print(f"\nenergy of {user}: {value:.0f} J recorded, {counted:.0f} J counted, {truth:.0f} J by the script: {value / truth - 1:+.2%}")
            self.assertAlmostEqual(value / counted, 1, delta=PACE.within)
            self.assertAlmostEqual(value / truth, 1, delta=2 * PACE.within)


if __name__ == "__main__":
    if not shutil.which("prometheus") or os.geteuid() != 0:
        print("skipped: needs prometheus (the package prometheus) and root")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
