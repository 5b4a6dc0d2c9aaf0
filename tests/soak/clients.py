"""Readers of the daemon during a soak: four scrapers and a browser. Each is a thread on a connection of its own."""
from __future__ import annotations

import gzip
import http.client
import json
import random
import sys
import threading
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from counters import Monotonic  # noqa: E402
from harness import OPENMETRICS, TEXT, openmetrics_page, text_page  # noqa: E402

FORMATS = ((TEXT, "identity"), (TEXT, "gzip"), (OPENMETRICS, "identity"), (OPENMETRICS, "gzip"))
REQUESTS_A_CONNECTION = 97
PAGES_A_STRICT_CHECK = 60


class Client(threading.Thread):
    """Asks once a second until stop(). `findings`: every answer that is not as it must be."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port, self._end = port, threading.Event()
        self.findings: list[str] = []
        self.answers = 0

    def run(self) -> None:
        connection = None
        while not self._end.wait(1):
            if self.answers % REQUESTS_A_CONNECTION == 0:
                connection and connection.close()
                connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
            try:
                self.ask(connection)
            except (OSError, http.client.HTTPException, AssertionError, ValueError) as error:
                self.findings.append(f"{type(self).__name__}: {error!r}")
                connection.close()
            self.answers += 1
        connection and connection.close()

    def ask(self, connection: http.client.HTTPConnection) -> None:
        raise NotImplementedError

    def get(self, connection: http.client.HTTPConnection, path: str, headers: dict[str, str], may_be: tuple[int, ...] = ()) -> bytes:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200 or response.status in may_be, f"{path}: {response.status}"
        return gzip.decompress(body) if response.headers["Content-Encoding"] == "gzip" else body

    def stop(self) -> None:
        self._end.set()
        self.join()


class Scraper(Client):
    """Checks each page's counters, and one page in sixty by a strict parser."""

    def __init__(self, port: int, accept: str, encoding: str) -> None:
        super().__init__(port)
        self._headers = {"Accept": accept, "Accept-Encoding": encoding}
        self._parse = openmetrics_page if accept == OPENMETRICS else text_page
        self.monotonic = Monotonic()
        self.size = 0

    def ask(self, connection: http.client.HTTPConnection) -> None:
        page = self.get(connection, "/metrics", self._headers).decode()
        self.size = max(self.size, len(page))
        self.monotonic.check(page)
        if self.answers % PAGES_A_STRICT_CHECK == 0:
            self._parse(page)


class Browser(Client):
    """Polls as the live page does, and opens the history of a GPU or a run now and then."""

    def ask(self, connection: http.client.HTTPConnection) -> None:
        first = self.answers % REQUESTS_A_CONNECTION == 0
        live = json.loads(self.get(connection, "/api/v1/live" + "?sparklines=1" * first, {"Accept-Encoding": "gzip"}))
        if self.answers % 7 == 3:
            span = random.choice(("5m", "6h"))
            json.loads(self.get(connection, f"/api/v1/history?gpu={random.randrange(8)}&range={span}", {}))
            for run in live["runs"][:1]:
                query = urllib.parse.urlencode({"run": run["run"], "user": run["user"], "range": span})
                self.get(connection, f"/api/v1/history?{query}", {}, (400,))  # 400: it has just left
