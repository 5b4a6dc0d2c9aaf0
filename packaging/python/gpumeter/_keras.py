"""A callback for Keras, on any backend."""
from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Tuple, Union

from . import _facts
from ._allocator import jax_usage, tensorflow_usage
from ._guard import harmless
from ._run import Run
from ._scalars import bare_evaluation
from ._wire import Number

_USAGES = {"jax": jax_usage, "tensorflow": tensorflow_usage}  # the client reads torch's by itself


class _Keras:
    """The methods of our keras.callbacks.Callback. It has none for the end of a batch: with one, Keras would wait for the device after
    each batch. A step ends at the begin of the next, or of what follows the last."""

    def __init__(self, run: Union[str, Run], batch_size: Optional[int], samples: Optional[int], targets: Mapping[str, Number],
                 version: str, backend: str) -> None:
        super().__init__()
        self._name, self._targets, self._version, self._backend = run, targets, version, backend
        self._batch_size, self._samples = batch_size, samples
        self._run = run if isinstance(run, Run) else None
        self._base = self._ended = self._began = 0  # steps before this epoch; of this epoch, ended and begun
        self._tested = 0
        self._phase: Any = None

    def __reduce__(self) -> Tuple[Any, ...]:
        return keras_callback, (self._name, self._batch_size, self._samples, dict(self._targets))

    @harmless
    def on_train_begin(self, logs: Any = None) -> None:
        model: Any = self.model  # type: ignore[attr-defined]
        facts = _facts.described(_facts_of, model)
        if self._run is None:
            self._run = Run(str(self._name), framework="keras", version=self._version, model=str(model.name), facts=facts)
        else:
            self._run._found(facts)
        if self._backend in _USAGES:
            self._run._allocator.watch(_USAGES[self._backend])
        if self._batch_size:
            self._run.batch_size(self._batch_size)
        for metric, value in self._targets.items():
            self._run.target(bare_evaluation(metric), value)
        self._base, self._ended, self._began = int(getattr(model.optimizer, "iterations", 0)), 0, 0

    @harmless
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._base, self._ended, self._began = self._base + self._ended, 0, 0

    @harmless
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """`batch` is the first of those that Keras executes at once (steps_per_execution)."""
        if self._run is None:
            return
        self._end_steps(batch)
        if self._began == 0:
            self._run.begin_step()
        self._began = batch + self._at_once()

    @harmless
    def on_epoch_end(self, epoch: int, logs: Optional[Mapping[str, Any]] = None) -> None:
        if self._run is None:
            return
        self._end_epoch()
        self._run.log({name: float(value) for name, value in (logs or {}).items() if not name.startswith("val_")})
        rate = getattr(getattr(self.model, "optimizer", None), "learning_rate", None)  # type: ignore[attr-defined]
        if rate is not None:
            self._run.log({"learning_rate": float(rate)})

    @harmless
    def on_test_begin(self, logs: Any = None) -> None:
        if self._run:
            self._end_epoch()
            self._tested = 0
            self._phase = self._run.phase("eval")
            self._phase.__enter__()

    @harmless
    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._tested = batch + self._at_once()

    @harmless
    def on_test_end(self, logs: Optional[Mapping[str, Any]] = None) -> None:
        if not self._run or self._phase is None:
            return
        self._phase.__exit__(None, None, None)
        self._phase = None
        if self._tested:
            self._run.step(split="eval", steps=self._tested)
        values = {name: float(value) for name, value in (logs or {}).items()}
        if "loss" in values:
            self._run.loss(values["loss"], split="eval")
        for metric, value in values.items():
            self._run.eval(metric, value)

    @harmless
    def on_train_end(self, logs: Any = None) -> None:
        if self._run and self._run is not self._name:
            self._run.stop()
            self._run = None

    def _at_once(self) -> int:
        return int(getattr(self.model, "steps_per_execution", 1) or 1)  # type: ignore[attr-defined]

    def _end_epoch(self) -> None:
        """The last execution of an epoch may have fewer steps, if their number is known."""
        steps = getattr(self, "params", {}).get("steps")
        self._end_steps(min(self._began, steps) if steps else self._began)

    def _end_steps(self, ended: int) -> None:
        steps = ended - self._ended
        if self._run is None or steps <= 0:
            return
        samples = None
        if self._batch_size:
            most = self._samples if self._samples is not None else ended * self._batch_size
            samples = max(0, min(ended * self._batch_size, most) - self._ended * self._batch_size)
        self._ended = ended
        self._run.step(samples, step=self._base + ended, steps=steps)

    def _drop(self, reason: str) -> None:
        if self._run:
            self._run._drop(reason)


def _facts_of(model: Any) -> Dict[str, Any]:
    import keras  # type: ignore[import-not-found,unused-ignore]
    facts: Dict[str, Any] = {"precision": getattr(model.dtype_policy, "compute_dtype", None)}
    layout = getattr(keras, "distribution", None)
    chosen = layout.distribution() if layout else None
    strategy = getattr(model, "distribute_strategy", None)  # tf.distribute's
    if chosen is not None:
        sizes = dict(zip(chosen.device_mesh.axis_names, chosen.device_mesh.shape))
        facts["data_parallel"] = int(sizes.pop(chosen.batch_dim_name, 1))
        others = 1
        for size in sizes.values():
            others *= int(size)
        facts["tensor_parallel"] = others if others > 1 else None
    elif strategy is not None:
        facts["data_parallel"] = int(strategy.num_replicas_in_sync)
    return facts


def keras_callback(run: Union[str, Run], batch_size: Optional[int] = None, samples: Optional[int] = None,
                   targets: Optional[Mapping[str, Number]] = None) -> Any:
    """`model.fit(..., callbacks=[gpumeter.keras_callback("mnist", batch_size=32, samples=60_000, targets={"accuracy": 0.98})])`. Keras
    does not tell callbacks the batch size: without it there are no samples. `samples` of an epoch are needed only if its last batch is
    smaller. A run given by name begins and ends with the training."""
    import keras
    backend = keras.backend.backend()
    kind = type("GpumeterCallback", (_Keras, keras.callbacks.Callback), {})
    return kind(run, batch_size, samples, targets or {}, keras.__version__, backend)
