#!/usr/bin/env python3
"""The installed configuration is valid as it is, with every line uncommented and with every key alone. It shows
all keys of the binary with their defaults, and no others."""
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter"))
FILE = ROOT / "config/gpumeter.yaml"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=30)


def keys_in(text: str) -> dict[str, tuple[str, list[str]]]:
    """Path -> (value, the lines that set this key and nothing else). A line of prose has one space after its #."""
    keys, above = {}, []
    for line in re.findall(r"^#((?! \S).+)$", text, re.M):
        spaces, name, value = re.fullmatch(r"( *)(\w+): ?(.*)", line).groups()
        above = [*above[:len(spaces) // 2], line]
        if value:
            path = ".".join(entry.split(":")[0].strip() for entry in above)
            keys[path] = (value, list(above))
    return keys


def keys_of_binary() -> dict[str, str]:
    """Path -> default, of the tables that it prints."""
    rows = re.findall(r"^\| `([^`]+)` \| .*? \| `([^`]*)` \| (?:yes|no) \|", run("--print-config=markdown").stdout, re.M)
    return dict(rows)


class ConfigFileTest(unittest.TestCase):
    def setUp(self) -> None:
        self.text = FILE.read_text()
        self.keys = keys_in(self.text)

    def check(self, text: str) -> str:
        """The errors that --check-config prints."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            said = run("--check-config", f"--config.file={file.name}")
        self.assertEqual(said.returncode, 2 if said.stderr else 0)
        return said.stderr

    def test_as_it_is_installed(self) -> None:
        self.assertFalse([line for line in self.text.splitlines() if line and not line.startswith("#")])
        self.assertEqual(self.check(self.text), "")

    def test_every_line_uncommented(self) -> None:
        self.assertEqual(self.check(re.sub(r"^#(?! \S)", "", self.text, flags=re.M)), "")

    def test_each_key_alone(self) -> None:
        for path, (_, lines) in self.keys.items():
            self.assertEqual(self.check("\n".join(lines)), "", path)

    def test_a_wrong_value_is_not_accepted(self) -> None:
        self.assertIn("sampling.fast", self.check("sampling:\n  fast: often\n"))

    def test_has_every_key_with_its_default(self) -> None:
        shown = {path: value for path, (value, _) in self.keys.items()}
        self.assertEqual(shown, keys_of_binary())

    def test_the_line_that_opens_it_to_the_network(self) -> None:
        opened = re.findall(r"^# \S.*(listen: \[.*?\])", self.text, re.M)
        self.assertEqual(opened, ['listen: [":10478"]'])
        self.assertEqual(self.check(f"web:\n  {opened[0]}\n"), "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
