#!/usr/bin/env python3
"""The generated pages are up to date with the binary. Their metrics are those of the catalogue and of real pages: of captured
cards, and of a daemon with processes and jobs."""
import difflib
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "packaging/python")]
from harness import wait_until  # noqa: E402
from jobs import RECORDED, Folder  # noqa: E402

BINARY = os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter"))
PAGES = {"docs/metrics.md": "--print-metrics=markdown", "docs/configuration.md": "--print-config=markdown",
         "docs/conditions.md": "--print-conditions=markdown", "docs/events.md": "--print-events=markdown",
         "docs/otlp.md": "--print-otlp=markdown"}
TYPE_LINE = re.compile(r"^# TYPE (\w+) (\w+)$", re.M)
SERIES = re.compile(r"^(\w+)\{(.*)\} ", re.M)
# Families that the page below must have at least, so that the test is not empty.
OF_USERS = {"gpu_workload_memory_used_bytes", "gpu_workload_busy_seconds_total", "gpu_workload_energy_joules_total",
            "gpu_workload_share_ratio", "gpu_workload_info", "gpu_process_memory_used_bytes", "gpu_process_busy_seconds_total",
            "ml_steps_total", "ml_run_gpu_info", "ml_energy_joules_total", "gpumeter_jobs_dropped_total"}


# What an operator reads in trouble or is promised: it must be on the page that the daemon serves by default, unless the line
# says that the full one is needed.
FULL = re.compile(r"full page|metrics\.detail: full")
READ_BY_OPERATORS = ("README.md", "docs/runbooks.md", "docs/alerts.md", "docs/troubleshooting.md", "packaging/prometheus/rules.yml", "packaging/prometheus/jobs.yml",
                     "packaging/prometheus/alerts.yml", "packaging/grafana/fleet.json", "packaging/grafana/gpu.json", "packaging/grafana/jobs.json")
NAMED = re.compile(r"(?<![\w:])((?:gpu|gpumeter|ml)_[a-z0-9_]+)(?![\w:*])(?:\{([^}]*)\})?")
OF_HISTOGRAMS = re.compile(r"_(bucket|sum|count|created)$")
# Only if the configuration asks for each link; all others also of the links that have something to say.
BY_LINK = ("gpu_link_received", "gpu_link_transmitted")
SIZE = re.compile(r"\d+ files, [\d.]+ k lines")  # changes with each commit
OF_SERIES = {"gpu", "uuid", "vendor", "model", "le"}  # of every device, and of Prometheus' histograms
NO_METRICS = {"gpu_busy_percent"}  # a file of amdgpu


def printed(flag: str) -> str:
    return subprocess.run([BINARY, flag], capture_output=True, text=True, check=True, timeout=30).stdout


def documented() -> dict[str, str]:
    """Type by family, as docs/metrics.md has them."""
    return {name: row[0].split(",")[0] for name, row in rows_of_families().items()}


def rows_of_families() -> dict[str, list[str]]:
    """By family, its cells in docs/metrics.md: type, labels, meaning."""
    text = (ROOT / "docs/metrics.md").read_text()
    return {name: cells.split(" | ") for name, cells in re.findall(r'^\| <a id="(\w+)"></a>`\1` \| (.*) \|$', text, re.M)}


def labels_of_families() -> dict[str, set[str]]:
    return {name: set(re.findall(r"`([\w*]+)`", row[1])) | OF_SERIES for name, row in rows_of_families().items()}


def standard_parts() -> dict[str, str]:
    """By family, its part of the standard page as docs/metrics.md has it; empty: all of it."""
    return {name: (re.findall(r"Standard page: (.+)\.$", row[2]) or [""])[0] for name, row in rows_of_families().items()}


def why_missing(name: str, matchers: str, parts: dict[str, str]) -> str:
    """Why a name of a metric with its matchers selects nothing on the standard page; empty: it does."""
    family = name if name in parts else OF_HISTOGRAMS.sub("", name)
    if family not in parts:
        return "there is no such metric"
    if family.startswith(BY_LINK):
        return "it is on the page on request only"
    part = parts[family]
    if part == "none":
        return "it is on the full page only"
    only = re.fullmatch(r'`(\w+)="(\w+)"`', part)
    wanted = dict(re.findall(r"""(\w+)=~?["']([^"']+)["']""", matchers.replace("\\", "")))
    return f"only {part} is on the page" if only and wanted.get(only[1]) != only[2] else ""


def catalogued() -> dict[str, str]:
    """Of the two catalogues, and of parts that declare their own."""
    text = "".join(path.read_text() for path in (ROOT / "collectors").rglob("*.[ch]pp"))
    return {name: kind for kind, name in re.findall(r'=\s+(?:catalog::)?(gauge|counter|histogram)\(\s*"(\w+)"', text)}


def busy_page() -> str:
    """The page of a simulated GPU with this process on it, which sends every kind of message."""
    config = f'workloads: {{processes: true}}\ncollectors: {{simulated: {{processes: ["0={os.getpid()},busy=0.5,memory=1GiB"]}}}}\n'
    with Folder(config) as folder, folder.daemon() as daemon:
        folder.send(*RECORDED.read_text().splitlines(), "ml.steps:1|c|#run:docs")

        def page() -> str:
            text = daemon.fetch("/metrics").text
            return text if OF_USERS <= {name for name, _ in TYPE_LINE.findall(text)} else ""
        return wait_until(page, f"a page with {sorted(OF_USERS)}", 60, every=0.5)


# A program of ctest's, or a suite of the unit tests.
NAMED_TEST = re.compile(r"`((?:e2e|package|jobs|held|slurm|docs|fuzz_corpora)_\w+|[A-Z]\w+\.\*)`")


def programs_of_ctest() -> set[str]:
    said = subprocess.run(["ctest", "--show-only=json-v1"], cwd=Path(BINARY).parent, capture_output=True, text=True, check=True, timeout=60)
    return {test["name"] for test in json.loads(said.stdout)["tests"]}


def suites_of_unit_tests() -> set[str]:
    """By the sources: ctest lists them only if they are built."""
    texts = "".join(path.read_text() for path in (ROOT / "tests/unit").rglob("*_test.cpp"))
    corpora = {f"fuzz_corpora_{folder.name}" for folder in (ROOT / "tests/fuzz/corpus").iterdir()}
    return {f"{suite}.*" for suite in re.findall(r"^TEST(?:_F|_P)?\((\w+),", texts, re.M)} | corpora


class DocsTest(unittest.TestCase):
    def test_the_tests_that_the_threat_model_names_exist(self) -> None:
        text = (ROOT / "SECURITY.md").read_text()
        named = set(NAMED_TEST.findall(text))
        self.assertGreater(len(named), 60)
        self.assertEqual(sorted(named - programs_of_ctest() - suites_of_unit_tests()), [])
        entries = [line for line in text.split("| entry ", 1)[1].split("\n\n")[0].splitlines()[2:]]
        self.assertEqual([line for line in entries if not NAMED_TEST.search(line.rsplit("|", 2)[1])], [], "an entry without a test")

    def test_pages_are_what_the_binary_prints(self) -> None:
        for page, flag in PAGES.items():
            written, now = (ROOT / page).read_text(), printed(flag)
            diff = difflib.unified_diff(written.splitlines(), now.splitlines(), page, f"gpumeter {flag}", lineterm="")
            self.assertTrue(now)
            self.assertEqual(written, now, f"{page} is out of date; write it with ./dev docs\n" + "\n".join(list(diff)[:40]))

    def test_the_picture_of_the_house_shows_these_includes(self) -> None:
        drawn = subprocess.run([sys.executable, "-B", ROOT / "docs/house.py"], capture_output=True, text=True, check=True, timeout=30).stdout
        self.assertGreater(drawn.count("<rect"), 30)
        self.assertEqual(SIZE.sub("", (ROOT / "docs/house.svg").read_text()), SIZE.sub("", drawn), "draw it with ./dev docs")

    def test_the_documented_families_are_the_catalogue(self) -> None:
        """An undocumented family of the catalogue has no row, so it would never have a value."""
        self.assertEqual(documented(), catalogued())

    def test_what_operators_read_is_on_the_standard_page(self) -> None:
        parts, missing, named = standard_parts(), [], 0
        for file in READ_BY_OPERATORS:
            said = [line for line in (ROOT / file).read_text().splitlines() if not FULL.search(line)]
            for name, matchers in NAMED.findall("\n".join(said)):
                if name not in NO_METRICS:
                    named += 1
                    why = why_missing(name, matchers, parts)
                    missing += [f"{file}: {name}{{{matchers}}}: {why}"] if why else []
        self.assertGreater(named, 500)
        self.assertEqual(sorted(set(missing)), [])

    def expect_documented(self, page: str, name: str) -> None:
        known, labels = documented(), labels_of_families()
        self.assertEqual([(family, kind) for family, kind in TYPE_LINE.findall(page) if known.get(family) != kind], [], name)
        has = {(OF_HISTOGRAMS.sub("", family), label) for family, pairs in SERIES.findall(page) for label in re.findall(r'(\w+)="', pairs)}
        self.assertEqual(sorted((family, label) for family, label in has if label not in labels[family]), [], f"{name}: a row of labels.hpp is missing")

    def test_every_family_of_a_captured_card_is_documented_with_its_labels(self) -> None:
        pages = sorted((ROOT / "tests/golden").rglob("*.prom"))
        self.assertGreater(len(pages), 10)
        for page in pages:
            self.expect_documented(page.read_text(), page.name)

    def test_every_family_of_a_page_with_processes_and_jobs_is_documented_with_its_labels(self) -> None:
        page = busy_page()
        self.assertGreater(len(TYPE_LINE.findall(page)), 80)
        self.expect_documented(page, "the busy page")


if __name__ == "__main__":
    unittest.main(verbosity=2)
