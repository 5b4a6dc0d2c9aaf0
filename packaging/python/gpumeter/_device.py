"""GPU time, measured by pairs of CUDA events. Used only if the job has already imported torch and uses CUDA (or ROCm). This
module never imports torch, initialises CUDA or waits for a GPU."""
from __future__ import annotations

import sys
import threading
from collections import deque
from typing import Any, Callable, Deque, List, Optional

PENDING = 256  # pairs whose end the GPU has not reached


class Stretch:
    """A stretch on the stream that is current at its begin and its end."""

    __slots__ = ("begin", "end", "inner", "seconds")

    def __init__(self, begin: Any) -> None:
        self.begin: Any = begin
        self.end: Any = None
        self.inner: List[Stretch] = []  # ended inside of it
        self.seconds: Optional[float] = None


def begun() -> Optional[Stretch]:
    event = _recorded()
    return None if event is None else Stretch(event)


def ended(stretch: Stretch) -> bool:
    stretch.end = _recorded()
    return stretch.end is not None


def _recorded() -> Any:
    """None if no GPU is used, or while a CUDA graph is being captured, which would include the event."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized() or cuda.is_current_stream_capturing():
        return None
    event = cuda.Event(enable_timing=True)
    event.record()
    return event


class Pending:
    """Stretches that have ended for the host but not yet for the GPU, in order of their ends."""

    def __init__(self) -> None:
        self._queue: "Deque[tuple[str, Stretch]]" = deque()
        self._reading = threading.Lock()

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, name: str, stretch: Stretch) -> bool:
        if len(self._queue) >= PENDING:
            return False
        self._queue.append((name, stretch))
        return True

    def read(self, found: Callable[[str, float], None]) -> None:
        """Reports finished stretches, without the stretches measured inside them."""
        if not self._reading.acquire(blocking=False):
            return  # another thread is reading
        try:
            while self._queue and self._is_done():
                name, stretch = self._queue.popleft()
                stretch.seconds = stretch.begin.elapsed_time(stretch.end) / 1000
                inside = sum(each.seconds or 0.0 for each in stretch.inner)
                stretch.inner = []
                found(name, max(0.0, stretch.seconds - inside))
        finally:
            self._reading.release()

    def _is_done(self) -> bool:
        """Checks the first stretch. If its event cannot be queried, the stretch is removed."""
        try:
            return bool(self._queue[0][1].end.query())
        except Exception:
            self._queue.popleft()
            raise
