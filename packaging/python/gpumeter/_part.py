"""A process's part of a run, and the transfer of a run to other processes."""
from __future__ import annotations

import os
import pickle
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Type

from . import _process
from ._allocator import Allocator
from ._device import Pending
from ._guard import harmless, say_once
from ._outbox import Outbox
from ._phase import ThreadPhases
from ._wire import SOCKET, clean, integer


class Part:
    """Copies within a process are the same object. Unpickled in another process, or in a forked child, it is a part of the same run,
    which sends by itself and does not end the run when that process ends."""

    def __init__(self, name: str, sigterm: bool, path: Optional[str], environ: Mapping[str, str], clock: Callable[[], float],
                 wall: Callable[[], float]) -> None:
        self._name, self._path, self._environ, self._clock, self._wall = name, path, environ, clock, wall
        self._token = os.urandom(8)  # the same in all parts
        self._sigterm = sigterm and environ.get("GPUMETER_SIGTERM") != "0"
        self._tags = f"|#run:{name}"
        self._out = Outbox(path or environ.get("GPUMETER_SOCKET") or SOCKET, self._tags, clock, self._take_part)
        self._step, self._customs = 0, {"learning_rate", "gradient_norm"}
        self.config: Dict[str, Any] = {}
        self._packer = 0  # the thread that packs the config
        self._begin_here(is_part=False)

    def _begin_here(self, is_part: bool) -> None:
        self._is_part = is_part  # of a run that another process began
        self._phases, self._pending = ThreadPhases(), Pending()
        self._ranks: Optional[Tuple[bool, bool]] = None
        self._allocator = Allocator(self._out)
        self._at_end: List[Callable[[], None]] = []  # before the last lines of this process
        self._out.at_flush = self._read_allocator
        self._stepped, self._stepper = False, 0  # the thread that steps
        self._step_began: Optional[float] = None
        self._traced: Dict[str, float] = {}  # by metric: when its next duration names its trace
        _process.open_runs.add(self)
        _process.all_runs.add(self)

    @property
    def dropped(self) -> Mapping[str, int]:
        """Lost values by reason: refused, full (no room), unsent (left at the end), stopped (after the end)."""
        return dict(self._out.dropped)

    def stop(self, status: str = "success") -> None:
        raise NotImplementedError

    def __copy__(self) -> "Part":
        return self

    def __deepcopy__(self, memo: Any) -> "Part":
        return self

    def __reduce__(self) -> Tuple[Any, ...]:
        return _arrived, (type(self), self._token, self._name, self._path, dict(self._out.standing), self._step, self._out.closed,
                          self._sigterm, self._packed_config())

    def _packed_config(self) -> bytes:
        """Packed separately, so that a config that cannot be pickled or unpickled does not stop the run. Empty if the config cannot be
        pickled or contains the run that is being pickled."""
        before, self._packer = self._packer, threading.get_ident()
        try:
            return b"" if before == self._packer else pickle.dumps(self.config)
        except Exception:
            return b""
        finally:
            self._packer = before

    def _unpack_config(self, packed: bytes) -> None:
        """The config's class may exist only in the script's first process, below `if __name__ == "__main__":`."""
        try:
            self.config = pickle.loads(packed) if packed else {}
        except Exception as error:
            say_once("config", error)

    @property
    def _leads(self) -> bool:
        return (self._ranks or self._find_ranks())[0]

    @property
    def _leads_host(self) -> bool:
        return (self._ranks or self._find_ranks())[1]

    def _find_ranks(self) -> Tuple[bool, bool]:
        """Read at the first use, because a forked or spawned process may receive its rank after the run."""
        environ = self._environ
        self._ranks = (not integer(environ, "RANK", "SLURM_PROCID"), not integer(environ, "LOCAL_RANK", "SLURM_LOCALID"))
        return self._ranks

    def _take_ranks(self, rank: int, local_rank: int) -> None:
        """As a trainer gives them, which may set no RANK."""
        self._ranks = (rank == 0, local_rank == 0)

    @harmless
    def _read_allocator(self, last: bool) -> None:
        self._allocator.report(last)

    @harmless
    def _take_part(self) -> None:
        _process.take_part(self._sigterm)

    def _forked(self) -> None:
        self._out.forked()
        if self in _process.open_runs:
            self._begin_here(is_part=True)

    @harmless
    def _end_process(self) -> None:
        if not self._is_part:
            return self.stop("aborted")
        self._settle()
        self._out.leave()

    @harmless
    def _settle(self) -> None:
        for end in self._at_end:
            end()
        self._read_device()

    @harmless
    def _read_device(self) -> None:
        self._pending.read(self._put_phase)

    def _put_phase(self, name: str, seconds: float) -> None:
        self._out.put("ml.phase.seconds", "d", seconds, f"{self._tags},phase:{name}")

    def _drop(self, reason: str) -> None:
        self._out.drop(reason)


def _arrived(kind: Type[Part], token: bytes, name: str, path: Optional[str], standing: Dict[Any, Any], step: int, closed: bool,
             sigterm: bool, config: bytes) -> Part:
    """Unpickles a part of a run. If the process already has a part of this run, returns that part."""
    for run in list(_process.open_runs):
        if run._token == token:
            return run
    part = kind.__new__(kind)
    Part.__init__(part, clean(name), sigterm, path, os.environ, time.monotonic, time.time)
    part._begin_here(is_part=True)
    part._token, part._step = token, step
    part._unpack_config(config)
    part._out.standing, part._out.closed = dict(standing), closed
    if closed:
        _process.open_runs.discard(part)
    return part
