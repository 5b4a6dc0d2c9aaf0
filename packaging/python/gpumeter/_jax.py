"""Training steps of JAX, which run after the call that starts them has returned."""
from __future__ import annotations

import functools
import threading
from collections import deque
from typing import Any, Callable, Deque, Dict, Optional

from . import _facts
from ._allocator import jax_usage
from ._guard import harmless
from ._run import Run
from ._wire import Number

AHEAD = 1024  # steps that have started and not ended; more than that are counted without a time

# Axes of a mesh by common names.
_AXES = {"data": "data_parallel", "dp": "data_parallel", "batch": "data_parallel", "replica": "data_parallel", "fsdp": "data_parallel",
         "model": "tensor_parallel", "tensor": "tensor_parallel", "tp": "tensor_parallel", "mp": "tensor_parallel",
         "pipeline": "pipeline_parallel", "stage": "pipeline_parallel", "pipe": "pipeline_parallel", "pp": "pipeline_parallel"}

_compiled = threading.local()  # .count: compilations of this thread
_is_listening = False


class _Steps:
    """Reports a step when its loss is there, which later calls check without waiting. Steps that were there at the same check share
    the time since the one before."""

    def __init__(self, run: Run, loss: Optional[Callable[[Any], Any]], dtype: Optional[str], told: Dict[str, Any]) -> None:
        self._run, self._loss, self._dtype, self._told = run, loss, dtype, told
        self._pending: Deque[Any] = deque()
        self._begins = True

    @harmless
    def started(self, output: Any) -> None:
        if self._begins:
            self._begin()
        self._pending.append(self._loss(output) if self._loss else _last_scalar(output))
        self.poll()

    @harmless
    def poll(self) -> None:
        ended, last = 0, None
        while self._pending and _is_ready(self._pending[0]):
            last, ended = self._pending.popleft(), ended + 1
        if ended:
            self._report(ended, last)
        if len(self._pending) > AHEAD:
            self._pending.popleft()
            self._report(1, None)

    @harmless
    def end(self) -> None:
        """The run ends. Steps that still run are counted; nobody waits for them."""
        self.poll()
        if self._pending:
            self._run._step_began = None
            self._report(len(self._pending), None)
        self._pending.clear()

    def _begin(self) -> None:
        """After the first call: before it, questions about devices could start JAX in another way than the job wants."""
        import jax  # type: ignore[import-not-found,unused-ignore]
        self._begins = False
        self._run._allocator.watch(jax_usage)
        if jax.process_count() > 1:
            self._run._take_ranks(jax.process_index(), 0)
            self._run.world_size(jax.process_count())

    def _report(self, count: int, loss: Any) -> None:
        told: Dict[str, Any] = {name: None if value is None else value * count for name, value in self._told.items()}
        self._run.step(steps=count, dtype=self._dtype, loss=self._number(loss), **told)

    def _number(self, loss: Any) -> Optional[float]:
        """The error of a step is raised by whoever reads its results."""
        if loss is None or getattr(loss, "is_deleted", bool)():
            return None
        try:
            getattr(loss, "block_until_ready", bool)()  # it is there
            return float(loss) if getattr(loss, "shape", None) == () else None
        except Exception as error:
            self._run.failed(error)
            return None

    def _drop(self, reason: str) -> None:
        self._run._drop(reason)


def _last_scalar(output: Any) -> Any:
    """The loss of a function that returns it, alone or in a tuple; otherwise any array of the output."""
    import jax  # type: ignore[import-not-found,unused-ignore]
    leaves = jax.tree_util.tree_leaves(output)
    parts = output if isinstance(output, tuple) else (output,)
    return next((part for part in parts if getattr(part, "shape", None) == ()), leaves[-1] if leaves else None)


def _is_ready(array: Any) -> bool:
    """An array that was donated to the next step has no state any more."""
    ready = getattr(array, "is_ready", None)
    return ready is None or array.is_deleted() or bool(ready())


def _listen() -> None:
    """JAX reports each compilation in the thread that causes it."""
    global _is_listening
    if _is_listening:
        return
    import jax.monitoring  # type: ignore[import-not-found,unused-ignore]

    def heard(name: str, *_: Any, **__: Any) -> None:
        if name.startswith("/jax/core/compile/"):
            _compiled.count = getattr(_compiled, "count", 0) + 1
    jax.monitoring.register_event_duration_secs_listener(heard)
    _is_listening = True


def _layout(mesh: Any) -> Dict[str, Any]:
    facts: Dict[str, Any] = {}
    for axis, size in dict(mesh.shape).items():
        name = _AXES.get(str(axis))
        if name:
            facts[name] = facts.get(name, 1) * int(size)
        if axis == "fsdp":
            facts["sharding"] = "hsdp" if len({"data", "dp", "replica"} & set(map(str, mesh.shape))) else "fsdp"
    return facts


def jax_step(run: Run, function: Callable[..., Any], *, samples: Optional[Number] = None, tokens: Optional[Number] = None,
             flops: Optional[Number] = None, dtype: Optional[str] = None, loss: Optional[Callable[[Any], Any]] = None,
             mesh: Any = None) -> Callable[..., Any]:
    """`train_step = gpumeter.jax_step(run, jax.jit(train_step), samples=256)` returns a function with the same arguments and results.
    Each call is a step with these samples, tokens and FLOPs of this process. `loss` takes the loss out of the results; without it, the
    scalar among them. A call that compiles is the phase "compile". `mesh`: the job's, whose axes are reported as facts."""
    steps = _Steps(run, loss, dtype, {"samples": samples, "tokens": tokens, "flops": flops})
    _set_up(run, steps, mesh)

    @functools.wraps(function)
    def stepped(*args: Any, **kwargs: Any) -> Any:
        steps.poll()
        before, began = _compilations(), run._clock()
        try:
            output = function(*args, **kwargs)
        except BaseException as error:
            run.failed(error)
            raise
        finally:
            if _compilations() != before:
                run.phase_took("compile", run._clock() - began)
        steps.started(output)
        return output
    return stepped


def _compilations() -> int:
    return int(getattr(_compiled, "count", 0))


def _set_up(run: Run, steps: _Steps, mesh: Any) -> None:
    @harmless
    def set_up(self: _Steps) -> None:
        import jax
        _listen()
        run._at_end.append(self.end)
        run._found({"framework": "jax", "version": jax.__version__, **(_facts.described(_layout, mesh) if mesh is not None else {})})
    set_up(steps)
