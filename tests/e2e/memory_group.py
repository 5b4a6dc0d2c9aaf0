"""A control group with a memory limit, in the hierarchy of this machine; the kernel kills processes that exceed it."""
from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


class MemoryGroup:
    """`reason`: why there is none; empty where there is."""

    def __init__(self, limit: int) -> None:
        self._limit, self.reason = limit, ""
        self._is_v1 = (ROOT / "memory").is_dir()
        self.path = (ROOT / "memory" if self._is_v1 else ROOT) / f"gpumeter-test-{os.getpid()}"

    @property
    def processes(self) -> Path:
        return self.path / "cgroup.procs"

    def __enter__(self) -> "MemoryGroup":
        try:
            self.path.mkdir()
            limit = "memory.limit_in_bytes" if self._is_v1 else "memory.max"
            (self.path / limit).write_text(str(self._limit))
        except OSError as error:
            self.reason = f"no control group with a limit of memory: {error.strerror}"
        with suppress(OSError):  # no swap, or not accounted for
            swap, most = ("memory.memsw.limit_in_bytes", self._limit) if self._is_v1 else ("memory.swap.max", 0)
            (self.path / swap).write_text(str(most))
        return self

    def kills(self) -> int:
        events = (self.path / ("memory.oom_control" if self._is_v1 else "memory.events")).read_text().split()
        return int(events[events.index("oom_kill") + 1])

    def __exit__(self, *_: object) -> None:
        for _ in range(50):  # a process that was killed leaves in a while
            with suppress(OSError):
                self.path.rmdir()
            if not self.path.exists():
                return
            time.sleep(0.1)
