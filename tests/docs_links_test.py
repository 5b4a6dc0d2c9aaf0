#!/usr/bin/env python3
"""What the documents name exists: links with their anchors, commands with their flags, units, configuration keys, metrics with their labels.

Prints how many of each it checked. The programs are those beside $GPUMETER_BINARY.
"""
import os
import re
import subprocess
import unittest
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
BINARY = Path(os.environ.get("GPUMETER_BINARY", ROOT / "build/release/gpumeter"))
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("packaging/*/README.md")])
WRITTEN = [page for page in PAGES if page.name not in ("metrics.md", "configuration.md", "conditions.md", "CHANGELOG.md")]

FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.M | re.S)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^()\s]+)\)|(?:src|href)=\"([^\"]+)\"")
PROGRAM = re.compile(r"^(?:[$#] )?(?:sudo )?(gpumeter(?:-[a-z-]+)?)(?: |$)(.*)$")
NO_SUBCOMMAND = re.compile(r"^(?:[$#] )?(?:sudo )?gpumeter [a-z]")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z.-]*")
DEV = re.compile(r"(?:^|[^\w/])\./dev ([a-z][a-z0-9-]*)")
MAN_PAGE = re.compile(r"\b(gpumeter[\w.-]*)\((\d)\)")
UNIT = re.compile(r"\bgpumeter[a-z-]*\.(?:service|socket|timer)\b")
INSTALLED = re.compile(r"/usr/share/gpumeter/((?:grafana|mixin|prometheus|integrations)(?:/[\w./-]*\w)?)")
KEY = re.compile(r"^([a-z_]+(?:\.[a-z_]+)+)(?::.*)?$")
FILE = re.compile(r"\.(?:ya?ml|md|sock|json|state|prom|conf|service|socket|timer|py|cpp|hpp|libsonnet|bad|copy|key|crt|pem|svg)$")
FAMILY = re.compile(r"(?<![\w:./-])((?:gpu|gpumeter|machine|ml|process)_[a-z0-9_]*[a-z0-9])(?![\w:*(/]|\.[a-z])(?:\{([^{}]*)\})?")
LABEL = re.compile(r"([a-z_][a-z0-9_]*)(?==|!=|,|$)")

OF_HISTOGRAMS = re.compile(r"_(bucket|sum|count)$")
# Of every device, of Prometheus' targets, of histograms.
COMMON_LABELS = {"gpu", "uuid", "vendor", "model", "job", "instance", "le"}
# Words of the kernel, Python, model servers and others' checks with the beginning of a metric's name.
NO_FAMILIES = {"gpu_busy_percent", "gpu_metrics", "gpu_stats", "gpu_cache_usage_perc", "gpu_seconds", "gpumeter_import", "gpu_count",
               "gpu_average_power_draw", "gpu_xid_46", "gpu_xid_48", "gpu_xid_154", "gpu_xid_warning"}
# A row of docs/health-checks.md: check, when it fails, conditions, why not.
CHECK_ROW = re.compile(r"^\| (?!check |---)([^|]+) \| [^|]+ \| ([^|]*)\| ([^|]*)\|$", re.M)
# Dashboards' uids and a group.
NO_PROGRAMS = {"gpumeter-fleet", "gpumeter-gpu", "gpumeter-jobs", "gpumeter-pages"}
SCRIPTS = {"gpumeter-prolog", "gpumeter-epilog", "gpumeter-task-prolog", "gpumeter-health", "gpumeter-job-cost", "gpumeter-npd",
           "gpumeter-generator", "gpumeter-import", "gpumeter-nccl-files"}
# A document that a program, a unit, a man page, an alert or a comment names, with an anchor or a quoted heading. /runbooks of a daemon is
# docs/runbooks.md.
NAMED_PAGE = re.compile(r'''(?:docs|doc/gpumeter|share/gpumeter|\}\}|:10478)/([a-z-]+\.md|runbooks(?=#))(?:#([\w-]+)|,? \\?"([A-Z][^"\\]+))?''')
SOURCES = ("base", "collectors", "config", "daemon", "exporter", "packaging", "programs", "systemd", "tests")


def fences(page: Path) -> list[tuple[str, str]]:
    return FENCE.findall(page.read_text())


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text())


def spans(page: Path) -> list[str]:
    return SPAN.findall(prose(page))


def code_lines(page: Path) -> Iterator[str]:
    """Each line of code, in the text or a block of it, without its comment; lines that end in a backslash are one."""
    yield from spans(page)
    for _, text in fences(page):
        for line in text.replace("\\\n", " ").splitlines():
            yield re.sub(r"(?:^| +)# .*$", "", line.strip())


def anchor_of(heading: str) -> str:
    """As GitHub makes it: words in lower case, joined by dashes, without punctuation."""
    words = re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


@cache
def anchors(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text())
    return {anchor_of(heading) for heading in re.findall(r"^#+ (.+)$", text, re.M)} | set(re.findall(r'<a id="(\w+)">', text))


def source_files() -> Iterator[Path]:
    for folder in SOURCES:
        for place, folders, names in os.walk(ROOT / folder):
            folders[:] = [each for each in folders if each not in ("node_modules", "__pycache__")]
            yield from (path for name in names if (path := Path(place, name)).is_file())


@cache
def help_of(*command: str) -> str:
    program = BINARY.parent / command[0]
    if not program.exists():
        return ""
    return subprocess.run([program, *command[1:], "--help"], capture_output=True, text=True, timeout=30).stdout


@cache
def subcommands() -> set[str]:
    return set(re.findall(r"^  ([a-z-]+) ", help_of("gpumeter").partition("Commands:")[2], re.M))


def named_commands(page: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each line that runs one of the programs, as (line, program and subcommand, flags)."""
    for line in code_lines(page):
        found = PROGRAM.match(line)
        if not found or found[1] in SCRIPTS | NO_PROGRAMS:
            continue
        first = found[2].split(" ")[0]
        command = [found[1], *([first] if first in subcommands() else [])]
        is_built = help_of(*command) or not list(ROOT.glob(f"packaging/man/{found[1]}.*"))
        if is_built:
            yield line, command, FLAG.findall(re.split(r" [|&;]|; ", found[2])[0])


@cache
def keys() -> dict[str, set[str]]:
    """By section, its keys, and the sections in it."""
    listed = subprocess.run([BINARY, "--print-config=markdown"], capture_output=True, text=True, check=True, timeout=30).stdout
    found: dict[str, set[str]] = {}
    for key in re.findall(r"^\| `([\w.<>*-]+)` ", listed, re.M):
        parts = key.split(".")
        for length in range(1, len(parts) + 1):
            found.setdefault(parts[0], set()).add(".".join(parts[:length]))
    return found


def flat(mapping: dict, prefix: str = "") -> Iterator[str]:
    for key, value in mapping.items():
        inner = isinstance(value, dict) and f"{prefix}{key}" in keys().get(f"{prefix}{key}".split(".")[0], ())
        yield f"{prefix}{key}"
        yield from flat(value, f"{prefix}{key}.") if inner else ()


def named_keys(page: Path) -> Iterator[str]:
    for span in spans(page):
        found = KEY.match(span)
        if found and found[1].split(".")[0] in keys() and not FILE.search(found[1]):
            yield found[1]
        elif re.match(r"^[a-z_]+: ?[{\[\w]", span) and span.split(":")[0] in keys():
            yield from of_yaml(span)
    for language, text in fences(page):
        if language == "yaml":
            yield from of_yaml(text)


def of_yaml(text: str) -> list[str]:
    """The keys of a configuration; none of another program's YAML."""
    try:
        read = yaml.safe_load(text)
    except yaml.YAMLError:
        return []
    return list(flat(read)) if isinstance(read, dict) and set(read) <= set(keys()) else []


@cache
def families() -> dict[str, set[str]]:
    """By family, its labels in docs/metrics.md."""
    rows = re.findall(r'^\| <a id="(\w+)"></a>.*? \| .*? \| (.*?) \| ', (ROOT / "docs/metrics.md").read_text(), re.M)
    return {name: set(re.findall(r"`([\w*]+)`", labels)) for name, labels in rows}


def family_of(name: str) -> str:
    """The family of a series: a histogram has three, and OpenMetrics gives counters a start."""
    return next((each for each in (name, OF_HISTOGRAMS.sub("", name), re.sub("_created$", "_total", name)) if each in families()), "")


class DocsLinksTest(unittest.TestCase):
    checked: Counter[str] = Counter()

    @classmethod
    def tearDownClass(cls) -> None:
        print("checked in", len(WRITTEN), "documents:", ", ".join(f"{number} {what}" for what, number in sorted(cls.checked.items())))

    def expect(self, what: str, wrong: list[str], checked: int, at_least: int) -> None:
        type(self).checked[what] += checked
        self.assertEqual(wrong, [], f"{what} that the documents name and that do not exist")
        self.assertGreaterEqual(checked, at_least, f"too few {what} were found: the test no longer reads the documents")

    def test_links_lead_to_files_and_anchors(self) -> None:
        wrong, checked = [], 0
        for page in PAGES:
            for target in (first or second for first, second in LINK.findall(prose(page))):
                if re.match(r"https?:|mailto:", target):
                    continue
                checked += 1
                name, _, anchor = target.partition("#")
                file = (page.parent / name).resolve() if name else page
                if not file.exists() or (anchor and (file.suffix != ".md" or anchor not in anchors(file))):
                    wrong.append(f"{page.relative_to(ROOT)}: {target}")
        self.expect("links", wrong, checked, 230)

    def test_pages_that_the_source_names_exist(self) -> None:
        wrong, checked = [], 0
        for file in source_files():
            for name, anchor, heading in NAMED_PAGE.findall(file.read_bytes().decode(errors="replace")):
                checked += 1
                page = ROOT / "docs" / {"index.md": "README.md", "runbooks": "runbooks.md"}.get(name, name)
                if not page.exists() or (anchor or heading) and anchor_of(anchor or heading) not in anchors(page):
                    wrong.append(f"{file.relative_to(ROOT)}: {name} {anchor or heading}")
        self.expect("pages in the source", wrong, checked, 150)

    def test_every_page_is_in_the_index(self) -> None:
        index = (ROOT / "docs/README.md").read_text()
        missing = [page.name for page in ROOT.glob("docs/*.md") if page.name != "README.md" and f"]({page.name})" not in index]
        self.expect("pages of the index", missing, len(list(ROOT.glob("docs/*.md"))) - 1, 20)

    def test_no_written_page_is_long(self) -> None:
        pages = [page for page in WRITTEN if page.parent == ROOT / "docs"]
        lengths = {page.name: page.read_text().count("\n") for page in pages}
        self.expect("pages of at most 400 lines", [name for name, lines in lengths.items() if lines > 400], len(pages), 20)
        self.assertLessEqual((ROOT / "README.md").read_text().count("\n"), 120)

    def test_programs_have_the_subcommands_and_flags(self) -> None:
        wrong, commands, flags = [], 0, 0
        for page in WRITTEN:
            for line, command, named in named_commands(page):
                text = help_of(*command)
                commands, flags = commands + 1, flags + len(named)
                wrong += [f"{page.name}: {line}"] if not text or NO_SUBCOMMAND.match(line) and len(command) == 1 else []
                wrong += [f"{page.name}: {line}: {flag}" for flag in named if not re.search(rf"{re.escape(flag)}(?![\w-])", text)]
        self.expect("commands", wrong, commands, 60)
        self.expect("flags", [], flags, 50)

    def test_commands_of_the_developers_script_exist(self) -> None:
        listed = set(re.findall(r"^\./dev ([a-z0-9-]+)", (ROOT / "dev").read_text(), re.M))
        named = [(page.name, name) for page in WRITTEN for name in DEV.findall("\n".join(code_lines(page)))]
        self.expect("commands of ./dev", [f"{page}: ./dev {name}" for page, name in named if name not in listed], len(named), 30)

    def test_units_manuals_and_installed_files_exist(self) -> None:
        units = [(page.name, unit) for page in WRITTEN for unit in UNIT.findall(page.read_text())]
        self.expect("units", [f"{page}: {unit}" for page, unit in units if not (ROOT / "systemd" / unit).exists()], len(units), 20)
        manuals = [(page.name, f"{name}.{part}") for page in WRITTEN for name, part in MAN_PAGE.findall(page.read_text())]
        gone = [f"{page}: {name}" for page, name in manuals if not (ROOT / f"packaging/man/{name}.scd").exists()]
        self.expect("man pages", gone, len(manuals), 5)
        files = [(page.name, path) for page in WRITTEN for path in INSTALLED.findall(page.read_text())]
        self.expect("installed files", [f"{page}: {path}" for page, path in files if not (ROOT / "packaging" / path).exists()], len(files), 10)

    def test_configuration_keys_exist(self) -> None:
        named = [(page.name, key) for page in WRITTEN for key in named_keys(page)]
        wrong = [f"{page}: {key}" for page, key in named if key not in keys()[key.split(".")[0]]]
        self.expect("configuration keys", wrong, len(named), 100)

    def test_each_check_of_others_has_conditions_that_exist_or_a_reason(self) -> None:
        conditions = (ROOT / "docs/conditions.md").read_text()
        reasons = set(re.findall(r"^\| `([a-z_]+)` \| (?:failed|degraded)", conditions, re.M))
        codes = {f"xid_{code}" for code in re.findall(r"^\| (\d+) \| \w+ \| (?:failed|degraded) ", conditions, re.M)}
        rows = CHECK_ROW.findall((ROOT / "docs/health-checks.md").read_text())
        named = [(check, each) for check, cell, _ in rows for each in SPAN.findall(cell)]
        self.expect("conditions of others' checks", [f"{check}: {each}" for check, each in named if each not in reasons | codes | {"xid_*"}], len(named), 45)
        mute = [check for check, cell, why in rows if not cell.strip() and not why.strip() and "not read" not in check and "not even" not in check]
        self.assertEqual(mute, ["two more checks of GPUs"], "a check without a condition or a reason")

    def test_families_exist_with_their_labels(self) -> None:
        wrong, names, labels = [], 0, 0
        for page in WRITTEN:
            for name, matchers in FAMILY.findall(page.read_text()):
                if name in NO_FAMILIES:
                    continue
                names += 1
                family = family_of(name)
                if not family:
                    wrong.append(f"{page.name}: {name}")
                    continue
                asked = LABEL.findall(re.sub(r'"[^"]*"', "", matchers).replace(" ", ""))
                labels += len(asked)
                wrong += [f"{page.name}: {name}{{{label}}}" for label in asked if label not in COMMON_LABELS | families()[family]]
        self.expect("families", wrong, names, 450)
        self.expect("labels", [], labels, 80)


if __name__ == "__main__":
    unittest.main(verbosity=2)
