#!/usr/bin/env python3
"""The OCI image that $GPUMETER_IMAGE names: what is in it, and that crun and runc start it as the manifests say.

`./dev image` builds the image and runs this test. The containers share the network of the test, and no port is open to others."""
from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

from pod import daemon_set, runtime_config

ROOT = Path(__file__).resolve().parents[2]
IMAGE = os.environ.get("GPUMETER_IMAGE", "")
MIB = 1 << 20
UID = "7f1c2a53-6d0c-4ff7-9a0e-0d6b4f8a1c2e"
LIBRARY = re.compile(r"usr/lib/[^/]+-linux-gnu[^/]*/[^/]+\.so[^/]*|usr/lib64/ld-linux[^/]+|usr/lib/ld-linux[^/]+")
FILES = re.compile(r"usr/bin/(gpumeter(-commands|-nccl|-profiler|-servers)?|chown)|etc/(passwd|group|nsswitch\.conf|gpumeter/gpumeter\.yaml)|usr/lib/os-release"
                   r"|usr/share/doc/[^/]+/copyright|usr/share/doc/gpumeter/sbom\.spdx\.json|usr/share/libdrm/amdgpu\.ids"
                   r"|usr/share/misc/pci\.ids|var/lib/dpkg/status\.d/[^/]+")
# crun refuses machines whose controllers are divided between both versions of control groups, so it only sees those of the first.
DIVIDED = Path("/sys/fs/cgroup/unified/cgroup.controllers")
ONE_VERSION = ["unshare", "--mount", "sh", "-c", 'umount /sys/fs/cgroup/unified && exec "$@"', "sh"]
RUNTIMES = {name: [*(ONE_VERSION if name == "crun" and DIVIDED.exists() and DIVIDED.read_text().strip() else []), name]
            for name in ("crun", "runc") if shutil.which(name)}


def blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class ImageCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-image-")))
        cls.layout = cls.folder / "layout"
        cls.layout.mkdir()
        subprocess.run(["tar", "-xf", IMAGE, "-C", str(cls.layout)], check=True, timeout=60)
        index = json.loads((cls.layout / "index.json").read_text())
        [entry] = index["manifests"]
        cls.tag = entry["annotations"]["org.opencontainers.image.ref.name"]
        cls.manifest = json.loads(blob(cls.layout, entry["digest"]).read_text())
        cls.config = json.loads(blob(cls.layout, cls.manifest["config"]["digest"]).read_text())
        rootless = [] if os.geteuid() == 0 else ["--rootless"]
        subprocess.run(["umoci", "--log=error", "unpack", *rootless, "--image", f"{cls.layout}:{cls.tag}", str(cls.folder / "bundle")],
                       check=True, timeout=120)
        cls.rootfs = cls.folder / "bundle/rootfs"

    def contents(self) -> set[str]:
        return {str(path.relative_to(self.rootfs)) for path in self.rootfs.rglob("*") if path.is_file() and not path.is_symlink()}


class ContentTest(ImageCase):
    def test_it_is_small(self) -> None:
        size = sum(layer["size"] for layer in self.manifest["layers"])
        unpacked = sum(path.lstat().st_size for path in self.rootfs.rglob("*") if path.is_file() and not path.is_symlink())
        print(f"image: {size / MIB:.1f} MiB compressed, {unpacked / MIB:.1f} MiB unpacked, {len(self.contents())} files")
        self.assertLess(size, 30 * MIB)

    def test_its_configuration(self) -> None:
        config = self.config["config"]
        self.assertEqual(config["User"], "65532:65532")
        self.assertEqual(config["Entrypoint"], ["/usr/bin/gpumeter"])
        self.assertIn("10478/tcp", config["ExposedPorts"])
        self.assertIn("NVIDIA_DRIVER_CAPABILITIES=utility", config["Env"])
        self.assertEqual(config["Labels"]["org.opencontainers.image.version"], self.tag)

    @unittest.skipUnless(shutil.which("skopeo"), "skopeo is not installed")
    def test_skopeo_copies_it(self) -> None:
        """The program with which a registry gets it. It verifies each checksum."""
        source, target = f"oci-archive:{IMAGE}:{self.tag}", self.folder / "copied"
        subprocess.run(["skopeo", "--insecure-policy", "copy", source, f"dir:{target}"], check=True, capture_output=True, timeout=60)
        copied = json.loads((target / "manifest.json").read_text())
        self.assertEqual(copied["config"]["digest"], self.manifest["config"]["digest"])

    def test_nothing_else_is_in_it(self) -> None:
        """Neither a shell nor a package manager: only the programs, libraries, lists and notices."""
        rest = {name for name in self.contents() if not FILES.fullmatch(name) and not LIBRARY.fullmatch(name)}
        self.assertEqual(rest, set())

    def test_every_library_that_the_programs_load_is_in_it(self) -> None:
        names = {path.name for path in self.rootfs.glob("usr/lib/*/*.so*")} | {path.name for path in self.rootfs.glob("usr/lib*/ld-linux*")}
        for program in ("gpumeter", "gpumeter-commands", "gpumeter-nccl", "gpumeter-profiler", "gpumeter-servers", "chown"):
            needed = subprocess.run(["readelf", "-dW", str(self.rootfs / "usr/bin" / program)], capture_output=True, text=True, check=True).stdout
            self.assertLessEqual(set(re.findall(r"\(NEEDED\).*\[(.+)\]", needed)), names)

    def test_no_file_has_another_owner_or_special_mode(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("the owners of unpacked files need root")
        for path in self.rootfs.rglob("*"):
            stat = path.lstat()
            self.assertEqual((stat.st_uid, stat.st_gid), (0, 0), path)
            self.assertEqual(stat.st_mode & 0o7000, 0, path)
            self.assertTrue(path.is_symlink() or not stat.st_mode & 0o022, path)

    def test_the_list_of_materials_names_every_file_and_package(self) -> None:
        document = json.loads(Path(IMAGE.removesuffix(".tar") + ".spdx.json").read_text())
        listed = {entry["fileName"].removeprefix("./"): {item["algorithm"]: item["checksumValue"] for item in entry["checksums"]}["SHA256"]
                  for entry in document["files"]}
        self.assertEqual(listed, {name: hashlib.sha256((self.rootfs / name).read_bytes()).hexdigest() for name in self.contents()})
        names = [entry["SPDXID"] for entry in (*document["packages"], *document["files"])]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual({package["name"] for package in document["packages"]},
                         {path.name for path in (self.rootfs / "var/lib/dpkg/status.d").iterdir()})
        print(f"packages: {', '.join(package['name'] + ' ' + package['versionInfo'] for package in document['packages'])}")
        for package in document["packages"]:
            self.assertRegex(package["versionInfo"], r"^[0-9]")
            self.assertTrue((self.rootfs / "usr/share/doc" / package["name"] / "copyright").is_file())


@unittest.skipUnless(os.geteuid() == 0, "the containers are started as root")
class RunTest(ImageCase):
    def volumes(self, name: str) -> dict[str, Path]:
        """Doubles of the host's paths, as the kubelet finds or creates them: root's."""
        host = self.folder / name
        sources = {volume: host / volume for volume in ("config", "state", "run", "pod-logs", "pods-api", "pod-resources")}
        for path in sources.values():
            path.mkdir(parents=True)
        (sources["pod-resources"]).chmod(0o750)
        (sources["config"] / "gpumeter.yaml").write_text("log: {format: json}\n")
        (sources["pod-logs"] / f"team-a_train-0_{UID}/pytorch").mkdir(parents=True)
        sources["machine-id"] = host / "machine-id"
        sources["machine-id"].write_text("0123456789abcdef0123456789abcdef\n")
        return sources

    def bundle(self, name: str, config: dict[str, Any]) -> Path:
        """A bundle of its own, which shares the unpacked image: the root is read-only."""
        config["root"]["path"] = str(self.rootfs)
        folder = self.folder / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    def image_config(self) -> dict[str, Any]:
        return json.loads((self.folder / "bundle/config.json").read_text())

    def start(self, runtime: str, name: str, config: dict[str, Any]) -> subprocess.Popen[bytes]:
        identifier = f"gpumeter-test-{os.getpid()}-{name}"
        command = [*RUNTIMES[runtime], "--root", str(self.folder / f"state-{name}")]
        started = subprocess.Popen([*command, "run", "--bundle", str(self.bundle(name, config)), identifier],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(subprocess.run, [*command, "delete", "--force", identifier], capture_output=True)
        self.addCleanup(lambda: (started.kill(), started.wait(), started.stdout.close()))
        return started

    def finish(self, started: subprocess.Popen[bytes]) -> tuple[int, str]:
        output = started.communicate(timeout=60)[0].decode()
        return started.returncode, output

    def until_ready(self, port: int, started: subprocess.Popen[bytes]) -> None:
        for _ in range(600):
            if started.poll() is not None:
                self.fail(f"it ended with {started.returncode}: {started.stdout.read().decode()}")
            try:
                if get(port, "/-/ready")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        self.fail("not ready within 30 s")

    def init_process(self, port: int) -> int:
        """The daemon's process on the host: the one whose command has the port."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0] == b"/usr/bin/gpumeter" and f"--web.listen-address=127.0.0.1:{port}".encode() in words:
                return int(path.parent.name)
        self.fail("no such process")

    def serve(self, runtime: str, *, sockets: bool) -> None:
        name, pod, port = f"{runtime}-{'sockets' if sockets else 'plain'}", daemon_set(sockets=sockets), free_port()
        user = 0 if sockets else 65532
        sources = self.volumes(f"host-{name}")
        code, output = self.finish(self.start(runtime, f"{name}-folders", runtime_config(self.image_config(), pod, "folders", sources)))
        self.assertEqual((code, output), (0, ""))
        self.assertEqual([sources[volume].stat().st_uid for volume in ("state", "run")], [user, user])

        config = runtime_config(self.image_config(), pod, "gpumeter", sources)
        # The test's only changes: another address, and GPUs that every machine has.
        config["process"]["args"] = [word for word in config["process"]["args"] if "listen" not in word] + [
            f"--web.listen-address=127.0.0.1:{port}", "--simulate=2"]
        started = self.start(runtime, name, config)
        self.until_ready(port, started)
        status, page = get(port, "/metrics")
        self.assertEqual(status, 200)
        self.assertEqual(len(re.findall(r"^gpu_up\{.*\} 1$", page, re.M)), 2)
        self.assertRegex(page, r'gpumeter_build_info\{.*version="' + re.escape(self.tag.split("-")[0]))
        self.check_rights(self.init_process(port), user)
        self.assertTrue((sources["run"] / "jobs.sock").is_socket())
        job = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with job:
            job.connect(str(sources["run"] / "jobs.sock"))
            job.send(b"ml.steps:1|c|#run:container")
            for _ in range(100):
                page = get(port, "/metrics")[1]
                if 'run="container"' in page:
                    break
                time.sleep(0.1)
        self.assertRegex(page, r'ml_steps_total\{run="container".*\} 1\n', "the kernel names the sender: the host's processes are visible")
        os.kill(self.init_process(port), 15)
        code, output = self.finish(started)
        self.assertEqual(code, 0, output)
        self.assertTrue(list(sources["state"].iterdir()), "the state survives the container")
        self.assertEqual([line for line in output.splitlines() if json.loads(line)["level"] == "error"], [])

    def check_rights(self, pid: int, user: int) -> None:
        status = dict(re.findall(r"^(\w+):\s*(.*)$", Path(f"/proc/{pid}/status").read_text(), re.M))
        self.assertEqual(status["Uid"].split(), [str(user)] * 4)
        self.assertEqual({status[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")}, {"0" * 16})
        self.assertEqual(status["NoNewPrivs"], "1")
        mounts = Path(f"/proc/{pid}/mounts").read_text().splitlines()
        writable = {words[1] for line in mounts if (words := line.split()) and "rw" in words[3].split(",") and not words[1].startswith(("/dev", "/proc"))}
        self.assertEqual({path for path in writable if not path.startswith("/sys")}, {"/var/lib/gpumeter", "/run/gpumeter"})

    def test_as_the_manifests_say(self) -> None:
        for runtime in RUNTIMES:
            with self.subTest(runtime=runtime):
                self.serve(runtime, sockets=False)

    def test_with_the_kubelets_sockets(self) -> None:
        self.serve(next(iter(RUNTIMES)), sockets=True)

    def test_without_the_init_container_the_state_is_not_kept_and_the_pages_are_served(self) -> None:
        pod, port, sources = daemon_set(), free_port(), self.volumes("host-unprepared")
        config = runtime_config(self.image_config(), pod, "gpumeter", sources)
        config["process"]["args"] = ["/usr/bin/gpumeter", f"--web.listen-address=127.0.0.1:{port}", "--simulate=1"]
        started = self.start(next(iter(RUNTIMES)), "unprepared", config)
        self.until_ready(port, started)
        self.assertIn("gpu_up", get(port, "/metrics")[1])
        self.assertEqual(list(sources["state"].iterdir()), [])


if __name__ == "__main__":
    missing = [name for name in ("umoci", "readelf") if not shutil.which(name)]
    if not IMAGE or missing or not RUNTIMES:
        print(f"skipped: {'no ' + missing[0] if missing else 'neither crun nor runc' if IMAGE else '$GPUMETER_IMAGE names no image: ./dev image builds one'}")
        sys.exit(77)
    unittest.main(verbosity=2)
