"""A callback for Lightning's Trainer."""
from __future__ import annotations

import sys
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from . import _facts, _scalars
from ._guard import harmless
from ._run import Run
from ._tensors import samples_of, scalars
from ._wire import Number

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")  # the same under two names


class _Lightning:
    """The methods of our lightning.pytorch.Callback."""

    def __init__(self, run: Union[str, Run], targets: Mapping[str, Number], version: str) -> None:
        super().__init__()
        self._name, self._targets, self._version = run, targets, version
        self._run = run if isinstance(run, Run) else None
        self._accumulated = self._largest = self._done = 0
        self._is_in_step, self._replicas = False, 1
        self._before: Dict[str, Any] = {}  # metrics at the begin of the validation
        self._validation: Any = None

    def __reduce__(self) -> Tuple[Any, ...]:
        return lightning_callback, (self._name, dict(self._targets))

    @harmless
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        facts = {**_facts.described(_precision, trainer), **_facts.described(_layout, trainer)}
        self._replicas = int(facts.get("data_parallel", 1))
        if self._run is None:
            self._run = Run(str(self._name), framework="lightning", version=self._version, model=type(pl_module).__name__, facts=facts)
        else:
            self._run._found(facts)
        self._run._take_ranks(trainer.global_rank, trainer.local_rank)
        self._run.world_size(trainer.world_size)
        for metric, value in self._targets.items():
            self._run.target(_bare(metric), value)
        self._accumulated = self._largest = 0
        self._is_in_step, self._done = False, trainer.global_step
        if trainer.global_step and getattr(trainer, "ckpt_path", None):
            self._run.resume(trainer.global_step)

    @harmless
    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if self._run and not self._is_in_step:
            self._run.begin_step()
            self._is_in_step = True

    @harmless
    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """A step ends with the batch after which the optimizer steps."""
        self._accumulated += samples_of(batch) or 0
        if not self._run or trainer.global_step == self._done:
            return
        self._done, self._is_in_step = trainer.global_step, False
        self._run.step(self._accumulated or None, step=trainer.global_step)
        if self._accumulated > self._largest:
            self._largest = self._accumulated
            self._run.batch_size(self._accumulated * self._replicas)
        self._accumulated = 0
        if trainer.global_step % max(1, trainer.log_every_n_steps) == 0:
            self._log(trainer, outputs, may_wait=bool(trainer.loggers))

    @harmless
    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._log(trainer, None, may_wait=True)

    @harmless
    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        before = _metrics(trainer)
        if self._run and not trainer.sanity_checking:
            self._before = before
            self._validation = self._run.phase("eval")
            self._validation.__enter__()

    @harmless
    def on_validation_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int,
                                dataloader_idx: int = 0) -> None:
        if self._run and not trainer.sanity_checking:
            self._run.step(samples_of(batch), split="eval")

    @harmless
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """The metrics of the validation are those that it has set."""
        metrics = _metrics(trainer)
        if not self._run or self._validation is None:
            return
        self._validation.__exit__(None, None, None)
        self._validation = None
        found = {name: value for name, value in metrics.items() if self._before.get(name) is not value}
        for name, value in scalars(found, may_wait=True).items():
            bare = _bare(name)
            if bare == "loss":
                self._run.loss(value, split="eval")
            self._run.eval(bare, value)

    @harmless
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self._run:
            self._run.failed(exception)
            self._leave("aborted")

    @harmless
    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._leave("success")

    def _leave(self, status: str) -> None:
        if self._run and self._run is not self._name:
            self._run.stop(status)
            self._run = None

    def _log(self, trainer: Any, outputs: Any, may_wait: bool) -> None:
        """The metrics of the training. Those on a GPU only where the trainer waits for them too."""
        metrics = _metrics(trainer)
        if self._run is None or not self._run._leads:
            return
        logged = {name: value for name, value in metrics.items() if _is_of_training(name, metrics)}
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if loss is not None and not any(_scalars.is_loss(name) for name in logged):
            logged["loss"] = loss
        values = scalars(logged, may_wait)
        if trainer.optimizers and isinstance(trainer.optimizers[0].param_groups[0]["lr"], float):
            values["learning_rate"] = trainer.optimizers[0].param_groups[0]["lr"]
        self._run.log(values)

    def _drop(self, reason: str) -> None:
        if self._run:
            self._run._drop(reason)


def _metrics(trainer: Any) -> Dict[str, Any]:
    """Call it in every process of the training: the first who reads a metric of an epoch makes Lightning reduce it over all processes."""
    return dict(trainer.callback_metrics)


def _bare(metric: str) -> str:
    """The name without val_ and without the number of the data loader."""
    return _scalars.bare_evaluation(metric.split("/dataloader_idx_")[0])


def _is_of_training(name: str, names: Any) -> bool:
    """Not evaluations, and of a metric that is logged by step and by epoch only its plain name."""
    plain = name.rsplit("_", 1)[0] if name.endswith(("_step", "_epoch")) else name
    return _scalars.bare_evaluation(name) == name and (plain == name or plain not in names)


def _precision(trainer: Any) -> Dict[str, Any]:
    word = _facts.precision(trainer.precision)
    return {"precision": _facts.of_torch(trainer.strategy.root_device) if word == "fp32" else word}


def _layout(trainer: Any) -> Dict[str, Any]:
    """ModelParallelStrategy knows its sizes; with every other strategy all processes are replicas."""
    strategy = trainer.strategy
    layout: Dict[str, Any] = {"data_parallel": trainer.world_size}
    mesh = getattr(strategy, "_device_mesh", None)
    if mesh is not None and "tensor_parallel" in (getattr(mesh, "mesh_dim_names", None) or ()):
        layout = {"data_parallel": mesh["data_parallel"].size(), "tensor_parallel": mesh["tensor_parallel"].size()}
    elif type(strategy).__name__ == "FSDPStrategy":
        layout["sharding"] = _facts.FSDP.get(getattr(getattr(strategy, "sharding_strategy", None), "name", ""), "fsdp")
    elif isinstance(getattr(strategy, "config", None), Mapping):  # DeepSpeed's
        layout["sharding"] = _facts.zero(strategy.config)
    return layout


def lightning_callback(run: Union[str, Run], targets: Optional[Mapping[str, Number]] = None) -> Any:
    """`Trainer(..., callbacks=[gpumeter.lightning_callback("bert", targets={"val_acc": 0.9})])`. A run given by name begins and ends
    with the training. For `lightning` and for `pytorch_lightning`, whichever the job has imported."""
    import importlib
    names = [name for name in _PACKAGES if name in sys.modules] or [next(filter(_is_installed, _PACKAGES), _PACKAGES[0])]
    packages = [importlib.import_module(name) for name in names]
    kind = type("GpumeterCallback", (_Lightning, *(package.Callback for package in packages)), {})
    return kind(run, targets or {}, packages[0].__version__)


def _is_installed(name: str) -> bool:
    from importlib.util import find_spec
    return find_spec(name.split(".")[0]) is not None
