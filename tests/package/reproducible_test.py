#!/usr/bin/env python3
"""Nothing in the .deb depends on the time, the folder, the user or the machine of its build. `./dev reproduce` builds it twice."""
import os
import socket
import subprocess
import sys
import tarfile
import tempfile
import unittest
from email.utils import parsedate_to_datetime
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DEB = os.environ.get("GPUMETER_DEB")


def run(*command: str, **environment: str) -> bytes:
    return subprocess.run(command, capture_output=True, check=True, timeout=60, env={**os.environ, **environment}).stdout


def archive_members(deb: bytes) -> list[tuple[str, int, str, str]]:
    """Name, time, owner and group of each member of the ar archive (ar(5))."""
    members, at = [], 8
    while at < len(deb):
        header = deb[at:at + 60].decode()
        members.append((header[:16].strip(), int(header[16:28]), header[28:34].strip(), header[34:40].strip()))
        at += 60 + (int(header[48:58]) + 1) // 2 * 2
    return members


class ReproducibleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.deb = Path(str(DEB)).read_bytes()
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        run("dpkg-deb", "-R", str(DEB), str(cls.folder / "tree"))
        changelog = run("gzip", "-dc", str(cls.folder / "tree/usr/share/doc/gpumeter/changelog.Debian.gz")).decode()
        cls.time = int(parsedate_to_datetime(changelog.rstrip().rsplit("  ", 1)[1]).timestamp())

    def test_the_time_is_that_of_a_commit(self) -> None:
        commits = subprocess.run(["git", "-C", str(ROOT), "log", "--format=%ct"], capture_output=True, text=True).stdout.split()
        if not commits:
            self.skipTest("the tree is no clone")
        self.assertIn(str(self.time), commits)

    def test_each_member_of_the_archive_has_that_time_and_root_as_owner(self) -> None:
        members = archive_members(self.deb)
        self.assertEqual([name.split(".")[0] for name, *_ in members], ["debian-binary", "control", "data"])
        self.assertEqual({member[1:] for member in members}, {(self.time, "0", "0")})

    def test_each_file_has_that_time_and_root_as_owner(self) -> None:
        for kind in ("--fsys-tarfile", "--ctrl-tarfile"):
            with tarfile.open(fileobj=BytesIO(run("dpkg-deb", kind, str(DEB)))) as tar:
                entries = tar.getmembers()
            self.assertGreater(len(entries), 4)
            for entry in entries:
                with self.subTest(file=entry.name):
                    self.assertEqual((entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname), (self.time, 0, 0, "root", "root"))

    def test_no_file_contains_the_folder_or_the_machine_of_the_build(self) -> None:
        host = socket.gethostname()
        names = [str(ROOT), "build/package", "obj-x86_64", f"{Path.home()}/", *([host] if len(host) > 6 else [])]
        found = []
        for path in sorted(path for path in (self.folder / "tree").rglob("*") if path.is_file()):
            data = run("gzip", "-dc", str(path)) if path.suffix == ".gz" else path.read_bytes()
            found += [(path.name, name) for name in names if name.encode() in data]
        self.assertEqual(found, [])

    def test_the_same_files_make_the_same_package_elsewhere(self) -> None:
        """Files with later times, in another folder and time zone. Their modes are those of the package."""
        copy, again = self.folder / "second/folder", self.folder / "again.deb"
        copy.parent.mkdir()
        run("cp", "-r", "--preserve=mode", str(self.folder / "tree"), str(copy))
        run("dpkg-deb", "--root-owner-group", "--build", str(copy), str(again), SOURCE_DATE_EPOCH=str(self.time), TZ="Asia/Kathmandu",
            LC_ALL="C")
        self.assertTrue(again.read_bytes() == self.deb, f"{again.stat().st_size} and {len(self.deb)} bytes")


if __name__ == "__main__":
    if not DEB:
        print("skipped: $GPUMETER_DEB names no package: ./dev package builds one")
        sys.exit(77)
    unittest.main(verbosity=2)
