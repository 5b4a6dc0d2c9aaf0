#!/usr/bin/env python3
"""Given processes that ask for orders as PyTorch does, when `gpumeter profile` or a condition asks, then they write traces, and
nobody else's request or message changes that."""
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from harness import BINARY, run, wait_until
from kineto_double import DAEMON, HEADER, Client
from profiled import Profiled

DOUBLE = Path(__file__).with_name("kineto_double.py")
ABSTRACT = "PyTorch's processes can be profiled\" socket=\"dynolog (abstract)\""
STRANGER = 54321


# The root of a container asks for a process of the host: a child connects and ends, and the parent, whom the kernel does not name, sends.
ATTACK = """
import os, socket, sys
to = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
if child := os.fork():
    os.waitpid(child, 0)
    to.sendall(f"pid {sys.argv[2]}\\nmilliseconds 200\\n\\n".encode())
    print(to.recv(1000).decode(), end="")
else:
    to.connect(sys.argv[1])
"""


class Doubles:
    def __init__(self, count: int, *arguments: str, user: int | None = None) -> None:
        self.process = subprocess.Popen([sys.executable, "-B", str(DOUBLE), str(count), *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, user=user)
        self.pids = self.process.stdout.readline().split()

    def __enter__(self) -> "Doubles":
        return self

    def __exit__(self, *_) -> None:
        self.process.communicate()


class ProfilesTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="gpumeter-profiles-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.folder.chmod(0o1777)
        self.kineto = self.folder / "kineto"
        self.config = self.folder / "gpumeter.yaml"
        self.config.write_text(f"""
jobs: {{socket: {self.folder}/jobs.sock, stream_socket: ""}}
profiles:
  enabled: true
  socket: {self.folder}/profiles.sock
  kineto_folder: {self.kineto}
  folder: {self.folder}
  conditions: [slow_steps]
  duration: 300ms
  hold: 10s
""")

    def daemon(self) -> Profiled:
        return Profiled(self.config, state=str(self.folder / "state"))

    def profile(self, *words: str, user: int | None = None) -> tuple[int, str, str]:
        done = subprocess.run([BINARY, "profile", f"--config.file={self.config}", *words], capture_output=True, text=True,
                              timeout=60, user=user)
        return done.returncode, done.stdout, done.stderr

    def from_container(self, pid: str) -> subprocess.CompletedProcess:
        unshare = ["unshare", "--pid", "--fork"] + (["--map-root-user"] if os.getuid() != 0 else [])
        return subprocess.run([*unshare, sys.executable, "-c", ATTACK, f"{self.folder}/profiles.sock", pid], capture_output=True, text=True,
                              timeout=60)

    def traces(self, run_name: str) -> list[Path]:
        return sorted(self.folder.glob(f"gpumeter_{run_name}_*.json"))

    def test_requests(self) -> None:
        with self.daemon() as daemon:
            wait_until(lambda: f"{self.kineto}/dynolog" in daemon.log, "the folder is served")
            self.assertEqual(self.kineto.stat().st_mode & 0o7777, 0o1733)
            where = ["--folder", str(self.kineto)]
            report = ["--jobs", f"{self.folder}/jobs.sock"]
            with Doubles(3, *where, "--run", "bert", *report) as ours, \
                 Doubles(100, *where, "--every", "1") as crowd, \
                 Doubles(1, *where, "--never-busy") as stubborn, \
                 Doubles(1, *where, "--run", "slow", *report, "--slow-after", "8"):
                wait_until(lambda: daemon.page().one("ml_steps_total", run="bert"), "the run is known")

                with self.subTest("a run: each of its processes writes its trace"):
                    done = wait_until(lambda: (said := self.profile("--run=bert", "--seconds=0.3"))[0] == 0 and said, "a profile is taken")
                    for pid in ours.pids:
                        self.assertRegex(done[1], rf"process {pid}: {self.folder}/gpumeter_bert_[0-9a-f]+_{pid}.json, \d+ bytes\n")
                    self.assertEqual(len(self.traces("bert")), 3)
                    counts = wait_until(lambda: daemon.page().of("ml_profiles_total", run="bert", trigger="request", status="done"), "it is counted")
                    self.assertEqual(list(counts.values()), [1])
                    last = daemon.page().one("ml_profile_last_timestamp_seconds", run="bert", trigger="request")
                    self.assertLess(abs(last - time.time()), 600)
                    self.assertRegex(daemon.log, r'msg="a run was profiled" run=bert user=\S+ trigger=request reason="request of uid \d+" status=done')

                with self.subTest("steps, and one process of a hundred"):
                    said = self.profile(f"--pid={crowd.pids[60]}", "--steps=3", f"--output={self.folder}")
                    self.assertEqual(said[0], 0, said)
                    self.assertIn(f"_{crowd.pids[60]}.json", said[1])

                with self.subTest("refused"):
                    for words, why in ((["--run=nobody"], "no process of yours in this run"), (["--pid=1"], "no process of yours"),
                                       (["--run=bert", "--output=/tmp/a=b"], "the path of the trace must be")):
                        said = self.profile(*words)
                        self.assertEqual(said[:2], (1, ""), said)
                        self.assertIn(why, said[2])
                    for words in ([], ["--run=a", "--pid=1"], ["--run=a", "--steps=0"], ["--run=a", "--seconds=301"],
                                  ["--run=a", "--steps=1", "--seconds=1"]):
                        self.assertEqual(run("profile", *words).returncode, 2, words)

                with self.subTest("a process that never begins"):
                    said = self.profile(f"--pid={stubborn.pids[0]}", "--seconds=60")
                    self.assertEqual(said[0], 1)
                    self.assertIn("did not begin the trace", said[2])

                with self.subTest("another user's processes"):
                    if os.getuid() != 0:
                        self.skipTest("only root can act as another user")
                    said = self.profile(f"--pid={ours.pids[0]}", user=STRANGER)
                    self.assertIn("no process of yours", said[2])
                    with Doubles(1, *where, user=STRANGER) as theirs:
                        known = wait_until(lambda: (said := self.profile(f"--pid={theirs.pids[0]}", "--seconds=0.3", user=STRANGER))[0] == 0
                                           and said, "a user profiles his own process")
                        self.assertIn(f"_{theirs.pids[0]}.json", known[1])
                        self.assertEqual(Path(known[1].split(": ")[-1].split(",")[0]).stat().st_uid, STRANGER)
                        closed = self.folder / "closed"
                        closed.mkdir(0o755)
                        said = self.profile(f"--pid={theirs.pids[0]}", "--seconds=0.3", f"--output={closed}", user=STRANGER)
                        self.assertEqual(said[0], 1, said)
                        self.assertIn("is not here", said[2])
                        counts = wait_until(lambda: daemon.page().of("ml_profiles_total", user=str(STRANGER), status="failed"), "it is counted")
                        self.assertEqual(list(counts.values()), [1])
                        self.assertEqual(daemon.page().one("ml_profiles_total", user=str(STRANGER), status="done"), 1)
                        self.assertIn("its file is not there", daemon.log)

                with self.subTest("a child connects, its parent sends"):
                    said = self.from_container(ours.pids[0])
                    if said.returncode != 0 and "unshare" in said.stderr:
                        self.skipTest(said.stderr)
                    self.assertEqual(said.stdout, "refused the process that connected has ended, so the daemon cannot identify it\n")

                with self.subTest("hostile messages"):
                    self.attack(ours.pids[0])
                    said = self.profile("--run=bert", "--seconds=0.3")
                    self.assertEqual(said[0], 0, said)

                with self.subTest("a condition"):
                    wait_until(lambda: self.traces("slow"), "the slow run is profiled")
                    wait_until(lambda: daemon.page().one("ml_profiles_total", run="slow", trigger="slow_steps", status="done"), "it is counted")
                    self.assertIn("times the median of", daemon.log)
                self.assertEqual(len(self.traces("slow")), 1, "the cooldown holds")
            self.assertEqual(daemon.stop()[0], 0)
            self.assertFalse((self.kineto / "dynolog").exists())

    def test_the_budget_holds_over_a_restart(self) -> None:
        with self.daemon() as daemon:
            wait_until((self.kineto / "dynolog").exists, "the folder is served")
            doubles = Doubles(1, "--folder", str(self.kineto), "--run", "slow", "--jobs", f"{self.folder}/jobs.sock", "--slow-after", "8")
            self.addCleanup(doubles.__exit__)
            taken = {"run": "slow", "trigger": "slow_steps", "status": "done"}
            wait_until(lambda: daemon.page().one("ml_profiles_total", **taken), "the condition takes a profile")
            self.assertEqual(daemon.stop()[0], 0)
        with self.daemon() as daemon:
            wait_until(lambda: daemon.page().one("ml_profiles_total", **{**taken, "status": "refused"}), "the condition is refused")
            self.assertRegex(daemon.log, r'takes no profile" run=slow .* error="the run was profiled a short time ago"')
            self.assertEqual(len(self.traces("slow")), 1)

    def attack(self, victim: str) -> None:
        """Garbage, lying sizes, other processes' numbers, wrong addresses; the victim's own answers stay right."""
        client = Client(str(self.kineto))
        good = HEADER.pack(20, b"req")
        for bytes_ in (b"", b"x", b"\0" * 39, HEADER.pack(1 << 63, b"req") + b"x" * 20, HEADER.pack(20, b"rex") + b"x" * 20,
                       good + b"\xff" * 20, HEADER.pack(16, b"ctxt") + b"x" * 15, b"y" * 5000, HEADER.pack(16, b"req") + b"\0" * 16):
            client.socket.sendto(bytes_, client.to)
        with self.assertRaises(TimeoutError):
            client.socket.recv(100)
        self.assertEqual(client.poll(pid=int(victim)), "", "the number of another process brings no order of its own")
        nameless = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        outside = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        outside.bind(str(self.folder / "outside"))
        abstract = Client()
        abstract.to = client.to
        for other in (nameless, outside, abstract.socket):  # an answer from here would end a process of Kineto's
            other.sendto(HEADER.pack(20, b"req") + b"\2\0\0\0\1\0\0\0" + b"\0" * 12, client.to)
            other.settimeout(0.3)
            with self.assertRaises(TimeoutError):
                other.recv(100)
        flood = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        flood.setblocking(False)
        for _ in range(5000):
            try:
                flood.sendto(good + b"\0" * 20, client.to)
            except BlockingIOError:
                time.sleep(0.0001)
        asking = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        asking.connect(str(self.folder / "profiles.sock"))
        with self.assertRaises(OSError):  # the daemon closes a connection with an endless request
            while asking.sendall(b"run x\n" * 2000) is None:
                time.sleep(0.01)
        if os.getuid() == 0:  # a name of the stranger's that leads to another one's socket
            link = self.kineto / "dynoconfigclient-link"
            thief = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            thief.bind(str(link))
            link.unlink()
            link.symlink_to(client.socket.getsockname())
            thief.sendto(HEADER.pack(20, b"req") + b"\2\0\0\0\1\0\0\0" + b"\0" * 12, client.to)
            with self.assertRaises(TimeoutError):
                client.socket.recv(100)

    def test_no_descriptor_is_left(self) -> None:
        """A client that cannot be accepted costs no processor time meanwhile."""
        with self.daemon() as daemon:
            wait_until((self.folder / "profiles.sock").exists, "it listens")
            process = daemon.profiler.process.pid
            time.sleep(1)
            taken = {int(number) for number in os.listdir(f"/proc/{process}/fd")}
            free = next(number for number in range(1024) if number not in taken)
            resource.prlimit(process, resource.RLIMIT_NOFILE, (free, free))
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(self.folder / "profiles.sock"))
                before = self.seconds(process)
                time.sleep(2)
                self.assertLess(self.seconds(process) - before, 0.5)

    @staticmethod
    def seconds(process: int) -> float:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_the_name_is_taken(self) -> None:
        other = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

        def is_ours() -> bool:
            try:
                other.bind(DAEMON)
            except OSError:
                return False
            return True
        try:
            wait_until(is_ours, "another test or suite has left the name")
        except AssertionError:
            self.skipTest("a daemon of this machine has the name")
        with self.daemon() as daemon:
            wait_until(lambda: "another program, such as dynolog, has the name" in daemon.log, "it says so")
        other.close()
        with self.daemon() as daemon:
            wait_until(lambda: ABSTRACT in daemon.log, "the name is free again")
            client = Client()
            self.assertGreaterEqual(client.register(), 1)
            self.assertEqual(client.poll(), "")
            with Doubles(1) as double:
                wait_until(lambda: self.profile(f"--pid={double.pids[0]}", "--seconds=0.2")[0] == 0, "a profile by the abstract name")
                daemon.stop()
                with self.daemon():
                    wait_until(lambda: self.profile(f"--pid={double.pids[0]}", "--seconds=0.2")[0] == 0, "the processes return by themselves")


if __name__ == "__main__":
    unittest.main()
