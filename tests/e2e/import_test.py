#!/usr/bin/env python3
"""`gpumeter import` as a user starts it: its results reach the page, a file that was cut changes nothing, and its exit codes. tests/python has
what it makes of each format."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import BINARY, Daemon, ROOT, wait_until
from jobs import Folder

FIXTURES = ROOT / "tests/fixtures/import"


def run(*arguments: str, program: str = BINARY, **options: object) -> subprocess.CompletedProcess:
    return subprocess.run([program, "import", *arguments], capture_output=True, text=True, timeout=30, check=False, **options)


class ImportTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-import-")))

    def test_exit_codes(self) -> None:
        file = str(FIXTURES / "clpeak-1.1-a100.txt")
        for arguments, code in (((), 2), (("clpeak",), 2), (("nosuch", file), 2), (("clpeak", file, "--nosuch"), 2), (("--help",), 0),
                                (("clpeak", file), 1), (("clpeak", file, "--gpu=0", f"--jobs-socket={self.folder}/none"), 1),
                                (("clpeak", file, "--gpu=0", "--dry-run"), 0)):
            said = run(*arguments)
            self.assertEqual((said.returncode, said.stderr == ""), (code, code == 0), said)
        self.assertEqual(run().stderr.splitlines()[1], "Try 'gpumeter-import --help'.")

    def test_a_pipe(self) -> None:
        text = (FIXTURES / "clpeak-3-rtx5060.json").read_text()
        said = run("clpeak", "-", "--gpu=0", "--dry-run", input=text)
        self.assertEqual((said.returncode, said.stderr, said.stdout), (0, "", (FIXTURES / "clpeak-3-rtx5060.json.lines").read_text()))
        said = run("clpeak", "-", "--gpu=0", "--dry-run", input=text[:2000])
        self.assertRegex(said.stderr, r"^gpumeter-import: -:\d+: the JSON document ends here: the file is cut\n$")

    def test_nothing_is_written_beside_the_program(self) -> None:
        python = ROOT / "packaging/python"
        before = sorted(python.rglob("*"))
        self.assertEqual(run("--version", env={"PATH": os.environ["PATH"]}).returncode, 0)
        self.assertEqual(sorted(python.rglob("*")), before)

    def test_without_python(self) -> None:
        """The program is there and its interpreter is not."""
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="without-python-", dir=Path(BINARY).parent)))
        os.link(BINARY, folder / "gpumeter")
        (folder / "gpumeter-import").write_text("#!/nonexistent/python3\n")
        (folder / "gpumeter-import").chmod(0o755)
        said = run("--help", program=str(folder / "gpumeter"), env={"PATH": "/nonexistent"})
        self.assertEqual((said.returncode, said.stderr),
                         (1, "gpumeter: gpumeter-import cannot be run: it requires /usr/bin/python3, which is not installed\n"))
        (folder / "gpumeter-import").unlink()
        said = run("--help", program=str(folder / "gpumeter"), env={"PATH": "/nonexistent"})
        self.assertEqual((said.returncode, said.stderr), (1, "gpumeter: gpumeter-import cannot be run: No such file or directory\n"))

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
            imported = run("clpeak", str(file), "--gpu=0=0", "--dry-run")
            self.assertEqual((imported.returncode, imported.stderr), (0, ""), file.read_text())
            found = re.findall(r"(?m)^gpu\.benchmark\.(\w+):([^|]+)\|g\|#(.*)$", imported.stdout)
            values.append({(name, tags): float(value) for name, value, tags in found if name != "timestamp"})
        print("clpeak measured:", values[1])
        self.assertIn(("transfer", "gpu:0,suite:clpeak,direction:host_to_device"), values[0])
        self.assertEqual(set(values[0]), set(values[1]))
        for key, value in values[0].items():
            self.assertLessEqual(abs(value / values[1][key] - 1), 0.01, key)

    def test_results_reach_the_page(self) -> None:
        folder = self.enterContext(Folder())
        daemon: Daemon = self.enterContext(folder.daemon())
        options = ("--gpu=0", f"--jobs-socket={folder.datagram}")
        said = run("clpeak", str(FIXTURES / "clpeak-3-rtx5060.json"), *options)
        self.assertEqual((said.returncode, said.stdout), (0, f"results of 1 GPU(s) sent to {folder.datagram}\n"), said.stderr)
        rate = {"dtype": "fp16", "backend": "cublaslt"}
        wait_until(lambda: daemon.page().one("gpu_benchmark_flops", gpu="0", **rate) == 7.907426e13, "the rate is on the page")
        self.assertEqual(daemon.page().one("gpu_benchmark_timestamp_seconds"), 1790868196)
        before = {key: value for key, value in daemon.page().items() if key[0].startswith("gpu_benchmark_")}
        cut = self.folder / "cut.json"
        cut.write_text((FIXTURES / "clpeak-3-rtx5060.json").read_text()[:2000])
        said = run("clpeak", str(cut), *options)
        self.assertRegex(said.stderr, r"^gpumeter-import: .*/cut.json:\d+: the JSON document ends here: the file is cut\n$")
        after = {key: value for key, value in daemon.page().items() if key[0].startswith("gpu_benchmark_")}
        self.assertEqual((said.returncode, after), (1, before))
        self.assertEqual(sum(daemon.page().of("gpumeter_jobs_dropped_total").values()), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
