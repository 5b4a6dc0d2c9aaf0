#!/usr/bin/env python3
"""`gpumeter check` has the exit codes of monitoring plugins, with a running daemon and without one; the programs of
packaging/integrations make of them what Slurm and node-problem-detector expect."""
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

import at_once
from harness import BINARY, ROOT, Daemon, free_port, run, wait_until

INTEGRATIONS = ROOT / "packaging/integrations"
FIRST_LINE = re.compile(r"GPU (OK|WARNING|CRITICAL|UNKNOWN) - [^|]+( \| ok=\d+ degraded=\d+ failed=\d+ unknown=\d+)?")


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        self.config = self.folder / "gpumeter.yaml"
        self.config.touch()

    def check(self, *arguments: str) -> tuple[int, list[str]]:
        """Exit status and lines."""
        said = run("check", f"--path.state={self.folder}", *arguments,
                   *([] if any(a.startswith("--config.file") for a in arguments) else [f"--config.file={self.config}"]))
        lines = said.stdout.splitlines()
        if "--json" not in arguments:
            self.assertRegex(lines[0], FIRST_LINE)
        return said.returncode, lines


class OwnPassesTest(Folder):
    def check_here(self, *arguments: str) -> tuple[int, list[str]]:
        return self.check("--simulate=2", f"--web.listen-address=127.0.0.1:{free_port()}", *arguments)

    def test_all_is_well(self):
        self.assertEqual(self.check_here(), (0, ["GPU OK - 2 GPUs ok | ok=2 degraded=0 failed=0 unknown=0"]))

    def test_a_degraded_gpu_and_what_it_counts_as(self):
        hot = "--simulate-event=overheat 1 after 0s"
        status, lines = self.check_here(hot)
        self.assertEqual(status, 1)
        self.assertRegex(lines[0], r"GPU WARNING - 1 of 2 GPUs degraded: GPU 1 \w+ \(\w+\) \| ok=1 degraded=1 failed=0 unknown=0")
        self.assertRegex(lines[1], r"GPU 1 \(Simulated GPU, SIM-1-1\) degraded: \w+: .+; action: \w+; for 0 s")
        self.assertEqual(self.check_here(hot, "--fail-on=failed")[0], 0)
        self.assertEqual(self.check_here(hot, "--fail-on=degraded")[0], 2)
        self.assertEqual(self.check_here(hot, "--gpu=0")[0], 0)

    def test_a_gpu_of_an_earlier_run_that_is_missing(self):
        with Daemon("--simulate=3", state=str(self.folder)) as daemon:
            self.assertEqual(daemon.stop()[0], 0)
        status, lines = self.check_here()
        self.assertEqual(status, 2)
        self.assertIn("1 of 3 GPUs failed: GPU 2 device_lost (reboot)", lines[0])
        self.assertEqual(run("forget", "SIM-1-2", f"--path.state={self.folder}", f"--config.file={self.config}").returncode, 0)
        self.assertEqual(self.check_here()[0], 0)

    def test_fewer_gpus_than_expected(self):
        self.config.write_text("devices: {expected: 3}\n")
        status, lines = self.check_here()
        self.assertEqual(status, 2)
        self.assertIn("machine: devices_missing", lines[0])

    def test_no_result(self):
        status, lines = self.check(f"--web.listen-address=127.0.0.1:{free_port()}", "--collector.disable-defaults", "--collector.amd",
                                   f"--path.sysfs={self.folder}")
        self.assertEqual((status, lines[0]), (3, "GPU UNKNOWN - no GPU is known | ok=0 degraded=0 failed=0 unknown=0"))
        self.config.write_text("nonsense: 1\n")
        self.assertEqual(self.check_here(), (3, ["GPU UNKNOWN - the configuration is wrong"]))


def suites() -> dict[str, list[tuple[str, str]]]:
    """By suite, each check of docs/health-checks.md that has conditions, with these."""
    sections = (ROOT / "docs/health-checks.md").read_text().split("\n## ")[1:]
    rows = [re.findall(r"^\| `([\w-]+)` \| [^|]+ \| (`[^|]+`) \|", section, re.M) for section in sections]
    return {name: [(check, cell.replace("`", "")) for check, cell in each] for name, each in zip(("nvidia", "gpud", "azure"), rows, strict=True)}


class SuiteTest(Folder):
    def suite(self, name: str, *arguments: str) -> tuple[int, list[str]]:
        return self.check(f"--suite={name}", f"--web.listen-address=127.0.0.1:{free_port()}", *arguments)

    def test_each_suite_has_the_checks_of_the_document(self):
        for name, checks in suites().items():
            self.assertGreater(len(checks), 6)
            expected = ["GPU OK - 2 GPUs ok | ok=2 degraded=0 failed=0 unknown=0", *(f"check {check}: ok; by {reasons}" for check, reasons in checks)]
            self.assertEqual(self.suite(name, "--simulate=2"), (0, expected))

    def test_a_finding_counts_in_the_suites_that_have_its_condition(self):
        hot = ("--simulate=2", "--simulate-event=overheat 1 after 0s")
        self.assertEqual(self.suite("nvidia", *hot)[0], 0)
        status, lines = self.suite("azure", *hot)
        by = "; by hardware_throttling thermal_throttling power_brake"
        self.assertIn(f"check check_gpu_clock_throttling: degraded: GPU 1 thermal_throttling (drain){by}", lines)
        self.assertEqual((status, sum(": ok; by " in line for line in lines), sum(line.startswith("GPU 1 ") for line in lines)), (1, 6, 1))
        self.assertEqual(self.suite("azure", *hot, "--fail-on=degraded")[0], 2)
        self.assertEqual(self.suite("azure", *hot, "--gpu=0")[0], 0)
        for name, states in (("nvidia", ["ok", "ok", "ok"]), ("gpud", ["degraded", "ok", "degraded"])):
            document = json.loads("".join(self.suite(name, *hot, "--json")[1]))
            self.assertEqual([document["state"], *(device["state"] for device in document["devices"])], states)

    def test_a_missing_gpu_fails_the_count_of_each_suite(self):
        self.config.write_text("devices: {expected: 3}\n")
        for name, checks in suites().items():
            status, lines = self.suite(name, "--simulate=2")
            check, reasons = checks[0]
            self.assertEqual((status, lines[1]), (2, f"check {check}: failed: machine devices_missing (reboot); by {reasons}"))

    def test_without_a_gpu_no_check_is_ok(self):
        status, lines = self.suite("nvidia", "--collector.disable-defaults", "--collector.amd", f"--path.sysfs={self.folder}")
        self.assertEqual((status, lines[1:]), (3, [f"check {check}: unknown; by {reasons}" for check, reasons in suites()["nvidia"]]))


class CommandLineTest(Folder):
    """The commands of gpumeter-commands, which gpumeter starts."""

    def assert_refused(self, status: int, sentence: str, *arguments: str) -> None:
        said = run(*arguments)
        self.assertEqual((said.returncode, said.stdout, said.stderr), (status, "", f"gpumeter: {sentence}\nTry 'gpumeter --help'.\n"), arguments)

    def test_flags_of_the_configuration_are_before_and_after_the_command(self):
        hint = "" if os.geteuid() == 0 else "; run it as root"
        missing = (1, f"gpumeter: not forgotten: {self.folder}/none: No such file or directory{hint}\n")
        for arguments in (("--path.state", f"{self.folder}/none", "forget", "GPU-1"), ("forget", f"--path.state={self.folder}/none", "GPU-1"),
                          ("forget", "GPU-1", "--no-collector.amd", "--path.state", f"{self.folder}/none")):
            said = run(f"--config.file={self.config}", *arguments)
            self.assertEqual((said.returncode, said.stderr), missing, arguments)

    def test_wrong_words(self):
        accepted = "gpumeter accepts flags and the commands forget, allocate, profile, check, record, explain, bundle, import and top"
        self.assert_refused(2, "forget requires the uuid of a device", "forget")
        self.assert_refused(2, "--once cannot be combined with a command", "forget", "A", "--once")
        self.assert_refused(2, f'unexpected argument "B"; {accepted}', "forget", "A", "B")
        self.assert_refused(2, "top must be the first argument", "--log.level=debug", "top")
        self.assert_refused(2, 'VERB: must be set, clear or list, not "give"', "allocate", "give")
        self.assert_refused(2, "allocate set requires the name of a workload", "allocate", "set")
        # Exit 2 would mean that a GPU has failed.
        self.assert_refused(3, 'unexpected argument "check"; ' + accepted, "check", "check")
        self.assert_refused(3, 'unknown flag --jsn; did you mean --json?', "check", "--jsn")
        self.assert_refused(3, '--gpu must be the index of a GPU, not "x"', "check", "--gpu=x")
        self.assert_refused(3, '--suite: must be nvidia, gpud or azure, not "dcgm"', "check", "--suite=dcgm")
        self.assert_refused(3, '--fail-on: must be failed or degraded, not "never"', "check", "--fail-on=never")

    def test_help(self):
        for command, flag in (("check", "--login-file FILE"), ("forget", "UUID TEXT"), ("allocate", "--kind KIND")):
            said = run(command, "--help")
            self.assertEqual((said.returncode, said.stderr), (0, ""))
            self.assertIn(f"Usage: gpumeter {command} [OPTIONS]", said.stdout)
            self.assertIn(f"\n  {flag} ", said.stdout)


class DaemonTest(Folder):
    def test_a_lost_gpu(self):
        with Daemon("--simulate=2", "--simulate-event=lose 1 after 8s", state=str(self.folder)) as daemon:
            url = f"--url=http://127.0.0.1:{daemon.port}"
            well = (0, ["GPU OK - 2 GPUs ok | ok=2 degraded=0 failed=0 unknown=0"])
            wait_until(lambda: self.check(url) == well, "the first judgement", 7)
            wait_until(lambda: self.check(url)[0] == 2, "the GPU counts as failed", 40, every=0.5)
            status, lines = self.check(f"--web.listen-address=127.0.0.1:{daemon.port}")  # the configured address
            self.assertEqual(status, 2)
            self.assertEqual(lines[0], "GPU CRITICAL - 1 of 2 GPUs failed: GPU 1 device_lost (reboot) | ok=1 degraded=0 failed=1 unknown=0")
            self.assertEqual(self.check(url, "--gpu", "0")[0], 0)
            self.assertEqual(self.check(url, "--gpu", "1")[0], 2)
            self.assertEqual(self.check(url, "--gpu", "7"), (3, ["GPU UNKNOWN - there is no GPU 7"]))
            status, text = self.check(url, "--json")
            self.assertEqual(status, 2)
            said, served = json.loads("".join(text)), json.loads(daemon.fetch("/api/v1/health").text)
            self.assertEqual([device["state"] for device in said["devices"]], ["ok", "failed"])
            for document in (said, served):
                for device in document["devices"]:
                    for each in (device, *device["reasons"]):
                        each.pop("since_seconds")
            self.assertEqual(said, served)

    def test_a_daemon_that_stands_still_is_unknown_in_time(self):
        with Daemon("--simulate=1", state=str(self.folder)) as daemon:
            daemon.send(signal.SIGSTOP)
            status, lines = self.check(f"--url=http://127.0.0.1:{daemon.port}")
            self.assertEqual((status, lines), (3, [f"GPU UNKNOWN - http://127.0.0.1:{daemon.port}: no complete answer in time"]))
            daemon.send(signal.SIGCONT)

    def test_no_daemon_where_one_is_named(self):
        url = f"http://127.0.0.1:{free_port()}"
        self.assertEqual(self.check(f"--url={url}"), (3, [f"GPU UNKNOWN - {url}: no daemon listens there"]))
        status, text = self.check(f"--url={url}", "--json")
        self.assertEqual((status, json.loads(text[0])["state"]), (3, "unknown"))

    def test_a_server_that_is_no_gpumeter(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            child = subprocess.Popen([BINARY, "check", f"--url=http://127.0.0.1:{server.getsockname()[1]}", f"--config.file={self.config}"],
                                     stdout=subprocess.PIPE, text=True)
            client, _ = server.accept()
            with client:
                client.recv(4096)
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n<html>")
            said, _ = child.communicate(timeout=20)
        self.assertEqual(child.returncode, 3)
        self.assertIn("the answer is not that of this version", said)


class Commands(Folder):
    """Programs of a test, in front of those of the system."""

    def setUp(self):
        super().setUp()
        self.bin = self.folder / "bin"
        self.bin.mkdir()

    def command(self, name: str, script: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def gpumeter(self, status: int, line: str) -> None:
        self.command("gpumeter", f"cat <<'TEXT'\n{line}\nTEXT\nexit {status}")


FAILED = "GPU CRITICAL - 1 of 8 GPUs failed: GPU 0 xid_79 (reboot) | ok=7 degraded=0 failed=1 unknown=0"
REASON = "gpumeter: 1 of 8 GPUs failed: GPU 0 xid_79 (reboot)"


class SlurmTest(Commands):
    def run_health(self, status: int = 2, line: str = FAILED, node: str = "State=IDLE Partitions=gpu", scontrol: str | None = None) -> tuple[int, str]:
        """Exit status and the update that it makes, empty if none."""
        updates = self.folder / "updates"
        updates.unlink(missing_ok=True)
        self.gpumeter(status, line)
        self.command("scontrol", scontrol or f"""case $1 in
  update) shift; printf '%s|' "$@" >> {updates} ;;
  *) cat <<'TEXT'
NodeName=n1 Arch=x86_64 {node}
TEXT
esac""")
        # The script puts the system's folders first, as it must in slurmd's environment, so the commands are named here.
        (self.folder / "defaults").write_text(f'CHECK="{self.bin}/gpumeter check"\nscontrol() {{ {self.bin}/scontrol "$@"; }}\n'
                                              f'timeout() {{ shift; "$@"; }}\n')
        said = subprocess.run([INTEGRATIONS / "slurm/gpumeter-health"], capture_output=True, text=True, timeout=60,
                              env={"PATH": os.environ["PATH"], "SLURMD_NODENAME": "n1", "GPUMETER_SLURM_DEFAULTS": str(self.folder / "defaults")})
        return said.returncode, updates.read_text() if updates.exists() else ""

    def test_a_failed_gpu_drains_the_node(self):
        self.assertEqual(self.run_health(), (0, f"nodename=n1|state=drain|reason={REASON}|"))

    def test_nothing_else_changes_a_node(self):
        for status in (0, 1, 3, 127):
            self.assertEqual(self.run_health(status, "GPU OK - 8 GPUs ok | ok=8"), (0, ""), status)
        mended = f"State=IDLE+DRAIN Partitions=gpu Reason={REASON} [root@2026-11-22T03:00:00]"
        self.assertEqual(self.run_health(0, "GPU OK - 8 GPUs ok | ok=8", mended), (0, ""), "it never resumes a node")

    def test_a_reason_of_a_person_stays(self):
        for state in ("IDLE+DRAIN", "MIXED+DRAIN", "DOWN", "DOWN*", "IDLE+DRAIN+NOT_RESPONDING"):
            node = f"State={state} Partitions=gpu Reason=new power supply [alice@2026-11-22T03:00:00]"
            self.assertEqual(self.run_health(node=node), (0, ""), state)
        node = "State=IDLE Partitions=gpu Reason=watch the fans [alice@2026-11-22T03:00:00]"
        self.assertEqual(self.run_health(node=node)[1], f"nodename=n1|state=drain|reason=watch the fans; {REASON}|")

    def test_its_own_reason_follows_the_gpus(self):
        drained = "State=IDLE+DRAIN Partitions=gpu Reason={} [root@2026-11-22T03:00:00]"
        self.assertEqual(self.run_health(node=drained.format(REASON)), (0, ""), "the same reason is not written again")
        self.assertIn(REASON, self.run_health(node=drained.format("gpumeter: 2 of 8 GPUs failed: GPU 1 xid_48 (reset)"))[1])

    def test_a_reason_has_plain_characters_and_an_end(self):
        hostile = "GPU CRITICAL - 1 of 8 GPUs failed: \"$(touch x)\" `id` " + "y" * 400 + " | ok=7"
        _, update = self.run_health(line=hostile)
        self.assertRegex(update, r"^nodename=n1\|state=drain\|reason=[A-Za-z0-9 .,:;()_/-]{20,215}\|$")

    def test_a_controller_that_does_not_answer(self):
        self.assertEqual(self.run_health(scontrol="exit 1"), (1, ""))


class JobCostTest(Commands):
    LINE = "kind=slurm_job workload=4711 state=ended user=alice gpus=1 gpu_seconds=60 joules=15000.5"

    def report(self, answer: str, *arguments: str, more: str = "", **env: str) -> list[str]:
        """What the epilog logs and writes."""
        said = self.folder / "said"
        said.write_text("")
        (self.folder / "answer").write_text(answer)
        (self.folder / "defaults").write_text(f'CURL=fetch\ntimeout() {{ shift; "$@"; }}\nsleep() {{ :; }}\n'
                                              f'fetch() {{ echo "$*" >> {self.folder}/fetched; cat {self.folder}/answer; }}\n'
                                              f'logger() {{ echo "logger $*" >> {said}; }}\n'
                                              f'scontrol() {{ echo "scontrol $*" >> {said}; }}\n{more}\n')
        done = subprocess.run([INTEGRATIONS / "slurm/gpumeter-job-cost", *arguments], capture_output=True, text=True, timeout=60,
                              env={"PATH": os.environ["PATH"], "SLURM_JOB_ID": "4711", "GPUMETER_SLURM_DEFAULTS": str(self.folder / "defaults"), **env})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return said.read_text().splitlines()

    def test_a_job_that_ended_is_logged(self):
        self.assertEqual(self.report(self.LINE, "--report"), [f"logger --tag gpumeter-job-cost -- {self.LINE}"])
        self.assertIn("http://localhost:10478/api/v1/workloads/slurm_job/4711?format=text", (self.folder / "fetched").read_text())

    def test_the_comment_is_written_if_asked(self):
        logged, comment = self.report(self.LINE, "--report", more="ADMIN_COMMENT=yes")
        self.assertEqual(comment, "scontrol update jobid=4711 admincomment=gpumeter: " + self.LINE.removeprefix("kind=slurm_job "))
        self.assertEqual(len(self.report(self.LINE, "--report", more="ADMIN_COMMENT=yes", SLURM_JOB_NUM_NODES="2")), 1)

    def test_a_job_without_a_gpu_is_not_logged(self):
        self.assertEqual(self.report("", "--report"), [])
        self.assertEqual(self.report(self.LINE, "--report", SLURM_JOB_ID=""), [])

    def test_it_does_not_wait_for_ever(self):
        running = self.LINE.replace("ended", "running")
        self.assertEqual(self.report(running, "--report"), [f"logger --tag gpumeter-job-cost -- {running}"])

    def test_the_epilog_leaves_the_work_to_a_process_of_its_own(self):
        self.report(self.LINE)
        wait_until((self.folder / "said").read_text, "it is logged")


class NodeProblemDetectorTest(Commands):
    def run_plugin(self, status: int, line: str) -> tuple[int, str]:
        self.gpumeter(status, line)
        said = subprocess.run([INTEGRATIONS / "node-problem-detector/gpumeter-npd"], capture_output=True, text=True, timeout=60,
                              env={"PATH": f"{self.bin}:{os.environ['PATH']}"})
        return said.returncode, said.stdout.strip()

    def test_exit_codes_and_message(self):
        self.assertEqual(self.run_plugin(0, "GPU OK - 8 GPUs ok | ok=8"), (0, "GPU OK - 8 GPUs ok"))
        self.assertEqual(self.run_plugin(1, "GPU WARNING - 1 of 8 GPUs degraded | ok=7"), (0, "GPU WARNING - 1 of 8 GPUs degraded"))
        self.assertEqual(self.run_plugin(2, FAILED), (1, FAILED.partition(" |")[0]))
        self.assertEqual(self.run_plugin(3, "GPU UNKNOWN - no"), (2, "GPU UNKNOWN - no"))

    def test_the_configuration_names_the_plugin(self):
        config = json.loads((INTEGRATIONS / "node-problem-detector/gpumeter.json").read_text())
        rule = config["rules"][0]
        self.assertTrue(rule["path"].endswith("integrations/node-problem-detector/gpumeter-npd"))
        self.assertIn(rule["condition"], [condition["type"] for condition in config["conditions"]])


if __name__ == "__main__":
    at_once.main()
