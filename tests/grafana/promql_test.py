#!/usr/bin/env python3
"""Every expression of the dashboards is PromQL, and the daemon has every metric and label value in it.

promtool knows rule files only: each expression, its variables substituted, is made a recording rule.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "packaging/grafana/preview"), str(ROOT / "tests/prometheus")]
import dashboards  # noqa: E402
import job_catalogue  # noqa: E402
import live  # noqa: E402

BINARY = os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter"))
VARIABLES = {"__rate_interval": "1m", "__range": "1h", **dashboards.PLACES, "job": ".+", "instance": ".+", "gpu": ".+", "user": ".+", "run": ".+"}
OF_JOBS, WORDS = job_catalogue.series_names(), job_catalogue.label_values()
SELECTOR = re.compile(r"\b([a-z][a-z0-9_:]*)\{([^}]*)\}")
SKIPPED = 77
BOARDS = [dashboards.load(name) for name in dashboards.NAMES]
QUERIES = [(f"{board.name}: {panel.title}", target["expr"])
           for board in BOARDS for panel in board.panels for target in panel.targets]


def printed(*arguments: str) -> str:
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, check=True, timeout=60).stdout


class PromqlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = printed("--simulate=2", "--once", "--config.file=/dev/null")
        cls.catalogue = printed("--print-metrics=text")
        with tempfile.TemporaryDirectory() as folder:
            live.render_rules(folder, live.COST)
            cls.recorded = set(re.findall(r"- record: (\S+)", "".join(path.read_text() for path in Path(folder).glob("*s.yml"))))
        cls.states = {"ok", "unknown"} | set(re.findall(r'"severity":\s*"(\w+)"', printed("--print-conditions=json")))

    def test_every_expression_parses(self):
        rules = [{"record": f"dashboard:query:{number}", "expr": dashboards.substitute(expr, VARIABLES)}
                 for number, (_, expr) in enumerate(QUERIES)]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            json.dump({"groups": [{"name": "dashboards", "rules": rules}]}, file)  # JSON is YAML
            file.flush()
            said = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True, text=True, timeout=60)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertIn(f"{len(rules)} rules found", said.stdout)

    def test_no_variable_is_unknown(self):
        for where, expr in QUERIES:
            left = set(re.findall(r"\$\{?(\w+)", dashboards.substitute(expr, VARIABLES)))
            self.assertLessEqual(left, {"1"}, where)  # $1: what label_replace captured

    def test_every_metric_is_the_daemons(self):
        known = set(re.findall(r"^# TYPE (\S+)", self.page, re.M)) | set(re.findall(r"^(\S+)\t", self.catalogue, re.M)) | OF_JOBS | self.recorded
        used = {metric for _, expr in QUERIES for metric, _ in SELECTOR.findall(expr)}
        self.assertEqual(used - known, set())

    def test_every_label_value_is_the_daemons(self):
        for where, expr in QUERIES:
            for metric, matchers in SELECTOR.findall(expr):
                if metric in OF_JOBS:  # on a page only while there are jobs
                    self.assertLessEqual(set(re.findall(r'=\"([^\"]*)\"', matchers)), WORDS, f"{where}: {metric}")
                    continue
                if metric.startswith("gpu_health"):  # judged by the running daemon only
                    self.assertLessEqual(set(re.findall(r'=\"([^\"]*)\"', matchers)), self.states, f"{where}: {metric}")
                    continue
                for pair in re.findall(r'\w+="[^"]+"', matchers):
                    self.assertRegex(self.page, rf"(?m)^{metric}\{{.*{pair}.*\}}", f"{where}: {metric}{{{pair}}}")


if __name__ == "__main__":
    if not shutil.which("promtool") or not shutil.which("jsonnet"):
        print("skipped: there is no promtool or no jsonnet (packages prometheus, jsonnet)")
        sys.exit(SKIPPED)
    unittest.main()
