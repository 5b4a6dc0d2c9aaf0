#!/usr/bin/env python3
"""packaging/prometheus in a real Prometheus: it scrapes two machines with jobs, and the test compares the records of jobs.yml
with the rates of their pages.

The machines have a run of one name, two runs share a GPU, one run has two. Seconds for minutes is all that differs from what
is shipped; goodput goes by its own 30 minutes, of which the run's life is the part that counts.
"""
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "packaging/grafana/preview")]
import job_catalogue  # noqa: E402
from job_page import ANSWERING, BUCKET_RANGES, PEAK, STEPPING, TENSOR_SHARE, JobMachine, JobPage, Run, page, with_window  # noqa: E402

SKIPPED = 77
RULES = ("rules.yml", "jobs.yml", "alerts.yml")
SCRAPES = 24  # the window of 20 s is full by then
WINDOW = 20  # seconds for five minutes
WITHIN = 0.05
WITHIN_OF_QUANTILE = 0.1
QUANTILES = {"0.5": 1, "0.95": 3, "0.99": 3}  # four of five durations are the run's, the rest takes three times as long
MACHINES = {
    "alpha": JobMachine(2, (Run("bert", "ann", (0, 1), watts=600, samples=256, tokens={"train": 5000}, flops=8e14, loading=0.2, idle=0.1),
                         Run("chat", "bob", (1,), watts=150, samples=12, tokens={"input": 900, "output": 300}, answers=12, idle=0.5)), "A"),
    "beta": JobMachine(1, (Run("bert", "ann", (0,), watts=400, samples=64, flops=1e14),), "B"),
}
DEVICE_NAMES = {"gpu_up", "gpu_info", "gpu_allocation_info", "gpu_allocated_idle_seconds_total", "gpu_observed_seconds_total", "gpu_busy_seconds_total", "gpu_energy_joules_total", "gpu_peak_flops", "gpu_tensor_peak_seconds_total"}


def run_truth(run: Run) -> dict[str, float]:
    """The expected result of each recording rule of a run, from the run's own numbers."""
    truth = {"run:ml_run_gpus:count": len(run.gpus), "run:ml_energy_joules:rate5m": run.watts, "run:ml_samples:rate5m": run.samples,
             "run:ml_samples_per_gpu:rate5m": run.samples / len(run.gpus), "run:ml_gpu_idle_allocated:ratio_rate5m": run.idle,
             "run:ml_energy_joules_per_sample:ratio_rate5m": run.watts / run.samples,
             "run:ml_tensor_peak:ratio_rate5m": TENSOR_SHARE,
             "run:ml_run_time_seconds:last5m": WINDOW, "run:ml_gpu_observed_seconds:last5m": WINDOW * len(run.gpus)}
    for kind, rate in run.tokens.items():
        truth |= {f"run_kind:ml_tokens:rate5m {kind}": rate, f"run_kind:ml_tokens_per_gpu:rate5m {kind}": rate / len(run.gpus),
                  f"run_kind:ml_tokens_per_joule:ratio_rate5m {kind}": rate / run.watts,
                  f"run_kind:ml_energy_joules_per_token:ratio_rate5m {kind}": run.watts / rate}
    if run.flops:
        truth |= {"run:ml_model_flops:rate5m": run.flops, "run:ml_model_flops_utilization:ratio_rate5m": run.flops / (PEAK * len(run.gpus))}
    if not run.answers:
        truth |= {"run:ml_input_bound:ratio_rate5m": run.loading, "run:ml_goodput:ratio_rate30m": STEPPING}
    for name, seconds in ANSWERING.items() if run.answers else [("ml_step_duration_seconds", run.step)]:
        truth |= {f"run_quantile:{name}:rate5m {share}": seconds * times for share, times in QUANTILES.items()}
    return truth


TRUTH = {(machine, run.name, run.user, record): value
         for machine, jobs in MACHINES.items() for run in jobs.runs for record, value in run_truth(run).items()}


def value(series: dict) -> float:
    return float(series["value"][1])


class JobRulesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from live import Prometheus

        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        for name in RULES:
            Path(folder, name).write_text(with_window((ROOT / "packaging/prometheus" / name).read_text(), WINDOW))
        ports = {name: cls.enterClassContext(JobPage(machine)).port for name, machine in MACHINES.items()}
        cls.prometheus = cls.enterClassContext(Prometheus(folder, ports, RULES))
        cls.prometheus.wait_for_scrapes(SCRAPES)
        cls.recorded = cls.prometheus.ask("query", query='{__name__=~"run.*:.+"}')

    def test_the_records_are_what_the_counters_say(self):
        found = {}
        for series in self.recorded:
            labels = series["metric"]
            further = "".join(f" {labels[name]}" for name in ("kind", "quantile") if name in labels)
            found[labels["instance"], labels["run"], labels["user"], labels["__name__"] + further] = value(series)
        self.assertEqual(sorted(found), sorted(TRUTH))
        for key, truth in TRUTH.items():
            print(f"{' '.join(key)}: {found[key]:.5g}, truth {truth:.5g}, off by {100 * (found[key] / truth - 1):+.2f} %")
            within = WITHIN_OF_QUANTILE if "quantile" in key[3] else WITHIN
            self.assertAlmostEqual(found[key] / truth, 1, delta=within, msg=str(key))

    def test_the_workloads_power_adds_up_to_the_devices(self):
        shares = self.prometheus.ask("query", query="sum by (instance) (workload:gpu_workload_energy_joules:rate5m)"
                                                    " / sum by (instance) (gpu:gpu_energy_joules:rate5m)")
        self.assertEqual(sorted(share["metric"]["instance"] for share in shares), sorted(MACHINES))
        for share in shares:
            self.assertAlmostEqual(value(share), 1, delta=WITHIN)

    def test_the_users_power_adds_up_too(self):
        shares = self.prometheus.ask("query", query="sum by (instance) (user:gpu_workload_energy_joules:rate5m)"
                                                    " / sum by (instance) (workload:gpu_workload_energy_joules:rate5m)")
        self.assertEqual([round(value(share), 6) for share in shares], [1, 1])

    def test_no_rule_fails_and_no_alert_is_pending(self):
        groups = self.prometheus.api("rules")["groups"]
        self.assertEqual({group["name"] for group in groups}, {"gpumeter-records", "gpumeter-jobs", "gpumeter-health", "gpumeter-alerts"})
        for rule in (rule for group in groups for rule in group["rules"]):
            self.assertEqual((rule["health"], rule.get("lastError", "")), ("ok", ""), rule["name"])
            self.assertEqual(rule.get("alerts", []), [], rule["name"])

    def test_the_made_up_page_has_the_names_of_the_catalogue(self):
        known = job_catalogue.series_names() | DEVICE_NAMES
        self.assertEqual({name for machine in MACHINES.values() for name, _, _ in page(machine, 60, 0)} - known, set())
        self.assertEqual(BUCKET_RANGES, job_catalogue.bucket_ranges())


if __name__ == "__main__":
    if not shutil.which("prometheus"):
        print("skipped: there is no prometheus (package prometheus)")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
