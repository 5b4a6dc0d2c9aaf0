#!/usr/bin/env python3
"""Many TLS scrapers at once, each scrape on a connection of its own: none with good credentials is refused while others try bad
ones, none with bad ones is let in, and no client notices that the certificate is replaced. Clients that begin a handshake and do not go
on cost next to nothing.

GPUMETER_TLS_SCRAPERS: scrapers with good credentials (60); a tenth as many have bad ones. GPUMETER_TLS_SECONDS: for how long (10).
The long form is 200 for 60 s.
"""
from __future__ import annotations

import base64
import http.client
import os
import socket
import ssl
import threading
import time
import unittest
from collections import Counter

from harness import Daemon, fetch, is_sanitized, wait_until
from http_attacker import client_hello
from tls_test import NO_CLIENTS, PASSWORD, USERS, VERIFIED, TlsTest

SCRAPERS = int(os.environ.get("GPUMETER_TLS_SCRAPERS", "60"))
SECONDS = float(os.environ.get("GPUMETER_TLS_SECONDS", "10"))


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


class Crowd:
    """Threads that scrape until the end of the block. `results` counts statuses and the names of errors, by kind."""

    def __init__(self, port: int):
        self.port, self.over = port, threading.Event()
        self.results: dict[str, Counter] = {}
        self.longest: dict[str, float] = {}
        self.lock, self.threads = threading.Lock(), []

    def add(self, kind: str, count: int, context: ssl.SSLContext, headers: dict[str, str] | None = None) -> None:
        self.results.setdefault(kind, Counter())
        self.threads += [threading.Thread(target=self.scrape, args=(kind, context, headers)) for _ in range(count)]

    def scrape(self, kind: str, context: ssl.SSLContext, headers: dict[str, str] | None) -> None:
        while not self.over.is_set():
            began = time.monotonic()
            try:
                result: int | str = fetch(self.port, "/metrics", headers, tls=context).status
            except (OSError, http.client.HTTPException) as error:
                result = type(error).__name__ + " " + str(error)
            with self.lock:
                self.results[kind][result] += 1
                self.longest[kind] = max(self.longest.get(kind, 0), time.monotonic() - began)

    def __enter__(self) -> "Crowd":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join()

    def __str__(self) -> str:
        return "\n".join(f"{kind}: {dict(counter)}, longest {self.longest.get(kind, 0):.2f} s" for kind, counter in self.results.items())


class UnfinishedTest(TlsTest):
    CLIENTS, WINDOW, BUDGET = 200, 8, 0.01  # s, of the 10 s after which they are ended; cores

    def processor_time(self, process: int) -> float:
        return time.clock_gettime(~process << 3 | 2)  # CPUCLOCK_SCHED of another process: clock_getcpuclockid(3)

    def test_unfinished_handshakes_cost_no_processor_and_no_scrape(self) -> None:
        """A hello with a key costs one signature, which is not counted: the server has answered it when the window begins. A hello
        without a key of a group that the server prefers is answered by a request for one."""
        daemon = self.daemon(NO_CLIENTS)
        self.assertEqual(daemon.fetch("/metrics").status, 200)
        hello = client_hello()
        for name, sent, is_signed in (("a byte", hello[:1], False), ("half a hello", hello[:len(hello) // 2], False),
                                      ("a hello", hello, False), ("a hello with a key", client_hello("prime256v1"), True)):
            before = self.processor_time(daemon.process.pid)
            clients = [self.enterContext(socket.create_connection(("127.0.0.1", daemon.port), timeout=20)) for _ in range(self.CLIENTS)]
            for client in clients:
                client.sendall(sent)
            if is_signed:
                self.assertNotIn(b"", [client.recv(1) for client in clients])
                before = self.processor_time(daemon.process.pid)
            time.sleep(self.WINDOW)
            share = (self.processor_time(daemon.process.pid) - before) / self.WINDOW
            print(f"\n{self.CLIENTS} clients that sent {name}: {100 * share:.2f} % of a core")
            with self.subTest(name):
                if not is_sanitized():
                    self.assertLess(share, self.BUDGET)
                self.assertEqual({daemon.fetch("/metrics").status for _ in range(5)}, {200})
            for client in clients:
                client.close()


class LoadTest(TlsTest):
    def started(self, text: str) -> Daemon:
        config = self.pki.write("web: {max_requests: 0}\n", "gpumeter.yaml")
        daemon = self.daemon(text, f"--config.file={config}", wait=False)
        wait_until(lambda: "Listening on" in daemon.log, "it listens")
        return daemon

    def test_bad_credentials_neither_enter_nor_disturb(self) -> None:
        daemon = self.started(VERIFIED + USERS)
        good = self.pki.context("client")
        wait_until(lambda: fetch(daemon.port, "/-/ready", basic("carol", PASSWORD), tls=good).status == 200, "it is ready")
        crowd = Crowd(daemon.port)
        crowd.add("good", SCRAPERS, good, basic("carol", PASSWORD))
        each = max(1, SCRAPERS // 40)
        crowd.add("no certificate", each, self.pki.context(), basic("carol", PASSWORD))
        crowd.add("a foreign certificate", each, self.pki.context("client_selfsigned"), basic("carol", PASSWORD))
        crowd.add("a wrong password", each, good, basic("carol", "guess"))
        crowd.add("an unknown user", each, good, basic("mallory", PASSWORD))
        with crowd:
            time.sleep(SECONDS)
        print(f"\n{crowd}")
        self.assertEqual(set(crowd.results["good"]), {200})
        for kind, results in crowd.results.items():
            if kind != "good":
                self.assertGreater(sum(results.values()), 0, kind)
                self.assertNotIn(200, results, kind)

    def test_a_replaced_certificate_is_seen_and_breaks_no_scrape(self) -> None:
        daemon = self.started(NO_CLIENTS)
        crowd = Crowd(daemon.port)
        crowd.add("clients", min(SCRAPERS, 100), self.pki.context())
        with crowd:
            for days in (40, 50, 60):
                time.sleep(SECONDS / 4)
                self.pki.issue_server("/CN=renewed", days)
                wait_until(lambda: self.days_left(daemon.port) > days - 2, f"the certificate of {days} days is presented", 20)
            time.sleep(SECONDS / 4)
        print(f"\n{crowd}")
        self.assertEqual(set(crowd.results["clients"]), {200})

    def days_left(self, port: int) -> float:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as raw, \
                self.pki.context().wrap_socket(raw, server_hostname="localhost") as client:
            return (ssl.cert_time_to_seconds(client.getpeercert()["notAfter"]) - time.time()) / 86400


if __name__ == "__main__":
    unittest.main(verbosity=2)
