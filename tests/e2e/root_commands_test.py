#!/usr/bin/env python3
"""Root's commands, and a daemon that root starts by hand, in folders of an attacker: whatever waits there, nothing outside
changes, nothing hangs, and a file that root creates belongs to the folder's owner."""
import contextlib
import itertools
import json
import os
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

from harness import Daemon, run, wait_until

ATTACKER = 4242
NAMES = ("devices.json", "devices.json.new", "devices.json.bad", "figures.state", "figures.state.new", "figures.state.bad",
         "control.sock", "traces", "reload", "reload.new", "benchmarks")
DEVICES = {"version": 1, "devices": []}


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def make_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(64 << 30)


class World:
    """A folder of the attacker's, and one of root's in which nothing may change."""

    def __init__(self, root: Path):
        root.chmod(0o755)
        self.hostile, self.safe = root / "hostile", root / "safe"
        for folder in (self.hostile, self.safe):
            folder.mkdir()
        (self.safe / "victim").write_text("keep")
        (self.safe / "victim").chmod(0o600)
        (self.safe / "folder").mkdir()
        self.hostile.chmod(0o750)
        os.chown(self.hostile, ATTACKER, ATTACKER)

    def snapshot(self) -> dict:
        found = {}
        for path in [self.safe, *sorted(self.safe.rglob("*"))]:
            facts = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
            found[str(path)] = (facts.st_mode, facts.st_uid, facts.st_gid, facts.st_nlink, facts.st_size, content)
        return found

    def clear(self) -> None:
        subprocess.run(["rm", "-rf", "--one-file-system", *map(str, self.hostile.iterdir())], check=True)

    def roots_files(self) -> list[Path]:
        """Files that root left in the attacker's folder and kept."""
        return [path for path in self.hostile.rglob("*") if path.lstat().st_uid == 0]

    def traps(self) -> dict:
        """By name: what an attacker may put at a path. Root makes some that an attacker could not, such as a device."""
        safe = self.safe
        return {
            "a link to a file of root's": lambda path: path.symlink_to(safe / "victim"),
            "a link to a missing file": lambda path: path.symlink_to(safe / "created"),
            "a link to a folder of root's": lambda path: path.symlink_to(safe / "folder"),
            "a link to root's folder": lambda path: path.symlink_to(safe),
            "a relative link": lambda path: path.symlink_to("../safe/victim"),
            "a link to itself": lambda path: path.symlink_to(path.name),
            "a link into /proc": lambda path: path.symlink_to("/proc/self/fd/2"),
            "a link to a device": lambda path: path.symlink_to("/dev/full"),
            "a hard link to a file of root's": lambda path: os.link(safe / "victim", path),
            "a FIFO": os.mkfifo,
            "a socket": make_socket,
            "a character device": lambda path: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5)),
            "a block device": lambda path: os.mknod(path, stat.S_IFBLK | 0o666, os.makedev(7, 99)),
            "a folder": lambda path: path.mkdir(),
            "a folder that is not empty": lambda path: (path / "below").mkdir(parents=True),
            "an unreadable file": lambda path: path.touch(0o000),
            "a file of 64 GiB": make_sparse,
            "garbage": lambda path: path.write_bytes(bytes(range(256)) * 16),
        }

    def set_trap(self, name: str, make) -> None:
        path = self.hostile / name
        make(path)
        if path.lstat().st_nlink == 1 or path.is_dir():
            os.lchown(path, ATTACKER, ATTACKER)


@contextlib.contextmanager
def attacker(script: str, *arguments: str):
    """A shell loop as the attacker."""
    with subprocess.Popen(["/bin/sh", "-c", f"while :; do {script}; done", "sh", *arguments], user=ATTACKER, group=ATTACKER, extra_groups=[],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@unittest.skipIf(os.getuid() != 0, "needs root: the commands are root's")
class RootCommandsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World(Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))))
        self.before = self.world.snapshot()

    def assert_untouched(self) -> None:
        after = self.world.snapshot()
        links = {k: (*v[:3], *v[4:]) for k, v in after.items()}  # the trap itself is a hard link
        self.assertEqual(links, {k: (*v[:3], *v[4:]) for k, v in self.before.items()})

    def run_with_config(self, text: str, *arguments: str) -> subprocess.CompletedProcess:
        config = self.world.safe.parent / "gpumeter.yaml"
        config.write_text(text)
        return run(arguments[0], f"--config.file={config}", *arguments[1:], timeout=30)

    def set_only(self, name: str, make) -> None:
        self.world.clear()
        if not name.startswith("devices.json"):
            (self.world.hostile / "devices.json").write_text(json.dumps(DEVICES))
        self.world.set_trap(name, make)

    def test_forget(self) -> None:
        for name, (what, make) in itertools.product(NAMES, self.world.traps().items()):
            with self.subTest(f"{name} is {what}"):
                self.set_only(name, make)
                before = self.world.roots_files()
                done = run("--config.file=/dev/null", f"--path.state={self.world.hostile}", "forget", "GPU-old", timeout=30)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assert_untouched()
                self.assertLessEqual({each.name for each in self.world.roots_files()}, {*(each.name for each in before), name + ".bad"})

    def test_a_daemon_by_hand(self) -> None:
        traps = self.world.traps()
        for what in traps:
            with self.subTest(what):
                self.world.clear()
                for name in NAMES:
                    self.world.set_trap(name, traps[what])
                with Daemon("--simulate=1", state=str(self.world.hostile)) as daemon:
                    self.assertEqual(daemon.page().one("gpu_up"), 1)
                    self.assertEqual(daemon.stop()[0], 0)
                self.assert_untouched()

    def test_links_on_the_way_to_the_state_folder(self) -> None:
        (self.world.hostile / "state").symlink_to(self.world.safe / "folder")
        os.lchown(self.world.hostile / "state", ATTACKER, ATTACKER)
        for path in ("state", "state/below"):
            done = run("--config.file=/dev/null", f"--path.state={self.world.hostile / path}", "forget", "GPU-old")
            self.assertEqual(done.returncode, 1)
            self.assertIn("is a link of another user, which is not followed", done.stderr)
            with Daemon("--simulate=1", state=str(self.world.hostile / path)) as daemon:
                self.assertEqual(daemon.stop()[0], 0)
            self.assert_untouched()

    def test_root_follows_its_own_links(self) -> None:
        link = self.world.safe.parent / "link"
        link.symlink_to(self.world.hostile)
        with Daemon("--simulate=1", state=str(link)) as daemon:
            wait_until((self.world.hostile / "devices.json").exists, "the state is saved")
            self.assertEqual(daemon.stop()[0], 0)
        facts = (self.world.hostile / "devices.json").stat()
        self.assertEqual((facts.st_uid, facts.st_mode & 0o777), (ATTACKER, 0o600))

    def test_forget_while_the_attacker_swaps_the_files(self) -> None:
        script = 'ln -s "$1/created" "$2/devices.json.new"; rm -f "$2/devices.json.new"; ln -s "$1" "$2/devices.json.bad"; rm -f "$2/devices.json.bad"'
        known = {"version": 1, "devices": []}
        with attacker(script, str(self.world.safe), str(self.world.hostile)):
            for _ in range(40):
                (self.world.hostile / "devices.json").write_text(json.dumps(known))
                run("--config.file=/dev/null", f"--path.state={self.world.hostile}", "forget", "GPU-old", timeout=30)
                self.assert_untouched()

    def test_allocate_while_the_attacker_swaps_the_folder(self) -> None:
        text = f"allocations: {{manual: {self.world.hostile}/allocations}}\n"
        os.chmod(self.world.hostile, 0o777)
        script = 'rmdir "$2/allocations"; ln -s "$1/folder" "$2/allocations"; rm -f "$2/allocations"; mkdir "$2/allocations"'
        with attacker(script, str(self.world.safe), str(self.world.hostile)):
            for _ in range(60):
                self.run_with_config(text, "allocate", "set", "job", "--gpu=GPU-1")
                self.assert_untouched()

    def test_a_false_daemon_asks_for_files_elsewhere(self) -> None:
        output = self.world.safe.parent / "output"
        output.mkdir()
        cases = {  # the daemon's words for the file and the socket: the complaint
            (f"{self.world.safe}/created", ""): "names no trace's file",
            (f"{self.world.safe}/gpumeter_../../created.json", ""): "names no trace's file",
            ("/etc/cron.d/gpumeter_x_1.json", ""): None,  # only the name is taken
            (f"{self.world.safe}/folder/gpumeter_x_2.json", f" {self.world.hostile}/elsewhere.sock"): "is none of profiles.worker_sockets",
            (f"{self.world.safe}/folder/gpumeter_x_3.json", f" {self.world.hostile}/../safe/w.sock"): "is none of profiles.worker_sockets",
        }
        for (path, place), complaint in cases.items():
            with self.subTest(path + place):
                done = self.ask_false_daemon(output, path, place)
                self.assertNotIn("\x1b", done.stdout + done.stderr)
                self.assert_untouched()
                if complaint:
                    self.assertIn(complaint, done.stderr)
        self.assertEqual([each.name for each in output.iterdir()], ["gpumeter_x_1.json"])
        facts = (output / "gpumeter_x_1.json").stat()
        self.assertEqual((facts.st_uid, facts.st_mode & 0o777), (0, 0o600))
        self.assertFalse(Path("/etc/cron.d/gpumeter_x_1.json").exists())

    def ask_false_daemon(self, output: Path, path: str, place: str) -> subprocess.CompletedProcess:
        name = self.world.hostile / "profiles.sock"
        name.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(name))
            listener.listen()
            answers = threading.Thread(target=self.answer, args=(listener, path, place))
            answers.start()
            try:
                return self.run_with_config(f"profiles: {{enabled: true, socket: {name}, worker_sockets: [{self.world.hostile}/w*.sock]}}\n",
                                            "profile", "--pid=1", "--seconds=0.1", f"--output={output}")
            finally:
                answers.join()

    def answer(self, listener: socket.socket, path: str, place: str) -> None:
        connection = listener.accept()[0]
        job, client = socket.socketpair()
        job.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 24\r\n\r\n* * * * * root touch /x\n\n")
        with connection, job, client:
            connection.recv(4096)
            connection.sendall(f"file 1 {path}\naccepted now\x1b]0;owned\x07\n".encode())
            socket.send_fds(connection, [f"fetch 1 {ATTACKER}{place}\n".encode()], [] if place else [client.fileno()])
            connection.settimeout(1)
            with contextlib.suppress(OSError):
                connection.recv(4096)
            with contextlib.suppress(OSError):
                connection.sendall(f"done 1 {path}\nend done\n".encode())


if __name__ == "__main__":
    unittest.main()
