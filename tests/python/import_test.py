#!/usr/bin/env python3
"""Given recorded outputs of other benchmarks, when imported, then exactly these lines; given a file that was cut, changed or belongs to another
program, then its line and reason, and nothing else. UPDATE_GOLDEN=1 writes the lines."""
from __future__ import annotations

import contextlib
import io
import os
import random
import re
import shutil
import tempfile
import unittest
from pathlib import Path

from receiver import CLIENT, Receiver
from gpumeter_import import program
from gpumeter_import.documents import parse_json, parse_xml
from gpumeter_import.results import GpuResults, pci_address
from gpumeter_import.texts import Refused, measure

FIXTURES = CLIENT.parent.parent / "tests/fixtures/import"
CASES = {  # file -> format and options
    "clpeak-1.1-a100.txt": ("clpeak", "--gpu=2"),
    "clpeak-1.1-pocl.xml": ("clpeak", "--uuid=GPU-a"),
    "clpeak-2-mi300x.xml": ("clpeak", "--gpu=0=5"),
    "clpeak-3-rtx5060.json": ("clpeak", "--gpu=0"),
    "nvbandwidth-rtx4090.json": ("nvbandwidth",),
    "dcgm-diag-3.json": ("dcgm-diag", "--gpu=0,1,2,3"),
    "dcgm-diag-4.json": ("dcgm-diag", "--gpu=0"),
    "rocm-bandwidth-test-wx8100.txt": ("rocm-bandwidth-test",),
    "transferbench-mi350x.txt": ("transferbench", "--gpu=0=0,1=1"),
    "transferbench-1.69.csv": ("transferbench", "--gpu=0"),
    "deepbench-gemm-amd.txt": ("deepbench", "--gpu=0"),
    "ai-benchmark-0.1.2.txt": ("ai-benchmark", "--gpu=0"),
    "mlperf-training-llama2.txt": ("mlperf", "--gpu=0,1"),
    "mlperf_log_summary.txt": ("mlperf", "--gpu=0"),
    "nccl-tests-sendrecv-a100.txt": ("nccl-tests", "--host=lrdn2296"),
    "nccl-tests-allreduce-a100.txt": ("nccl-tests", "--host=localhost", "--gpu=0,1"),
    "rccl-tests-allreduce-mi350x.txt": ("nccl-tests", "--host=smci350-zts-gtu-e14-05"),
}
WRITTEN = 1_700_000_000
# A shorter run of these programs ends like a file that was cut between two of its parts: at these lines.
PARTS = {"transferbench": r" *Aggregate|#", "deepbench": r" +\d", "clpeak": r" +(float|double|int)16 +:| +memcpy to mapped ptr| +No |\n"}
REFUSED = {  # format -> texts that no recording has, and the error
    "clpeak": {'<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><clpeak>&c;</clpeak>': "1: no XML of a program: it has a document type",
               "<clpeak>" * 70: "1: more than 64 levels",
               "<clpeak/>\n<clpeak/>": "2: text follows the XML document",
               "<clpeak>&other;</clpeak>": "1: no XML",
               "<a/>": "1: no XML of clpeak",
               '<clpeak><p><device>\n<x unit="gbps">y</x></device></p></clpeak>': '2: no unit or no number in "x"',
               '{"schema": "other",\n "devices": []}': "1: no run of clpeak (schema clpeak/run)",
               '{"schema": "clpeak/run", "devices": [\n{"device_index": 5000, "tests": []}]}': "2: a device without its device_index or tests",
               "Device: a\n\n  Global memory bandwidth (furlongs)\n": "3: a unit that is not known",
               "Device: a\n\n  Memory of elephants (GBPS)\n": "3: a test that clpeak 1.1 does not have"},
    "nvbandwidth": {"[" * 70: "1: more than 64 levels",
                    '{"a":\n"b\n"}': "2: a text has no end",
                    '{"a": "\\q"}': "1: an unknown escape in a text",
                    '{"a": "\\ud800"}': "1: half a character",
                    '{"a": 1e999}': "1: no JSON",
                    '{"a": NaN}': "1: no JSON",
                    '{[[1]]: 2}': "1: no JSON",
                    '{"a": 1} {': "1: text follows the JSON document",
                    '{"a":\n 1': "2: the JSON document ends here: the file is cut",
                    '{"nvbandwidth": {"GPU Device list": [], "testcases": [],\n"error": "no driver"}}': "2: nvbandwidth ended with an error: no driver"},
    "mlperf": {':::MLLOG {"key": "run_start"}\n': "1: an MLLOG line without key or time_ms",
               ':::MLLOG {"key": "run_stop", "time_ms": 1, "metadata": {"status": "aborted"}}\n:::MLLOG {"key": "run_start", "time_ms": 0}\n':
                   '2: the run ended with the status "aborted"'},
    "deepbench": {"": "1: the file is empty", "m n k time (usec)\n": "1: the table has no rows: the file is cut"},
}
INSERTED = ("1e5", "N/A", "-", "inf", "nan", "Not", "\\u00e9", "\ufffd", "&amp;", "99999999999", "\0", "|", ",")


def parsed(form: str, text: str) -> str:
    """The lines of all GPUs, or "12: the reason". Any other exception is a failure."""
    try:
        sheet = program.parse_file(form, text, "host")
    except Refused as refused:
        return str(refused)
    return "".join(gpu.lines(f"gpu:{number}", sheet.suite, 1) for number, gpu in sorted(sheet.gpus.items()))


def imported(form: str, file: Path, *options: str) -> "tuple[int, str, str]":
    """The program's exit code and what it printed."""
    out, errors = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = program.main([form, str(file), *options])
        except SystemExit as end:
            code = int(end.code or 0)
    out.seek(0)
    return code, out.read(), errors.getvalue()


def changed(text: str, luck: random.Random) -> str:
    at, other = luck.randrange(len(text)), luck.randrange(len(text))
    lines = text.splitlines(keepends=True)
    line = luck.randrange(len(lines))
    return luck.choice((lambda: text[:at] + luck.choice("0123456789.-:,|()<>{}[]\"\n /aGC#") + text[at + 1:],
                        lambda: text[:at] + text[at + luck.randint(1, 30):],
                        lambda: text[:at] + text[other:other + luck.randint(1, 60)] + text[at:],
                        lambda: "".join(lines[:line] + lines[line + 1:]) or "x",
                        lambda: "".join([*lines[:line], luck.choice(lines), *lines[line:]]),
                        lambda: text[:at] + luck.choice(INSERTED) + text[at:]))()


class ImportTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-import-")))

    def copied(self, name: str) -> Path:
        copy = self.folder / name
        shutil.copyfile(FIXTURES / name, copy)
        os.utime(copy, (WRITTEN, WRITTEN))
        return copy

    def test_recorded_outputs(self) -> None:
        recorded = {path.name for path in FIXTURES.iterdir() if path.suffix != ".lines" and path.name != "README.md"}
        self.assertEqual(recorded, set(CASES))
        for name, (form, *options) in CASES.items():
            code, lines, errors = imported(form, self.copied(name), *options, "--dry-run")
            self.assertEqual((code, errors), (0, ""), name)
            golden = FIXTURES / f"{name}.lines"
            if os.environ.get("UPDATE_GOLDEN"):
                golden.write_text(lines)
            self.assertEqual(lines, golden.read_text(), name)

    def test_every_cut_is_refused(self) -> None:
        refused: "dict[str, int]" = {}
        for name, (form, *_) in CASES.items():
            lines = (FIXTURES / name).read_text().splitlines(keepends=True)
            for count in range(1, len(lines)):
                whole, rest = "".join(lines[:count]), "".join(lines[count:])
                cuts = [whole + lines[count][:len(lines[count]) // 2]] if len(lines[count]) > 2 else []
                # What is missing must say something, and what is left must not be a shorter run.
                is_shorter = form in PARTS and re.match(PARTS[form], lines[count - 1])
                is_empty = not rest.strip("#= \n") or form == "mlperf" and not rest.strip()
                cuts += [] if is_shorter or is_empty else [whole]
                for cut in cuts:
                    self.assertRegex(parsed(form, cut), r"^\d+: .+$", f"{name} cut after line {count}")
                    refused[form] = refused.get(form, 0) + 1
        print("refused cuts:", refused)
        self.assertEqual(set(refused), set(program.FORMATS))

    def test_a_run_of_some_tests_of_clpeak(self) -> None:
        whole = (FIXTURES / "clpeak-1.1-a100.txt").read_text()
        golden = (FIXTURES / "clpeak-1.1-a100.txt.lines").read_text().replace("gpu:2", "gpu:0").splitlines()
        self.assertEqual(parsed("clpeak", whole[:whole.index("    Single-precision")]).splitlines()[:-1], golden[:1])  # without the time

    def test_foreign_files(self) -> None:
        for form in program.FORMATS:
            for name, (other, *_) in CASES.items():
                if other != form:
                    said = imported(form, self.copied(name), "--gpu=0", "--dry-run")
                    self.assertEqual(said[:2], (1, ""), f"{name} as {form}")
                    self.assertRegex(said[2], rf"^gpumeter-import: .*/{re.escape(name)}:\d+: .+\n$", f"{name} as {form}")

    def test_composed_files_are_refused(self) -> None:
        for form, texts in REFUSED.items():
            for text, error in texts.items():
                self.assertEqual(parsed(form, text), error, text[:200])

    def test_a_changed_file_gives_lines_of_the_daemon_or_an_error(self) -> None:
        """Each line has one value and one list of tags, and a GPU's lines fit one datagram."""
        luck = random.Random(20260101)
        read = 0
        for name, (form, *_) in CASES.items():
            for _ in range(150):
                text = (FIXTURES / name).read_text()
                for _ in range(luck.randint(1, 4)):
                    text = changed(text, luck)
                for other in (form, luck.choice(list(program.FORMATS))):
                    said = parsed(other, text)
                    if not re.fullmatch(r"\d+: [^\0-\x1f]{1,250}", said):
                        read += 1
                        self.assertLess(len(said.encode()), 65_536)
                        self.assertRegex(said, r"\A(gpu\.benchmark\.\w+:[0-9.e+-]+\|g\|#gpu:\d+,suite:[a-z-]+(,\w+:[^,|\n]*)*\n)+\Z", text)
        print(f"{read} changed files have results")
        self.assertGreater(read, 500)

    def test_gpus_of_a_file(self) -> None:
        clpeak, nvbandwidth = self.copied("clpeak-1.1-a100.txt"), self.copied("nvbandwidth-rtx4090.json")
        for form, file, options, why in (
                ("clpeak", clpeak, (), "the file does not identify GPU 0; name the GPUs with --gpu or --uuid"),
                ("clpeak", clpeak, ("--gpu=1=0",), "the file has no GPU 1, only 0"),
                ("nvbandwidth", nvbandwidth, ("--gpu=0,1",), "the file has results of 8 GPUs (0, 1, 2, 3, 4, 5, 6, 7), and 2 are given"),
                ("nvbandwidth", nvbandwidth, ("--gpu=0=1,1=1",), "two GPUs of the file are gpu:1"),
                ("mlperf", self.copied("mlperf_log_summary.txt"), (), "the file does not identify its GPUs; name the GPUs with --gpu or --uuid"),
                ("clpeak", self.folder / "missing", (), "No such file or directory"),
                ("clpeak", self.folder, (), "Is a directory")):
            self.assertEqual(imported(form, file, *options, "--dry-run"), (1, "", f"gpumeter-import: {file}: {why}\n"))
        said = imported("nccl-tests", self.copied("nccl-tests-sendrecv-a100.txt"), "--host=other", "--dry-run")
        self.assertIn("the ranks ran on lrdn2296; this machine is other", said[2])
        chosen = imported("nvbandwidth", nvbandwidth, "--gpu=7=3", "--dry-run")[1]
        self.assertEqual(set(re.findall(r"#(\w+:\d+),", chosen)), {"gpu:3"})
        several = imported("clpeak", clpeak, "--uuid=GPU-a,GPU-b", "--dry-run")[1]
        self.assertEqual(set(re.findall(r"#(uuid:[^,]+),", several)), {"uuid:GPU-a", "uuid:GPU-b"})

    def test_wrong_arguments(self) -> None:
        for options, why in ((("nosuch", "x"), 'FORMAT must be one of clpeak, '), (("clpeak", "x", "--gpu=zero"), '--gpu: no GPU: "zero"'),
                             (("clpeak", "x", "--gpu=1=2=3"), "--gpu: no GPU"), (("clpeak", "x", "--gpu=1,,2"), '--gpu: no GPU: ""'),
                             (("clpeak", "x", "--uuid=a b"), '--uuid: no GPU: "a b"'), (("clpeak", "x", "--uuid=a|b"), "--uuid: no GPU"),
                             (("clpeak", "x", "--gpu=0", "--uuid=a"), "give either --gpu or --uuid"), (("clpeak", "x", "--nosuch"), "--nosuch"),
                             (("clpeak", "x", "--dry"), "--dry")):
            code, out, errors = imported(*options)  # type: ignore[arg-type]
            self.assertEqual((code, out), (2, ""), options)
            self.assertRegex(errors, rf"^gpumeter-import: .*{re.escape(why)}.*\nTry 'gpumeter-import --help'\.\n$")

    def test_a_file_larger_than_any_result(self) -> None:
        with open(self.folder / "large", "wb") as file:
            file.truncate((64 << 20) + 1)
        self.assertEqual(imported("clpeak", self.folder / "large")[2], f"gpumeter-import: {self.folder}/large: more than 64 MiB\n")
        many = "m n k time (usec)\n" + "".join(f"{size} 1 1 5\n" for size in range(300))
        self.assertEqual(parsed("deepbench", many), "302: GPU 0 has more than 256 results, which the daemon would not keep")

    def test_a_datagram_for_each_gpu(self) -> None:
        with Receiver() as receiver:
            said = imported("nvbandwidth", self.copied("nvbandwidth-rtx4090.json"), f"--jobs-socket={receiver.path}")
            self.assertEqual(said, (0, f"results of 8 GPU(s) sent to {receiver.path}\n", ""))
            self.assertEqual("".join(receiver.datagrams()), (FIXTURES / "nvbandwidth-rtx4090.json.lines").read_text())
        said = imported("clpeak", self.copied("clpeak-1.1-a100.txt"), "--gpu=0", f"--socket={receiver.path}")
        self.assertEqual(said, (1, "", f"gpumeter-import: {receiver.path}: No such file or directory\n"))


class PartsTest(unittest.TestCase):
    def test_json(self) -> None:
        root = parse_json('{"a":"\\ud83d\\ude00\\u00e9\\n","b":[1e5,\n-2,true,null,{}],"a":"second"}')
        self.assertEqual((root.text_of("a"), root.text_of("b"), root.text_of("none")), ("\U0001f600\u00e9\n", "", ""))
        self.assertEqual([(value.value, value.line) for value in root.find("b").items], [(1e5, 1), (-2.0, 2), (True, 2), (None, 2), ({}, 2)])
        self.assertEqual([value.number for value in root.find("b").items], [1e5, -2.0, None, None, None])

    def test_xml(self) -> None:
        root = parse_xml('<?xml version="1.0"?><!-- c --><clpeak a="&lt;&amp;">t\n<b/>u</clpeak>')
        self.assertEqual((root.name, root.attribute("a"), root.attribute("b"), root.text, root.children[0].line), ("clpeak", "<&", "", "t\nu", 2))

    def test_numbers_and_addresses(self) -> None:
        for text, value in (("1.5", 1.5), (".5", 0.5), ("5.", 5.0), ("1e3", 1e3), ("0", 0.0), ("-1", None), ("+1", None), (" 1", None), ("1 ", None),
                            ("inf", None), ("nan", None), ("1e18", None), ("", None), ("1_0", None), ("\u0661", None)):
            self.assertEqual(measure(text), value, text)
        for text, address in (("00000008:06:00", "0008:06:00.0"), ("0000:0C:00.0", "0000:0c:00.0"), ("05:0.0", "0000:05:00.0"),
                              ("0c:00.1", "0000:0c:00.1"), ("0x0f", ""), ("1:2:3:4", ""), ("05", ""), ("100:00.0", ""), ("05:20.0", ""), ("05:0.8", "")):
            self.assertEqual(pci_address(text), address, text)

    def test_tags(self) -> None:
        """As the daemon shortens them (base/text)."""
        gpu = GpuResults()
        gpu.result(" a,b|c\t\x01d ", "x", 1.0)
        gpu.result("\u00e9" * 40, "x", 0.1 + 0.2)
        self.assertEqual(gpu.lines("gpu:0", "s", 1.5), "gpu.benchmark.result:1|g|#gpu:0,suite:s,test:a b c d,unit:x\n"
                         f"gpu.benchmark.result:0.3|g|#gpu:0,suite:s,test:{'é' * 27}~da5a8f25,unit:x\ngpu.benchmark.timestamp:1.5|g|#gpu:0,suite:s\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
