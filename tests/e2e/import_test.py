#!/usr/bin/env python3
"""Given recorded outputs of other benchmarks, when imported, then exactly these lines; given a file that was cut or belongs to another
program, then its file, line and reason, and nothing is sent. UPDATE_GOLDEN=1 writes the lines."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import BINARY, Daemon, ROOT, wait_until
from jobs import Folder

PROGRAM = str(Path(BINARY).with_name("gpumeter-import"))
FIXTURES = ROOT / "tests/fixtures/import"
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


def run(form: str, file: str | Path, *options: str, text: str = "") -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, form, str(file), *options], input=text.encode(), capture_output=True, timeout=30, check=False)


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
            said = run(form, self.copied(name), *options, "--dry-run")
            self.assertEqual((said.returncode, said.stderr), (0, b""), name)
            golden = FIXTURES / f"{name}.lines"
            if os.environ.get("UPDATE_GOLDEN"):
                golden.write_bytes(said.stdout)
            self.assertEqual(said.stdout.decode(), golden.read_text(), name)

    def test_a_run_of_some_tests_of_clpeak(self) -> None:
        whole = (FIXTURES / "clpeak-1.1-a100.txt").read_text()
        part = whole[:whole.index("    Single-precision")]
        said = run("clpeak", "-", "--gpu=2", "--dry-run", text=part)
        self.assertEqual((said.returncode, said.stderr), (0, b""))
        golden = (FIXTURES / "clpeak-1.1-a100.txt.lines").read_text().splitlines()
        self.assertEqual(said.stdout.decode().splitlines()[:-1], golden[:1])  # without the time

    def test_every_cut_is_refused(self) -> None:
        refused = {}
        for name, (form, *options) in CASES.items():
            text = (FIXTURES / name).read_text()
            lines = text.splitlines(keepends=True)
            for count in range(1, len(lines)):
                whole, rest = "".join(lines[:count]), "".join(lines[count:])
                cuts = [whole + lines[count][:len(lines[count]) // 2]] if len(lines[count]) > 2 else []
                # What is missing must say something, and what is left must not be a shorter run.
                is_shorter = form in PARTS and re.match(PARTS[form], lines[count - 1])
                is_empty = not rest.strip("#= \n") or form == "mlperf" and not rest.strip()
                cuts += [] if is_shorter or is_empty else [whole]
                for cut in cuts:
                    said = run(form, "-", *options, "--dry-run", text=cut)
                    at = f"{name} cut after line {count}: {said.stdout[:300]!r}"
                    self.assertEqual((said.returncode, said.stdout), (1, b""), at)
                    self.assertRegex(said.stderr.decode(), r"^gpumeter-import: -:\d+: .+\n$", at)
                    refused[form] = refused.get(form, 0) + 1
        print("refused cuts:", refused)
        self.assertEqual(set(refused), {case[0] for case in CASES.values()})

    def test_foreign_files(self) -> None:
        for form in {case[0] for case in CASES.values()}:
            for name, (other, *_) in CASES.items():
                if other == form:
                    continue
                said = run(form, self.copied(name), "--gpu=0", "--dry-run")
                self.assertEqual((said.returncode, said.stdout), (1, b""), f"{name} as {form}")
                self.assertRegex(said.stderr.decode(), rf"^gpumeter-import: .*/{re.escape(name)}:\d+: .+\n$", f"{name} as {form}")

    def test_gpus_of_a_file(self) -> None:
        clpeak, nvbandwidth = self.copied("clpeak-1.1-a100.txt"), self.copied("nvbandwidth-rtx4090.json")
        for form, file, options, why in (
                ("clpeak", clpeak, (), "name the GPUs with --gpu or --uuid"),
                ("clpeak", clpeak, ("--gpu=1=0",), "the file has no GPU 1, only 0"),
                ("nvbandwidth", nvbandwidth, ("--gpu=0,1",), "results of 8 GPUs"),
                ("nvbandwidth", nvbandwidth, ("--gpu=0=1,1=1",), "two GPUs of the file are gpu:1"),
                ("nccl-tests", self.copied("nccl-tests-sendrecv-a100.txt"), ("--host=other",), "the ranks ran on lrdn2296"),
                ("clpeak", self.folder / "missing", (), "No such file")):
            said = run(form, file, *options, "--dry-run")
            self.assertEqual((said.returncode, said.stdout), (1, b""), why)
            self.assertIn(why, said.stderr.decode())
        for options in (("nosuch", "x"), ("clpeak", "x", "--gpu=zero"), ("clpeak", "x", "--gpu=0", "--uuid=a"), ("clpeak",)):
            self.assertEqual(subprocess.run([PROGRAM, *options], capture_output=True, timeout=30, check=False).returncode, 2, options)
        chosen = run("nvbandwidth", nvbandwidth, "--gpu=7=3", "--dry-run").stdout.decode()
        self.assertEqual(set(re.findall(r"#(\w+:\d+),", chosen)), {"gpu:3"})

    @unittest.skipUnless(shutil.which("clpeak"), "clpeak is not installed")
    def test_clpeak_itself(self) -> None:
        """Its text and its XML of one run have the same results, in as many digits as they print."""
        xml, text = self.folder / "out.xml", self.folder / "out.txt"
        said = subprocess.run(["clpeak", "--transfer-bandwidth", "--kernel-latency", "--enable-xml-dump", "-f", str(xml)], capture_output=True,
                              text=True, timeout=100, check=False)
        if "Device:" not in said.stdout:
            self.skipTest("clpeak finds no OpenCL device")
        text.write_text(said.stdout)
        values = []
        for file in (text, xml):
            imported = run("clpeak", file, "--gpu=0=0", "--dry-run")
            self.assertEqual((imported.returncode, imported.stderr), (0, b""), file.read_text())
            found = re.findall(r"(?m)^gpu\.benchmark\.(\w+):([^|]+)\|g\|#(.*)$", imported.stdout.decode())
            values.append({(name, tags): float(value) for name, value, tags in found if name != "timestamp"})
        print("clpeak measured:", values[1])
        self.assertIn(("transfer", "gpu:0,suite:clpeak,direction:host_to_device"), values[0])
        self.assertEqual(set(values[0]), set(values[1]))
        for key, value in values[0].items():
            self.assertLessEqual(abs(value / values[1][key] - 1), 0.01, key)

    def test_results_reach_the_page(self) -> None:
        folder = self.enterContext(Folder())
        daemon: Daemon = self.enterContext(folder.daemon())
        command = [BINARY, "import", "clpeak", str(self.copied("clpeak-3-rtx5060.json")), "--gpu=0", f"--jobs-socket={folder.datagram}"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual((said.returncode, said.stdout), (0, f"results of 1 GPU(s) sent to {folder.datagram}\n"), said.stderr)
        rate = {"dtype": "fp16", "backend": "cublaslt"}
        wait_until(lambda: daemon.page().one("gpu_benchmark_flops", gpu="0", **rate) == 7.907426e13, "the rate is on the page")
        self.assertEqual(daemon.page().one("gpu_benchmark_timestamp_seconds"), 1790868196)
        before = {key: value for key, value in daemon.page().items() if key[0].startswith("gpu_benchmark_")}
        cut = self.folder / "cut.json"
        cut.write_text((FIXTURES / "clpeak-3-rtx5060.json").read_text()[:2000])
        said = subprocess.run([*command[:3], str(cut), *command[4:]], capture_output=True, text=True, timeout=30, check=False)
        self.assertRegex(said.stderr, r"^gpumeter-import: .*/cut.json:\d+: the JSON document ends here: the file is cut\n$")
        after = {key: value for key, value in daemon.page().items() if key[0].startswith("gpu_benchmark_")}
        self.assertEqual((said.returncode, after), (1, before))
        self.assertEqual(sum(daemon.page().of("gpumeter_jobs_dropped_total").values()), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
