#!/usr/bin/env python3
"""What a release adds to its artifacts (packaging/release/publish.py, packaging/image/merge.py): lists of materials, an apt and a Helm repository, sums
and signatures. The packages are small ones of this test, and the key is thrown away; `./dev release` installs the real ones from the repository."""
from __future__ import annotations

import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
import zipfile
from pathlib import Path

try:
    import yaml
except ImportError:
    print("skipped: python3-yaml is not installed")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.findall(r"^project\(gpumeter VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[0]
TIME = "1700000000"
SUITES = {"bookworm": "deb12", "trixie": "deb13"}
SIGNATURES = {"SHA256SUMS.asc", "Release.gpg", "InRelease", "gpumeter.asc"}


def run(*command: str | Path, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=100, env={**os.environ, **environment})
    if check and done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_package(folder: Path, name: str, version: str, architecture: str) -> None:
    tree = folder / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(f"Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: a test <a@test.invalid>\n"
                                         f"Description: {name}\n of a test\n")
    (tree / "usr/share/doc" / name).mkdir(parents=True)
    (tree / "usr/share/doc" / name / "which").write_text(f"{version} {architecture}\n")
    run("dpkg-deb", "--build", "--root-owner-group", tree, folder / f"{name}_{version}_{architecture}.deb", SOURCE_DATE_EPOCH=TIME)
    shutil.rmtree(tree)


def make_artifacts(folder: Path) -> None:
    folder.mkdir()
    for end in SUITES.values():
        for name, architecture in (("gpumeter", "amd64"), ("gpumeter", "arm64"), ("python3-gpumeter", "all")):
            make_package(folder, name, f"{VERSION}+{end}", architecture)
    for builder in ("kubernetes/build", "python/gpumeter_build.py"):
        run("/usr/bin/python3", "-B", ROOT / "packaging" / builder, folder, SOURCE_DATE_EPOCH=TIME)


def publish(folder: Path, **environment: str) -> None:
    run("/usr/bin/python3", "-B", ROOT / "packaging/release/publish.py", folder, SOURCE_DATE_EPOCH=TIME, **environment)


class ReleaseCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-release-")))
        cls.keys = {"GNUPGHOME": str(cls.folder / "keys")}
        (cls.folder / "keys").mkdir(mode=0o700)
        cls.addClassCleanup(run, "gpgconf", "--kill", "all", check=False, **cls.keys)
        run("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "test@gpumeter.invalid", "ed25519", "sign", "never", **cls.keys)
        cls.release = cls.folder / "release"
        make_artifacts(cls.release)
        publish(cls.release, GPUMETER_SIGNING_KEY=cls.key(), **cls.keys)

    @classmethod
    def key(cls) -> str:
        return "test@gpumeter.invalid"

    def copy(self, name: str) -> Path:
        return Path(shutil.copytree(self.release, self.folder / name))


class MaterialsTest(ReleaseCase):
    def contents(self, archive: Path) -> dict[str, bytes]:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as packed:
                return {name: packed.read(name) for name in packed.namelist()}
        with tarfile.open(archive) as packed:
            return {entry.name: packed.extractfile(entry).read() for entry in packed if entry.isfile()}

    def test_each_artifact_has_a_list_of_its_files(self) -> None:
        archives = [path for path in self.release.iterdir() if re.search(r"\.(deb|tgz|whl|tar\.gz)$", path.name)]
        self.assertEqual(len(archives), 6 + 4)
        for archive in archives:
            with self.subTest(archive=archive.name):
                document = json.loads(Path(f"{archive}.spdx.json").read_text())
                self.assertEqual((document["spdxVersion"], document["name"]), ("SPDX-2.3", archive.name))
                self.assertEqual(document["creationInfo"]["created"], "2023-11-14T22:13:20Z")
                [own] = document["packages"]
                self.assertEqual((own["versionInfo"], own["checksums"][0]["checksumValue"]), (VERSION, sha256(archive)))
                names = [entry["SPDXID"] for entry in document["files"]]
                self.assertEqual(len(names), len(set(names)))
                if archive.suffix != ".deb":
                    listed = {entry["fileName"][2:]: entry["checksums"][1]["checksumValue"] for entry in document["files"]}
                    self.assertEqual(listed, {name: hashlib.sha256(data).hexdigest() for name, data in self.contents(archive).items()})


class SumsTest(ReleaseCase):
    def verify(self, folder: Path) -> tuple[int, int]:
        return (run("gpg", "--verify", folder / "SHA256SUMS.asc", folder / "SHA256SUMS", check=False, **self.keys).returncode,
                subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=folder, capture_output=True).returncode)

    @classmethod
    def key(cls) -> str:
        """The key itself, as a forge has it, instead of its name in a keyring."""
        return run("gpg", "--batch", "--armor", "--export-secret-keys", **cls.keys).stdout

    def test_sums_name_every_file_and_are_signed(self) -> None:
        listed = {line.split("  ")[1] for line in (self.release / "SHA256SUMS").read_text().splitlines()}
        every = {str(path.relative_to(self.release)) for path in self.release.rglob("*") if path.is_file() and path.name not in SIGNATURES}
        self.assertEqual(listed, every - {"SHA256SUMS"})
        self.assertEqual(self.verify(self.release), (0, 0))

    def test_a_changed_file_or_sum_is_found(self) -> None:
        copied = self.copy("changed")
        (copied / "index.yaml").write_text("apiVersion: v1\n")
        self.assertEqual(self.verify(copied), (0, 1))
        sums = copied / "SHA256SUMS"
        sums.write_text(sums.read_text().replace("index.yaml", "else.yaml"))
        self.assertNotEqual(self.verify(copied)[0], 0)

    def test_without_a_key_the_same_artifacts_make_the_same_release(self) -> None:
        again = self.folder / "again"
        make_artifacts(again)
        publish(again, GPUMETER_SIGNING_KEY="")
        self.assertEqual((again / "SHA256SUMS").read_text(), (self.release / "SHA256SUMS").read_text())
        self.assertEqual([path for path in again.rglob("*") if path.name in SIGNATURES], [])


class AptTest(ReleaseCase):
    """apt with a root of its own, which knows no other repository."""

    def apt_root(self, name: str, suite: str, architecture: str, repository: Path) -> Path:
        root = self.folder / name
        for folder in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/sources.list.d", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/apt/lists/partial",
                       "var/cache/apt/archives/partial", "var/log/apt"):
            (root / folder).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        (root / "var/lib/dpkg/arch").write_text(f"{architecture}\n")
        (root / "etc/apt/sources.list").write_text(f"deb [signed-by={self.release}/gpumeter.asc] file:{repository} {suite} main\n")
        (root / "apt.conf").write_text(f'Dir "{root}"; Dir::State::status "{root}/var/lib/dpkg/status"; APT::Architecture "{architecture}"; '
                                       f'APT::Architectures {{"{architecture}";}}; APT::Sandbox::User "root"; DPkg::Options {{"--root={root}";'
                                       f'"--force-architecture";"--log={root}/log";}}; Dir::Log "{root}/var/log/apt";\n')
        return root

    def apt(self, root: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return run("apt-get", "-q", "--yes", *words, check=check, APT_CONFIG=str(root / "apt.conf"), DEBIAN_FRONTEND="noninteractive")

    @unittest.skipUnless(os.geteuid() == 0, "dpkg installs into another root as root alone")
    def test_apt_installs_what_belongs_to_the_release_and_the_architecture(self) -> None:
        for suite, end in SUITES.items():
            for architecture in ("amd64", "arm64"):
                with self.subTest(suite=suite, architecture=architecture):
                    root = self.apt_root(f"{suite}-{architecture}", suite, architecture, self.release)
                    self.apt(root, "update", "-o", "APT::Update::Error-Mode=any")
                    self.apt(root, "install", "gpumeter", "python3-gpumeter")
                    self.assertEqual([(root / "usr/share/doc" / name / "which").read_text() for name in ("gpumeter", "python3-gpumeter")],
                                     [f"{VERSION}+{end} {architecture}\n", f"{VERSION}+{end} all\n"])

    def test_apt_refuses_a_repository_that_was_changed(self) -> None:
        copied = self.copy("forged")
        packages = copied / "dists/bookworm/main/binary-amd64/Packages"
        packages.write_text(packages.read_text().replace("of a test", "of another"))
        packages.with_suffix(".gz").unlink()
        refused = self.apt(self.apt_root("forged-root", "bookworm", "amd64", copied), "update", "-o", "APT::Update::Error-Mode=any", check=False)
        self.assertNotEqual(refused.returncode, 0)
        release = copied / "dists/bookworm/InRelease"
        release.write_text(release.read_text().replace("Label: gpumeter", "Label: another"))
        refused = self.apt(self.apt_root("unsigned-root", "bookworm", "amd64", copied), "update", "-o", "APT::Update::Error-Mode=any", check=False)
        self.assertIn("signature", (refused.stdout + refused.stderr).lower())


class HelmTest(ReleaseCase):
    def test_the_index_names_the_chart_and_its_digest(self) -> None:
        index = yaml.safe_load((self.release / "index.yaml").read_text())
        self.assertEqual((index["apiVersion"], list(index["entries"])), ("v1", ["gpumeter"]))
        [entry] = index["entries"]["gpumeter"]
        self.assertEqual((entry["apiVersion"], entry["name"], entry["version"], entry["appVersion"], entry["type"]),
                         ("v2", "gpumeter", VERSION, VERSION, "application"))
        [url] = entry["urls"]
        self.assertEqual(entry["digest"], sha256(self.release / url))
        with tarfile.open(self.release / url) as chart:
            facts = yaml.safe_load(chart.extractfile("gpumeter/Chart.yaml").read())
        self.assertEqual({name: entry[name] for name in facts}, facts)

    @unittest.skipUnless(shutil.which("helm"), "helm is not installed")
    def test_helm_pulls_the_chart(self) -> None:
        def handler(*words: object) -> http.server.SimpleHTTPRequestHandler:
            return http.server.SimpleHTTPRequestHandler(*words, directory=str(self.release))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            run("helm", "pull", "gpumeter", "--repo", f"http://127.0.0.1:{server.server_port}", "--destination", self.folder)
            server.shutdown()
        self.assertEqual(sha256(self.folder / f"gpumeter-{VERSION}.tgz"), sha256(self.release / f"gpumeter-{VERSION}.tgz"))


@unittest.skipUnless(shutil.which("umoci") and shutil.which("skopeo"), "umoci or skopeo is not installed (./dev image)")
class ImageTest(unittest.TestCase):
    def image(self, folder: Path, architecture: str) -> Path:
        layout, archive = folder / architecture, folder / f"gpumeter-image-{VERSION}-{architecture}.tar"
        run("umoci", "init", "--layout", layout)
        run("umoci", "new", "--image", f"{layout}:{VERSION}")
        run("umoci", "config", "--no-history", "--image", f"{layout}:{VERSION}", "--architecture", architecture, "--os", "linux",
            "--config.label", f"for={architecture}", "--created", "2023-11-14T22:13:20Z")
        run("umoci", "gc", "--layout", layout)
        run("tar", "-C", layout, "--mtime=@1700000000", "-cf", archive, ".")
        return archive

    def test_one_archive_has_the_image_of_each_architecture(self) -> None:
        with tempfile.TemporaryDirectory(prefix="gpumeter-release-") as name:
            folder = Path(name)
            archives = [self.image(folder, architecture) for architecture in ("arm64", "amd64")]
            for target, given in (("one.tar", archives), ("two.tar", archives[::-1])):
                run("/usr/bin/python3", "-B", ROOT / "packaging/image/merge.py", folder / target, *given)
            self.assertEqual(sha256(folder / "one.tar"), sha256(folder / "two.tar"))
            for architecture in ("amd64", "arm64"):
                said = run("skopeo", "inspect", f"--override-arch={architecture}", "--override-os=linux", f"oci-archive:{folder}/one.tar:{VERSION}").stdout
                self.assertEqual((json.loads(said)["Architecture"], json.loads(said)["Labels"]), (architecture, {"for": architecture}))
            run("skopeo", "--insecure-policy", "copy", "--all", f"oci-archive:{folder}/one.tar:{VERSION}", f"dir:{folder}/copied")
            listed = json.loads((folder / "copied/manifest.json").read_text())["manifests"]
            self.assertEqual([entry["platform"] for entry in listed], [{"architecture": name, "os": "linux"} for name in ("amd64", "arm64")])


class TreeTest(unittest.TestCase):
    def test_every_written_version_is_the_projects(self) -> None:
        """CMakeLists.txt is the source; the Python package and the manifests cannot read it."""
        written = re.compile(r'gpumeter[\w-]*[-_:](\d+\.\d+\.\d+)|^__version__ = "(.+)"|newTag: ([\d.]+)', re.M)
        files = [ROOT / name for name in run("git", "-C", ROOT, "ls-files", "docs", "packaging", "README.md", "config", "systemd").stdout.splitlines()]
        found = {(str(path.relative_to(ROOT)), "".join(match)) for path in files if path.suffix in (".md", ".yaml", ".py", ".json", ".yml")
                 for match in written.findall(path.read_text())}
        self.assertLessEqual({"packaging/python/gpumeter/__init__.py", "packaging/kubernetes/manifests/daemonset.yaml"}, {name for name, _ in found})
        self.assertEqual({entry for entry in found if entry[1] != VERSION}, set())

    def test_the_forge_runs_dev_alone(self) -> None:
        workflows = [yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*.yml")]
        self.assertEqual(len(workflows), 2)
        commands = [step["run"] for flow in workflows for job in flow["jobs"].values() for step in job["steps"] if "run" in step]
        self.assertEqual(sorted(commands), ["./dev release", "./dev test"])


if __name__ == "__main__":
    if missing := [name for name in ("gpg", "dpkg-deb", "apt-get") if not shutil.which(name)]:
        print(f"skipped: not installed: {', '.join(missing)}")
        sys.exit(77)
    unittest.main(verbosity=2)
