#!/usr/bin/env python3
"""gpumeter(8) and the completions of bash, zsh and fish have exactly the flags and commands of --help."""
import os
import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter"))
PACKAGING = ROOT / "packaging"


def flags_of_help() -> set[str]:
    """The left column, "--flag,--no-flag{false} VALUE"."""
    said = subprocess.run([BINARY, "--help"], capture_output=True, text=True, check=True, timeout=30).stdout
    columns = [line.split()[0] for line in said.splitlines() if line.startswith("  -")]
    return set(re.findall(r"--[a-z][a-z.-]*[a-z]", " ".join(columns)))


def commands_of_help() -> set[str]:
    said = subprocess.run([BINARY, "--help"], capture_output=True, text=True, check=True, timeout=30).stdout
    return {line.split()[0] for line in said.partition("\nCommands:\n")[2].splitlines() if re.match(r"  [a-z]", line)}


def offered_by_bash(*words: str) -> list[str]:
    """The completion function's proposals for the last of these words."""
    script = f"""
compopt() {{ :; }}
source "{PACKAGING}/completions/gpumeter.bash"
COMP_WORDS=({" ".join(words)} "${{LAST-}}")
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_gpumeter
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=30)
    assert not said.stderr, said.stderr
    return said.stdout.split()


class FlagsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.flags = flags_of_help()
        self.commands = commands_of_help()
        self.assertIn("--config.file", self.flags)

    def test_man_page(self) -> None:
        page = (PACKAGING / "man/gpumeter.8.scd").read_text()
        entries = " ".join(line for line in page.splitlines() if line.startswith(("*-", "\n*-")))
        self.assertEqual(set(re.findall(r"\*(--[a-z.-]+)\*", entries)), self.flags)

    def test_bash(self) -> None:
        offered = {flag.rstrip("=") for flag in offered_by_bash("gpumeter")}
        self.assertEqual({word for word in offered if word.startswith("-")}, self.flags)
        self.assertEqual({word for word in offered if not word.startswith("-")}, self.commands)
        self.assertFalse(self.commands & set(offered_by_bash("gpumeter", "--config.file", "=", "x")))

    def test_commands(self) -> None:
        self.assertTrue(self.commands)
        page = (PACKAGING / "man/gpumeter.8.scd").read_text()
        zsh, fish = (PACKAGING / "completions/_gpumeter").read_text(), (PACKAGING / "completions/gpumeter.fish").read_text()
        for command in self.commands:
            self.assertRegex(page, rf"(?m)^\*gpumeter {command}\*.*\n(?s:.*)\n\*{command}\*")
            self.assertIn(f"{command}\\:", zsh)
            self.assertIn(f"-a {command} ", fish)

    def test_bash_completes_values(self) -> None:
        self.assertEqual(offered_by_bash("gpumeter", "--log.level", "="), ["debug", "info", "warn", "error"])
        self.assertEqual(offered_by_bash("gpumeter", "--print-metrics"), ["markdown", "text"])

    def test_zsh(self) -> None:
        text = (PACKAGING / "completions/_gpumeter").read_text()
        self.assertEqual(set(re.findall(r"--[a-z][a-z.-]*[a-z](?==?-?\[|\}'\[)", text)), self.flags)

    def test_fish(self) -> None:
        text = (PACKAGING / "completions/gpumeter.fish").read_text()
        self.assertEqual({f"--{name}" for name in re.findall(r" -l (\S+)", text)}, self.flags)


class CompanionFlagsTest(unittest.TestCase):
    """The same for the other programs."""

    def test_man_pages_and_completions(self) -> None:
        for program, words in (("benchmark", ""), ("import", "words"), ("top", "flags")):
            with self.subTest(program=program):
                self.check(f"gpumeter-{program}", words and f"_gpumeter_{program}_{words}")

    def check(self, program: str, words: str) -> None:
        path = str(Path(BINARY).with_name(program))
        said = subprocess.run([path, "--help"], capture_output=True, text=True, check=True, timeout=30).stdout
        flags = set(re.findall(r"--[a-z][a-z-]+", " ".join(line.split("  ")[1] for line in said.splitlines() if line.startswith("  -"))))
        self.assertIn("--version", flags)
        page = (PACKAGING / f"man/{program}.1.scd").read_text()
        entries = " ".join(line for line in page.splitlines() if line.startswith("*-"))
        self.assertEqual(set(re.findall(r"\*(--[a-z][a-z-]+)\*", entries)), flags)
        bash = re.search(r'-W "(--[^"]+)"', (PACKAGING / f"completions/{program}.bash").read_text())
        self.assertEqual(set(bash[1].split()) if bash else set(), flags)
        if words:  # a command of gpumeter too
            found = re.search(rf'{words}="([^"]+)"', (PACKAGING / "completions/gpumeter.bash").read_text())
            self.assertEqual({word.rstrip("=") for word in found[1].split() if word.startswith("-")} if found else set(), flags)
        zsh = (PACKAGING / f"completions/_{program}").read_text()
        self.assertEqual(set(re.findall(r"--[a-z][a-z-]+(?==?-?\[|\}'\[)", zsh)), flags)
        fish = (PACKAGING / f"completions/{program}.fish").read_text()
        self.assertEqual({f"--{name}" for name in re.findall(r" -l (\S+)", fish)}, flags)

    def test_formats(self) -> None:
        said = subprocess.run([Path(BINARY).with_name("gpumeter-import"), "--help"], capture_output=True, text=True, check=True, timeout=30).stdout
        formats = {line.split()[0] for line in said.partition("\nFormats:\n")[2].splitlines() if line.startswith("  ")}
        self.assertIn("clpeak", formats)
        page = (PACKAGING / "man/gpumeter-import.1.scd").read_text().partition("# FORMATS")[2].partition("# FLAGS")[0]
        self.assertEqual(set(re.findall(r"(?m)^\*([a-z-]+)\*$", page)), formats)
        for name in ("gpumeter.bash", "gpumeter-import.bash", "_gpumeter-import", "gpumeter.fish", "gpumeter-import.fish"):
            text = (PACKAGING / "completions" / name).read_text()
            self.assertEqual({form for form in formats if not re.search(rf"(?<![\w-]){form}(?![\w-])", text)}, set(), name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
