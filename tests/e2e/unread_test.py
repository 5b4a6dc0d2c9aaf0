#!/usr/bin/env python3
"""GPUs that the bus shows and no collector reads: the daemon's list, --list-devices, and the one line in the log of a machine without a
GPU that is read."""
import json
import tempfile
import unittest
from pathlib import Path

from harness import Daemon, key, run, wait_until

AMD = "0000:0c:00.0"
INTEL = "0000:00:02.0"


class UnreadTest(unittest.TestCase):
    def setUp(self):
        self.sysfs = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        (self.sysfs / "bus/pci/devices").mkdir(parents=True)

    def card(self, address: str, pci_id: str, driver: str = "") -> None:
        folder = self.sysfs / "bus/pci/devices" / address
        folder.mkdir()
        (folder / "uevent").write_text((f"DRIVER={driver}\n" if driver else "") + f"PCI_CLASS=30000\nPCI_ID={pci_id}\n")

    def daemon(self, *arguments: str) -> Daemon:
        return self.enterContext(Daemon(f"--path.sysfs={self.sysfs}", "--no-collector.nvidia", *arguments))

    def unread(self, daemon: Daemon) -> dict:
        return {each["pci_address"]: each for each in json.loads(daemon.fetch("/api/v1/devices").text)["unread"]}

    def test_a_machine_without_a_gpu(self):
        daemon = self.daemon()
        wait_until(lambda: "GPU" in daemon.log, "the log says so", 10)
        self.assertEqual(daemon.stop()[0], 0)
        about = [line for line in daemon.log.splitlines() if "GPU" in line]
        self.assertEqual(len(about), 1, daemon.log)
        self.assertIn('level=info msg="no GPU is read: the PCI bus shows none"', about[0])

    def test_cards_without_a_driver_and_of_a_disabled_collector(self):
        self.card(AMD, "1002:73BF")
        self.card(INTEL, "8086:9A49", "i915")
        daemon = self.daemon("--no-collector.intel")
        found = wait_until(lambda: self.unread(daemon), "the bus was read", 10)
        self.assertEqual(list(found), [INTEL, AMD])
        self.assertEqual(found[AMD], {
            "pci_address": AMD, "vendor": "amd", "pci_id": "1002:73bf", "driver": None, "module": "amdgpu",
            "why": "no driver is bound to it: the kernel module amdgpu is not loaded",
            "remedy": "modprobe amdgpu; if there is no such module, install the driver"})
        self.assertEqual(found[INTEL]["driver"], "i915")
        self.assertEqual(found[INTEL]["why"], "the collector intel is disabled")
        self.assertEqual(daemon.stop()[0], 0)
        self.assertEqual(sum(AMD in line for line in daemon.log.splitlines()), 1, daemon.log)
        (self.sysfs / "module/amdgpu").mkdir(parents=True)
        listed = run("--list-devices", f"--path.sysfs={self.sysfs}", "--no-collector.nvidia", "--no-collector.intel", f"--path.state={self.sysfs}/state").stdout.splitlines()
        self.assertEqual(listed[:3], ["no GPU found", "", "on the bus and not read:"])
        self.assertEqual([line.split()[0] for line in listed[3:]], [INTEL, AMD])
        self.assertIn("although the kernel module amdgpu is loaded; see dmesg", listed[4])

    def test_a_card_of_a_virtual_machine_is_given_to_it(self):
        self.card(AMD, "1002:73BF", "vfio-pci")
        self.card("0000:0d:00.0", "1002:73BF", "vfio-pci")
        emulator = self.sysfs / "proc/4711"
        emulator.mkdir(parents=True)
        (emulator / "cgroup").write_text("0::/machine.slice/machine-qemu\\x2d2\\x2dbig\\x2done.scope/libvirt/emulator\n")
        (emulator / "cmdline").write_text(f'qemu-system-x86_64\0-device\0{{"driver":"vfio-pci","host":"{AMD}","id":"hostdev0"}}\0')
        daemon = self.daemon(f"--path.procfs={self.sysfs}/proc")
        found = wait_until(lambda: self.unread(daemon), "the bus was read", 10)
        self.assertEqual(found[AMD]["why"], "it is given to the virtual machine big-one")
        self.assertEqual(found["0000:0d:00.0"]["why"], "it is bound to vfio-pci, for a virtual machine")
        page = wait_until(lambda: (page := daemon.page()).of("gpumeter_given_device_info") and page, "the card is given", 10)
        self.assertEqual(page.of("gpumeter_given_device_info"), {key("gpumeter_given_device_info", pci_address=AMD, vendor="amd", kind="vm", workload="big-one"): 1})
        listed = run("--list-devices", f"--path.sysfs={self.sysfs}", f"--path.procfs={self.sysfs}/proc", "--no-collector.nvidia", f"--path.state={self.sysfs}/state").stdout
        self.assertIn(f"{AMD} amd 1002:73bf (vfio-pci): it is given to the virtual machine big-one", listed)

    def test_a_collector_that_is_disabled(self):
        self.card(AMD, "1002:73BF", "amdgpu")
        daemon = self.daemon("--no-collector.amd", "--collector.disable-defaults")
        wait_until(lambda: "no GPU is read" in daemon.log, "the log says so", 10)
        self.assertEqual(self.unread(daemon)[AMD]["why"], "the collector amd is disabled")
        self.assertEqual(daemon.stop()[0], 0)
        about = [line for line in daemon.log.splitlines() if "GPU" in line]
        self.assertEqual(len(about), 1, daemon.log)
        self.assertIn(f"{AMD} amd 1002:73bf (amdgpu): the collector amd is disabled; set collectors.amd.enabled: true", about[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
