"""Processes of a run: forks, copies for other processes, exits and SIGTERM."""
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
all_runs: "weakref.WeakSet[Part]" = weakref.WeakSet()  # including finished runs, whose calls count late values

_finalized: Optional[int] = None  # the process whose multiprocessing end calls end_all()
_deferred = False  # SIGTERM came while the main thread was sending
_LAST = -100  # after finalizers of the job's own, which may still report


def end_all() -> None:
    for left in list(open_runs):
        left._end_process()


def take_part(sigterm: bool) -> None:
    """Called before the first datagram of this process."""
    _watch_multiprocessing()
    if sigterm:
        _watch_sigterm()


def _watch_multiprocessing() -> None:
    """Children of multiprocessing end by os._exit(), without atexit; they run its finalizers instead. A child clears these when it
    begins, after its run has been unpickled, so the finalizer is added at the first call."""
    global _finalized
    process, util = sys.modules.get("multiprocessing.process"), sys.modules.get("multiprocessing.util")
    if process is None or util is None or _finalized == os.getpid() or process.parent_process() is None:
        return
    _finalized = os.getpid()
    util.Finalize(None, end_all, exitpriority=_LAST)


def _watch_sigterm() -> None:
    """Replaces only the default handler, which ends the process without atexit. Python sets handlers in the main thread only. The
    first process of a container gets no handler, because the kernel ignores the signal there by default."""
    if os.getpid() == 1:
        return
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        with contextlib.suppress(ValueError):  # the main thread of a sub-interpreter
            signal.signal(signal.SIGTERM, _on_sigterm)


def leave_sigterm() -> None:
    """Called when this process has no open run any more."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _on_sigterm(number: int, frame: Any) -> None:
    """Interrupts the main thread anywhere. If that is sending, the handler waits until it has sent."""
    global _deferred
    _deferred = any(run._out.flusher == threading.get_ident() for run in list(open_runs))
    if not _deferred:
        _terminate()


def flushed() -> None:
    """Called after a thread has sent. The handler can only interrupt the main thread."""
    global _deferred
    if _deferred and threading.current_thread() is threading.main_thread():
        _deferred = False
        _terminate()


def _terminate() -> None:
    """Ends the process by the signal, as by default. If another handler has replaced this one and calls it, that handler decides
    whether the process ends, and this one only sends the collected lines."""
    ours = signal.getsignal(signal.SIGTERM) is _on_sigterm
    try:
        for run in list(open_runs):
            run._end_process() if ours else run._out.leave()
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)


def _after_fork() -> None:
    """A child that only inherits runs does not keep their handler."""
    global _deferred
    _deferred = False
    leave_sigterm()
    for inherited in list(all_runs):
        inherited._forked()


atexit.register(end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
