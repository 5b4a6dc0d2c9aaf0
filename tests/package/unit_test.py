#!/usr/bin/env python3
"""systemd accepts the units without a complaint, alone, with each drop-in and with that of the generator, and rates the services'
exposure at most 2.0 of 10."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter"))
DROP_INS = sorted((ROOT / "packaging/systemd").glob("*.conf"))
UNITS = ("gpumeter.service", "gpumeter.socket", "gpumeter-jobs.socket", "gpumeter-benchmark.service", "gpumeter-benchmark.timer",
         "gpumeter-held.service", "gpumeter-held.timer", "gpumeter-nccl.service", "gpumeter-nccl-files.service",
         "gpumeter-powercap.service", "gpumeter-profiler.service", "gpumeter-profiler.socket", "gpumeter-servers.service")
PROGRAMS = ("gpumeter", "gpumeter-benchmark", "gpumeter-held", "gpumeter-nccl", "gpumeter-profiler", "gpumeter-servers")
MOST_EXPOSED = 20  # tenths

if not shutil.which("systemd-analyze"):
    print("skipped: systemd-analyze is not installed")
    sys.exit(77)


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", "--no-pager", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)


class UnitTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        # Only for the test that the programs exist: they are not installed here. A unit's line ends a path at its first space.
        for program in PROGRAMS:
            (self.folder / program).symlink_to(Path(BINARY).with_name(program))
        for unit in UNITS:
            if unit.endswith(".service"):
                text = (ROOT / "systemd" / unit).read_text()
                (self.folder / unit).write_text(re.sub(r"/usr/s?bin/(?=gpumeter)", f"{self.folder}/", text))
        for unit in UNITS:
            if not unit.endswith(".service"):
                shutil.copy(ROOT / "systemd" / unit, self.folder)

    def verify(self) -> str:
        units = [str(self.folder / name) for name in UNITS]
        said = analyze("verify", "--man=no", "--recursive-errors=no", *units)
        return said.stdout + ("" if said.returncode == 0 else f"exit {said.returncode}")

    def drop_in(self, text: str) -> None:
        named = re.search(r"Copy to /etc/systemd/system/([\w.-]+)\.d/", text)
        unit = named[1] if named else "gpumeter-jobs.socket" if "[Socket]" in text else "gpumeter.service"
        for folder in self.folder.glob("*.d"):
            shutil.rmtree(folder)
        (self.folder / f"{unit}.d").mkdir()
        (self.folder / f"{unit}.d/test.conf").write_text(text)

    def test_verify(self) -> None:
        self.assertEqual(self.verify(), "")

    def test_verify_with_each_drop_in(self) -> None:
        self.assertGreater(len(DROP_INS), 0)
        for drop_in in DROP_INS:
            with self.subTest(drop_in=drop_in.name):
                self.drop_in(drop_in.read_text())
                self.assertEqual(self.verify(), "")

    def test_verify_sees_a_mistake_in_a_drop_in(self) -> None:
        self.drop_in("[Service]\nCapabilityBoundingSett=\n")
        self.assertIn("CapabilityBoundingSett", self.verify())
        self.drop_in("[Socket]\nSocketMod=0600\n")
        self.assertIn("SocketMod", self.verify())

    def exposed(self, *units: str) -> None:
        for unit in units:
            with self.subTest(unit=unit):
                said = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", str(self.folder / unit))
                self.assertEqual(said.returncode, 0, said.stdout)
                print(re.search(r"Overall exposure level.*", said.stdout).group())

    def test_exposure(self) -> None:
        self.exposed("gpumeter.service", "gpumeter-benchmark.service", "gpumeter-held.service", "gpumeter-nccl.service", "gpumeter-nccl-files.service",
                     "gpumeter-powercap.service", "gpumeter-profiler.service", "gpumeter-servers.service")

    def test_the_unit_has_each_setting_that_the_threat_model_names(self) -> None:
        text = (ROOT / "SECURITY.md").read_text().split("### A compromised HTTP thread")[1].split("### ")[0]
        named = re.findall(r"`([A-Z]\w+)=(\w*)`", text)
        self.assertGreater(len(named), 15)
        unit = (ROOT / "systemd/gpumeter.service").read_text()
        missing = [f"{name}={value}" for name, value in named if not re.search(rf"^{name}={value}", unit, re.M)]
        self.assertEqual(missing, ["IPAddressAllow="], "which is the administrator's")

    def generated(self, *functions: tuple[str, str]) -> str:
        """The drop-in of the generator on a machine with these PCI functions (vendor, class)."""
        sysfs = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        for number, (vendor, kind) in enumerate(functions):
            function = sysfs / f"bus/pci/devices/0000:0{number}:00.0"
            function.mkdir(parents=True)
            (function / "vendor").write_text(f"{vendor}\n")
            (function / "class").write_text(f"{kind}\n")
        subprocess.run([ROOT / "systemd/gpumeter-generator", self.folder, "/none", "/none"], env={**os.environ, "GPUMETER_SYSFS": str(sysfs)},
                       check=True, timeout=60)
        drop_in = self.folder / "gpumeter.service.d/50-intel.conf"
        return drop_in.read_text() if drop_in.exists() else ""

    def test_only_machines_with_a_gpu_of_intel_have_its_capability(self) -> None:
        bounding = re.search(r"^CapBnd:\s*(\w+)", Path("/proc/self/status").read_text(), re.M)
        if not int(bounding[1], 16) >> 38 & 1:
            self.skipTest("this container has no CAP_PERFMON to give")
        self.assertEqual(self.generated(), "")
        self.assertEqual(self.generated(("0x10de", "0x030200"), ("0x8086", "0x020000")), "", "another vendor's GPU, and a network card")
        self.assertEqual(self.generated(("0x10de", "0x030200"), ("0x8086", "0x030000")),
                         "[Service]\nCapabilityBoundingSet=CAP_PERFMON\nAmbientCapabilities=CAP_PERFMON\n")
        self.assertEqual(self.verify(), "")
        self.exposed("gpumeter.service")

    def test_the_capability_cannot_be_used_on_processes(self) -> None:
        """With CAP_PERFMON, these two calls would read the registers and stacks of all processes."""
        self.assertFalse(self.admitted("gpumeter.service") & {"perf_event_open", "bpf"})

    def test_the_capability_of_a_program_cannot_trace_processes(self) -> None:
        """With CAP_SYS_PTRACE, these calls would stop and change the processes of all users."""
        for unit in ("gpumeter-nccl.service", "gpumeter-profiler.service", "gpumeter-servers.service"):
            self.assertIn("CapabilityBoundingSet=CAP_SYS_PTRACE\n", (ROOT / "systemd" / unit).read_text())
            self.assertFalse(self.admitted(unit) & {"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "perf_event_open", "bpf"}, unit)
        self.assertIn("CapabilityBoundingSet=\n", (ROOT / "systemd/gpumeter-nccl-files.service").read_text())

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "requires root and setpriv")
    def test_the_energy_of_processors_is_given_to_the_group_and_taken_back(self) -> None:
        """The unit's commands, as root without a capability, on a tree like powercap's."""
        unit = (ROOT / "systemd/gpumeter-powercap.service").read_text()
        powercap = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        zones = [powercap / "devices/intel-rapl:0", powercap / "devices/intel-rapl:0/intel-rapl:0:0"]
        for zone in zones:
            zone.mkdir(parents=True)
            (zone / "energy_uj").touch(mode=0o400)
            (zone / "max_energy_range_uj").touch(mode=0o444)
            (powercap / zone.name).symlink_to(zone)
        for step, mode, group in (("Start", 0o440, 54320), ("Stop", 0o400, 0)):
            command = re.search(rf"^Exec{step}=/bin/sh -c '(.*)'$", unit, re.M)[1].replace("/sys/class/powercap", str(powercap))
            subprocess.run(["setpriv", "--regid=54320", "--groups=0", "--bounding-set=-all", "--inh-caps=-all", "sh", "-c", command.replace("chgrp gpumeter", "chgrp 54320")],
                           check=True, timeout=60)
            for zone in zones:
                self.assertEqual([(file.stat().st_mode & 0o777, file.stat().st_gid) for file in (zone / "energy_uj", zone / "max_energy_range_uj")], [(mode, group), (0o444, 0)])

    def admitted(self, unit: str) -> "set[str]":
        """The system calls that the unit's filters admit."""
        lines = re.findall(r"^SystemCallFilter=(~?)(.+)$", (ROOT / "systemd" / unit).read_text(), re.M)
        self.assertEqual([words for sign, words in lines if not sign], ["@system-service"])
        found = self.expanded("@system-service") - self.expanded(*(word for sign, words in lines if sign for word in words.split()))
        self.assertIn("openat", found)
        return found

    @staticmethod
    def expanded(*words: str) -> "set[str]":
        groups, seen = [word for word in words if word.startswith("@")], set(words)
        while groups:
            said = analyze("syscall-filter", groups.pop()).stdout
            calls = {line.strip() for line in said.splitlines() if line.startswith("    ") and not line.strip().startswith("#")}
            groups += [call for call in calls - seen if call.startswith("@")]
            seen |= calls
        return seen


if __name__ == "__main__":
    unittest.main(verbosity=2)
