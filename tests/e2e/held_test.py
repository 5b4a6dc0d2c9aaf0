#!/usr/bin/env python3
"""gpumeter-held on real control groups of version 1, and its command line. Version 2 and the page: package/booted_held_test.py."""
import os
import stat
import subprocess
import tempfile
import unittest
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = Path(os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter"))).with_name("gpumeter-held")
DEVICES = Path("/sys/fs/cgroup/devices")
MAJOR = 242  # for local use


def held(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)


class CommandLineTest(unittest.TestCase):
    def test_wrong_options(self) -> None:
        for arguments, why in ((("--managed=nvidia0,tty",), '--managed: "tty" must be nvidia, dri, nvidiaN or dri/renderDN'),
                               (("--settle=soon",), '--settle must be a number of seconds from 0 to 3600, not "soon"'),
                               (("--settle=3601",), 'not "3601"'), (("--bogus",), "--bogus"), (("now",), 'unexpected word "now"')):
            with self.subTest(arguments=arguments):
                said = held(*arguments)
                self.assertEqual(said.returncode, 2)
                self.assertIn(why, said.stderr)

    def test_help_has_every_option_of_the_man_page(self) -> None:
        page = (ROOT / "packaging/man/gpumeter-held.8.scd").read_text()
        said = held("--help")
        self.assertEqual(said.returncode, 0)
        flags = lambda text, start: {word.strip("*,").split("=")[0].split("*")[0] for line in text.splitlines() if line.startswith(start)  # noqa: E731
                                     for word in line.split() if word.strip("*").startswith("--")}
        self.assertEqual(flags(page, "*--"), flags(said.stdout, "  --"))

    def test_without_a_folder(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            said = held(f"--folder={folder}/none")
            self.assertEqual((said.returncode, said.stderr), (1, f"gpumeter-held: {folder}/none: No such file or directory\n"))

    def test_refuses_a_folder_of_anybody(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            self.assertIn("the folder must belong to root, who alone may write in it", held(f"--folder={folder}").stderr)


@unittest.skipUnless(os.geteuid() == 0 and (DEVICES / "devices.list").exists(), "requires root and the hierarchy devices of cgroup v1")
class GroupsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-held-")))
        self.user = DEVICES / f"slurm_gpumeter{os.getpid()}" / "uid_1"
        self.addCleanup(self.remove)
        (self.folder / "records").mkdir()
        self.arguments = [f"--folder={self.folder}/records", f"--path.dev={self.folder}/dev", f"--path.procfs={self.folder}/proc", "--settle=0"]
        (self.folder / "dev").mkdir()
        try:
            self.user.mkdir(parents=True)
            for gpu in range(3):
                os.mknod(self.folder / f"dev/nvidia{gpu}", stat.S_IFCHR | 0o666, os.makedev(MAJOR, gpu))
            (self.folder / "dev/nvidia0").stat()
        except OSError as error:
            self.skipTest(f"no groups or nodes can be made here: {error}")
        for gpu in range(3):
            information = self.folder / f"proc/driver/nvidia/gpus/0000:0{gpu}:00.0/information"
            information.parent.mkdir(parents=True)
            information.write_text(f"Device Minor: \t {gpu}\n")

    def remove(self) -> None:
        for path, _, _ in os.walk(self.user.parent, topdown=False):
            with suppress(OSError):
                os.rmdir(path)

    def job(self, number: int, *denied: int) -> Path:
        group = self.user / f"job_{number}"
        group.mkdir()
        for gpu in denied:
            (group / "devices.deny").write_text(f"c {MAJOR}:{gpu} rwm")
        return group

    def lines(self, number: int) -> list[str]:
        """The answers, with the number of the GPU."""
        found = [line.partition("=") for line in (self.folder / f"records/slurm_job:{number}").read_text().splitlines()]
        return [f"{name} {value[6]}" for name, _, value in found if name in ("ALLOWED", "DENIED", "GPU")]

    def test_filters(self) -> None:
        groups = [self.job(77, 1, 2), self.job(78, 0), self.job(79)]
        said = held(*self.arguments)
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        self.assertIn("3 control groups entered", said.stdout)
        self.assertEqual(self.lines(77), ["ALLOWED 0", "DENIED 1", "DENIED 2", "GPU 0"])
        self.assertEqual(self.lines(78), ["ALLOWED 1", "ALLOWED 2", "DENIED 0", "GPU 1", "GPU 2"])
        self.assertEqual(self.lines(79), ["ALLOWED 0", "ALLOWED 1", "ALLOWED 2"])
        self.assertEqual([(group / "tasks").read_text() for group in groups], ["", "", ""])
        self.assertEqual(held(*self.arguments).stdout, "")
        self.assertEqual(held(*self.arguments, "--managed=nvidia1").returncode, 0)
        self.assertEqual(self.lines(79)[3:], ["GPU 1"])
        groups[0].rmdir()
        held(*self.arguments)
        self.assertFalse((self.folder / "records/slurm_job:77").exists())


if __name__ == "__main__":
    unittest.main()
