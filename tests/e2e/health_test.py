#!/usr/bin/env python3
"""Given simulated GPUs with one fault each, then the page and /api/v1/health show state, reason and action, and only those; a
release of the drivers, as for a reset, ends what events have reported. Prints a table with times, which are not asserted.
tests/unit/exporter/health/conditions_test.cpp has the conditions that take longer."""
import json
import signal
import tempfile
import time
import unittest
from pathlib import Path

from harness import Daemon, promtool_findings, run, wait_until

BEGIN, LASTS = 4, 25
# Each tier every second, so that a test takes no minute to see a value of the slow tier.
CONFIG = "sampling: {fast: 1s, normal: 1s, slow: 1s}\n"
# Verb of the event, state, reasons with severity and action, and whether they end with the event.
CASES = [
    ("lose", "failed", {"device_lost failed reboot"}, True),  # its return proves a reset, which ends its XID 79
    ("xid:48", "failed", {"xid_48 failed reset"}, False),
    ("ecc", "failed", {"memory_errors_uncorrected failed reset"}, False),
    ("recovery:reboot", "failed", {"recovery_action failed reboot"}, True),
    ("remap", "degraded", {"row_remap_pending degraded reset"}, True),
    ("remap-failure", "failed", {"row_remap_failed failed replace"}, True),
    ("fabric", "failed", {"fabric_failed failed reboot"}, True),
    ("brake", "degraded", {"power_brake degraded drain"}, True),
    ("hardware", "degraded", {"hardware_errors degraded reset"}, False),
    ("xid:31", "ok", set(), True),
    ("throttle", "ok", set(), True),
]
RANK = ["ok", "unknown", "degraded", "failed"]


class Course:
    """The states of one GPU, sampled once a second."""

    def __init__(self):
        self.worst, self.reasons, self.found, self.gone = "ok", set(), None, None

    def look(self, device: dict, seconds: float) -> None:
        self.worst = max(self.worst, device["state"], key=RANK.index)
        self.reasons |= {f"{each['reason']} {each['severity']} {each['action']}" for each in device["reasons"]}
        if device["state"] != "ok":
            self.found, self.gone = self.found if self.found is not None else seconds - BEGIN, None
        elif self.found is not None and self.gone is None:
            self.gone = seconds - BEGIN - LASTS


class HealthTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        Path(folder, "gpumeter.yaml").write_text(CONFIG)
        events = [f"--simulate-event={verb} {gpu} after {BEGIN}s for {LASTS}s" for gpu, (verb, *_) in enumerate(CASES)]
        cls.daemon = cls.enterClassContext(Daemon(f"--config.file={folder}/gpumeter.yaml", f"--simulate={len(CASES) + 1}", *events))
        cls.began = time.monotonic()
        wait_until(lambda: len(json.loads(cls.daemon.fetch("/api/v1/health").text)["devices"]) == len(CASES) + 1, "all GPUs are judged", 10)

    def health(self) -> dict:
        response = self.daemon.fetch("/api/v1/health")
        self.assertEqual((response.status, response.header("Content-Type")), (200, "application/json"))
        return json.loads(response.text)

    def test_1_each_fault_shows_its_reason_and_nothing_else(self):
        courses = [Course() for _ in range(len(CASES) + 1)]

        def is_over() -> bool:
            for course, device in zip(courses, self.health()["devices"], strict=True):
                course.look(device, time.monotonic() - self.began)
            return all(course.found is not None and (not ends or course.gone is not None) and course.reasons == reasons
                       for course, (_, state, reasons, ends) in zip(courses, CASES) if state != "ok")
        try:
            wait_until(is_over, "every fault came, and those that end are gone", 150, every=1)
        finally:
            print("\n| event | state | reasons | found after | gone after |\n|---|---|---|---|---|")
            for course, (verb, *_) in zip(courses, CASES):
                times = ["" if each is None else f"{each:.0f} s" for each in (course.found, course.gone)]
                print(f"| {verb} | {course.worst} | {', '.join(sorted(course.reasons))} | {' | '.join(times)} |")
        for course, (verb, state, reasons, _) in zip(courses, CASES):
            self.assertEqual((course.worst, course.reasons), (state, reasons), verb)
        self.assertEqual((courses[-1].worst, courses[-1].reasons), ("ok", set()), "a GPU without a fault")

    def test_2_the_page_has_the_same(self):
        page = self.daemon.page()
        for device in self.health()["devices"]:
            states = {dict(labels)["state"]: value for (_, labels), value in page.of("gpu_health", uuid=device["uuid"]).items()}
            self.assertEqual(states, {state: float(state == device["state"]) for state in RANK})
            reasons = {dict(labels)["reason"] for _, labels in page.of("gpu_health_reason", uuid=device["uuid"])}
            self.assertEqual(reasons, {each["reason"] for each in device["reasons"]})
        self.assertEqual(promtool_findings(self.daemon.fetch("/metrics").text), "")

    def test_3_the_log_has_the_same(self):
        log = self.daemon.log
        for gpu, (verb, _, reasons, ends) in enumerate(CASES):
            for reason, severity, action in map(str.split, reasons):
                facts = rf'" gpu={gpu} uuid=\S+ state=\w+ reason={reason} severity={severity} action={action} '
                self.assertRegex(log, f'level=warn msg="GPU {gpu} {severity}: {reason}; {action}{facts}', verb)
                if ends:
                    self.assertRegex(log, rf'level=info msg="GPU {gpu}(: {reason} has ended| is ok again after \d\w+){facts}.*held_seconds=', verb)
        self.assertNotIn(f'msg="GPU {len(CASES)} ', log, "a GPU without a fault")

    def test_4_a_release_of_the_drivers_ends_events(self):
        self.assertEqual(self.health()["state"], "failed")
        self.daemon.send(signal.SIGUSR1)
        wait_until(lambda: {each["state"] for each in self.health()["devices"]} == {"unknown"}, "all GPUs are unknown", 20)
        self.daemon.send(signal.SIGUSR2)
        wait_until(lambda: self.health()["state"] == "ok", "all GPUs are ok", 30)

    def test_5_every_reason_is_documented(self):
        table = json.loads(run("--print-conditions=json").stdout)
        known = {(each["reason"], each["severity"], each["action"]) for each in table["conditions"]}
        self.assertEqual([text for _, _, reasons, _ in CASES for text in reasons if tuple(text.split()) not in known], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
