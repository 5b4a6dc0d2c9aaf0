#!/usr/bin/env python3
"""Compares packaging/prometheus with the daemon's metrics, its conditions and the runbooks, and runs its test cases.

promtool checks the rules and runs the cases (*.yml in this folder). This program checks the rest: the daemon has each name and
each label of an expression, and the cases show each alert firing, quiet and resolved.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

import job_catalogue

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RULES = ROOT / "packaging/prometheus"
RUNBOOKS = (ROOT / "docs/runbooks.md").read_text()
RUNBOOK_PAGE = "http://{{ $labels.instance }}/runbooks"
# Of alerts on no single daemon, or on one that is down: another daemon's, or the file of the package.
OTHER_PAGE = """{{ with query "up{job=\\"gpumeter\\"} == 1" | sortByLabel "instance" }}http://{{ (first .).Labels.instance }}/runbooks{{ else }}file:///usr/share/gpumeter/runbooks.md{{ end }}"""
BINARY = os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter"))
OF_PROMETHEUS = {"up"}
OPERATORS = {"and", "or", "unless", "bool", "offset"}
NAME = r"[a-zA-Z_:][\w:]*"


def run(*command: str) -> str:
    said = subprocess.run(command, capture_output=True, text=True, timeout=400, env={**os.environ, "GOGC": "400"})  # a fifth less of a processor
    assert said.returncode == 0, f"{' '.join(command)}\n{said.stdout}{said.stderr}"
    return said.stdout


def rules_of(file: str) -> list[dict]:
    return [rule for group in yaml.safe_load((RULES / file).read_text())["groups"] for rule in group["rules"]]


def metric_names(expr: str) -> set[str]:
    """The names in an expression, without strings, matchers, windows, label lists, functions and operators."""
    for noise in (r'"[^"]*"', r"'[^']*'", r"\{[^}]*\}", r"\[[^\]]*\]",
                  r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)"):
        expr = re.sub(noise, " ", expr)
    return set(re.findall(rf"(?<![\w.:]){NAME}(?![\w:]|\s*\()", expr)) - OPERATORS


def template_queries(annotation: str) -> list[str]:
    """The queries of an annotation; each value that printf fills in counts as a string."""
    inside = re.findall(r"\{\{(.*?)\}\}", annotation, re.S)
    return [text.replace("%q", "''") for part in inside
            for text in re.findall(r'"((?:gpu|gpumeter|ml|run|vendor|count|clamp_min|rate|increase|max by )[_:(][^"]+)"', part)]


def sections(markdown: str) -> dict[str, str]:
    """The text below each heading of the second level."""
    parts = re.split(r"^## (.+)$", markdown, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def minutes(text: str) -> float:
    number, unit = re.fullmatch(r"(\d+)([ms])", text).groups()
    return int(number) / {"m": 1, "s": 60}[unit]


class RulesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        rules = rules_of("rules.yml") + rules_of("jobs.yml") + rules_of("alerts.yml")
        cls.records, cls.alerts = [r for r in rules if "record" in r], [r for r in rules if "alert" in r]
        cls.cases = [(path.name, test) for path in sorted(HERE.glob("*.yml"))
                     for test in yaml.safe_load(path.read_text())["tests"]]
        cls.page = [sample for family in text_string_to_metric_families(run(BINARY, "--simulate=1", "--once=0"))
                    for sample in family.samples]
        cls.catalogue = set(re.findall(r"^(\w+)\t", run(BINARY, "--print-metrics=text"), re.M)) | job_catalogue.series_names()

    def test_promtool_accepts_the_rules(self):
        print(run("promtool", "check", "rules", *(str(RULES / name) for name in ("rules.yml", "jobs.yml", "alerts.yml"))))

    def test_promtool_accepts_the_scrape_job(self):
        run("promtool", "check", "config", "--syntax-only", str(RULES / "examples/scrape.yml"))
        job, = yaml.safe_load((RULES / "examples/scrape.yml").read_text())["scrape_configs"]
        down = [alert["expr"] for alert in self.alerts if alert["alert"] == "GpumeterDown"]
        self.assertEqual(set(re.findall(r'job="(\w+)"', "".join(down))), {job["job_name"]})

    def test_every_case_comes_out(self):
        run("promtool", "test", "rules", *map(str, sorted(HERE.glob("*.yml"))))
        print(f"{len(self.cases)} cases")

    def test_every_name_is_one_that_exists(self):
        known = {rule["record"] for rule in self.records} | self.catalogue | {s.name for s in self.page} | OF_PROMETHEUS
        asked = [rule["expr"] for rule in self.records + self.alerts]
        asked += [query for alert in self.alerts for text in alert["annotations"].values() for query in template_queries(text)]
        names = set().union(*map(metric_names, asked))
        self.assertEqual(names - known, set())
        self.assertTrue({"up", "gpu_up", "gpu_pcie_link_max_lanes", "gpu_power_limit_watts"} <= names, names)

    def test_every_matcher_finds_a_series(self):
        """cause="thermel" is a valid expression that never fires."""
        selectors = [(name, dict(re.findall(r'(\w+)="([^"]*)"', matchers))) for rule in self.records + self.alerts
                     for name, matchers in re.findall(rf"({NAME})\{{([^}}]*)\}}", rule["expr"])]
        self.assertGreater(len(selectors), 4)
        documented = set(re.findall(r"^\| `(\w+)` \| `(\w+)` \| `(\w+)`", run(BINARY, "--print-metrics=markdown"), re.M))
        for name, labels in selectors:
            if name in job_catalogue.series_names() or "gpu_health_reason" in name or "" in labels.values():
                continue  # the next tests'; a missing label
            if all((label, name, value) in documented for label, value in labels.items()):
                continue  # events that nobody simulates
            base = "gpu_throttle_seconds_total" if name == "gpu_cause:gpu_throttle_seconds:rate5m" else name
            found = name in OF_PROMETHEUS or any(s.name == base and labels.items() <= s.labels.items() for s in self.page)
            self.assertTrue(found, f"nothing on the page is {name}{labels}")

    def test_every_matcher_of_a_job_is_in_its_vocabulary(self):
        words = job_catalogue.label_values()
        asked = [pair for rule in self.records + self.alerts
                 for matchers in re.findall(r"\b(?:ml|gpu_workload)_\w+\{([^}]*)\}", rule["expr"])
                 for pair in re.findall(r'(\w+)!?="([^"]*)"', matchers)]
        self.assertGreater(len(asked), 4)
        self.assertEqual([pair for pair in asked if pair[1] and pair[1] not in words], [])

    def test_no_vendor_is_named(self):
        for rule in self.records + self.alerts:
            self.assertNotRegex(rule["expr"].lower(), r"nvidia|nvml|amd|radeon|intel")

    def test_every_record_is_used_or_tested(self):
        tested = "".join(path.read_text() for path in HERE.glob("*.yml"))
        self.assertEqual([r["record"] for r in self.records if r["record"] not in tested], [])

    def test_the_alerts_are_whole(self):
        for alert in self.alerts:
            self.assertIn(alert["labels"]["severity"], ("info", "warning", "critical"), alert["alert"])
            self.assertEqual(list(alert["annotations"]), ["summary", "description", "runbook_url"], alert["alert"])
            page = OTHER_PAGE if alert["alert"] in ("GpumeterDown", "NcclRankStandsStill") else RUNBOOK_PAGE
            self.assertEqual(alert["annotations"]["runbook_url"], f"{page}#{alert['alert'].lower()}")
            self.assertRegex(alert["annotations"]["summary"], r"\$labels\.(instance|job) ")

    def test_every_alert_has_a_runbook(self):
        runbooks = sections(RUNBOOKS)
        self.assertEqual({alert["alert"] for alert in self.alerts}, set(runbooks))
        for name in {alert["alert"] for alert in self.alerts}:
            for part in ("**Look at**", "**Do**"):
                self.assertIn(part, runbooks[name], name)
        links = re.findall(r"\(#(\w+)\)", RUNBOOKS)
        self.assertEqual(set(links) - {name.lower() for name in runbooks}, set())

    def test_links_to_alerts_lead_to_runbooks(self):
        names = {alert["alert"].lower() for alert in self.alerts}
        for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
            for page, anchor in re.findall(r"\(([\w./-]*)#(\w+)\)", path.read_text()):
                if anchor in names:
                    self.assertEqual(Path(page).name or path.name, "runbooks.md", f"{path.name}: #{anchor}")

    def test_the_alerts_are_those_of_the_conditions(self):
        """Each condition of the daemon has its alert; a failed one pages; no alert waits for a reason that does not exist."""
        conditions = json.loads(run(BINARY, "--print-conditions=json"))["conditions"]
        reasons = {condition["reason"] for condition in conditions}
        for condition in conditions:
            rules = [alert for alert in self.alerts if alert["alert"] == condition["alert"]]
            asked = [text for rule in rules for text in re.findall(r'gpu_health_reason\{reason=~?"([^"]+)"', rule["expr"])]
            with self.subTest(condition["reason"]):
                self.assertTrue(rules)
                self.assertEqual(condition["runbook"], condition["alert"].lower())
                self.assertTrue(not asked or any(re.fullmatch(text, condition["reason"]) for text in asked), asked)
                self.assertEqual("critical" in {rule["labels"]["severity"] for rule in rules}, any(
                    other["severity"] == "failed" for other in conditions if other["alert"] == condition["alert"]))
        for alert in self.alerts:
            for text in re.findall(r'reason=~?"([^"]+)"', alert["expr"]):
                self.assertTrue(any(re.fullmatch(text, reason) for reason in reasons), f"{alert['alert']}: {text}")

    def seen(self, name: str, severity: str) -> set[str]:
        """How the cases see one alert: firing, quiet in a whole case, resolved after it fired."""
        seen = set()
        for _, test in self.cases:
            checks = [check for check in test.get("alert_rule_test", []) if check["alertname"] == name]
            fires = [any(alert["exp_labels"]["severity"] == severity for alert in check["exp_alerts"])
                     for check in sorted(checks, key=lambda check: minutes(check["eval_time"]))]
            if not fires:
                continue
            seen.add("firing" if any(fires) else "quiet")
            if any(before and not after for before, after in zip(fires, fires[1:])):
                seen.add("resolved")
        return seen

    def test_every_alert_is_seen_firing_quiet_and_resolved(self):
        for alert in self.alerts:
            with self.subTest(alert["alert"], severity=alert["labels"]["severity"]):
                self.assertEqual(self.seen(alert["alert"], alert["labels"]["severity"]), {"firing", "quiet", "resolved"})


if __name__ == "__main__":
    if not shutil.which("promtool"):
        print("skipped: promtool is not here (Debian: the package prometheus)")
        sys.exit(77)
    unittest.main(verbosity=2)
