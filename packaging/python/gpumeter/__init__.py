"""Reports a job's progress to the gpumeter daemon of this machine: steps, samples, phases, evaluations.

    with gpumeter.run("resnet50") as run:
        for batch in loader:
            train(batch)
            run.step(samples=256)

No call raises, waits or starts a thread; without a daemon all calls do nothing. The client collects values and sends one Unix
datagram per second, in the first call after the second: a call costs some microseconds. Values that could not be sent are
sent later, up to a limit; `run.dropped` counts the lost ones.
"""
from __future__ import annotations

from typing import Any, Mapping, Optional

from ._facts import PRECISIONS, SHARDINGS
from ._hugging_face import hugging_face_callback
from ._jax import jax_step
from ._keras import keras_callback
from ._lightning import lightning_callback
from ._run import Run
from ._wire import DIRECTIONS, DTYPES, KINDS, OUTSIDE_STEPS, PHASES, SPLITS, STATUSES

__all__ = ["DIRECTIONS", "DTYPES", "KINDS", "OUTSIDE_STEPS", "PHASES", "PRECISIONS", "SHARDINGS", "SPLITS", "STATUSES", "Run",
           "__version__", "hugging_face_callback", "jax_step", "keras_callback", "lightning_callback", "run"]
__version__ = "1.0.0"


def run(name: str, *, framework: str = "", version: str = "", model: str = "", config: Any = None,
        facts: Optional[Mapping[str, Any]] = None, sigterm: bool = True) -> Run:
    """Begins a run; best as `with gpumeter.run("resnet50") as run:`. `config` is a mapping or a namespace of hyperparameters.
    The run keeps it as `run.config` and reports the keys that the daemon supports. `facts`: see Run.facts(). `sigterm=False` leaves the
    handling of SIGTERM unchanged."""
    return Run(name, framework=framework, version=version, model=model, config=config, facts=facts, sigterm=sigterm)
