#!/usr/bin/env python3
"""The rule files in packaging/prometheus are what the mixin renders (`./dev mixin` writes them), and a site can change the
mixin's configuration and combine it with others."""
import functools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
MIXIN, RULES = ROOT / "packaging/mixin", ROOT / "packaging/prometheus"


def run(*command: object) -> str:
    said = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120)
    assert said.returncode == 0, f"{command}\n{said.stdout}{said.stderr}"
    return said.stdout


@functools.cache
def mixin(more: str = "{}", field: str = "prometheusAlerts") -> dict:
    """A field of the mixin with `more` added to it, as a user's own file would do."""
    return json.loads(run("jsonnet", "-J", MIXIN, "-e", f"((import 'mixin.libsonnet') + {more}).{field}"))


def rules(of: dict) -> list[dict]:
    return [rule for group in of["groups"] for rule in group["rules"]]


class MixinTest(unittest.TestCase):
    def test_the_rule_files_are_rendered(self):
        with tempfile.TemporaryDirectory() as folder:
            run("jsonnet", "-S", "-m", folder, MIXIN / "render.jsonnet")
            rendered = {path.name: path.read_text() for path in Path(folder).iterdir()}
        self.assertEqual(sorted(rendered), ["alerts.yml", "dcgm-names-4.8.yml", "dcgm-names-4.9.yml", "jobs.yml", "rules.yml"])
        for name, text in rendered.items():
            self.assertEqual((RULES / name).read_text(), text, f"{name} is out of date: write it again with ./dev mixin")

    def test_the_limits_of_the_dashboards_are_rendered(self):
        written = (ROOT / "packaging/grafana/generator/src/limits.ts").read_text()
        self.assertEqual(written, run("jsonnet", "-S", MIXIN / "limits.jsonnet"), "limits.ts is out of date: ./dev mixin")

    def test_the_layout_changes_no_value(self):
        """The readable YAML is the same data as the mixin's fields, which other tools render themselves."""
        groups = [group for name in ("rules.yml", "jobs.yml") for group in yaml.safe_load((RULES / name).read_text())["groups"]]

        def plain(groups: list[dict]) -> list[dict]:
            return [{**group, "rules": [{**rule, "expr": rule["expr"].strip()} for rule in group["rules"]]} for group in groups]
        self.assertEqual(plain(groups), plain(mixin(field="prometheusRules")["groups"]))
        alerts = yaml.safe_load((RULES / "alerts.yml").read_text())["groups"]
        self.assertEqual(plain(alerts), plain(mixin()["groups"]))

    def test_no_threshold_is_a_series(self):
        for name in ("rules.yml", "jobs.yml", "alerts.yml"):
            self.assertNotIn("threshold:", (RULES / name).read_text())

    def test_every_value_of_the_configuration_is_used(self):
        config = json.loads(run("jsonnet", "-J", MIXIN, "-e", "(import 'mixin.libsonnet')._config"))
        sources = "".join(path.read_text() for folder in ("alerts", "lib", "rules") for path in (MIXIN / folder).glob("*.libsonnet"))
        self.assertEqual([key for key in config if key != "hold" and key not in sources], [])
        costs = (MIXIN / "rules/costs.libsonnet").read_text()
        self.assertEqual([key for key in config["cost"] if f"cost.{key}" not in costs], [])
        names = {rule["alert"] for rule in rules(mixin()) if "alert" in rule}
        self.assertEqual(set(config["hold"]) - names, {"GpumeterManyDown"})

    def test_no_price_is_made_up(self):
        sites = {"none": {}, "pue": {"pue": 1.2}, "factor": {"co2GramsPerKwh": 40}, "kwh": {"pricePerKwh": "tariff"}, "gpu": {"pricePerGpuHour": 2}}
        listed = ", ".join(f"{name}: ((import 'mixin.libsonnet') + {{ _config+:: {{ cost+: {json.dumps(cost)} }} }}).prometheusRules" for name, cost in sites.items())
        items = {site: {name: {rule.get("labels", {}).get("item") for rule in rules(of) if re.search(name, rule["record"])}
                        for name in ("kilowatt_hours", "co2", "_cost:", "gpu_price|gpu_held")}
                 for site, of in json.loads(run("jsonnet", "-J", MIXIN, "-e", f"{{ {listed} }}")).items()}
        self.assertEqual({site: list(found.values()) for site, found in items.items()}, {
            "none": [set(), set(), set(), set()], "pue": [{None}, set(), set(), set()], "factor": [{None}, {None}, set(), set()],
            "kwh": [{None}, set(), {None, "energy"}, set()], "gpu": [set(), set(), {None, "time"}, {None}]})

    def test_the_site_of_the_document_of_costs(self):
        site, = re.findall(r"```jsonnet\n(.+?)```", (ROOT / "docs/cost.md").read_text(), re.S)
        text = run("jsonnet", "-S", "-J", MIXIN, "-e", site.replace("(mixin)\n", "(mixin)['jobs.yml']\n"))
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            file.write(text)
            file.flush()
            run("promtool", "check", "rules", file.name)
        self.assertIn("* 1.3 / 1000", text)
        self.assertIn('gpu_info{model=~"NVIDIA A100.*"}) * 1.2', text)

    def test_a_site_changes_the_configuration(self):
        changed = mixin("""{ _config+:: {
          gpumeterSelector: 'job="gpus"', runbookURL: 'https://wiki.example.org/gpumeter', newFailure: '12h',
          thermalThrottlingRatio: 0.25, hold+: { GpuThermalThrottling: '10m' } } }""")
        text = json.dumps(changed)
        for old in ('job=\\"gpumeter\\"', "file:///", "86400", "count[1d]"):
            self.assertNotIn(old, text)
        thermal, = (rule for rule in rules(changed) if rule.get("alert") == "GpuThermalThrottling")
        self.assertEqual(thermal["for"], "10m")
        self.assertIn("> 0.25", thermal["expr"])
        self.assertIn("the alert's limit is 25%", thermal["annotations"]["description"])
        self.assertEqual(thermal["annotations"]["runbook_url"], "https://wiki.example.org/gpumeter#gputhermalthrottling")
        self.assertNotIn("(first .).Labels.instance", text, "a published page serves the alerts of daemons that are down too")
        self.assertIn("time() - 43200", text)
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            yaml.safe_dump(changed, file)
            run("promtool", "check", "rules", file.name)

    def test_it_adds_to_another_mixin(self):
        other = "{ prometheusAlerts+:: { groups+: [{ name: 'mine', rules: [] }] } }"
        self.assertEqual([group["name"] for group in mixin(other)["groups"]], ["gpumeter-health", "gpumeter-alerts", "mine"])

    def test_the_dashboards_are_those_of_the_generator(self):
        dashboards = mixin(field="grafanaDashboards")
        self.assertEqual(dashboards, {path.name: json.loads(path.read_text()) for path in (ROOT / "packaging/grafana").glob("*.json")})

    def test_the_formatting(self):
        run("jsonnetfmt", "--test", *MIXIN.rglob("*.libsonnet"), *MIXIN.rglob("*.jsonnet"))


if __name__ == "__main__":
    if not shutil.which("jsonnet") or not shutil.which("promtool"):
        print("skipped: there is no jsonnet or no promtool (packages jsonnet, prometheus)")
        sys.exit(77)
    unittest.main(verbosity=2)
