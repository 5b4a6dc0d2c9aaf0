#!/usr/bin/env python3
"""Clients that hold connections in every way, with a daemon that notifies systemd: scrapes are answered, no watchdog message is
missed, and no connection is held past its deadline. Few file descriptors cost no scrape."""
from __future__ import annotations

import os
import resource
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import http_attacker
from harness import Daemon, free_port, is_sanitized, run, wait_until
from lifecycle_test import Notifications
from pki import Pki

WATCHDOG_SECONDS = 4.0  # pinged in half of it, and then as late as the probe before may take, 1 s
ATTACK_SECONDS = 10
DEADLINE = 10  # s, for a request
PATIENCE = 0.25  # s, for which no flood replaces a connection without a request


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def seconds_until_closed(client: socket.socket, began: float) -> float:
    try:
        while client.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return time.monotonic() - began


class Scraper:
    """A scrape after the other until the end of the block, every 20 ms, each on a connection of its own. With `late`, it sends its
    request that many seconds after it has connected, as a program does that is off its processor meanwhile. On a busy machine that
    may become more than the daemon's patience, after which a connection without a request may end: such a scrape is counted as `away`."""

    def __init__(self, daemon: Daemon, late: float = 0):
        self.daemon, self.late, self.seconds, self.lost, self.away, self.over = daemon, late, [], [], 0, threading.Event()

    def __enter__(self) -> "Scraper":
        self.thread = threading.Thread(target=self.scrape)
        self.thread.start()
        return self

    def status(self) -> int:
        self.is_away = False
        if not self.late:
            return self.daemon.fetch("/metrics").status
        with connect(self.daemon.port) as raw:
            began = time.monotonic()
            try:
                time.sleep(self.late)
                client = self.daemon.tls.wrap_socket(raw, server_hostname="localhost") if self.daemon.tls else raw
                client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                with client:
                    head = client.recv(65536)
            finally:
                self.is_away = time.monotonic() - began > PATIENCE
        return int(head.split()[1]) if head else 0

    def scrape(self) -> None:
        while not self.over.wait(0.02):
            began = time.monotonic()
            try:
                status = self.status()
            except OSError as error:
                status = error
            self.seconds.append(time.monotonic() - began)
            if status != 200 and self.is_away:
                self.away += 1
            elif status != 200:
                self.lost.append(status)

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def __str__(self) -> str:
        return f"{len(self.seconds)} scrapes, {len(self.lost)} lost, {self.away} lost while it was away, longest {max(self.seconds) * 1000:.1f} ms"


class AttackTest(unittest.TestCase):
    def daemon(self, *arguments: str, **named) -> Daemon:
        return self.enterContext(Daemon(*arguments, **named))

    def connect(self, port: int) -> socket.socket:
        """A connection on which a request can be sent."""
        return self.enterContext(connect(port))

    def test_nobody_can_hold_the_server(self) -> None:
        port = free_port()
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        with Notifications(folder) as heard:
            env = {"NOTIFY_SOCKET": heard.path, "WATCHDOG_USEC": str(int(WATCHDOG_SECONDS * 1e6))}
            daemon = self.daemon("--simulate=4", env=env, port=port)
            attacker = subprocess.Popen(["/usr/bin/python3", http_attacker.__file__, str(port), str(ATTACK_SECONDS), *["tls"][:bool(daemon.tls)]],
                                        stdout=subprocess.PIPE, text=True)
            self.addCleanup(attacker.stdout.close)
            pings: list[float] = []  # when each was seen
            with Scraper(daemon) as scraper, Scraper(daemon, late=0.1) as late:
                while attacker.poll() is None:
                    count = sum("WATCHDOG" in said for said in heard.read())
                    pings += [time.monotonic()] * (count - len(pings))
                    time.sleep(0.02)
            print(f"\n{attacker.stdout.read().strip()}\n{scraper}; requests 100 ms late: {late}")
        gaps = [later - earlier for earlier, later in zip(pings, pings[1:])]
        self.assertGreaterEqual(len(pings), ATTACK_SECONDS / WATCHDOG_SECONDS)
        self.assertLess(max(gaps), WATCHDOG_SECONDS, "systemd would have restarted it")
        self.assertEqual(scraper.lost, [])
        self.assertNotIn("does not answer", daemon.log)

    def test_a_flood_from_one_address_costs_another_no_scrape(self) -> None:
        """More connections than all threads may have."""
        daemon = self.daemon("--simulate=4")
        attacker = subprocess.Popen(["/usr/bin/python3", http_attacker.__file__, str(daemon.port), str(ATTACK_SECONDS),
                                     *["tls"][:bool(daemon.tls)], "--from=127.0.0.2", "--idle=1500"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(attacker.stdout.close)
        with Scraper(daemon) as scraper, Scraper(daemon, late=0.1) as late:
            attacker.wait()
        print(f"\n{attacker.stdout.read().strip()}\nfrom another address: {scraper}; requests 100 ms late: {late}")
        self.assertEqual(scraper.lost + late.lost, [])

    def test_every_connection_ends_by_its_deadline(self) -> None:
        """All at the same time: the wait is that of one."""
        daemon = self.daemon("--simulate=1")
        half = self.connect(daemon.port)
        began = time.monotonic()
        idle, trickling = (self.enterContext(connect(daemon.port)) for _ in range(2))
        drip = iter(http_attacker.client_hello() if daemon.tls else b"G" * 512)
        half.sendall(http_attacker.REQUEST)
        socket.socket.shutdown(half, socket.SHUT_WR)
        self.assertLess(seconds_until_closed(half, began), 5)
        ends: dict[str, float] = {}
        waits = threading.Thread(target=lambda: ends.update(idle=seconds_until_closed(idle, began)))
        waits.start()
        while time.monotonic() < began + DEADLINE + 5:
            try:
                trickling.send(bytes([next(drip)]))
            except OSError:
                break
            time.sleep(0.25)
        ends["trickling"] = time.monotonic() - began
        waits.join()
        for name, seconds in ends.items():
            self.assertGreater(seconds, DEADLINE - 0.1, name)
            self.assertLess(seconds, DEADLINE + 4, name)

    def test_slow_readers_give_way(self) -> None:
        daemon = self.daemon("--simulate=8")
        for _ in range(400):
            raw = socket.socket()
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.settimeout(5)
            raw.bind(("127.0.0.2", 0))  # clients of the scraper's own address may cost it a 503
            raw.connect(("127.0.0.1", daemon.port))
            client = self.enterContext(daemon.tls.wrap_socket(raw, server_hostname="localhost") if daemon.tls else raw)
            client.sendall(http_attacker.REQUEST * 20)
        with Scraper(daemon) as scraper:
            time.sleep(1)
        print(f"\n400 slow readers: {scraper}")
        self.assertEqual(scraper.lost, [])
        descriptors = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
        self.assertLess(descriptors, 400)


@unittest.skipUnless(shutil.which("openssl"), "needs openssl")
class TlsAttackTest(AttackTest):
    """The same under TLS: handshakes are held, too."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.pki = Pki(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        cls.config = cls.pki.write("tls_server_config: {cert_file: server.crt, key_file: server.key}\n")

    def daemon(self, *arguments: str, **named) -> Daemon:
        return super().daemon(*arguments, f"--web.config.file={self.config}", tls=self.pki.context(), **named)

    def connect(self, port: int) -> socket.socket:
        return self.enterContext(self.pki.context().wrap_socket(connect(port), server_hostname="localhost"))


class SlowReaders(threading.Thread):
    """`count` clients that open one connection after the other, ask for the page and read next to nothing of it. An ended one comes
    back after its pause. They have another address than the scraper. Arrivals are spread over seconds, so that they hold different
    pages."""

    def __init__(self, port: int, count: int, timeout: str = "60"):
        super().__init__()
        self.port, self.count, self.timeout = port, count, timeout
        self.over, self.clients, self.ended, self.opened = threading.Event(), [], 0, 0

    def open(self) -> None:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(5)
        client.bind(("127.0.0.2", 0))
        client.connect(("127.0.0.1", self.port))
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Prometheus-Scrape-Timeout-Seconds: " + self.timeout.encode() + b"\r\n\r\n")
        client.setblocking(False)
        self.clients.append(client)
        self.opened += 1

    def read_a_little(self) -> None:
        for client in list(self.clients):
            try:
                data = client.recv(100)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if not data or data.startswith(b"HTTP/1.1 503"):
                self.clients.remove(client)
                client.close()
                self.ended += 1

    def run(self) -> None:
        while not self.over.wait(0.5):
            self.read_a_little()
            for _ in range(min(self.count - len(self.clients), max(self.count // 10, 1))):
                self.open()

    def __enter__(self) -> "SlowReaders":
        self.start()
        wait_until(lambda: self.opened >= self.count, "all have come once")
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()
        for client in self.clients:
            client.close()


class SlowReadersTest(unittest.TestCase):
    PAGE_GPUS = 176  # 6 MB of text
    BUDGET = 32 << 20

    def rss(self) -> int:
        lines = (line.split() for line in Path(f"/proc/{self.daemon.process.pid}/status").read_text().splitlines())
        return next(int(line[1]) << 10 for line in lines if line[0] == "VmRSS:")

    def scrapes(self, when: str) -> int:
        """Ten good scrapes, of which none is lost; the highest resident memory meanwhile."""
        highest = 0
        with Scraper(self.daemon) as scraper:
            while len(scraper.seconds) < 10:
                highest = max(highest, self.rss())
                time.sleep(0.05)
        print(f"{when}: {scraper}, {highest >> 20} MiB")
        self.assertEqual(scraper.lost, [])
        return highest

    def test_41_and_200_slow_readers_of_a_large_page(self) -> None:
        self.daemon = self.enterContext(Daemon(f"--simulate={self.PAGE_GPUS}"))
        size = len(self.daemon.fetch("/metrics").body)
        print(f"\na page of {size / 1e6:.1f} MB")
        self.assertGreater(size, 5_500_000)
        for count in (41, 200):
            before = self.scrapes(f"before {count} slow readers")
            with SlowReaders(self.daemon.port, count) as readers:
                during = max(self.scrapes(f"during {count}") for _ in range(3))
            print(f"{readers.opened} opened, {readers.ended} ended")
            self.scrapes(f"after {count}")
            # Once for the answers under way, once for those that were ended and that the library has not closed yet; and pages that
            # are just being rendered.
            self.assertLess(during - before, 2 * self.BUDGET + 6 * size)

    def test_an_answer_ends_when_its_client_has_given_up(self) -> None:
        self.daemon = self.enterContext(Daemon(f"--simulate={self.PAGE_GPUS}"))
        reader = SlowReaders(self.daemon.port, 1, timeout="1.5")
        reader.open()
        client = reader.clients[0]
        client.setblocking(True)
        began = time.monotonic()
        time.sleep(3)
        taken = 0
        while True:
            try:
                data = client.recv(1 << 20)
            except ConnectionResetError:
                data = b""
            if not data:
                break
            taken += len(data)
        client.close()
        self.assertLess(time.monotonic() - began, 30)
        self.assertLess(taken, len(self.daemon.fetch("/metrics").body), "it was sent whole")


class FewDescriptorsTest(unittest.TestCase):
    """The limit of the process is below what its clients take. Their address is not the scraper's."""
    WINDOW = 2.0  # s

    def clients(self, port: int, count: int) -> None:
        for _ in range(count):
            client = self.enterContext(socket.socket())
            client.bind(("127.0.0.2", 0))
            client.settimeout(30)
            client.connect(("127.0.0.1", port))

    def cores(self, process: int) -> float:
        clock = ~process << 3 | 2  # CPUCLOCK_SCHED of another process: clock_getcpuclockid(3)
        before = time.clock_gettime(clock)
        time.sleep(self.WINDOW)
        return (time.clock_gettime(clock) - before) / self.WINDOW

    def assert_says_so_once(self, daemon: Daemon, limit: int) -> None:
        wait_until(lambda: "file descriptors run out" in daemon.log, "the log has the reason")
        lines = [line for line in daemon.log.splitlines() if "file descriptors" in line]
        self.assertEqual(len(lines), 1)
        self.assertIn("LimitNOFILE=", lines[0])
        self.assertTrue(lines[0].endswith(f" limit={limit}"), lines[0])

    def test_80_idle_clients_of_64_descriptors(self) -> None:
        # Without the socket for programs, which takes four of so few.
        daemon = self.enterContext(Daemon("--simulate=1", "--path.api=/proc/none/api.sock", wrap=["prlimit", "--nofile=64:64"]))
        with Scraper(daemon) as scraper:
            self.clients(daemon.port, 80)
            share = self.cores(daemon.process.pid)
        print(f"\n80 idle clients, 64 descriptors: {scraper}, {100 * share:.1f} % of a core with the scrapes")
        self.assertEqual(scraper.lost, [])
        # An ended connection closes on its own thread.
        wait_until(lambda: len(os.listdir(f"/proc/{daemon.process.pid}/fd")) < 60, "the rest of the daemon has descriptors left")
        self.assert_says_so_once(daemon, 64)

    def test_no_descriptor_is_left(self) -> None:
        """Another part of the process took all of them. The scraper gets through, and no thread computes meanwhile."""
        daemon = self.enterContext(Daemon("--simulate=1"))
        process = daemon.process.pid
        time.sleep(1)  # the spare descriptor is taken within 250 ms
        taken = {int(number) for number in os.listdir(f"/proc/{process}/fd")}
        free = next(number for number in range(1024) if number not in taken)
        resource.prlimit(process, resource.RLIMIT_NOFILE, (free, free))
        began = time.monotonic()
        for _ in range(3):
            self.assertEqual(daemon.fetch("/metrics").status, 200)
        print(f"\nno descriptor is left: 3 scrapes in {time.monotonic() - began:.2f} s")
        self.clients(daemon.port, 5)
        self.enterContext(socket.socket(socket.AF_UNIX)).connect(f"{daemon.folder.name}/control.sock")
        share = self.cores(process)
        print(f"with 5 idle clients: {100 * share:.1f} % of a core")
        if not is_sanitized():
            self.assertLess(share, 0.1)
        self.assertEqual(daemon.fetch("/metrics").status, 200)
        self.assert_says_so_once(daemon, free)


class PortTest(unittest.TestCase):
    def test_half_of_localhost_is_not_enough(self) -> None:
        """Who holds the other half would be asked in the daemon's place."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            ended = run("--simulate=1", f"--web.listen-address=localhost:{port}", "--config.file=/dev/null", "--path.state=/nonexistent",
                        timeout=20)
        self.assertEqual(ended.returncode, 1)
        self.assertIn(f"cannot listen on 127.0.0.1:{port}: Address already in use", ended.stderr)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip"), "needs root, unshare and ip")
    def test_a_machine_without_ipv6_is_served_on_ipv4(self) -> None:
        without = "ip link set lo up; echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; exec \"$@\""
        daemon = self.enterContext(Daemon("--simulate=1", "--web.listen-address=localhost:10478", wait=False,
                                          wrap=["unshare", "--net", "sh", "-c", without, "sh"]))
        wait_until(lambda: "Listening on" in daemon.log, "it listens")
        self.assertIn("cannot listen on [::1]:10478: Cannot assign requested address", daemon.log)
        self.assertEqual(daemon.log.count("Listening on"), 1)


if __name__ == "__main__":
    unittest.main()
