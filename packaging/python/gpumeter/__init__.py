"""Reports to the gpumeter daemon of this machine what a job gets done: steps, samples, phases, evaluations.

    with gpumeter.run("resnet50") as run:
        for batch in loader:
            train(batch)
            run.step(samples=256)

No call raises, waits or starts a thread; without a daemon all calls do nothing. Values are collected and sent as one Unix
datagram a second, by whichever call finds that the second is over: a call costs some microseconds. Values that could not
be sent are sent later, up to a bound; `run.dropped` counts what is lost.
"""
from __future__ import annotations

from typing import Any, Mapping, Optional

from ._hugging_face import hugging_face_callback
from ._run import Run
from ._wire import DIRECTIONS, DTYPES, KINDS, OUTSIDE_STEPS, PHASES, SPLITS, STATUSES

__all__ = ["DIRECTIONS", "DTYPES", "KINDS", "OUTSIDE_STEPS", "PHASES", "SPLITS", "STATUSES", "Run", "__version__",
           "hugging_face_callback", "run"]
__version__ = "0.1.0"


def run(name: str, *, framework: str = "", version: str = "", model: str = "", config: Any = None, sigterm: bool = True) -> Run:
    """A run begins; best as `with gpumeter.run("resnet50") as run:`. `config` is a mapping or a namespace of hyperparameters.
    It is kept as `run.config`, and the keys that the daemon understands are reported. `sigterm=False` leaves the handling of
    SIGTERM alone."""
    return Run(name, framework=framework, version=version, model=model, config=config, sigterm=sigterm)
