#!/usr/bin/env python3
"""The scripts of node_exporter's textfile collector, unchanged, write into the folder of pages: every series of theirs is on the page, which
promtool and the strict OpenMetrics parser accept as far as they accept the script's own output.

The scripts are Debian's package prometheus-node-exporter-collectors. What a machine of tests does not have (RAID, NVMe, IPMI, NTP, yum) is replaced
by stand-ins that print in the tools' formats, in a root that is an overlay of this one. Requires root, overlayfs, jq, moreutils and python3-apt."""
from __future__ import annotations

import ctypes
import json
import mmap
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness import BINARY, Daemon, key, promtool_findings, text_page, wait_until

SCRIPTS = Path("/usr/share/prometheus-node-exporter-collectors")
LEAST = 20  # scripts with at least one series each

ATTRIBUTES = """smartctl 7.3
Copyright

=== START OF READ SMART DATA SECTION ===
SMART Attributes Data Structure revision number: 16
Vendor Specific SMART Attributes with Thresholds:
ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE
  5 Reallocated_Sector_Ct   0x0033   100   100   010    Pre-fail  Always       -       0
194 Temperature_Celsius     0x0022   064   045   000    Old_age   Always       -       36
"""
INFO = """smartctl 7.3
Copyright

=== START OF INFORMATION SECTION ===
Model Family:     Samsung based SSDs
Device Model:     Samsung SSD 860
Serial Number:    S1
Firmware Version: RVT1
SMART support is: Available - device has SMART capability.
SMART support is: Enabled
SMART overall-health self-assessment test result: PASSED
"""
DRIVE = "Drive /c0/e252/s0"
STORCLI = json.dumps({"Controllers": [{"Command Status": {"Status": "Success"}, "Response Data": {
    "Basics": {"Controller": 0, "Model": "AVAGO 9361", "Serial Number": "S1", "Current System Date/time": "11/24/2026, 10:00:00",
               "Current Controller Date/Time": "11/24/2026, 10:00:05"},
    "Version": {"Firmware Version": "4.6", "Driver Name": "megaraid_sas"}, "HwCfg": {"ROC temperature(Degree Celsius)": 55, "Backend Port Count": 8},
    "Status": {"BBU Status": 0, "Controller Status": "Optimal"}, "Scheduled Tasks": {"Patrol Read Reoccurrence": "168 hrs"}, "Drive Groups": 1,
    "Virtual Drives": 1, "VD LIST": [{"DG/VD": "0/0", "Name": "root", "Cache": "RWBD", "TYPE": "RAID1", "State": "Optl"}], "Physical Drives": 1,
    "PD LIST": [{"EID:Slt": "252:0", "DID": 9, "Intf": "SATA", "Med": "SSD", "Model": "M", "DG": 0, "State": "Onln"}],
    f"{DRIVE} - Detailed Information": {
        f"{DRIVE} State": {"Shield Counter": 0, "Media Error Count": 0, "Other Error Count": 1, "Predictive Failure Count": 0,
                           "S.M.A.R.T alert flagged by drive": "No"},
        f"{DRIVE} Device attributes": {"Link Speed": "6.0Gb/s", "Device Speed": "6.0Gb/s", "Firmware Revision": "F", "SN": "X"},
        f"{DRIVE} Policies/Settings": {"Commissioned Spare": "No", "Emergency Spare": "No"}}}}]})
MDADM = """/dev/md127:
           Version : 1.2
        Raid Level : raid1
        Array Size : 1048576 (1024.00 MiB 1073.74 MB)
     Used Dev Size : 1048576 (1024.00 MiB 1073.74 MB)
      Raid Devices : 2
    Active Devices : 2
             State : clean
            Events : 17
"""
NVME = {"temperature": 310, "avail_spare": 100, "spare_thresh": 10, "percent_used": 2, "critical_warning": 0, "media_errors": 0, "num_err_log_entries": 1,
        "power_cycles": 9, "power_on_hours": 100, "controller_busy_time": 7, "data_units_written": 5, "data_units_read": 6, "host_read_commands": 8,
        "host_write_commands": 9}
SENSORS = "CPU Temp | 42.000 | degrees C | ok | na\nFAN1 | 3200.000 | RPM | ok | na\n12V | 12.100 | Volts | ok | na\nPSU | 210.000 | Watts | ok | na\n"


def says(text: str) -> str:
    return f"#!/bin/sh\ncat <<'END'\n{text.rstrip()}\nEND\n"


STAND_INS = {  # file of the overlay -> what it holds; programs begin with #!
    "usr/bin/btrfs": says("[/dev/vdb1].write_io_errs 0"),
    "usr/bin/chronyc": says("A9FEA97B,169.254.169.123,4,1700000000.1,0.000001,-0.000002,0.00001,1.5,0.001,0.02,0.0003,0.0004,16.2,Normal"),
    "usr/bin/ntpq": "#!/bin/sh\nif [ \"$1\" = -c ]; then echo 'offset=-0.6, sys_jitter=0.7, rootdisp=1.2, rootdelay=3.4'; else cat <<'END'\n"
                    "     remote           refid      st t when poll reach   delay   offset  jitter\n"
                    "==============================================================================\n"
                    "*10.0.0.1  10.1.1.1  2 u 33 64 377 0.551 -0.622 0.711\nEND\nfi\n",
    "usr/sbin/mdadm": says(MDADM), "usr/bin/mget_temp_ext": says("61"),
    "usr/sbin/multipathd": says("dev dm_st chk_st\nsda active ready\nsdb failed faulty"),
    "usr/bin/nvme": "#!/bin/sh\ncase $1 in version) echo 'nvme version 2.3';; list) echo '{\"Devices\": [{\"DevicePath\": \"/dev/nvme0n1\"}]}';;\n"
                    f"*) echo '{json.dumps(NVME)}';; esac\n",
    "usr/sbin/pvs": says("LVM2_PV_NAME=/dev/sda LVM2_PV_FMT=lvm2 LVM2_PV_FREE=10 LVM2_PV_SIZE=20 LVM2_PV_UUID=u1"),
    "usr/sbin/vgs": says("LVM2_VG_NAME=vg0 LVM2_VG_FREE=10 LVM2_VG_SIZE=20"),
    "usr/sbin/lvs": says("LVM2_LV_UUID=u2 LVM2_VG_NAME=vg0 LVM2_DATA_PERCENT=12.5"),
    "usr/bin/pacman": says("linux 6.1 -> 6.2"), "usr/bin/yum": says("kernel.x86_64 6.1 updates\nbash.x86_64 5.2 base"),
    "usr/sbin/smartctl": "#!/bin/sh\ncase \"$*\" in *-V*) echo 'smartctl 7.3 2022-02-28 r5338';; *--scan-open*) echo '/dev/sda -d sat # ATA device';;\n"
                         f"*-A*|*--attributes*) cat <<'END'\n{ATTRIBUTES}END\n;; *-i*|*--info*|*--health*) cat <<'END'\n{INFO}END\n;; esac\n",
    "opt/MegaRAID/storcli/storcli64": says(STORCLI),
    "etc/fstab": "/dev/vda1 / ext4 defaults 0 1\n", "etc/lsb-release": "DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE=22.04\nDISTRIB_CODENAME=jammy\nDISTRIB_DESCRIPTION=\"Ubuntu 22.04\"\n",
    "dev/md127": "", "dev/null": "", "sys/class/infiniband/mlx5_0/x": "",
    "sys/devices/virtual/block/md127/disk0/x": "", "sys/devices/virtual/block/md127/disk1/x": "",
    **{f"sys/devices/virtual/block/md127/md/{name}": value for name, value in
       {"layout": "0", "level": "raid1", "metadata_version": "1.2", "raid_disks": "2", "rd0/state": "in_sync", "rd1/state": "in_sync"}.items()},
    **{f"sys/fs/btrfs/f1/allocation/{kind}/{name}": "4096" for kind in ("data", "metadata", "system")
       for name in ("total_bytes", "bytes_used", "bytes_reserved", "bytes_pinned", "disk_total", "disk_used")},
}
ARGUMENTS = {"directory-size.sh": "/usr/share/doc/base-files", "lvm-prom-collector": "-p -s -t -g", "ipmitool": "< /sensors"}
SECOND = {"md_info_detail.sh": "md_info.sh", "smartmon.py": "smartmon.sh"}  # the same series as another script: an administrator runs one of the two
# Runs in a mount namespace of its own: $1 the overlay's folder, $2 that of the outputs.
IN_OVERLAY = f"""set -eu
mount -t overlay overlay -o lowerdir=/,upperdir=$1/upper,workdir=$1/work $1/root
mount --rbind /proc $1/root/proc
mount --bind /dev/null $1/root/dev/null
mkdir -p $1/root/dev/md
ln -s ../md127 $1/root/dev/md/0
ln -s /proc/self/fd $1/root/dev/fd
for disk in 0 1; do ln -s ../../disk$disk $1/root/sys/devices/virtual/block/md127/md/rd$disk/block; done
rm -f $1/root/etc/os-release $1/root/usr/lib/os-release
for script in {SCRIPTS}/*; do
  name=${{script##*/}}
  arguments=$(cat "$1/arguments/$name" 2>/dev/null || :)
  timeout 60 chroot $1/root /bin/bash -c "PATH=/usr/sbin:/usr/bin:/sbin:/bin $script $arguments" > "$2/$name" 2> "$2/.$name.errors" || echo "$name: exit $?" >&2
done
"""


def missing() -> str:
    if os.geteuid() != 0:
        return "only root can mount"
    if not SCRIPTS.is_dir():
        return "no package prometheus-node-exporter-collectors"
    lacks = [tool for tool in ("jq", "sponge", "promtool", "unshare") if subprocess.run(["which", tool], capture_output=True).returncode]
    return f"no {', '.join(lacks)}" if lacks else ""


@unittest.skipIf(missing(), missing())
class TextfileScripts(unittest.TestCase):
    def setUp(self) -> None:
        self.base = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-scripts-", dir="/dev/shm")))
        self.libc = ctypes.CDLL(None)
        self.watch = self.libc.inotify_init()  # what the scripts about processes find
        library = self.base / "lib"
        library.mkdir()
        (library / "old.so").write_bytes(b"x" * 4096)
        with (library / "old.so").open("rb") as file:
            self.mapped = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ)
        (library / "old.so").unlink()

    def tearDown(self) -> None:
        os.close(self.watch)
        self.mapped.close()

    def outputs(self) -> dict[str, str]:
        for name in ("upper", "work", "root", "arguments", "outputs"):
            (self.base / name).mkdir()
        for name, text in {**STAND_INS, "sensors": SENSORS}.items():
            file = self.base / "upper" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755 if text.startswith("#!") else 0o644)
        for name, text in ARGUMENTS.items():
            (self.base / "arguments" / name).write_text(text)
        ran = subprocess.run(["unshare", "-m", "sh", "-c", IN_OVERLAY, "sh", self.base, self.base / "outputs"], capture_output=True, text=True, timeout=300)
        if "mount:" in ran.stderr:
            self.skipTest(ran.stderr)
        print(ran.stderr, end="")
        return {file.name: file.read_text() for file in sorted((self.base / "outputs").iterdir()) if not file.name.startswith(".")}

    def test_twenty_scripts_are_on_the_page(self) -> None:
        outputs = {name: text for name, text in self.outputs().items() if len(text_page(text))}
        self.assertGreaterEqual(len(outputs), LEAST, sorted(outputs))
        pages = self.base / "pages"
        pages.mkdir()
        config = self.base / "gpumeter.yaml"
        config.write_text(f"pages: {{folders: [{pages}]}}\njobs: {{enabled: false}}\ncollectors: {{nvidia: {{enabled: false}}}}\n")
        shown, findings, own = 0, [], []
        with Daemon("--simulate=1", f"--config.file={config}") as daemon:
            self.assertEqual(promtool_findings(daemon.fetch("/metrics").text), "")
            for leave in (set(SECOND), set(SECOND.values())):
                for file in pages.iterdir():
                    file.unlink()
                round_of = {name: text for name, text in outputs.items() if name not in leave}
                for name, text in round_of.items():
                    subprocess.run(["sponge", pages / f"{name}.prom"], input=text, text=True, check=True)
                wait_until(lambda: {dict(labels)["page"]: value for (_, labels), value in daemon.page().of("gpumeter_page_up").items()}
                           == {name: 1 for name in round_of}, f"all pages are shown:\n{daemon.log}", 30)
                text = daemon.fetch("/metrics").text
                on_page, strict = text_page(text), daemon.page()
                for script, raw in round_of.items():
                    series = {key(name, **{label: value for label, value in labels if value}): value  # an empty label is none
                              for (name, labels), value in text_page(raw).items()}
                    self.assertEqual({where: on_page.get(where) for where in series}, series, script)
                    shown += len(series)
                    own += promtool_findings(raw).splitlines()
                findings += promtool_findings(text).splitlines()
                self.assertGreater(len(strict), len(round_of))
        more = [line for line in findings if line not in own]
        self.assertEqual(more, [], "promtool has nothing to say that it does not say of the scripts themselves")
        clean = [name for name, raw in outputs.items() if not promtool_findings(raw)]
        print(f"{len(outputs)} scripts, {shown} series in two rounds; promtool has no finding for {len(clean)} scripts' own outputs, "
              f"{len(set(own))} for the others', and {len(set(findings))} of these for the page: {sorted(set(findings))}")


if __name__ == "__main__":
    print(BINARY, file=sys.stderr)
    unittest.main()
