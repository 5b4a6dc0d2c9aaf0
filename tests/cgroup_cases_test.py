#!/usr/bin/env python3
"""Texts of /proc/PID/cgroup from other projects' tests, with the result that the parser must return.

The cases are $GPUMETER_CAPTURES/cgroup/cases.jsonl (default ../shared/captures): a name, the text and `expect`, all
of whose keys are compared. What it does not name must not be claimed either, where a claim would bill somebody. The
parser is in GPUMETER_CGROUP_PARSE, a program that reads texts and prints `key=value`.
"""
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CASES = Path(os.environ.get("GPUMETER_CAPTURES") or ROOT.parent / "shared/captures").resolve() / "cgroup/cases.jsonl"
SKIPPED = 77
# Their kinds in the words of this project's label `kind`; "unknown" is a group, "root" is none.
KINDS = {"kubernetes": "pod", "slurm": "slurm_job", "lxc": "container", "container_monitor": "other", "unknown": "other",
         "root": "unattributed"}
BILLED = {"container_id": ("container_id", "container_name"), "pod_uid": ("pod_uid",), "slurm_job": ("slurm_job",),
          "slurm_sluid": ("slurm_sluid",)}
Said = dict[str, str]


def parsed(texts: list[str]) -> list[Said]:
    program = os.environ["GPUMETER_CGROUP_PARSE"]
    out = subprocess.run([program], input="".join(f"{text}\0" for text in texts).encode(), stdout=subprocess.PIPE,
                         check=True, timeout=60).stdout.decode()
    return [dict(line.split("=", 1) for line in block.splitlines()) for block in out.split("\n\n")[:-1]]


def in_their_words(key: str, said: Said) -> str:
    """Our value for one of their keys."""
    if key == "runtime":  # a container of a pod by its bare id: they call its runtime by the folder
        return said.get("container_runtime", "kubepods" if said.get("pod_uid") else "")
    if key == "session":
        return said.get("unit", "").removeprefix("session-").removesuffix(".scope")
    if key == "flatpak_app":
        return said.get("workload", "").rpartition("/")[2].removeprefix("app-flatpak-")
    if key == "machine":
        return said.get("machine", "").replace("\\x2d", "-")
    return said.get({"container_name": "container_id"}.get(key, key), "")


def differences(expect: dict[str, Any], said: Said) -> list[str]:
    wanted = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in expect.items()}
    wanted["kind"] = KINDS.get(wanted["kind"], wanted["kind"])
    found = [f"{key} is {in_their_words(key, said)!r}, not {value!r}" for key, value in wanted.items()
             if in_their_words(key, said) != value]
    return found + [f"{key} is claimed: {said[key]!r}" for key, theirs in BILLED.items()
                    if key in said and not any(name in expect for name in theirs)]


class Cases(unittest.TestCase):
    def test_each_is_what_its_source_says(self) -> None:
        cases = [json.loads(line) for line in CASES.read_text().splitlines() if line.strip()]
        answers = parsed([case["cgroup"] for case in cases])
        self.assertEqual(len(answers), len(cases))
        for number, (case, said) in enumerate(zip(cases, answers), 1):
            with self.subTest(line=number, name=case["name"]):
                self.assertEqual(differences(case["expect"], said), [])
        print(f"{len(cases)} cases, {sum(len(case['expect']) for case in cases)} values compared")


if __name__ == "__main__":
    if not CASES.exists():
        print(f"skipped: no {CASES} (GPUMETER_CAPTURES names the captures)")
        sys.exit(SKIPPED)
    unittest.main()
