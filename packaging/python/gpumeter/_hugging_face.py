"""A callback for Hugging Face's Trainer."""
from __future__ import annotations

import contextlib
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from . import _facts
from ._guard import harmless
from ._run import Run
from ._wire import Number

_PREFIX = "eval_"
# Accelerate's loaders define a property `__class__` for isinstance(), so that assigning to it raises.
_CLASS = object.__dict__["__class__"]
_TOTALS = ("total_flos", "num_input_tokens_seen", "num_tokens")  # totals; count() reports their growth


class _HuggingFace:
    """The methods of our transformers.TrainerCallback."""

    def __init__(self, run: Union[str, Run], targets: Mapping[str, Number], version: str) -> None:
        self._name, self._targets, self._version = run, targets, version
        self._run = run if isinstance(run, Run) else None
        self._processes = 1
        self._seen: Dict[str, Number] = {}
        self._taken = 0  # samples of the batches since the last step
        self._loader: Optional[Tuple[Any, type]] = None

    def __reduce__(self) -> Tuple[Any, ...]:
        return hugging_face_callback, (self._name, dict(self._targets))

    @harmless
    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, train_dataloader: Any = None, **_: Any) -> None:
        self._follow(train_dataloader)
        kind = getattr(getattr(model, "config", None), "model_type", "")
        facts = _facts.described(_facts_of, args, model)
        if self._run is None:
            self._run = Run(str(self._name), framework="transformers", version=self._version, model=kind, facts=facts)
        else:
            self._run._found(facts)
        if hasattr(args, "process_index"):
            self._run._take_ranks(args.process_index, args.local_process_index)
        self._processes = max(1, args.world_size)
        self._run.world_size(self._processes)
        self._run.batch_size(self._samples(args) * self._processes)
        for metric, value in self._targets.items():
            self._run.target(_bare(metric), value, direction=_direction(args, metric))
        if state.global_step:
            self._run.resume(state.global_step)
        self._share(state, "num_input_tokens_seen")
        self._share(state, "total_flos")

    @harmless
    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Before the first of the batches that make up a step. Logs, evaluations and checkpoints come between steps."""
        if self._run:
            self._run.begin_step()

    @harmless
    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._run:
            tokens = self._share(state, "num_input_tokens_seen")
            self._run.step(self._taken or self._samples(args), tokens=tokens, step=state.global_step)
        self._taken = 0

    @harmless
    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._run:
            self._run.step(args.eval_batch_size, split="eval")

    @harmless
    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Mapping[str, Any]] = None, **_: Any) -> None:
        """Skips evaluations, which on_evaluate reports, and the means logged at the end of the training."""
        if self._run:
            dtype = _precision(args)
            self._run.count(flops=self._share(state, "total_flos"), dtype=dtype)
            self._run.log({name: value for name, value in (logs or {}).items()
                           if not name.startswith((_PREFIX, "train_", "test_")) and name not in _TOTALS})

    @harmless
    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Optional[Mapping[str, Any]] = None, **_: Any) -> None:
        found = {_bare(name): value for name, value in (metrics or {}).items() if name.startswith(_PREFIX)}
        if not self._run:
            return
        if "runtime" in found:
            self._run.phase_took("eval", found.pop("runtime"))
        if "loss" in found:
            self._run.loss(found["loss"], split="eval")
        for metric, value in found.items():
            if not metric.endswith(("_per_second", "_time", "_runtime")):
                self._run.eval(metric, value, direction=_direction(args, metric))

    @harmless
    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._leave()
        if self._run and self._run is not self._name:
            self._run.stop()
            self._run = None

    @staticmethod
    def _samples(args: Any) -> int:
        """Samples in one step of this process, unless its batches are smaller."""
        return int(args.train_batch_size * args.gradient_accumulation_steps)

    @harmless
    def _follow(self, loader: Any) -> None:
        """Looks at each batch that the trainer takes: the last ones of an epoch are smaller, and so is their step. Neither the arguments nor
        the state say by how much, and iter() looks for __iter__ in the class of the loader only."""
        self._leave()
        kind, callback = type(loader), self
        if not hasattr(kind, "__iter__"):
            return

        def iterate(loader: Any) -> Any:
            for batch in kind.__iter__(loader):
                callback._take(batch)
                yield batch

        with contextlib.suppress(TypeError):  # a class of another layout
            _CLASS.__set__(loader, type(kind.__name__, (kind,), {"__iter__": iterate}))
            self._loader = (loader, kind)

    def _leave(self) -> None:
        if self._loader:
            _CLASS.__set__(*self._loader)
        self._loader = None

    @harmless
    def _take(self, batch: Any) -> None:
        values = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (list, tuple)) else (batch,)
        self._taken += next((int(value.shape[0]) for value in values if getattr(value, "shape", ())), 0)

    def _share(self, state: Any, name: str) -> Optional[Number]:
        """This process's part of the growth of a total over all processes since the last call."""
        total = getattr(state, name, None)
        if not isinstance(total, (int, float)):
            return None
        grown = total - self._seen.get(name, 0)
        self._seen[name] = total
        return grown / self._processes if grown > 0 else None

    def _drop(self, reason: str) -> None:
        if self._run:
            self._run._drop(reason)


def _precision(args: Any) -> str:
    if args.bf16 or args.fp16:
        return "bf16" if args.bf16 else "fp16"
    return _facts.of_torch(getattr(args, "device", None))


def _facts_of(args: Any, model: Any) -> Dict[str, Any]:
    """All processes are replicas, except those that share the layers of a model with tensor parallelism."""
    shared = getattr(model, "tp_size", None)
    shared = shared if isinstance(shared, int) and shared > 1 else 1
    options = [str(getattr(option, "value", option)) for option in getattr(args, "fsdp", None) or ()]
    sharding = "hsdp" if "hybrid_shard" in options else "zero2" if "shard_grad_op" in options else "fsdp" if "full_shard" in options else ""
    deepspeed = getattr(getattr(args, "hf_deepspeed_config", None), "config", None)
    if isinstance(deepspeed, Mapping):
        sharding = _facts.zero(deepspeed)
    return {"precision": _precision(args), "sharding": sharding, "data_parallel": max(1, args.world_size // shared),
            "tensor_parallel": shared if shared > 1 else None}


def _bare(metric: str) -> str:
    """The name without the trainer's prefix, which is optional in its arguments and always in its reports."""
    return metric[len(_PREFIX):] if metric.startswith(_PREFIX) else metric


def _direction(args: Any, metric: str) -> Optional[str]:
    """The direction in the TrainingArguments, if they set one for this metric."""
    chosen, rises = getattr(args, "metric_for_best_model", None), getattr(args, "greater_is_better", None)
    if chosen is None or rises is None or _bare(str(chosen)) != _bare(metric):
        return None
    return "max" if rises else "min"


def hugging_face_callback(run: Union[str, Run], targets: Optional[Mapping[str, Number]] = None) -> Any:
    """`Trainer(..., callbacks=[gpumeter.hugging_face_callback("bert", targets={"accuracy": 0.9})])`. A run given by
    name begins and ends with the training."""
    import transformers  # type: ignore[import-not-found,unused-ignore]
    kind = type("GpumeterCallback", (_HuggingFace, transformers.TrainerCallback), {})
    return kind(run, targets or {}, transformers.__version__)
