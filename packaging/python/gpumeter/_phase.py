"""Phases: stretches of a thread's time. Each moment counts once."""
from __future__ import annotations

import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any, Callable, Generator, List, Optional

from ._device import Stretch
from ._guard import say_once

if TYPE_CHECKING:
    from ._run import Run

DEPTH = 64  # nested phases of one thread; more than that were left in a different thread


class Phase:
    """A reusable context manager, also nested in itself and in several threads; exceptions pass through. Also a decorator of a
    function, a coroutine function (waiting counts) or a generator function (the consumer's time does not count)."""

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
        """Like `yield from inner`, with one phase for each value that the generator produces."""
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
        self.took = 0.0  # seconds in which no nested phase was open
        self.step_so_far: Optional[float] = None  # time of the step that it interrupts
        self.stretch: Optional[Stretch] = None  # device time


class ThreadPhases(threading.local):
    """The open phases of this thread. All time since the last begin or end belongs to the innermost phase, so nested phases never sum
    to more than the thread's time, in whatever order they end."""

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
        """None if the phase began in another thread or before a fork."""
        self._charge(now)
        entries = self.entries
        if entries and entries[-1].phase is phase:
            return entries.pop()
        for place in range(len(entries) - 1, -1, -1):
            if entries[place].phase is phase:
                return entries.pop(place)
        return None

    def took(self, seconds: float) -> None:
        """Subtracts the time of a phase measured elsewhere from the phase around it."""
        if self.entries:
            self.entries[-1].took -= seconds

    def _charge(self, now: float) -> None:
        if self.entries:
            self.entries[-1].took += now - self.last
        self.last = now
