#!/usr/bin/env python3
"""The .rpm that $GPUMETER_RPM names, by rpm's own tools: what it contains, needs and runs, and the daemon of an installation into an empty
root. `./dev rpm` builds the package and runs this test."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RPM = os.environ.get("GPUMETER_RPM", "")
DEB = os.environ.get("GPUMETER_DEB", "")
VERSION = re.findall(r"^project\(gpumeter VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[0]
NEEDS = {"/bin/sh", "coreutils", "systemd"}
UNITS = ["gpumeter-jobs.socket", "gpumeter.service", "gpumeter.socket"]
PROGRAMS = {"gpumeter-nccl.service", "gpumeter-nccl-files.service", "gpumeter-powercap.service", "gpumeter-profiler.service", "gpumeter-profiler.socket",
            "gpumeter-servers.service"}


def output(*command: str | Path, **environment: str) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=100, env={**os.environ, **environment})
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def query(*words: str) -> list[str]:
    return output("rpm", "-qp", *words, RPM).splitlines()


class PackageTest(unittest.TestCase):
    def test_name_version_and_architecture(self) -> None:
        self.assertEqual(query("--queryformat", "%{NAME} %{VERSION} %{RELEASE} %{ARCH} %{LICENSE}"),
                         [f"gpumeter {VERSION} 1 {os.uname().machine} Apache-2.0"])
        print(f"{Path(RPM).stat().st_size} bytes")

    def test_it_needs_nothing_of_a_certain_release(self) -> None:
        needs = {line.split()[0] for line in query("--requires") if not line.startswith("rpmlib(")}
        self.assertEqual(needs, NEEDS)
        self.assertEqual(query("--recommends"), ["python3"])
        self.assertEqual({line.split()[0] for line in query("--provides")}, {"gpumeter", f"gpumeter({os.uname().machine.replace('_', '-')})"},
                         "its own libraries are not for others")

    def test_no_file_belongs_to_another_package(self) -> None:
        files = query("-l")
        self.assertEqual([name for name in files if re.search(r"\.build-id|gpumeter-(benchmark|top)", name)], [])
        shared = {"/usr/bin", "/usr/lib/systemd", "/usr/share/man", "/usr/lib/sysusers.d", "/lib", "/etc", "/usr/share/doc", "/usr/share/licenses"}
        self.assertEqual(shared & set(files), set())
        self.assertEqual({name for name in files if not re.match(r"/(usr|etc)/", name)}, set())

    def test_the_configuration_is_kept_by_an_upgrade(self) -> None:
        self.assertEqual(query("--queryformat", "[%{FILENAMES} %{FILEFLAGS:fflags}\n]").count("/etc/gpumeter/gpumeter.yaml cn"), 1)

    def test_every_file_is_roots(self) -> None:
        rows = [row.split("\t") for row in query("--queryformat", "[%{FILEUSERNAME}\t%{FILEGROUPNAME}\t%{FILEMODES:perms}\t%{FILENAMES}\n]")]
        self.assertGreater(len(rows), 50)
        for user, group, mode, name in rows:
            self.assertEqual((user, group), ("root", "root"), name)
            self.assertTrue(mode.startswith("l") or mode[5] + mode[8] == "--", f"{mode} {name}")

    def test_the_scripts_are_valid_and_name_each_unit(self) -> None:
        for tag in ("POSTIN", "PREUN", "POSTUN"):
            script = "\n".join(query("--queryformat", f"%{{{tag}}}"))
            subprocess.run(["sh", "-n"], input=script, text=True, check=True, timeout=20)
            self.assertIn("systemctl", script)
            if tag in ("POSTIN", "PREUN"):
                units = set(re.findall(r"gpumeter[\w-]*\.(?:service|socket)", script))
                self.assertEqual(sorted(units - PROGRAMS), UNITS)
                self.assertEqual(units & PROGRAMS, PROGRAMS if tag == "PREUN" else set(), "the administrator enables them")

    @unittest.skipUnless(DEB, "$GPUMETER_DEB is not set")
    def test_the_same_package_results_in_the_same_rpm(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            again = output(ROOT / "packaging/rpm/build", DEB, folder, TZ="Asia/Kathmandu").strip()
            self.assertTrue(Path(again).read_bytes() == Path(RPM).read_bytes())


@unittest.skipUnless(os.geteuid() == 0, "an installation into another root needs root")
class InstalledTest(unittest.TestCase):
    """Without the scripts, which need a systemd in that root."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.root = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-rpm-")))
        cls.database = ("--root", str(cls.root), "--dbpath", "/var/lib/rpm")
        output("rpm", *cls.database, "--initdb")
        output("rpm", *cls.database, "--install", "--nodeps", "--noscripts", "--ignorearch", RPM)

    def test_rpm_finds_no_file_changed(self) -> None:
        self.assertEqual(output("rpm", *self.database, "--verify", "gpumeter", "--nodeps", "--noscripts"), "")

    def test_the_daemon_serves_with_its_own_libraries_alone(self) -> None:
        loader = next((self.root / "usr/lib/gpumeter/lib/glibc").glob("ld-linux*")).name
        folder = "/usr/lib/gpumeter"
        page = output("/usr/sbin/chroot", self.root, f"{folder}/lib/glibc/{loader}", "--library-path", f"{folder}/lib/glibc:{folder}/lib",
                      f"{folder}/bin/gpumeter", "--simulate=1", "--once=0")
        self.assertRegex(page, r"(?m)^gpu_up\{.*\} 1$")

    def test_the_wrapper_starts_it(self) -> None:
        self.assertEqual((self.root / "usr/bin/gpumeter").read_text(), '#!/bin/sh\nexec /usr/lib/gpumeter/run "$@"\n')
        for environment in ({}, {"GPUMETER_OWN_GLIBC": "1"}):
            self.assertIn(f"version {VERSION}", output(self.root / "usr/lib/gpumeter/run", "--version", **environment))

    def test_import_starts_from_both_commands(self) -> None:
        for command in ((self.root / "usr/lib/gpumeter/run", "import"), (self.root / "usr/bin/gpumeter-import",)):
            self.assertEqual(output(*command, "--version"), f"gpumeter-import, version {VERSION}\n")

    def test_the_units_start_what_is_installed(self) -> None:
        for name in sorted({"gpumeter.service", *PROGRAMS} - {"gpumeter-profiler.socket"}):
            unit = (self.root / "usr/lib/systemd/system" / name).read_text()
            [command] = re.findall(r"^ExecStart=(.+)", unit, re.M)
            if command.startswith("/bin/sh "):  # which the package requires
                continue
            for program in re.findall(r"(?<![^ =])/\S+", command):
                self.assertTrue(os.access(self.root / program.lstrip("/"), os.X_OK), program)

    def test_removal_leaves_only_the_changed_configuration(self) -> None:
        config = self.root / "etc/gpumeter/gpumeter.yaml"
        config.write_text(config.read_text() + "# changed\n")
        output("rpm", *self.database, "--erase", "--nodeps", "--noscripts", "gpumeter")
        try:
            left = [path.name for path in self.root.rglob("*gpumeter*") if path.is_file()]
            self.assertEqual(left, ["gpumeter.yaml.rpmsave"])
        finally:
            output("rpm", *self.database, "--install", "--nodeps", "--noscripts", "--ignorearch", "--replacefiles", RPM)


if __name__ == "__main__":
    if not RPM or not shutil.which("rpm"):
        print("skipped: rpm is not installed" if RPM else "skipped: $GPUMETER_RPM names no package: ./dev rpm builds one")
        sys.exit(77)
    unittest.main(verbosity=2)
