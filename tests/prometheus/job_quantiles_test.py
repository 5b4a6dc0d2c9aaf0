#!/usr/bin/env python3
"""Compares the records of durations in jobs.yml with the exact quantiles: runs send 15 000 durations of each kind to the daemon, a
real Prometheus scrapes it, another one with native histograms, and each quantile must be within 10 %. Prints the table, with the result of
buckets of 1, 3, 10."""
import bisect
import math
import random
import shutil
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "tests/e2e"), str(ROOT / "packaging/grafana/preview")]
from job_page import with_window  # noqa: E402
from jobs import Folder, shown  # noqa: E402

SKIPPED = 77
DURATIONS = 15_000
WITHIN = 0.10
SHARES = ("0.5", "0.95", "0.99")
WINDOW = 90  # all that is sent lies in it
LIMITS = "  limits: {lines_per_second: 1000000, series_per_run: 20000, series_per_user: 20000}\n"
KINDS = {"classic": (), "native": ("--enable-feature=native-histograms",)}
HALF_DECADES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
WORDS = {"ml.step.seconds": "ml_step_duration_seconds", "ml.infer.seconds": "ml_inference_duration_seconds",
         "ml.ttft.seconds": "ml_time_to_first_token_seconds", "ml.itl.seconds": "ml_inter_token_latency_seconds"}
Draw = Callable[[random.Random], float]


def lognormal(median: float, sigma: float) -> Draw:
    return lambda source: source.lognormvariate(math.log(median), sigma)


def normal(mean: float, deviation: float) -> Draw:
    return lambda source: max(mean / 10, source.gauss(mean, deviation))


def constant(seconds: float) -> Draw:
    return lambda source: seconds


def mixed(share: float, rare: Draw, often: Draw) -> Draw:
    return lambda source: (rare if source.random() < share else often)(source)


def steady(period: float, jitter: float) -> Draw:
    return lambda source: period * (1 + jitter * source.random())


# By run. A constant close above a bound is the worst that linear interpolation can meet: 0.105112, 0.020263, 2.1810 are bounds.
RUNS: dict[str, dict[str, Draw]] = {
    "lognormal": {"ml.step.seconds": lognormal(0.4, 0.5), "ml.infer.seconds": lognormal(0.62, 0.42),
                  "ml.ttft.seconds": lognormal(0.18, 0.9), "ml.itl.seconds": lognormal(0.012, 0.35)},
    "constant": {"ml.step.seconds": constant(0.10512), "ml.infer.seconds": constant(2.1811),
                 "ml.ttft.seconds": constant(0.3), "ml.itl.seconds": constant(0.02027)},
    "bimodal": {"ml.step.seconds": mixed(0.10, normal(4.5, 0.3), normal(0.21, 0.004)),
                "ml.infer.seconds": mixed(0.3, lognormal(7, 0.2), lognormal(0.15, 0.2)),
                "ml.ttft.seconds": mixed(0.02, normal(25, 3), lognormal(0.09, 0.3)),
                "ml.itl.seconds": mixed(0.03, normal(0.33, 0.05), steady(0.0071, 0.06))},
    "short": {"ml.step.seconds": steady(0.0011, 0.05), "ml.infer.seconds": normal(0.0021, 0.0002),
              "ml.ttft.seconds": steady(0.0075, 0.2), "ml.itl.seconds": normal(0.00072, 0.00005)},
    "long": {"ml.step.seconds": normal(210, 25), "ml.infer.seconds": lognormal(60, 0.5),
             "ml.ttft.seconds": lognormal(11, 0.6), "ml.itl.seconds": lognormal(0.16, 0.4)},
}


def exact(durations: list[float], share: float) -> float:
    ordered = sorted(durations)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def drawn(durations: list[float], share: float, bounds: tuple[float, ...]) -> float:
    """histogram_quantile of them."""
    counts = [0] * (len(bounds) + 1)
    for seconds in durations:
        counts[bisect.bisect_left(bounds, seconds)] += 1
    rank, below = share * len(durations), 0
    for place, count in enumerate(counts):
        if below + count >= rank:
            break
        below += count
    if place == len(bounds):
        return bounds[-1]
    start = bounds[place - 1] if place else 0
    return start + (bounds[place] - start) * (rank - below) / count


def datagrams(run: str, word: str, durations: list[float]) -> Iterator[str]:
    for start in range(0, len(durations), 300):
        values = ":".join(f"{seconds:.7g}" for seconds in durations[start:start + 300])
        yield f"{word}:{values}|d|#run:{run}"


class JobQuantilesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from live import Prometheus

        source = random.Random(7)
        cls.sent = {(run, word): [draw(source) for _ in range(DURATIONS)] for run, words in RUNS.items() for word, draw in words.items()}
        cls.folder = cls.enterClassContext(Folder(LIMITS))
        cls.daemon = cls.enterClassContext(cls.folder.daemon())
        cls.send(0, 50)  # a rate counts from the first scrape on
        cls.servers = {}
        for kind, flags in KINDS.items():
            rules = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
            for name in ("rules.yml", "jobs.yml"):
                Path(rules, name).write_text(with_window((ROOT / "packaging/prometheus" / name).read_text(), WINDOW))
            cls.servers[kind] = cls.enterClassContext(Prometheus(rules, {"alpha": cls.daemon.port}, ("rules.yml", "jobs.yml"), flags))
        for server in cls.servers.values():
            server.wait_for_scrapes(3)
        for start in range(50, DURATIONS, 1495):  # in ten parts, so that there are rates
            cls.send(start, start + 1495)
            time.sleep(1)
        cls.page = shown(cls.daemon, {f'{family}_count{{run="{run}"}}': DURATIONS for run in RUNS for family in WORDS.values()})
        cls.recorded = {}
        for kind, server in cls.servers.items():
            server.wait_for_scrapes(server.scrapes() + 3)
            for s in server.ask("query", query='{__name__=~"run_quantile:.+"}'):
                cls.recorded[kind, s["metric"]["run"], s["metric"]["__name__"].split(":")[1], s["metric"]["quantile"]] = float(s["value"][1])

    @classmethod
    def send(cls, start: int, end: int) -> None:
        for (run, word), durations in cls.sent.items():
            cls.folder.send(*datagrams(run, word, durations[start:end]))

    def test_every_recorded_quantile_is_within_ten_percent(self):
        self.assertEqual(len(self.recorded), len(KINDS) * len(self.sent) * len(SHARES))
        print(f"\n{'run':10} {'family':31} {'share':>5} {'exact':>10} {'classic':>8} {'native':>8} {'by 1, 3, 10':>11}")
        worst = 0.0
        for (run, word), durations in self.sent.items():
            for share in SHARES:
                truth = exact(durations, float(share))
                off = [self.recorded[kind, run, WORDS[word], share] / truth - 1 for kind in KINDS]
                before = drawn(durations, float(share), HALF_DECADES) / truth - 1
                worst = max(worst, *map(abs, off))
                print(f"{run:10} {WORDS[word]:31} {share:>5} {truth:10.6f} {off[0]:+8.2%} {off[1]:+8.2%} {before:+11.1%}")
                with self.subTest(run=run, family=WORDS[word], share=share):
                    self.assertLess(max(map(abs, off)), WITHIN)
        print(f"worst: {worst:.2%}")

    def test_half_decades_would_not_do(self):
        """So that the table above is meaningful."""
        off = [abs(drawn(durations, float(share), HALF_DECADES) / exact(durations, float(share)) - 1)
               for durations in self.sent.values() for share in SHARES]
        self.assertGreater(sum(error > WITHIN for error in off), len(off) / 2)


if __name__ == "__main__":
    if not shutil.which("prometheus"):
        print("skipped: there is no prometheus (package prometheus)")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
