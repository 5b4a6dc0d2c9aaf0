#!/usr/bin/env python3
"""`gpumeter bundle`: an unpacked bundle is a capture. Laid out again, it gives the page that it holds, and it names no device, host or person.

What is bundled: all cards of $GPUMETER_CAPTURES/amd and intel, every topology of kfd, every nvidia-smi output of nvidia, and every scenario of
tests/fixtures/nvidia. What lays bundles out is what lays captures out: tools/make-sysroot next to the captures, and the fake NVML. So does each
unpacked bundle in $GPUMETER_CAPTURES/bundles; UPDATE_GOLDEN=1 writes the page of such a bundle anew. Without GPUMETER_BUNDLES=all the test takes
some of the scenarios and half of the outputs.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "e2e"), str(HERE / "fixtures"), str(HERE / "fakes/nvml")]
import at_once  # noqa: E402
import kfd_test  # noqa: E402
import nvidia_captures_test  # noqa: E402
import yaml  # noqa: E402
from captures_test import CAPTURES, MAKE_SYSROOT, cards  # noqa: E402
from device_tree import MACHINES, lay_machine  # noqa: E402
from from_nvidia_smi import scenario_of  # noqa: E402
from golden_nvidia_test import NO_GPUS, SAME_AS, TIME, of_gpus, scenarios  # noqa: E402
from harness import BINARY, Daemon, run, text_page  # noqa: E402
from machine import SCENARIOS, Machine  # noqa: E402

ALL = os.environ.get("GPUMETER_BUNDLES") == "all"
SOME = ("h200_mig7", "gb200_nvl72", "vgpu_host", "thor", "pre_volta", "rtx_4080")  # each has what the others lack
# Labels, keys and files that name one device.
IDENTITY = re.compile(r'\b(?:uuid|serial|peer|mig_uuid|pdi|chassis_serial|cluster_uuid|vm)(?:="|: "?)([^\s",}]+)|^(?:unique_id|hive_id) (\d+)$', re.M)


def bundle(folder: Path, *arguments: str, env: dict[str, str] | None = None, code: int = 0, wrap: tuple[str, ...] = ()) -> tuple[Path, str]:
    """The unpacked bundle, and what the command printed."""
    file = folder / "bundle.tar.gz"
    said = subprocess.run([*wrap, BINARY, "bundle", str(file), *arguments], capture_output=True, text=True, timeout=120, env={**os.environ, **(env or {})})
    assert said.returncode == code, said.stdout + said.stderr
    if code == 0:
        subprocess.run(["tar", "-xzf", file, "-C", folder], check=True)
    return folder / "gpumeter-bundle", said.stdout + said.stderr


def page_of(unpacked: Path, procfs: Path) -> str:
    """The page of the machine that a bundle describes."""
    with tempfile.TemporaryDirectory(prefix="gpumeter-test-") as name:
        homes = sorted({card.parent for card in unpacked.glob("*/*/card*") if (card / "device").is_dir()}, key=lambda home: (len(home.name), home.name))
        if homes:
            subprocess.run([MAKE_SYSROOT, f"{name}/machine", *homes], check=True, capture_output=True)
        arguments = [f"--path.sysfs={name}/machine/sys", f"--path.procfs={procfs}", f"--path.state={name}"]
        if not (scenario := unpacked / "nvidia/scenario.yaml").exists():
            return of_gpus(run("--once=0", *arguments, "--no-collector.nvidia").stdout)
        with Machine(scenario, TIME) as machine:
            return of_gpus(run("--once=0", *machine.arguments, *arguments, env=machine.env).stdout)


def identities(*texts: str) -> set[str]:
    found = {(one or two).removeprefix("GPU-").removeprefix("MIG-") for text in texts for one, two in IDENTITY.findall(text)}
    return {each for each in found if len(each) >= 8 and each.strip("0-") and not re.fullmatch(r"[\da-f]{4}:..:..\..", each)}


class BundleTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="gpumeter-test-")
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name)

    def assert_names_none_of(self, unpacked: Path, secrets: set[str]) -> None:
        for file in (each for each in unpacked.rglob("*") if each.is_file()):
            content = f"{file.relative_to(unpacked)}\n{file.read_bytes().decode(errors='replace')}".lower()
            self.assertEqual([secret for secret in secrets if secret.lower() in content], [], file)

    def assert_gives_its_page(self, *arguments: str, procfs: Path | None = None, env: dict[str, str] | None = None) -> Path:
        """Compares series as a set: their order follows identities."""
        places = [f"--path.procfs={procfs or self.folder}", f"--path.state={self.folder}"]
        source = run("--once=0", *arguments, *places, env=env).stdout
        unpacked, _ = bundle(self.folder, *arguments, *places, env=env)
        page = of_gpus((unpacked / "pages/once.prom").read_text())
        self.assertEqual(sorted(page_of(unpacked, procfs or self.folder).splitlines()), sorted(page.splitlines()))
        self.assertEqual(re.sub(r'"[^"]*"', "", page), re.sub(r'"[^"]*"', "", of_gpus(source)))  # but for the values of labels
        self.assert_names_none_of(unpacked, identities(source))
        return unpacked

    def check_scenario(self, scenario: Path | str) -> None:
        with Machine(scenario, TIME) as machine:
            self.assert_gives_its_page(*machine.arguments, env=machine.env, procfs=machine.procfs)

    def test_scenarios(self):
        for name in (each for each in scenarios() if each in SOME or (ALL and each not in NO_GPUS and each not in SAME_AS)):
            with self.subTest(scenario=name):
                self.setUp()
                self.check_scenario(SCENARIOS / f"{name}.yaml")

    def test_nvidia_captures(self):
        for capture, which in (case for case in nvidia_captures_test.cases() if ALL or case[1] == "load"):
            with self.subTest(capture=capture.name, section=which):
                self.setUp()
                self.check_scenario(yaml.safe_dump(scenario_of(capture.read_text(errors="replace"), which)))

    @unittest.skipUnless(cards(), "no captures")
    def test_all_cards_in_one_machine(self):
        subprocess.run([MAKE_SYSROOT, self.folder / "machine", *cards()], capture_output=True, check=True)
        unpacked = self.assert_gives_its_page(f"--path.sysfs={self.folder}/machine/sys", "--no-collector.nvidia")
        self.assertEqual(len(list(unpacked.glob("*/*/card*/device"))), len(cards()))
        source = next(CAPTURES.glob("amd/rx6900xt/card*/device"))
        copy = next(each.parent for each in unpacked.glob("amd/*/card*/device/gpu_metrics") if each.read_bytes() == (source / "gpu_metrics").read_bytes())
        files = {file.relative_to(source).as_posix(): file for file in source.rglob("*") if file.is_file() and not file.is_symlink()}
        same = [name for name, file in files.items() if (copy / name).exists() and (copy / name).read_bytes() == file.read_bytes()]
        left_out = {"unique_id", "config", "uevent", *(name for name in files if name.startswith("resource"))}
        self.assertEqual(set(files) - set(same) - left_out, set())

    def test_devices_that_are_no_cards(self):
        lay_machine(self.folder, MACHINES / "trainium.tree")
        places = [f"--path.sysfs={self.folder}/sys", f"--path.procfs={self.folder}/proc", f"--path.state={self.folder}", "--no-collector.nvidia"]
        unpacked, _ = bundle(self.folder, *places)
        source = self.folder / "sys/devices/virtual/neuron_device/neuron1"
        files = [file.relative_to(source) for file in source.rglob("*") if file.is_file()]
        self.assertEqual([file for file in files if (unpacked / "other/neuron1/neuron1" / file).read_text() != (source / file).read_text()],
                         [Path("info/serial_number")])
        self.assert_names_none_of(unpacked, identities(run("--once=0", *places).stdout))

    def test_topologies_of_the_compute_driver(self):
        for topology in kfd_test.topologies():
            with self.subTest(topology=str(topology)):
                self.setUp()
                places = [f"--path.procfs={self.folder}", f"--path.state={self.folder}", "--no-collector.nvidia"]
                kfd_test.lay(self.folder / "source", topology)
                unpacked, _ = bundle(self.folder, f"--path.sysfs={self.folder}/source", *places)
                kfd_test.lay(self.folder / "copy", next(unpacked.glob("amd/*/kfd/topology/nodes")))
                page = of_gpus(run("--once=0", f"--path.sysfs={self.folder}/copy", *places).stdout)
                self.assertEqual(page, of_gpus((unpacked / "pages/once.prom").read_text()))
                self.assert_names_none_of(unpacked, identities(*(file.read_text() for file in topology.glob("*/properties"))))

    @unittest.skipUnless(any(CAPTURES.glob("bundles/*")), "nobody has sent a bundle")
    def test_bundles_of_users(self):
        for unpacked in sorted(CAPTURES.glob("bundles/*")):
            with self.subTest(bundle=unpacked.name):
                self.setUp()
                golden, page = unpacked / "pages/once.prom", page_of(unpacked, self.folder)
                if os.environ.get("UPDATE_GOLDEN") == "1":
                    golden.write_text(page)
                self.assertEqual(sorted(page.splitlines()), sorted(of_gpus(golden.read_text()).splitlines()))

    @unittest.skipUnless(os.geteuid() == 0, "only root gives itself a host name")
    def test_a_running_daemon_a_log_and_a_configuration_with_secrets(self):
        log, config, host = self.folder / "own.log", self.folder / "gpumeter.yaml", "node-77.example.org"
        wrap = ("unshare", "--uts", "sh", "-c", f'hostname {host} && exec "$@"', "sh")
        log.write_text(f"level=error host={host} err=\"Bearer s3cr3t-token\"\nNODE-77 gpumeter[1]: node-77 is no node\n")
        with Daemon("--simulate=2") as daemon:
            config.write_text("otlp:\n  endpoint: https://someone:passw0rd99@collector.example.org:4318  # of Alice\n"
                              "  headers: {Authorization: Bearer s3cr3t-token}\nsampling: {fast: 2s}\n"
                              "servers: {targets: [\"http://one.example.org:8000/metrics\", \"http://two.example.org:8001/metrics\"]}\n")
            unpacked, said = bundle(self.folder, f"--config.file={config}", f"--url=http://127.0.0.1:{daemon.port}", f"--log={log}",
                                    "--simulate=2", f"--path.state={self.folder}", wrap=wrap)
            serials = identities(daemon.fetch("/metrics").text)
        self.assertEqual((unpacked / "configuration.txt").read_text().splitlines()[1:6],
                         ["sampling.fast: 2s", "otlp.endpoint: https://REDACTED@host3:4318", "otlp.headers: REDACTED", f"paths.state: {self.folder}",
                          'servers.targets: ["http://host4:8000/metrics", "http://host5:8001/metrics"]'])
        self.assertEqual((unpacked / "log/daemon.log").read_text(), "level=error host=host1 err=\"Bearer REDACTED\"\nhost2 gpumeter[1]: host2 is no node\n")
        self.assertEqual(len(text_page((unpacked / "pages/daemon.prom").read_text()).of("gpu_up")), 2)
        self.assertGreater(len(serials), 0)
        self.assert_names_none_of(unpacked, serials | {"s3cr3t", "passw0rd99", "example.org", "Alice", "node-77"})
        self.assertIn("pages/health.json", said)
        self.assertEqual((self.folder / "bundle.tar.gz").stat().st_mode & 0o7777, 0o600)
        _, refused = bundle(self.folder, f"--path.state={self.folder}", "--simulate=1", code=1)
        self.assertIn("File exists", refused)

    def test_a_machine_without_gpus_and_daemon_and_journal(self):
        (self.folder / "sys").mkdir()
        unpacked, said = bundle(self.folder, f"--path.sysfs={self.folder}/sys", "--no-collector.nvidia", f"--url=unix:{self.folder}/none",
                                f"--log={self.folder}/none.log", f"--path.state={self.folder}")
        for missing in ("no device of a GPU in", "pages/daemon.prom: ", "log: "):
            self.assertIn(f"missing: {missing}", said)
        self.assertEqual(sorted(each.name for each in unpacked.iterdir()), ["configuration.txt", "contents.txt", "pages", "versions.txt"])

    def test_an_address_that_is_wrong_names_neither_the_host_nor_the_user(self):
        (self.folder / "sys").mkdir()
        unpacked, said = bundle(self.folder, f"--path.sysfs={self.folder}/sys", "--no-collector.nvidia", "--url=ftp://someone:passw0rd99@node-78.example.org",
                                f"--log={self.folder}/none.log", f"--path.state={self.folder}")
        self.assertRegex(said, r'missing: pages of the daemon: "ftp://REDACTED@host\d": the scheme must be http or https\n')
        self.assert_names_none_of(unpacked, {"someone", "passw0rd99", "node-78"})

    def test_a_call_that_hangs_costs_its_gpu_alone(self):
        with Machine("include: h100_8.yaml\nchange:\n  3: {hang: {function: nvmlDeviceGetFBCStats}}\n", TIME) as machine:
            unpacked, said = bundle(self.folder, *machine.arguments, f"--path.state={self.folder}", env=machine.env)
        self.assertIn("missing: NVML: GPU 3: nvmlDeviceGetFBCStats does not return\n", said)
        self.assertEqual(len(yaml.safe_load((unpacked / "nvidia/scenario.yaml").read_text())["devices"]), 7)

    def test_links_pipes_and_what_is_too_large_stay_out(self):
        device = self.folder / "sys/devices/pci0000:00/0000:03:00.0"
        (device / "drm/card0").mkdir(parents=True)
        (self.folder / "sys/class/drm").mkdir(parents=True)
        (self.folder / "sys/class/drm/card0").symlink_to(device / "drm/card0")
        (device / "drm/card0/device").symlink_to("../..")
        (device / "uevent").write_text("DRIVER=amdgpu\nPCI_ID=1002:73BF\nPCI_SLOT_NAME=0000:03:00.0\n")
        (device / "secret").symlink_to("/etc/passwd")
        (device / "folder").symlink_to("/etc")
        os.mkfifo(device / "pipe")
        (device / "large").write_bytes(b"x" * 70000)
        (device / "vpd").write_text("SN12345678")
        (device / "write_only").write_text("x")
        (device / "write_only").chmod(0o200)
        unpacked, _ = bundle(self.folder, f"--path.sysfs={self.folder}/sys", "--no-collector.nvidia", f"--path.state={self.folder}")
        self.assertEqual([each.relative_to(unpacked).as_posix() for each in unpacked.rglob("amd/**/*") if each.is_file()],
                         ["amd/card0/card0/device/uevent"])


if __name__ == "__main__":
    at_once.main(2)
