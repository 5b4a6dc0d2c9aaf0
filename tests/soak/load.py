"""The load of a soak: clients, runs and reloads."""
from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from clients import FORMATS, Browser, Client, Scraper
from harness import Daemon, wait_until
from machine import Configuration

RUNS_A_SECOND = 1.0
RELOAD_SECONDS = 15
RELOAD_PATIENCE = 30
OF_COLLECTOR = ("gpu_", 'gpumeter_read_errors_total{collector="simulated"')  # counters that start again with the collector
SETTLES = 25  # seconds in which the failures of a part end


class Load:
    """Starts and stops with start() and stop(). `findings`: every answer and every reload that was not as it must be."""

    def __init__(self, daemon: Daemon, configuration: Configuration, dice: random.Random, stack: ExitStack) -> None:
        self._daemon, self._configuration, self._dice, self._stack = daemon, configuration, dice, stack
        self._clients: list[Client] = []
        self.scrapers: list[Scraper] = []
        self.events: list[str] = []
        self.findings: list[str] = []
        self.runs = self.reloads = self.spoiled = self.renewals = 0

    def start(self) -> None:
        self.scrapers = [Scraper(self._daemon.port, *form) for form in FORMATS]
        self._clients = [*self.scrapers, Browser(self._daemon.port)]
        for client in self._clients:
            client.start()
        program, folder = Path(__file__).with_name("jobs.py"), self._configuration.path.parent
        self._jobs = subprocess.Popen([sys.executable, "-B", str(program), str(folder), str(RUNS_A_SECOND), str(self._dice.randrange(1 << 30))],
                                      stdout=subprocess.PIPE, text=True)
        self._stack.callback(self._jobs.kill)

    def stop(self) -> None:
        for client in self._clients:
            client.stop()
            self.findings += client.findings
        for scraper in self.scrapers:
            self.findings += scraper.monotonic.findings
        self._jobs.terminate()
        self.runs += int(self._jobs.communicate(timeout=60)[0])

    def run(self, seconds: float) -> None:
        """Other devices ten times in all; meanwhile reloads that change something else, one in five of them of a bad file first."""
        end = time.monotonic() + seconds
        part = max(60.0, seconds / 10)
        while (left := end - time.monotonic()) > SETTLES:
            length = min(part, left) if left >= part + SETTLES else left
            part_end = time.monotonic() + length
            self._renew(length)
            while part_end - time.monotonic() > RELOAD_SECONDS + 10:
                time.sleep(RELOAD_SECONDS)
                self._change()
            time.sleep(max(0.0, part_end - time.monotonic()))

    def _change(self) -> None:
        if self._dice.random() < 0.2:
            self.spoiled += 1
            self._configuration.spoil()
            self._reload("a bad file")
        self._configuration.change()
        self._reload("a good file")

    def _renew(self, seconds: float) -> None:
        """The collector starts again, and so do its counters."""
        self.renewals += 1
        self._configuration.renew(seconds)
        self.events += self._configuration.events
        self._permit_resets()
        self._reload("other devices")
        self._permit_resets()

    def _permit_resets(self) -> None:
        for scraper in self.scrapers:
            scraper.monotonic.permit_resets(*OF_COLLECTOR)

    def _reload(self, what: str) -> None:
        self.reloads += 1
        before = self._outcome()
        self._daemon.send(signal.SIGHUP)
        try:
            wait_until(lambda: self._outcome() != before, f"the daemon has read {what}", RELOAD_PATIENCE, every=0.2)
        except AssertionError as error:
            self.findings.append(str(error))

    def _outcome(self) -> list[str]:
        return re.findall(r"^gpumeter_config_last_reload_.*", self._daemon.fetch("/metrics").text, re.MULTILINE)
