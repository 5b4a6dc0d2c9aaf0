"""Hides the client's errors from the job, except for one line in the log `gpumeter` for each method and value."""
from __future__ import annotations

import functools
import logging
from typing import Any, Callable, Set, TypeVar

_Method = TypeVar("_Method", bound=Callable[..., None])

_log = logging.getLogger("gpumeter")
_said: Set[str] = set()


def harmless(method: _Method) -> _Method:
    """The owner's `_drop` counts values that this method rejects."""
    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self._drop("refused")
            say_once(method.__name__, error)
    return guarded  # type: ignore[return-value]


def say_once(what: str, error: object) -> None:
    if what in _said or len(_said) >= 1000:
        return
    _said.add(what)
    try:
        _log.warning("not measured: %s: %s", what, error)
    except Exception:  # a log handler of the job
        pass
