#!/usr/bin/env python3
"""The committed dashboards are the generator's output. `./dev dashboards` writes them."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "packaging/grafana"
GENERATOR = FOLDER / "generator"
COMPILER = GENERATOR / "node_modules/typescript/bin/tsc"
SKIPPED = 77


class DriftTest(unittest.TestCase):
    def test_the_generator_writes_what_is_committed(self):
        with tempfile.TemporaryDirectory() as folder:
            built, written = Path(folder, "built"), Path(folder, "written")
            written.mkdir()
            self.run_node(COMPILER, "--project", GENERATOR, "--outDir", built)
            (built / "node_modules").symlink_to(GENERATOR / "node_modules")
            self.run_node(built / "main.js", written)
            made = {file.name: file.read_text() for file in written.iterdir()}
        committed = {file.name: file.read_text() for file in FOLDER.glob("*.json")}
        self.assertEqual(sorted(made), sorted(committed))
        for name in committed:
            self.assertEqual(made[name], committed[name], f"{name} is out of date: write it anew with ./dev dashboards")

    def run_node(self, *arguments: object) -> None:
        said = subprocess.run(["node", *map(str, arguments)], capture_output=True, text=True, timeout=120)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)

    def test_the_lock_file_names_no_server(self):
        # An installation uses the machine's registry; the hashes prove that the package is the same.
        lock = (GENERATOR / "package-lock.json").read_text()
        self.assertNotIn('"resolved"', lock)
        self.assertNotIn("://", lock)


if __name__ == "__main__":
    if not shutil.which("node") or not COMPILER.exists():
        print("skipped: the generator is not installed (./dev test does, where npm and its registry can be reached)")
        sys.exit(SKIPPED)
    unittest.main()
