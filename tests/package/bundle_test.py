#!/usr/bin/env python3
"""The unpacked bundle of `./dev bundle`: it starts with an empty environment, uses only its own libraries, and
with its own glibc starts in an otherwise empty chroot (as root)."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter"))


def run(*command: str, **environment: str) -> str:
    said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, f"{' '.join(command)}: {said.returncode}\n{said.stdout}{said.stderr}"
    return said.stdout


def families(page: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\w+)", page, re.M))


class BundleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-bundle-")))
        built = subprocess.run([str(ROOT / "packaging/bundle/build"), BINARY, str(cls.folder)], capture_output=True, text=True, timeout=180)
        assert built.returncode == 0, built.stdout + built.stderr
        cls.archive = Path(built.stdout.strip())
        subprocess.run(["tar", "-xzf", str(cls.archive), "-C", str(cls.folder)], check=True, timeout=60)
        cls.tree = cls.folder / cls.archive.name.removesuffix(".tar.gz")

    def test_the_archive_is_named_by_version_and_architecture(self) -> None:
        version = re.search(r"VERSION (\d[\d.]*)", (ROOT / "CMakeLists.txt").read_text().split("project(gpumeter", 1)[1])[1]
        self.assertEqual(self.archive.name, f"gpumeter-bundle-{version}-{os.uname().machine}.tar.gz")
        print(f"{self.archive.stat().st_size} bytes")

    def test_version_with_an_empty_environment(self) -> None:
        self.assertEqual(run(str(self.tree / "run"), "--version"), run(BINARY, "--version"))

    def test_a_page_with_an_empty_environment(self) -> None:
        page = run(str(self.tree / "run"), "--simulate=1", "--once=0")
        self.assertIn("gpu_up", families(page))
        self.assertEqual(families(page), families(run(BINARY, "--simulate=1", "--once=0")))

    def test_a_page_with_its_own_glibc(self) -> None:
        self.assertIn("gpu_up", families(run(str(self.tree / "run"), "--simulate=1", "--once=0", GPUMETER_OWN_GLIBC="1")))

    def test_a_wrong_flag_says_so_through_the_wrapper(self) -> None:
        self.assertEqual(subprocess.run([str(self.tree / "run"), "--no-such-flag"], env={}, capture_output=True, timeout=60).returncode, 2)

    def test_every_library_is_its_own(self) -> None:
        closure = run("ldd", str(self.tree / "bin/gpumeter"), LD_LIBRARY_PATH=str(self.tree / "lib"), PATH=os.environ["PATH"])
        found = dict(re.findall(r"(\S+) => (\S+)", closure))
        foreign = {name for name, path in found.items() if not path.startswith(str(self.tree))}
        self.assertGreater(len(found), 20)
        self.assertLessEqual({re.sub(r"\.so.*", "", name) for name in foreign}, {"libc", "libm"})

    @unittest.skipUnless(os.geteuid() == 0, "chroot needs root")
    def test_with_its_own_glibc_it_needs_nothing_else(self) -> None:
        loader = next((self.tree / "lib/glibc").glob("ld-linux*")).name
        said = run("/usr/sbin/chroot", str(self.tree), f"/lib/glibc/{loader}", "--library-path", "/lib/glibc:/lib", "/bin/gpumeter",
                   "--simulate=1", "--once=0")
        self.assertIn("gpu_up", families(said))

    def test_import_runs_by_the_machine_s_python(self) -> None:
        version = re.search(r"VERSION (\d[\d.]*)", (ROOT / "CMakeLists.txt").read_text().split("project(gpumeter", 1)[1])[1]
        self.assertEqual(run(str(self.tree / "run"), "import", "--version", PATH="/usr/bin"), f"gpumeter-import, version {version}\n")
        said = subprocess.run([str(self.tree / "run"), "import", "--version"], env={"PATH": str(self.tree)}, capture_output=True, text=True, timeout=60)
        self.assertIn("requires python3", said.stderr)

    def test_the_check_and_the_licences_are_in_it(self) -> None:
        self.assertTrue(os.access(self.tree / "check/check", os.X_OK))
        self.assertEqual({path.name for path in (self.tree / "check/gpucheck").glob("*.py")},
                         {path.name for path in (ROOT / "tests/gpu/gpucheck").glob("*.py")})
        self.assertGreater(len(list((self.tree / "licenses").iterdir())), 20)


if __name__ == "__main__":
    if subprocess.run(["dpkg-query", "--version"], capture_output=True).returncode != 0:
        print("skipped: the licences are asked of dpkg")
        sys.exit(77)
    unittest.main(verbosity=2)
