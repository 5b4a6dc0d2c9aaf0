#!/usr/bin/env python3
"""A card is removed and added while the unchanged binary reads the default paths: umockdev replaces
/sys and udev's events. Skipped if umockdev is not installed."""
import os
import shutil
import sys
import unittest

PRELOAD = "libumockdev-preload.so.0"
try:
    import gi

    gi.require_version("UMockdev", "1.0")
    from gi.repository import UMockdev
except (ImportError, ValueError):
    print("skipped: gir1.2-umockdev-1.0 or python3-gi is not installed")
    sys.exit(77)
if not shutil.which("umockdev-wrapper"):
    print("skipped: umockdev is not installed")
    sys.exit(77)
if PRELOAD not in os.environ.get("LD_PRELOAD", ""):  # the test bed has to be preloaded here as in the daemon
    os.execvp("umockdev-wrapper", ["umockdev-wrapper", sys.executable, "-B", *sys.argv])

from harness import OF_THE_HOST, Daemon, wait_until  # noqa: E402

BRIDGE = "/sys/devices/pci0000:00/0000:00:03.1"


class HotPlugTest(unittest.TestCase):
    def setUp(self):
        self.bed = UMockdev.Testbed.new()

    def daemon(self) -> Daemon:
        # The test bed passes its path to its children by the C library's environment, which Python copied before.
        return Daemon("--no-collector.simulated", env={"UMOCKDEV_DIR": self.bed.get_root_dir()})

    def plug(self, address: str, card: int, hwmon: int) -> str:
        """A Radeon in a slot, with the node of its driver and its sensors; where it is in /sys."""
        self.bed.add_from_string(f"""P: /devices/pci0000:00/0000:00:03.1/{address}
E: SUBSYSTEM=pci
E: DRIVER=amdgpu
E: PCI_CLASS=30000
E: PCI_ID=1002:73BF
E: PCI_SLOT_NAME={address}
A: vendor=0x1002\\n
A: device=0x73bf\\n
A: unique_id=c02a8c6b4d5e6f70\\n
A: gpu_busy_percent=37\\n
A: mem_info_vram_total=17163091968\\n

P: /devices/pci0000:00/0000:00:03.1/{address}/drm/card{card}
N: dri/card{card}
E: SUBSYSTEM=drm
E: DEVNAME=/dev/dri/card{card}
E: MAJOR=226
E: MINOR={card}
A: dev=226:{card}\\n
L: device=../../../{address}

P: /devices/pci0000:00/0000:00:03.1/{address}/hwmon/hwmon{hwmon}
E: SUBSYSTEM=hwmon
A: name=amdgpu\\n
A: temp1_label=edge\\n
A: temp1_input=56000\\n
L: device=../../../{address}
""")
        path = f"{BRIDGE}/{address}"
        self.bed.uevent(path, "add")
        return path

    def pull(self, path: str, card: int, hwmon: int):
        for device in (f"{path}/hwmon/hwmon{hwmon}", f"{path}/drm/card{card}", path):
            self.bed.uevent(device, "remove")
            self.bed.remove_device(device)

    def test_a_card_goes_and_comes_back_in_another_slot(self):
        path = self.plug("0000:0c:00.0", card=0, hwmon=5)
        with self.daemon() as daemon:
            busy = lambda: daemon.page().one("gpu_busy_seconds_total", gpu="0")
            before = wait_until(busy, "the card is read", 20)
            uuid = "GPU-c02a8c6b4d5e6f70"
            self.assertEqual(daemon.page().one("gpu_temperature_celsius", uuid=uuid, sensor="core"), 56)

            self.pull(path, card=0, hwmon=5)
            wait_until(lambda: daemon.page().one("gpu_up", uuid=uuid) == 0, "gpu_up 0", 20)
            page = daemon.page()
            stay = {name for name, _ in page if name.startswith("gpu_")} - {"gpu_health_reason", *OF_THE_HOST}  # lost for 5 s
            self.assertEqual(stay, {"gpu_up", "gpu_health"})

            self.plug("0000:41:00.0", card=1, hwmon=6)
            wait_until(lambda: daemon.page().one("gpu_up", uuid=uuid) == 1, "gpu_up 1", 20)
            page = daemon.page()
            self.assertEqual(page.one("gpu_temperature_celsius", gpu="0", uuid=uuid, sensor="core"), 56)
            self.assertEqual(len(page.of("gpu_info", gpu="0", uuid=uuid, pci_address="0000:41:00.0")), 1)
            self.assertGreaterEqual(busy(), before)  # the counter goes on
            self.assertEqual(daemon.stop()[0], 0)

    def test_a_first_card_is_found_when_it_comes(self):
        with self.daemon() as daemon:
            self.assertEqual(daemon.page().of("gpu_up"), {})
            self.plug("0000:0c:00.0", card=0, hwmon=5)
            wait_until(lambda: daemon.page().one("gpu_up") == 1, "gpu_up 1", 20)


if __name__ == "__main__":
    unittest.main(verbosity=2)
