"""How a process takes part in a run: forks, copies for other processes, ends and SIGTERM."""
from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, Optional, Set

if TYPE_CHECKING:
    from ._part import Part

open_runs: "Set[Part]" = set()
all_runs: "weakref.WeakSet[Part]" = weakref.WeakSet()  # those that are over too: their calls count what comes late

_finalized: Optional[int] = None  # the process whose multiprocessing end calls end_all()
_deferred = False  # SIGTERM came while the main thread was sending
_LAST = -100  # after finalizers of the job's own, which may still report


def end_all() -> None:
    for left in list(open_runs):
        left._end_process()


def take_part(sigterm: bool) -> None:
    """This process is about to send."""
    _watch_multiprocessing()
    if sigterm:
        _watch_sigterm()


def _watch_multiprocessing() -> None:
    """Children of multiprocessing end by os._exit(), without atexit; they run its finalizers instead. These are emptied when a
    child begins, after a run that it was given has been unpickled, so the first call is the place to add one."""
    global _finalized
    process, util = sys.modules.get("multiprocessing.process"), sys.modules.get("multiprocessing.util")
    if process is None or util is None or _finalized == os.getpid() or process.parent_process() is None:
        return
    _finalized = os.getpid()
    util.Finalize(None, end_all, exitpriority=_LAST)


def _watch_sigterm() -> None:
    """Only in place of the default, which ends the process without atexit. Python sets handlers in the main thread alone. For the
    first process of a container the kernel's default is to ignore the signal, so that one gets no handler."""
    if os.getpid() == 1:
        return
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        with contextlib.suppress(ValueError):  # the main thread of a sub-interpreter
            signal.signal(signal.SIGTERM, _on_sigterm)


def leave_sigterm() -> None:
    """No run of this process is open any more."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _on_sigterm(number: int, frame: Any) -> None:
    """Interrupts the main thread anywhere, also while it sends: then it waits for the end of that."""
    global _deferred
    _deferred = any(run._out.flusher == threading.get_ident() for run in list(open_runs))
    if not _deferred:
        _terminate()


def flushed() -> None:
    """Some thread has sent. Only the main one can have been interrupted by the handler."""
    global _deferred
    if _deferred and threading.current_thread() is threading.main_thread():
        _deferred = False
        _terminate()


def _terminate() -> None:
    """The process ends by the signal, as it would have by default. If another handler has taken this one's place and calls it,
    that one decides whether the process ends, and only what is collected is sent."""
    ours = signal.getsignal(signal.SIGTERM) is _on_sigterm
    try:
        for run in list(open_runs):
            run._end_process() if ours else run._out.leave()
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)


def _after_fork() -> None:
    """A child that only inherits runs has no handler of theirs."""
    global _deferred
    _deferred = False
    leave_sigterm()
    for inherited in list(all_runs):
        inherited._forked()


atexit.register(end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
