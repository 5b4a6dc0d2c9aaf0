#!/usr/bin/env python3
"""A virtual machine without a network. In it the installed package's socket listens by ListenStream=vsock:, and systemd starts the service for
the first reader, which comes by the loopback. The machine reads the daemon of its host, and the host reads the machine's, over virtio. It boots
Debian's kernel in QEMU without an accelerator. Requires root, qemu-system-x86, mmdebstrap, cpio, and Cargo, which builds vhost-device-vsock: as
Firecracker does, it connects a guest's vsock with Unix sockets, and needs no module of the host's kernel."""
from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import Daemon, free_port  # noqa: E402

BUILT = ROOT / "build/interop/vsock"
NEEDED = ("qemu-system-x86_64", "mmdebstrap", "cpio", "cargo")
VHOST = "0.3.0"  # vhost-device-vsock's
PATIENCE = 600  # QEMU emulates the processor: the guest boots in half a minute
PORT = 10478
UNIT = """[Unit]
Requires=gpumeter.socket
After=multi-user.target gpumeter.socket
[Service]
Type=idle
ExecStart=/vsock_guest
StandardOutput=tty
TTYPath=/dev/ttyS0
[Install]
WantedBy=multi-user.target
"""
FILES = {
    "etc/systemd/system/try.service": UNIT,
    "etc/modules-load.d/vsock.conf": "virtio_pci\nvsock_loopback\nvmw_vsock_virtio_transport\n",
    "etc/systemd/system/gpumeter.socket.d/override.conf": f"[Socket]\nListenStream=\nListenStream=vsock::{PORT}\n",
    "etc/gpumeter/gpumeter.yaml": "collectors: {simulated: {enabled: true, devices: 2}}\n",
}


def run(*command: object, cwd: Path | None = None) -> str:
    return subprocess.run([str(each) for each in command], check=True, stdout=subprocess.PIPE, text=True, timeout=1500, cwd=cwd).stdout


def package() -> Path:
    """$GPUMETER_DEB, else a new one."""
    if named := os.environ.get("GPUMETER_DEB"):
        return Path(named).resolve()
    run(ROOT / "dev", "package")
    built, = (ROOT / "build").glob("gpumeter_*_amd64.deb")
    return built


def guest(folder: Path) -> tuple[Path, Path]:
    """The kernel, and a file system in memory with the package, whose devices are simulated."""
    folder.chmod(0o755)
    run("apt-get", "-qq", "download", re.search(r"Depends: (\S+)", run("apt-cache", "depends", "linux-image-cloud-amd64"))[1], cwd=folder)
    kernel, image, files = folder / "kernel", folder / "image", folder / "files"
    run("dpkg-deb", "-x", *folder.glob("linux-image-*.deb"), kernel)
    for name, text in FILES.items():
        (files / name).parent.mkdir(parents=True, exist_ok=True)
        (files / name).write_text(text)
    shutil.copy(HERE / "vsock_guest", files)
    hooks = [f"cp {package()} $1/gpumeter.deb", "chroot $1 apt-get install -qq --yes --no-install-recommends /gpumeter.deb >/dev/null 2>&1", f"cp -rT {files} $1",
             f"cp -r {kernel}/lib/modules $1/lib/", "chroot $1 depmod $(ls $1/lib/modules)", "chroot $1 systemctl --quiet enable try.service",
             "chroot $1 systemctl --quiet disable gpumeter.service", "chroot $1 systemctl --quiet mask serial-getty@ttyS0.service", "ln -s sbin/init $1/init"]
    run("mmdebstrap", "--quiet", "--variant=minbase", "--include=systemd-sysv,udev,kmod,socat", *(f"--customize-hook={hook}" for hook in hooks), "bookworm", folder / "root",
        run(ROOT / "packaging/deb/mirror", "bookworm"))
    run("sh", "-c", f"cd {folder}/root && find . -xdev | cpio --quiet -o -H newc >{image}")
    return next((kernel / "boot").glob("vmlinuz-*")), image


class Machine(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-vsock-")))
        BUILT.mkdir(parents=True, exist_ok=True)
        run("cargo", "install", "--quiet", "--root", BUILT, f"vhost-device-vsock@{VHOST}")
        kernel, image = guest(cls.folder)
        # The host's side of the guest's vsock: what the guest connects to at the port of CID 2 is a Unix socket with the port in its name.
        cls.start("vhost", BUILT / "bin/vhost-device-vsock", "--guest-cid=3", f"--socket={cls.folder}/device", f"--uds-path={cls.folder}/vsock")
        port = free_port()
        addresses = (f"127.0.0.1:{port}", f"unix:{cls.folder}/vsock_{PORT}")
        cls.enterClassContext(Daemon("--simulate=3", *(f"--web.listen-address={address}" for address in addresses), port=port))
        deadline = time.monotonic() + 30
        while not (cls.folder / "device").exists():
            assert time.monotonic() < deadline, cls.text("vhost")
            time.sleep(0.1)
        cls.start("guest", "qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "1536", "-nographic", "-no-reboot", "-monitor", "none", "-nic", "none",
                  "-object", "memory-backend-memfd,id=memory,share=on,size=1536M", "-machine", "q35,memory-backend=memory", "-chardev", f"socket,id=vsock,path={cls.folder}/device",
                  "-device", "vhost-user-vsock-pci,chardev=vsock", "-kernel", kernel, "-initrd", image, "-append", "console=ttyS0 quiet systemd.show_status=0")
        cls.of = cls.shown("ready")

    @classmethod
    def start(cls, name: str, *command: object) -> None:
        with (cls.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen([str(each) for each in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)

    @classmethod
    def text(cls, name: str) -> str:
        return (cls.folder / f"{name}.log").read_text(errors="replace").replace("\r", "")

    @classmethod
    def shown(cls, last: str) -> dict[str, tuple[str, int]]:
        """Output and status of the guest's commands, once it has come to this one."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = {name: (output.strip(), int(status)) for name, output, status in re.findall(r"^== (\w+)\n(.*?)\n== status (\d+)$", cls.text("guest"), re.M | re.S)}
            if last in found:
                return found
            assert time.monotonic() < deadline, cls.text("guest")[-3000:]
            time.sleep(0.5)

    def test_systemd_starts_the_service_for_the_first_reader(self) -> None:
        self.assertEqual([self.of[name] for name in ("listens", "before", "service")], [(f"vsock::{PORT} (Stream)", 0), ("inactive", 3), ("active", 0)])
        self.assertIn("HTTP/1.1 200 OK", self.of["starts"][0])
        self.assertEqual(self.of["loopback"], ("GPU OK - 2 GPUs ok | ok=2 degraded=0 failed=0 unknown=0", 0))
        self.assertIn("HTTP/1.1 200 OK", self.of["restarted"][0])

    def test_the_machine_reads_its_host(self) -> None:
        self.assertEqual(self.of["host"], ("GPU OK - 3 GPUs ok | ok=3 degraded=0 failed=0 unknown=0", 0))
        self.assertEqual(self.of["host_page"][0].count("\ngpu_up{"), 3)
        self.assertEqual(self.of["host_top"][1], 0, self.of["host_top"])
        self.assertEqual(self.of["host_record"][1], 0, self.of["host_record"])
        self.assertGreaterEqual(int(self.of["recorded"][0]), 6)
        self.assertEqual(self.of["refused"][1], 3, self.of["refused"])

    def test_the_host_reads_the_machine(self) -> None:
        for path, expected, least in (("/metrics", '\ngpu_up{gpu="1"', 20_000), ("/", "</html>", 1000)):
            answer = self.from_guest(path)
            self.assertIn(expected, answer)
            self.assertGreater(len(answer), least)

    def from_guest(self, path: str) -> str:
        """As through Firecracker: a line names the port, and the connection is the guest's after the answer."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(60)
            client.connect(f"{self.folder}/vsock")
            client.sendall(f"CONNECT {PORT}\n".encode())
            stream = client.makefile("rb")
            self.assertRegex(stream.readline(), rb"^OK \d+\n$")
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            head, _, body = stream.read().decode().partition("\r\n\r\n")
        self.assertTrue(head.startswith("HTTP/1.1 200 OK"), head)
        return body


if __name__ == "__main__":
    missing = [program for program in NEEDED if not shutil.which(program)]
    if missing or os.getuid() != 0 or platform.machine() != "x86_64":
        print(f"skipped: requires root on x86_64 and {', '.join(missing or NEEDED)}")
        sys.exit(77)
    unittest.main(verbosity=2)
