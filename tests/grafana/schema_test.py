#!/usr/bin/env python3
"""The dashboards are what Grafana's own types say: TypeScript checks the committed files against @grafana/schema, the newest that npm had,
also for fields that it does not know. The generator's library is older and looser."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from drift_test import COMPILER, FOLDER, GENERATOR, SKIPPED, shutil

SCHEMA = GENERATOR / "node_modules/@grafana/schema"
TYPES = SCHEMA / "dist/types"
# The folder of a panel's options, and their name there.
PANELS = {"stat": "stat", "table": "table", "timeseries": "timeseries", "heatmap": "heatmap", "state-timeline": "statetimeline"}
OF_PROMETHEUS = ("expr", "step", "titleFormat", "textFormat", "tagKeys", "useValueForTime")
# Literals of the file instead of the enumerations' members.
PLAIN = """
type Plain<T> = T extends string ? `${T}` : T extends number ? (`${T}` extends `${infer N extends number}` ? N : T) : T extends (infer U)[] ? Plain<U>[]
  : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
"""


def checked(statements: str) -> str:
    """What the compiler says; empty: nothing is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "check.ts").write_text(f"import type {{ Dashboard }} from '{TYPES}/raw/dashboard/x/types.gen';\n{PLAIN}{statements}")
        said = subprocess.run(["node", COMPILER, "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--moduleResolution", "bundler",
                               "--module", "es2022", "check.ts"], cwd=folder, capture_output=True, text=True, timeout=300)
    return said.stdout


def board_of(file: Path) -> dict:
    """Without the fields of annotations that belong to the Prometheus data source."""
    board = json.loads(file.read_text())
    for annotation in board["annotations"]["list"]:
        for field in OF_PROMETHEUS:
            annotation.pop(field, None)
    return board


def options_of(kind: str) -> str:
    return f"{TYPES}/raw/composable/{PANELS[kind]}/panelcfg/x/types.gen"


class SchemaTest(unittest.TestCase):
    def test_each_dashboard(self):
        for file in sorted(FOLDER.glob("*.json")):
            with self.subTest(file.name):
                self.assertEqual(checked(f"export const board: Plain<Dashboard> = {json.dumps(board_of(file))};"), "")

    def test_the_options_of_each_panel(self):
        kinds = {}
        for file in sorted(FOLDER.glob("*.json")):
            for panel in json.loads(file.read_text())["panels"]:
                if panel["type"] != "row":
                    kinds.setdefault(panel["type"], []).append(panel)
        self.assertEqual(sorted(kinds), sorted(PANELS))
        for kind, panels in kinds.items():
            with self.subTest(kind):
                options = json.dumps([panel["options"] for panel in panels])
                statements = f"import type {{ Options }} from '{options_of(kind)}';\nexport const options: Plain<Partial<Options>>[] = {options};"
                self.assertEqual(checked(statements), "")

    def test_a_wrong_field_is_found(self):
        board = board_of(FOLDER / "fleet.json")
        for change, said in (({"refrsh": "1m"}, "refrsh"), ({"panels": [{"type": 7}]}, "number"), ({"graphTooltip": 9}, "9")):
            self.assertIn(said, checked(f"export const board: Plain<Dashboard> = {json.dumps(board | change)};"))


if __name__ == "__main__":
    if not shutil.which("node") or not COMPILER.exists() or not SCHEMA.exists():
        print("skipped: the generator is not installed (./dev test does, where npm and its registry can be reached)")
        sys.exit(SKIPPED)
    unittest.main()
