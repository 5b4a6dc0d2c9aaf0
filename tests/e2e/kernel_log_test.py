#!/usr/bin/env python3
"""The daemon reads a kernel's log: XIDs of fake GPUs, storms, overruns, restarts, and the stream of events with readers that stall."""
from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
import unittest
from pathlib import Path

import at_once
from harness import STOP, Daemon, Page, wait_until

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "fakes/nvml"))
from machine import Machine  # noqa: E402

GPU = "0000:61:00"  # GPU 3 of h100_8.yaml
FALLEN = f"NVRM: Xid (PCI:{GPU}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
EVIL = "<script>alert(1)</script>\x1b[2J"


class KernelLog:
    """A file with records as /dev/kmsg has them."""

    def __init__(self, path: Path):
        self.path, self.sequence = path, 100
        path.touch()

    def write(self, *texts: str, ago: float = 0, priority: int = 4) -> None:
        since_boot = int((time.clock_gettime(time.CLOCK_MONOTONIC) - ago) * 1e6)
        lines = []
        for text in texts:
            escaped = "".join(c if " " <= c <= "~" and c != "\\" else f"\\x{ord(c):02x}" for c in text)
            lines.append(f"{priority},{self.sequence},{since_boot},-;{escaped}\n")
            self.sequence += 1
        with self.path.open("a") as file:
            file.write("".join(lines))


class KernelLogCase(unittest.TestCase):
    SCENARIO = "include: h100_8.yaml\n"

    def setUp(self) -> None:
        self.machine = self.enterContext(Machine(self.SCENARIO))
        self.log = KernelLog(self.machine.folder / "kmsg")
        with self.machine.config.open("a") as config:
            config.write(f"kernel: {{log: {self.log.path}}}\njobs: {{enabled: false}}\n")

    def daemon(self, **options) -> Daemon:
        return self.enterContext(Daemon(*self.machine.arguments, env=self.machine.env, **options))

    def events(self, daemon: Daemon, after: int | None = None) -> list[dict]:
        response = daemon.fetch("/api/v1/events", {"Last-Event-ID": str(after)} if after else {})
        self.assertEqual((response.status, response.header("Content-Type")), (200, "application/json"))
        return json.loads(response.body)["events"]

    def xids(self, page: Page, code: int) -> float | None:
        return page.one("gpu_xid_errors_total", gpu="3", xid=str(code))

    def until_xids(self, daemon: Daemon, code: int, count: int) -> Page:
        return wait_until(lambda: (page := daemon.page()) and self.xids(page, code) == count and page, f"{count} XIDs {code}", 20)


class Reading(KernelLogCase):
    def test_an_xid_that_only_the_log_has_counts_and_has_its_text(self) -> None:
        daemon = self.daemon()
        self.assertEqual(self.until_xids(daemon, 79, 0).one("gpumeter_kernel_log_readable"), 1)
        self.log.write(f"NVRM: Xid (PCI:{GPU}): 119, pid=7, name={EVIL}, Timeout after 6s of waiting for RPC response")
        page = self.until_xids(daemon, 119, 1)
        self.assertAlmostEqual(page.one("gpu_xid_last_timestamp_seconds", gpu="3", xid="119"), time.time(), delta=20)
        (event,) = self.events(daemon)
        self.assertEqual(event["device"], {"gpu": "3", "uuid": "GPU-a1000003-0000-4000-8000-000000000003", "pci_address": f"{GPU}.0", "vendor": "nvidia"})
        self.assertEqual((event["source"], event["kind"], event["code"], event["pid"], event["count"]), ("kernel", "xid", 119, 7, 1))
        self.assertIn(EVIL, event["text"])
        answer = daemon.fetch("/api/v1/events")
        self.assertNotIn(b"\x1b", answer.body)
        self.assertEqual(answer.header("X-Content-Type-Options"), "nosniff")
        self.assertNotIn("\x1b", daemon.log)

    def test_a_line_of_user_space_is_no_event(self) -> None:
        daemon = self.daemon()
        self.until_xids(daemon, 79, 0)
        self.log.write(FALLEN, priority=12)
        self.log.write(f"NVRM: Xid (PCI:{GPU}): 31, Ch 00000008", priority=4)
        self.assertEqual(self.xids(self.until_xids(daemon, 31, 1), 79), 0)
        self.assertEqual([event["code"] for event in self.events(daemon)], [31])

    def test_a_gpu_off_the_bus_without_an_xid(self) -> None:
        daemon = self.daemon()
        self.until_xids(daemon, 79, 0)
        self.log.write(f"NVRM: GPU {GPU}.0: GPU has fallen off the bus.")
        page = wait_until(lambda: (p := daemon.page()).one("gpu_events_total", gpu="3", event="off_bus") == 1 and p, "the event", 20)
        self.assertEqual(self.xids(page, 79), 0)
        (event,) = self.events(daemon)
        self.assertEqual((event["kind"], event["device"]["gpu"], event["severity"]), ("off_bus", "3", "failed"))
        page = wait_until(lambda: (p := daemon.page()).of("gpu_health_reason") and p, "the finding", 20)
        self.assertEqual(page.one("gpu_health_reason", gpu="3", reason="device_lost", severity="failed", action="reboot"), 1)

    def test_a_driver_that_could_not_reset_its_gpu(self) -> None:
        daemon = self.daemon()
        self.until_xids(daemon, 79, 0)
        time.sleep(4)  # the judge has seen the counters at 0
        self.log.write(f"amdgpu {GPU}.0: amdgpu: GPU reset begin!", f"amdgpu {GPU}.0: amdgpu: GPU Recovery Failed: -110")
        page = wait_until(lambda: (p := daemon.page()).of("gpu_health_reason") and p, "the finding", 20)
        self.assertEqual(page.one("gpu_health_reason", gpu="3", reason="recovery_action", severity="failed", action="reboot"), 1)
        self.assertEqual(page.one("gpu_events_total", gpu="3", event="reset_failed"), 1)
        self.assertEqual(page.of("gpu_events_total", gpu="3", event="reset"), {})

    def test_an_xid_13_that_comes_back_on_one_tpc(self) -> None:
        line = f"NVRM: Xid (PCI:{GPU}): 13, pid=7, name=train, Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0): Out Of Range Address"
        self.log.write(line, ago=60)
        self.log.write(line, ago=30)
        daemon = self.daemon()
        page = wait_until(lambda: (p := daemon.page()).of("gpu_health_reason") and p, "the finding", 20)
        self.assertEqual(page.one("gpu_health_reason", gpu="3", reason="xid_repeated", severity="degraded", action="drain"), 1)
        self.assertEqual(page.one("gpu_events_total", gpu="3", event="repeated_xid"), 1)
        repeated = [event for event in self.events(daemon) if event["kind"] == "repeated_xid"]
        self.assertEqual([(event["code"], event["text"]) for event in repeated], [(13, "XID 13 twice within 24 h on GPC 1 TPC 3")])

    def test_a_boot_with_an_xid_before_the_start(self) -> None:
        hours_ago = 3 * 3600
        is_up_for_hours = time.clock_gettime(time.CLOCK_MONOTONIC) > hours_ago  # stamps count from the boot
        if is_up_for_hours:
            self.log.write(f"NVRM: Xid (PCI:{GPU}): 31, Ch 00000008", ago=hours_ago)
        self.log.write(FALLEN, ago=60)
        daemon = self.daemon()
        page = self.until_xids(daemon, 79, 1)
        self.assertAlmostEqual(page.one("gpu_xid_last_timestamp_seconds", gpu="3", xid="79"), time.time() - 60, delta=30)
        self.assertEqual(self.xids(page, 31), 0, "an XID of hours ago is no news")
        events = {event["code"]: event for event in self.events(daemon)}
        self.assertTrue(events[79]["time_estimated"])
        self.assertAlmostEqual(events[79]["time"], time.time() - 60, delta=30)
        if is_up_for_hours:
            self.assertAlmostEqual(events[31]["time"], time.time() - hours_ago, delta=60)

    def test_a_restart_and_a_reload_count_nothing_twice(self) -> None:
        state = self.machine.folder / "state"
        state.mkdir()
        daemon = self.daemon(state=str(state))
        self.until_xids(daemon, 79, 0)
        self.log.write(FALLEN)
        self.until_xids(daemon, 79, 1)
        (first,) = self.events(daemon)
        config = self.machine.config.read_text()
        for log in ("off", self.log.path):
            self.machine.config.write_text(config.replace(str(self.log.path), str(log)))
            daemon.send(signal.SIGHUP)
            wait_until(lambda: len(daemon.page().of("gpumeter_kernel_log_readable")) == (log != "off"), "the reload", 20)
        self.log.write(f"NVRM: Xid (PCI:{GPU}): 31, Ch 00000008")
        self.assertEqual(self.xids(self.until_xids(daemon, 31, 1), 79), 1)
        self.assertEqual(daemon.stop()[0], 0)
        self.log.write(f"NVRM: Xid (PCI:{GPU}): 31, Ch 00000009")
        again = self.daemon(state=str(state))
        page = self.until_xids(again, 31, 1)  # a process counts XIDs from 0
        self.assertEqual(self.xids(page, 79), 0)
        self.assertEqual([(event["code"], event["count"]) for event in self.events(again)], [(79, 1), (31, 2)])
        self.assertLess(self.events(again)[0]["id"], first["id"] + 1, "a client that has it does not get it again")

    def test_an_overrun_is_counted(self) -> None:
        daemon = self.daemon()
        self.until_xids(daemon, 79, 0)
        self.log.write(FALLEN)
        self.log.sequence += 1000
        self.log.write(f"NVRM: Xid (PCI:{GPU}): 31, Ch 00000008")
        self.assertEqual(self.until_xids(daemon, 31, 1).one("gpumeter_kernel_log_lost_total"), 1000)

    def test_ten_thousand_lines_a_second_cost_the_scrapes_the_memory_and_the_log_little(self) -> None:
        seconds, rate = 5, 10_000
        daemon = self.daemon()
        self.until_xids(daemon, 31, 0)
        resident = lambda: int(Path(f"/proc/{daemon.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20  # noqa: E731
        before, slowest, written = resident(), 0.0, daemon.log_path.stat().st_size
        begun = time.monotonic()
        for tenth in range(10 * seconds):
            self.log.write(*(f"NVRM: Xid (PCI:{GPU}): 31, pid={i}, name=python3, Ch {i:08x}, intr 0. MMU Fault" for i in range(rate // 10)))
            asked = time.monotonic()
            daemon.page()
            slowest = max(slowest, time.monotonic() - asked)
            time.sleep(max(0.0, begun + (tenth + 1) / 10 - time.monotonic()))
        self.until_xids(daemon, 31, seconds * rate)
        grown, lines = resident() - before, daemon.log[written:].count("the kernel reports")
        print(f"{seconds * rate} lines: slowest scrape {slowest * 1000:.0f} ms, {grown:.1f} MiB more, {lines} lines in the own log")
        self.assertLess(slowest, 10, "Prometheus waits so long")
        self.assertLess(grown, 8)
        self.assertLessEqual(lines, 2)
        (event,) = self.events(daemon)
        self.assertEqual(event["count"], seconds * rate)


class BothSources(KernelLogCase):
    SCENARIO = "include: h100_8.yaml\nevents: [{at: 5, device: 3, type: xid, data: 79}]\n"

    def test_an_xid_of_nvml_and_of_the_log_counts_once(self) -> None:
        daemon = self.daemon()
        wait_until(lambda: "the driver reports xid 79" in daemon.log, "NVML's event", 40)
        self.log.write(FALLEN)
        wait_until(lambda: any(event["text"] for event in self.events(daemon)), "the event has its text", 20)
        time.sleep(3)  # what NVML reported does not follow
        self.assertEqual(self.xids(daemon.page(), 79), 1)
        self.assertEqual([(event["text"], event["count"]) for event in self.events(daemon)], [(FALLEN, 1)])


class Reader:
    """A client of a stream. One that `stalls` has little room for what it does not read, and leaves the daemon's kernel little."""

    def __init__(self, port: int, after: int | None = None, stalls: bool = False, path: str = "/api/v1/events"):
        self.socket = socket.socket()
        if stalls:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        self.socket.settimeout(20)
        self.socket.connect(("127.0.0.1", port))
        last = f"Last-Event-ID: {after}\r\n" if after else ""
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n{last}\r\n".encode())
        self.bytes = b""

    def until(self, text: str) -> str:
        while text.encode() not in self.bytes:
            received = self.socket.recv(65536)
            if not received:
                raise AssertionError(f"the stream ended without {text!r}: {self.bytes!r}")
            self.bytes += received
        return self.bytes.decode()

    def pictures(self, count: int) -> list[dict]:
        """The next ones. Each message is one chunk of the answer, or several."""
        begun = len(self.messages())
        while len(self.messages()) < begun + count:
            received = self.socket.recv(65536)
            if not received:
                raise AssertionError("the stream ended")
            self.bytes += received
        return [json.loads(data) for data in self.messages()[begun:]]

    def messages(self) -> list[str]:
        """The data of the whole pictures that have come."""
        body, rest = b"", self.bytes.partition(b"\r\n\r\n")[2]
        while b"\r\n" in rest:
            size, _, rest = rest.partition(b"\r\n")
            body, rest = body + rest[:int(size, 16)], rest[int(size, 16) + 2:]
        pictures = [each for each in body.decode().split("\n\n")[:-1] if each.startswith("event: picture\n")]
        return ["\n".join(line[6:] for line in each.splitlines()[1:]) for each in pictures]


class AStalledReader(KernelLogCase):  # takes a minute, and is the first by its name
    def test_is_disconnected_in_a_minute_and_no_other_reader_notices(self) -> None:
        daemon = self.daemon()
        reader, stalled = Reader(daemon.port, path="/api/v1/stream"), Reader(daemon.port, path="/api/v1/stream", stalls=True)
        stalled.until("retry: 2000\n\n")
        begun, established = time.monotonic(), f":{daemon.port:04X} 0100007F:{stalled.socket.getsockname()[1]:04X} 01 "
        is_there = lambda: established in Path("/proc/net/tcp").read_text()  # noqa: E731
        times = [picture["time"] for picture in reader.pictures(45)]
        self.assertTrue(is_there())
        while time.monotonic() < begun + 100 and is_there():
            times += [picture["time"] for picture in reader.pictures(1)]
        took = time.monotonic() - begun
        print(f"the stalled reader was disconnected after {took:.0f} s; the other one had {len(times)} pictures meanwhile, {max(b - a for a, b in zip(times, times[1:])):.1f} s apart at most")
        self.assertLess(took, 90)
        self.assertGreater(len(times), 0.8 * took)


class Streaming(KernelLogCase):
    def test_each_event_is_sent_as_it_comes_and_a_reader_goes_on_by_its_id(self) -> None:
        daemon = self.daemon()
        self.until_xids(daemon, 79, 0)
        reader = Reader(daemon.port)
        head = reader.until("retry: 2000\n\n")
        self.assertIn("HTTP/1.1 200", head)
        self.assertIn("Content-Type: text/event-stream\r\n", head)
        self.log.write(FALLEN)
        reader.until(FALLEN.split(", ")[-1])
        self.log.write(f"NVRM: Xid (PCI:{GPU}): 31, Ch 00000008")
        text = reader.until("Ch 00000008")
        ids = [int(line[4:]) for line in text.splitlines() if line.startswith("id: ")]
        self.assertEqual(len(ids), 2)
        again = Reader(daemon.port, after=ids[0]).until("Ch 00000008")
        self.assertNotIn("fallen off", again)
        data = [json.loads(line[6:]) for line in again.splitlines() if line.startswith("data: ")]
        self.assertEqual(data, [self.events(daemon, after=ids[0])[0]])

    def test_a_stream_ends_when_the_users_change(self) -> None:
        web = self.machine.folder / "web.yml"
        web.touch()
        daemon = self.enterContext(Daemon(*self.machine.arguments, f"--web.config.file={web}", env=self.machine.env))
        reader = Reader(daemon.port)
        self.assertIn("HTTP/1.1 200", reader.until("retry: 2000\n\n"))
        web.write_text("basic_auth_users: {carol: $2y$10$qRTBuFoULoYNA7AQ/F3ck.trZBPyjV64.oA4ZsSBCIWvXuvQlQTuu}\n")
        reader.until("\r\n0\r\n\r\n")  # the last chunk

    def test_pictures_are_those_of_the_live_page_and_events_come_between_them(self) -> None:
        daemon = self.daemon()
        reader, begun = Reader(daemon.port, path="/api/v1/stream"), time.monotonic()
        times = [picture["time"] for picture in reader.pictures(4)]
        print(f"4 pictures within {time.monotonic() - begun:.1f} s, at {times}")
        self.assertTrue(all(0.5 < later - earlier < 2.5 for earlier, later in zip(times, times[1:])), times)

        def is_the_same() -> bool:
            (picture,), live = reader.pictures(1), json.loads(daemon.fetch("/api/v1/live").text)
            return [gpu["uuid"] for gpu in picture["gpus"]] != [] and all(picture[key] == live[key] for key in live if key != "time")

        wait_until(is_the_same, "a picture equals the answer of /api/v1/live", 20)
        self.log.write(FALLEN)
        reader.until(FALLEN.split(", ")[-1])
        self.assertIn("xid", json.dumps(wait_until(lambda: reader.pictures(1)[0]["gpus"][3]["reasons"], "the finding", 20)))

    def test_fifty_readers_of_which_half_stall_delay_nobody(self) -> None:
        daemon = self.daemon()
        self.until_xids(daemon, 79, 0)
        threads = lambda: len(os.listdir(f"/proc/{daemon.process.pid}/task"))  # noqa: E731
        before = threads()
        readers = [Reader(daemon.port, path="/api/v1/stream") for _ in range(25)]
        stalled = [Reader(daemon.port, path="/api/v1/stream", stalls=True) for _ in range(25)]
        for reader in readers + stalled:
            reader.until("retry: 2000\n\n")
        for code in range(1000, 1200):  # more than the ledger keeps
            self.log.write(f"NVRM: Xid (PCI:{GPU}): {code}, {'x' * 400}")
        self.log.write(f"NVRM: Xid (PCI:{GPU}): 31, Ch 00000008")
        begun = time.monotonic()
        for reader in readers:
            reader.until("Ch 00000008")
        took = time.monotonic() - begun
        asked = time.monotonic()
        self.until_xids(daemon, 31, 1)
        print(f"25 readers have the last event after {took:.2f} s, a scrape after {time.monotonic() - asked:.2f} s; {threads() - before} more threads")
        self.assertLess(took, 10)
        self.assertLessEqual(threads() - before, 1)
        self.assertEqual({reader.pictures(3)[-1]["gpus"][3]["gpu"] for reader in readers}, {"3"})
        self.assertEqual(daemon.fetch("/-/ready").status, 200)
        self.assertEqual(daemon.page().one("gpumeter_http_requests_total", code="503") or 0, 0)
        more = [Reader(daemon.port) for _ in range(40)]
        self.assertTrue(any("503" in reader.until("\r\n") for reader in more), "the number of streams is limited")
        for reader in readers[:10]:
            reader.socket.close()
        status, seconds = daemon.stop()
        self.assertEqual(status, 0)
        self.assertLess(seconds, STOP)

    def test_a_reload_and_a_silent_stream(self) -> None:
        daemon = self.daemon()
        reader = Reader(daemon.port)
        reader.until("retry: 2000\n\n")
        daemon.send(signal.SIGHUP)
        self.assertTrue(reader.until("\r\n:\n\n"), "a comment every 15 s")


if __name__ == "__main__":
    at_once.main(4)
