#!/usr/bin/env python3
"""The rules of Grafana's dashboard-linter, and some rules of this project.

The linter itself needs a newer Go than Debian 12 has; its rules are written down here, one test each.
"""
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "packaging/grafana/preview"))
import dashboards  # noqa: E402

BOARDS = [dashboards.load(name) for name in dashboards.NAMES]
PANELS = [(board.name, panel) for board in BOARDS for panel in board.panels]
QUERIES = [(f"{name}: {panel.title}", target["expr"]) for name, panel in PANELS for target in panel.targets]
COLUMNS = 24
FIRST_SCREEN = 21  # lines of 38 pixels, of a screen of 1080 without the browser's and Grafana's bars
CHOSEN = {"fleet": ("gpu",), "gpu": ("gpu",), "jobs": ("user", "run")}  # by variables, in addition to job and instance

HOST = 'job=~"$job", instance=~"$instance", $cluster_label=~"$cluster", $rack_label=~"$rack"'
METRIC = r"[a-z][a-z0-9_:]*"
SELECTOR = re.compile(rf"\b({METRIC})\{{([^}}]*)\}}")
FAMILY = re.compile(r"(?<!:)\b(?:gpu|gpumeter|ml|process)_[a-z0-9_]+\b(?!\s*=|:)")  # a metric; label names have no such prefix
COUNTED = re.compile(rf"\b(?:rate|irate|increase)\({METRIC}_total\{{[^}}]*\}}\[\$__(?:rate_interval\]|range\] @ end\(\))\)")
COUNTER = re.compile(rf"\b{METRIC}_total\{{")
TOTALS = ("fleet: Every GPU",)  # a column counts the uncorrected errors since the driver was loaded
BASE_UNITS = {"percentunit", "joule", "watt", "celsius", "bytes", "Bps", "flops", "hertz", "s", "volt", "short", "rotrpm", "string"}
OTHER_UNITS = {"dateTimeFromNow": ("Driver errors, last seen", "Every run", "Measured rates")}  # a time of day; it has no base unit
UNIT_OF = {"_ratio": {"percentunit"}, "_watts": {"watt", "percentunit"}, "_joules_total": {"watt", "percentunit", "joule"},
           "_celsius": {"celsius"}, "_bytes": {"bytes", "percentunit"}, "_bytes_total": {"Bps"}, "_bytes_per_second": {"Bps"}, "_hertz": {"hertz"},
           "_volts": {"volt"}, "_rpm": {"rotrpm"}, "_duration_seconds": {"s"}}


def units_of(panel: dashboards.Panel) -> list[tuple[str, str]]:
    """Each expression with the unit that its values are shown in."""
    if panel.kind != "table":
        return [(target["expr"], panel.field(target["refId"])["unit"]) for target in panel.targets]
    names = next(step["options"]["renameByName"] for step in panel.model["transformations"] if step["id"] == "organize")
    return [(target["expr"], panel.field(name=names[f"Value #{target['refId']}"])["unit"]) for target in panel.targets
            if f"Value #{target['refId']}" in names]


class VariableRules(unittest.TestCase):
    def test_the_data_source_is_a_variable(self):
        for board in BOARDS:
            source = board.variables["datasource"]
            self.assertEqual((source["type"], source["query"], source["label"]), ("datasource", "prometheus", "Data Source"))

    def test_the_variables_and_their_order(self):
        for board in BOARDS:
            self.assertEqual(list(board.variables), ["datasource", "job", "cluster", "rack", "instance", *CHOSEN[board.name],
                                                     "cluster_label", "rack_label"])

    def test_choices_are_asked_of_the_chosen_data_source(self):
        for board in BOARDS:
            for name in ("job", "instance", *CHOSEN[board.name]):
                choice = board.variables[name]
                self.assertEqual((choice["type"], choice["label"], choice["allValue"]), ("query", name, ".+"))
                self.assertEqual(choice["datasource"], {"type": "prometheus", "uid": "$datasource"})
                self.assertEqual(choice["refresh"], 2, "2: when the time range changes")

    def test_several_jobs_and_instances_can_be_chosen(self):
        for board in BOARDS:
            self.assertEqual([board.variables[name]["multi"] for name in ("job", "instance")], [True, True])

    def test_one_gpu_or_all(self):
        offers = {board.name: {(board.variables[name]["multi"], board.variables[name]["includeAll"]) for name in CHOSEN[board.name]}
                  for board in BOARDS}
        self.assertEqual(offers, {"fleet": {(True, True)}, "gpu": {(False, False)}, "jobs": {(True, True)}})

    def test_choices_depend_on_those_before(self):
        host = 'job=~"$job", instance=~"$instance"'
        chosen = {"gpu": [f"label_values(gpu_up{{{host}}}, gpu)"],
                  "jobs": [f"label_values(ml_run_time_seconds{{{host}}}, user)",
                           f'label_values(ml_run_time_seconds{{{host}, user=~"$user"}}, run)']}
        for board in BOARDS:
            names = ("job", "cluster", "rack", "instance", *CHOSEN[board.name])
            self.assertEqual([board.variables[name]["query"]["query"] for name in names], [
                "label_values(gpu_up, job)", 'label_values(gpu_up{job=~"$job"}, $cluster_label)',
                'label_values(gpu_up{job=~"$job", $cluster_label=~"$cluster"}, $rack_label)',
                'label_values(gpu_up{job=~"$job", $cluster_label=~"$cluster", $rack_label=~"$rack"}, instance)',
                *chosen.get(board.name, chosen["gpu"])])

    def test_clusters_and_racks_are_labels_that_a_fleet_names_and_may_lack(self):
        for board in BOARDS:
            for name in ("cluster", "rack"):
                choice, label = board.variables[name], board.variables[f"{name}_label"]
                self.assertEqual((choice["allValue"], choice["includeAll"], choice["multi"]), (".*", True, True))
                self.assertEqual((label["type"], label["query"], label["current"]["value"]), ("textbox", name, name))


class PanelRules(unittest.TestCase):
    def test_no_dashboard_is_editable(self):
        self.assertEqual([board.model["editable"] for board in BOARDS], [False] * len(BOARDS))

    def test_uids_and_ids_are_there_and_differ(self):
        self.assertEqual([board.model["uid"] for board in BOARDS], ["gpumeter-fleet", "gpumeter-gpu", "gpumeter-jobs"])
        for board in BOARDS:
            self.assertEqual([panel["id"] for panel in board.model["panels"]], list(range(1, len(board.model["panels"]) + 1)))

    def test_every_panel_has_title_description_and_queries(self):
        for name, panel in PANELS:
            with self.subTest(dashboard=name, panel=panel.title):
                self.assertTrue(panel.title)
                self.assertRegex(panel.model["description"], r"^[A-Z].*\.$")
                self.assertTrue(panel.targets)

    def test_titles_differ(self):
        for board in BOARDS:
            titles = [panel.title for panel in board.panels]
            self.assertEqual(sorted(titles), sorted(set(titles)))

    def test_every_panel_and_query_takes_the_data_source(self):
        for name, panel in PANELS:
            for asks in (panel.model, *panel.targets):
                self.assertEqual(asks["datasource"], {"type": "prometheus", "uid": "${datasource}"}, f"{name}: {panel.title}")

    def test_only_kinds_that_grafana_still_has(self):
        self.assertEqual({panel.kind for _, panel in PANELS}, {"timeseries", "stat", "table", "state-timeline", "heatmap"})

    def test_units_are_base_units(self):
        for name, panel in PANELS:
            for expr, unit in units_of(panel):
                with self.subTest(dashboard=name, panel=panel.title, expr=expr):
                    self.assertTrue(unit in BASE_UNITS or panel.title in OTHER_UNITS.get(unit, ()), unit)

    def test_units_are_those_of_the_metrics(self):
        for name, panel in PANELS:
            for expr, unit in units_of(panel):
                metric = SELECTOR.search(expr)[1]
                for ending, fitting in UNIT_OF.items():
                    if metric.endswith(ending):
                        self.assertIn(unit, fitting, f"{name}: {panel.title}: {metric}")

    def test_no_axis_inherits_the_range_of_another_unit(self):
        for name, panel in PANELS:
            for target in panel.targets if panel.kind == "timeseries" else []:
                field = panel.field(target["refId"])
                if field["unit"] != panel.field()["unit"]:
                    self.assertNotIn("max", field, f"{name}: {panel.title}")

    def test_panels_fill_the_width_and_do_not_overlap(self):
        for board in BOARDS:
            taken: set[tuple[int, int]] = set()
            for panel in board.model["panels"]:
                place = panel["gridPos"]
                cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
                self.assertFalse(cells & taken, f"{board.name}: {panel['title']}")
                taken |= cells
            lines = max(y for _, y in taken) + 1
            self.assertEqual(taken, {(x, y) for x in range(COLUMNS) for y in range(lines)}, f"{board.name} has holes")

    def test_plots_are_on_the_first_screen(self):
        for board in BOARDS:
            first = min((panel["gridPos"] for panel in board.model["panels"] if panel["type"] == "timeseries"), key=lambda place: place["y"])
            self.assertLessEqual(first["y"] + first["h"], FIRST_SCREEN, board.name)

    def test_every_panel_leads_on(self):
        """By a link on its values or, in a table, on a column."""
        for name, panel in PANELS:
            links = panel.field().get("links", [])
            for override in panel.model["fieldConfig"]["overrides"]:
                links = links + [link for option in override["properties"] if option["id"] == "links" for link in option["value"]]
            with self.subTest(dashboard=name, panel=panel.title):
                self.assertTrue(links)
                for link in links:
                    self.assertRegex(link["url"], r"^/d/(gpumeter-fleet|gpumeter-gpu|gpumeter-jobs)\?\$\{datasource:queryparam\}&.*&\$\{__url_time_range\}$")

    def test_alerts_are_marked(self):
        for board in BOARDS:
            marks = [mark for mark in board.model["annotations"]["list"] if not mark.get("builtIn")]
            if board.name == "jobs":
                self.assertEqual(marks.pop()["name"], "Profiles")
            self.assertEqual([mark["name"] for mark in marks], ["critical alerts", "warning alerts"])
            for mark in marks:
                self.assertTrue(mark["expr"].startswith('ALERTS{alertname=~"Gpu.*", alertstate="firing"'))
                self.assertEqual('gpu=~"$gpu|"' in mark["expr"], board.name == "gpu")

    def test_legends_of_many_series_are_sorted(self):
        for name, panel in PANELS:
            legend = panel.model["options"].get("legend", {})
            if legend.get("placement") == "right":
                self.assertIn((legend["calcs"], legend["sortBy"], legend["sortDesc"]),
                              [(["max"], "Max", True), (["min"], "Min", False)], f"{name}: {panel.title}")

    def test_no_panel_of_the_fleet_has_a_line_for_every_gpu(self):
        summed = re.compile(r"(topk|bottomk|quantile)\(|(sum|max|min)( by \((job, )?instance(, \w+)*\) |)\(")
        for panel in next(board for board in BOARDS if board.name == "fleet").panels:
            for target in panel.targets if panel.kind in ("timeseries", "state-timeline") else []:
                self.assertTrue(summed.match(target["expr"]) or re.search(r" and (topk|bottomk)\(10, ", target["expr"]), f"{panel.title}: {target['expr']}")


class ProvisioningRules(unittest.TestCase):
    """Where Grafana looks is where the package installs."""

    def test_the_folder_is_that_of_the_package(self):
        build = (dashboards.FOLDER.parent.parent / "CMakeLists.txt").read_text()
        provider = (dashboards.FOLDER / "provisioning/dashboards/gpumeter.yaml").read_text()
        self.assertIn("path: /usr/share/gpumeter/grafana\n", provider)
        for installed in ("install(FILES ${dashboards}", "install(DIRECTORY packaging/grafana/provisioning"):
            self.assertIn(installed + " DESTINATION ${CMAKE_INSTALL_DATADIR}/gpumeter/grafana)", build)

    def test_the_data_source_is_a_prometheus(self):
        source = (dashboards.FOLDER / "provisioning/datasources/gpumeter.yaml").read_text()
        self.assertRegex(source, r"(?m)^    type: prometheus$")


class QueryRules(unittest.TestCase):
    def test_every_metric_is_selected_by_job_and_instance(self):
        for where, expr in QUERIES:
            with self.subTest(where):
                selectors = SELECTOR.findall(expr)
                self.assertTrue(selectors)
                self.assertEqual([m for m in FAMILY.findall(expr) if m + "{" not in expr], [], "without braces")
                for metric, matchers in selectors:
                    self.assertTrue(matchers.startswith(HOST), f"{metric}{{{matchers}}}")

    def test_every_metric_is_selected_by_what_is_chosen(self):
        """Devices by `gpu`; runs by `user` and `run`, where there is no GPU to choose."""
        for where, expr in QUERIES:
            of_jobs = where.startswith("jobs: ")
            for metric, matchers in SELECTOR.findall(expr):
                of_device = metric.startswith(("gpu_", "gpu:", "ml_run_gpu_info")) and not of_jobs
                self.assertEqual('gpu=~"$gpu"' in matchers, of_device, f"{where}: {metric}")
                self.assertEqual('user=~"$user", run=~"$run"' in matchers, bool(re.match("(run_kind:)?ml_", metric)) and not of_device, f"{where}: {metric}")

    def test_counters_stand_in_a_rate(self):
        for where, expr in QUERIES:
            if where not in TOTALS:
                self.assertEqual(len(COUNTER.findall(expr)), len(COUNTED.findall(expr)), f"{where}: {expr}")

    def test_ranges_are_the_rate_interval(self):
        for where, expr in QUERIES:
            self.assertEqual(set(re.findall(r"\}\[([^\]]*)\]", expr)) - {"$__rate_interval", "$__range", "$__range:1m"}, set(), where)

    def test_names_that_a_legend_shows_are_labels_of_the_series(self):
        for name, panel in PANELS:
            for target in panel.targets:
                kept = re.match(r"(?:max|min|sum) by \(([^)]*)\)", target["expr"])
                shown = set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")))
                if kept:
                    self.assertLessEqual(shown, set(kept[1].split(", ")), f"{name}: {panel.title}")


if __name__ == "__main__":
    unittest.main()
