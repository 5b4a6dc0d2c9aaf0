#!/usr/bin/env python3
"""One user sends hostile messages, including a million runs: the daemon's memory stays bounded, its page stays right,
and another user's series have that user's values. As root these are two users, otherwise two runs."""
from __future__ import annotations

import os
import subprocess
import unittest
from pathlib import Path

import jobs_attacker
from harness import TEXT, is_sanitized, promtool_findings
from jobs import Folder, dropped, is_root, shown, value

ATTACKER = 65534 if is_root() else os.geteuid()
# Measured: 16 MiB, 12 of them the daemon's own; a batch of the longest datagrams alone may fill 4 MiB, and one user's quota of
# 8192 series is there in three copies. Memory without a bound would be hundreds: the million names are 60 MiB by themselves.
MOST_MIB = 48


def attack(folder: Folder, what: str) -> None:
    other_user = ["setpriv", f"--reuid={ATTACKER}", f"--regid={ATTACKER}", "--clear-groups"] if is_root() else []
    # By its standard input: the other user may not be able to read the project.
    said = subprocess.run([*other_user, "/usr/bin/python3", "-I", "-", folder.datagram, what], capture_output=True, text=True,
                          input=Path(jobs_attacker.__file__).read_text(), timeout=150)
    assert said.stdout == "sent\n", said.stderr


def resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1024


class AttackTest(unittest.TestCase):
    def setUp(self) -> None:
        # The quota of lines would keep nearly all of it from the model, which is what is to hold.
        self.folder = self.enterContext(Folder("  limits: {lines_per_second: 1000000}\n"))
        self.daemon = self.enterContext(self.folder.daemon())
        self.folder.send("ml.steps:1|c|#run:honest\nml.loss:2.5|g|#run:honest")
        shown(self.daemon, {'ml_steps_total{run="honest"}': 1})

    def honest(self, steps: int) -> dict[str, float]:
        self.folder.send("ml.steps:1|c|#run:honest")
        return {'ml_steps_total{run="honest"}': steps, 'ml_loss{run="honest"}': 2.5}

    def check_page(self) -> None:
        text = self.daemon.fetch("/metrics", {"Accept": TEXT}).text
        self.assertEqual(promtool_findings(text), "")
        memory = resident_mib(self.daemon.process.pid)
        print(f"{len(text.splitlines())} lines, {memory:.0f} MiB at the most", flush=True)
        if is_sanitized():
            return print("the limit of memory was not tested: the binary has AddressSanitizer")
        self.assertLess(memory, MOST_MIB)

    def test_a_million_runs(self) -> None:
        attack(self.folder, "runs")
        page = shown(self.daemon, self.honest(2))
        attacker = page.of("ml_steps_total") if not is_root() else page.of("ml_steps_total", user="nobody")
        self.assertLess(len(attacker), 2048)
        # No step is lost: what found no room is in the run _other.
        self.assertEqual(sum(attacker.values()), jobs_attacker.RUNS + (0 if is_root() else 2))
        self.check_page()

    def test_garbage(self) -> None:
        attack(self.folder, "garbage")
        page = shown(self.daemon, self.honest(2))
        self.assertLessEqual({"too_long", "too_many_lines", "malformed", "bad_value", "unknown_metric"}, set(dropped(page)))
        self.assertEqual(dropped(page)["too_long"], jobs_attacker.LONG)
        self.assertEqual(dropped(page)["bad_value"], jobs_attacker.ROUNDS * 4)
        self.assertEqual(value(page, 'ml_steps_total{run="forged"}'), jobs_attacker.ROUNDS)
        for name, labels in page:
            if name.startswith("ml_") and dict(labels)["run"] == "forged":
                self.assertLessEqual({label for label, _ in labels}, {"run", "user", "split"})
                self.assertNotEqual((is_root(), dict(labels)["user"]), (True, "root"))
        self.check_page()


# A directory server that takes 5 ms, in front of the C library's name service.
NAME_SERVICE = """
#include <pwd.h>
#include <unistd.h>
int getpwuid_r(uid_t uid, struct passwd* entry, char* buffer, size_t size, struct passwd** found) {
  (void)entry; (void)buffer; (void)size;
  usleep(5000);
  *found = 0;
  return 0;
}
"""


@unittest.skipUnless(is_root(), "only root can take other uids")
class NameServiceTest(unittest.TestCase):
    """The root of a container takes another uid for each message, and the names of users come from a slow directory."""

    def test_another_users_messages_arrive_and_the_daemon_stops(self) -> None:
        folder = self.enterContext(Folder())
        library = folder.path / "names.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, "-xc", "-"], input=NAME_SERVICE, text=True, check=True)
        daemon = self.enterContext(folder.daemon(env={"LD_PRELOAD": str(library)}))
        other_user = ["setpriv", "--reuid=4711", "--regid=4711", "--clear-groups"]
        victim = subprocess.Popen([*other_user, "/usr/bin/python3", "-I", "-", folder.datagram, "victim"], stdin=subprocess.PIPE, text=True)
        self.addCleanup(victim.wait)
        self.addCleanup(victim.kill)
        source = Path(jobs_attacker.__file__).read_text()
        attacker = subprocess.Popen(["/usr/bin/python3", "-I", "-", folder.datagram, "uids"], stdin=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(attacker.wait)
        self.addCleanup(attacker.kill)
        for each in (attacker, victim):
            each.stdin.write(source)
            each.stdin.close()
        self.assertEqual(victim.wait(60), 0)
        shown(daemon, {'ml_steps_total{run="victim"}': jobs_attacker.VICTIM})
        self.assertIsNone(attacker.poll(), "the attack goes on")
        self.assertEqual(daemon.stop()[0], 0)  # within its limit


if __name__ == "__main__":
    unittest.main(verbosity=2)
