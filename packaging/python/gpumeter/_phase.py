"""Phases: stretches of a thread's time, of which each moment is counted once."""
from __future__ import annotations

import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any, Callable, Generator, List, Optional

from ._device import Stretch
from ._guard import say_once

if TYPE_CHECKING:
    from ._run import Run

DEPTH = 64  # phases that one thread may be in; more than that were left in another thread than they were entered in


class Phase:
    """`with phase:` as often as wanted, also inside itself and in several threads; exceptions pass through. Or a decorator of a
    function, of a coroutine function (its waiting counts), or of a generator function (the consumer's time does not count)."""

    __slots__ = ("owner", "name", "device")

    def __init__(self, owner: "Run", name: str, device: bool) -> None:
        self.owner, self.name, self.device = owner, name, device

    def __enter__(self) -> "Phase":
        self.owner._begin(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.owner._end(self)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isasyncgenfunction(function):
            say_once(f"phase {self.name}", f"{function.__qualname__} is an asynchronous generator: use `with` inside of it")
            return function
        if inspect.iscoroutinefunction(function):
            return self._of_coroutine(function)
        if inspect.isgeneratorfunction(function):
            return self._of_generator(function)

        @functools.wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)
        return measured

    def _of_coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def measured(*args: Any, **kwargs: Any) -> Any:
            with self:
                return await function(*args, **kwargs)
        return measured

    def _of_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            return (yield from self._resumed(function(*args, **kwargs)))
        return measured

    def _resumed(self, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """As `yield from inner`, with one phase for each value that the generator makes."""
        resume: Callable[[Any], Any] = inner.send
        given: Any = None
        while True:
            try:
                with self:
                    made = resume(given)
            except StopIteration as end:
                return end.value
            try:
                resume, given = inner.send, (yield made)
            except GeneratorExit:
                inner.close()
                raise
            except BaseException as error:
                resume, given = inner.throw, error


class Entry:
    """One use of a phase, from its begin to its end."""

    __slots__ = ("phase", "took", "step_so_far", "stretch")

    def __init__(self, phase: Phase) -> None:
        self.phase = phase
        self.took = 0.0  # seconds in which no phase inside of it was open
        self.step_so_far: Optional[float] = None  # of the step that it interrupts
        self.stretch: Optional[Stretch] = None  # of the device's time


class ThreadPhases(threading.local):
    """The phases that this thread is in. All time since the last begin or end belongs to the innermost: nested phases share a
    thread's time and never sum to more, in whichever order they end."""

    def __init__(self) -> None:
        self.entries: List[Entry] = []
        self.last = 0.0

    def begin(self, phase: Phase, now: float) -> Entry:
        self._charge(now)
        if len(self.entries) >= DEPTH:
            del self.entries[0]
        entry = Entry(phase)
        self.entries.append(entry)
        return entry

    def end(self, phase: Phase, now: float) -> Optional[Entry]:
        """None: it began in another thread, or before a fork."""
        self._charge(now)
        entries = self.entries
        if entries and entries[-1].phase is phase:
            return entries.pop()
        for place in range(len(entries) - 1, -1, -1):
            if entries[place].phase is phase:
                return entries.pop(place)
        return None

    def took(self, seconds: float) -> None:
        """A phase of this thread was measured elsewhere: the time is not that of the phase around it."""
        if self.entries:
            self.entries[-1].took -= seconds

    def _charge(self, now: float) -> None:
        if self.entries:
            self.entries[-1].took += now - self.last
        self.last = now
