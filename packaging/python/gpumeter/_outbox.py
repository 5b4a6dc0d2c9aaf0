"""The lines of a run until they are sent."""
from __future__ import annotations

import threading
from typing import Callable, Dict, Optional

from . import _process
from ._guard import say_once
from ._wire import LINES, Key, Lines, Number, add, number, send

FLUSH_SECONDS = 1.0  # a fifteenth of Prometheus' usual interval
REMIND_SECONDS = 60.0  # a restarted daemon receives the run's start, targets and sizes within this time


class Outbox:
    """Sends once a second, in the first call after the second; urgent lines at once. Any thread may call."""

    def __init__(self, path: str, tags: str, clock: Callable[[], float], at_first: Callable[[], None]) -> None:
        """`at_first` is called before the first datagram of a process."""
        self.path, self.tags, self.clock, self.at_first = path, tags, clock, at_first
        self.at_flush: Callable[[bool], None] = lambda last: None  # may put lines
        self.lock = threading.RLock()  # reentrant: a signal handler may end a step in the same thread
        self.lines: Lines = {}
        self.standing: Lines = {}  # repeated to the daemon once a minute
        self.dropped: Dict[str, int] = {}
        self.due = self.remind_at = 0.0
        self.spoke = self.stuck = self.closed = False
        self.flusher = 0  # the thread that is sending

    def put(self, name: str, kind: str, value: Optional[Number], tags: str) -> None:
        """Handles each value separately: if one is rejected, the others are still sent."""
        if value is None:
            return
        try:
            checked = number(value, kind)
        except (TypeError, ValueError) as error:
            self.drop("refused")
            say_once(name, error)
            return
        if self.closed:
            self.lose("stopped", 1)
        elif not self._added((name, kind, tags), checked):
            self.flush_if_due(urgent=True)
            if not self._added((name, kind, tags), checked):
                self.drop("full")

    def put_event(self, event: Key) -> None:
        with self.lock:
            if event in self.lines or len(self.lines) < LINES:
                self.lines[event] = []
            else:
                self.drop("full")

    def keep(self, key: Key, values: "list[Number]") -> None:
        with self.lock:
            if key in self.standing or len(self.standing) < LINES:
                self.standing[key] = values

    def drop(self, reason: str, values: int = 1) -> None:
        """Counts lost values and reports them to the daemon."""
        self.lose(reason, values)
        if values:
            self._added(("ml.client.dropped", "c", f"{self.tags},reason:{reason}"), values)

    def lose(self, reason: str, values: int) -> None:
        with self.lock:
            if values:
                self.dropped[reason] = self.dropped.get(reason, 0) + values

    def flush_if_due(self, urgent: bool = False) -> None:
        """Sends urgent lines now, unless the last attempt failed: retries are limited to one per second."""
        if (urgent and not self.stuck) or self.clock() >= self.due:
            self._flush()

    def leave(self) -> None:
        """For a process that ends while the run continues: sends the collected lines."""
        if self.spoke:
            self._flush()

    def close(self, event: Key) -> None:
        if self.spoke and not self.closed:
            self.at_flush(True)
        with self.lock:
            silent = self.closed or not self.spoke  # not spoke: a process that only inherited the run
            self.closed = True
            self.lines[event] = []
        if not silent:
            self._flush(last=True)
            self.lose("unsent", sum(max(1, len(values)) for values in self.lines.values()))

    def forked(self) -> None:
        """In the child: the parent sends its own lines, and a thread that does not exist here may hold the lock."""
        self.lock = threading.RLock()
        self.lines, self.dropped = {}, {}
        self.spoke = self.stuck = False
        self.flusher = 0
        self.due = self.remind_at = 0.0

    def _added(self, key: Key, value: Number) -> bool:
        with self.lock:
            return add(self.lines, key, value)

    def _flush(self, last: bool = False) -> None:
        """Sends outside of the lock, so that no thread's step waits for another's system call."""
        if not self.spoke:
            self.at_first()
        if not last:
            self.at_flush(False)
        lines: Lines = {}
        before, self.flusher = self.flusher, threading.get_ident()
        try:
            lines = self._taken(last)
            send(self.path, lines)
        finally:  # a signal handler of the job may raise in between
            self.stuck = bool(lines)
            if lines:
                self._put_back(lines)
            self.flusher = before
            _process.flushed()

    def _taken(self, last: bool) -> Lines:
        now = self.clock()
        with self.lock:
            if self.closed and not last:
                return {}
            lines, self.lines = self.lines, {}
            self.due = now + FLUSH_SECONDS
            self.spoke = True
            if now >= self.remind_at:
                lines = {**self.standing, **lines}
                self.remind_at = now + REMIND_SECONDS
        return lines

    def _put_back(self, unsent: Lines) -> None:
        with self.lock:
            newer, self.lines = self.lines, unsent
            for key, values in newer.items():
                if not values:
                    self.put_event(key)
                self.drop("full", sum(not add(unsent, key, value) for value in values))
