"""A run, seen from one of its processes."""
from __future__ import annotations

import os
import threading
import time
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Union

from . import _process, _scalars, _trace
from ._described import Described
from ._device import Stretch, begun, ended
from ._facts import amended, told, usable
from ._guard import harmless, say_once
from ._outbox import FLUSH_SECONDS
from ._phase import Phase
from ._wire import DIRECTIONS, DTYPES, KINDS, OUTSIDE_STEPS, PHASES, SPLITS, STATUSES, Number, chosen, clean, event, integer, number

MEANS = 256  # steps of one call whose time, their mean, is reported


def _date(wall: float) -> str:
    """The seconds are DogStatsD's. A daemon that does not know the milliseconds ignores them."""
    milliseconds = int(wall * 1000)
    return f"|d:{milliseconds // 1000}" + (f"|ms:{milliseconds % 1000}" if milliseconds % 1000 else "")


class Run(Described):
    """Any thread may call any method. In forked and spawned processes, and pickled, it is a part of the same run."""

    def __init__(self, name: str, *, framework: str = "", version: str = "", model: str = "", config: Any = None,
                 facts: Optional[Mapping[str, Any]] = None, sigterm: bool = True, path: Optional[str] = None,
                 environ: Mapping[str, str] = os.environ, clock: Callable[[], float] = time.monotonic,
                 wall: Callable[[], float] = time.time) -> None:
        super().__init__(clean(name), sigterm, path, environ, clock, wall)
        self._start({"framework": framework, "version": version, "model": model, **(facts or {})}, config)

    @harmless
    def _start(self, given: Dict[str, Any], config: Any) -> None:
        try:
            self.config = _scalars.kept(config)
        except Exception as error:  # neither a mapping nor an object with attributes
            say_once("config", error)
        found = _scalars.facts(self.config)
        start = event("run_start", self._name, f"{_date(self._wall())}{self._tags}")
        facts = {**usable(found), **self._checked(given)}
        self._out.keep(amended(start, facts), [])
        world_size = integer(self._environ, "WORLD_SIZE", "SLURM_NTASKS") or found.get("world_size")
        if world_size is not None:
            self.world_size(world_size)
        if "batch_size" in found:
            self.batch_size(found["batch_size"])
        self._out.flush_if_due()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: Optional[type], error: Optional[BaseException], _: object) -> None:
        self.failed(error)
        well = kind is None or (isinstance(error, SystemExit) and error.code in (None, 0))
        self.stop("success" if well else "aborted")

    @harmless
    def step(self, samples: Optional[Number] = None, *, tokens: Optional[Number] = None, flops: Optional[Number] = None,
             dtype: Optional[str] = None, loss: Optional[Number] = None, seconds: Optional[Number] = None,
             step: Optional[int] = None, split: str = "train", steps: int = 1) -> None:
        """Reports a completed step, or several, if the job cannot tell them apart: all values are then theirs together. Samples, tokens
        and model FLOPs are those of this process, the FLOPs in the run's precision (bf16 if unknown) unless `dtype` says otherwise; the number (`step`) is that of the whole run. The time of a training step is the time
        since the last one, without evaluations, checkpoints and the like."""
        tags = self._split(split)
        first = split == "train" and not self._stepped
        if split == "train":
            took = self._next_step(step, steps)
            seconds = took if seconds is None else seconds
        self._out.put("ml.steps", "c", steps, tags)
        for _ in range(min(steps, MEANS) if seconds is not None else 0):
            self._observe("ml.step.seconds", seconds if steps == 1 else number(seconds, "d") / steps, tags)
        self._count(split, samples, tokens, "train" if split == "train" else "input", flops, dtype)
        if loss is not None and self._leads:
            self._out.put("ml.loss", "g", loss, tags)
        if self._pending:
            self._read_device()
        self._out.flush_if_due(urgent=first)  # the daemon computes lost steps from the first number

    def begin_step(self) -> None:
        """Marks the begin of a training step; needed only if it does not begin at the end of the previous one."""
        self._step_began, self._stepper = self._clock(), threading.get_ident()

    @harmless
    def count(self, *, samples: Optional[Number] = None, tokens: Optional[Number] = None, kind: str = "train",
              flops: Optional[Number] = None, dtype: Optional[str] = None, split: str = "train") -> None:
        """Reports work of this process without the end of a step."""
        self._count(split, samples, tokens, kind, flops, dtype)
        self._out.flush_if_due()

    def phase(self, name: str, *, device: bool = False) -> Phase:
        """`with run.phase("data_loading"):` or `@run.phase("data_loading")`, one of PHASES. The time is that of the host. With
        `device` it is that of the GPU between begin and end, if the job uses torch on a GPU."""
        known = isinstance(name, str) and name in PHASES
        if not known:
            say_once(f"phase {name!s:.64}", f"counted as other; known are {' '.join(sorted(PHASES))}")
        return Phase(self, name if known else "other", device)

    @harmless
    def phase_took(self, name: str, seconds: Number) -> None:
        """Reports a phase that was measured elsewhere and has just ended."""
        phase, took = self.phase(name).name, number(seconds, "d")
        self._put_phase(phase, took)
        self._phases.took(took)
        if phase in OUTSIDE_STEPS and self._step_began is not None:
            self._step_began = min(self._clock(), self._step_began + took)
        self._out.flush_if_due()

    @harmless
    def inference(self, seconds: Optional[Number] = None, *, ttft: Optional[Number] = None,
                  itl: Union[Number, Iterable[Number], None] = None, input_tokens: Optional[Number] = None,
                  output_tokens: Optional[Number] = None, samples: Optional[Number] = 1) -> None:
        """Reports an answered request: its latency, the time to its first token, the latencies between tokens."""
        self._observe("ml.infer.seconds", seconds, self._tags)
        self._observe("ml.ttft.seconds", ttft, self._tags)
        for gap in itl if isinstance(itl, Iterable) else (itl,):
            self._observe("ml.itl.seconds", gap, self._tags)
        self._count("infer", samples, input_tokens, "input")
        self._count("infer", None, output_tokens, "output")
        self._out.flush_if_due()

    @harmless
    def loss(self, value: Number, *, split: str = "train") -> None:
        tags = self._split(split)
        if self._leads:
            self._out.put("ml.loss", "g", value, tags)
            self._out.flush_if_due()

    @harmless
    def log(self, values: Mapping[str, Any], *, step: Optional[int] = None) -> None:
        """Reports scalars by name, like other loggers: the loss, evaluations (`eval_...`, `val/...`), and up to 14 others under their
        own names. `step` is the number of the run's last step, for jobs that do not call step()."""
        if not self._leads:
            return
        if step is not None and not self._stepped:
            self._step = max(self._step, int(number(step, "c")))
            self._out.put("ml.step", "g", self._step, self._tags)
        for word, name, value in _scalars.words(values):
            if word.endswith("loss"):
                self._out.put("ml.loss", "g", value, f"{self._tags},split:{'train' if word == 'loss' else 'eval'}")
            if word.startswith("eval"):
                self.eval(name, value)
            elif word == "custom":
                self._custom(clean(name), value)
        self._out.flush_if_due()

    @harmless
    def target(self, metric: str, value: Number, *, direction: Optional[str] = None) -> None:
        """Sets the target of the run: the first evaluation that reaches it ends the time to solution. Without a direction, losses,
        errors and perplexities should fall, and all other metrics should rise."""
        if self._leads:
            direction = chosen(direction or _scalars.better(str(metric)), DIRECTIONS, "direction")
            self._state("ml.target", value, f"{self._tags},metric:{clean(metric)},direction:{direction}")

    @harmless
    def eval(self, metric: str, value: Number, *, target: Optional[Number] = None, direction: Optional[str] = None) -> None:
        """Reports an evaluation; of several ranks only the first one reports it. The direction, `min` or `max`, determines the best value
        and applies to the target too."""
        if target is not None:
            self.target(metric, target, direction=direction)
        elif direction is not None:
            chosen(direction, DIRECTIONS, "direction")
        told = f",direction:{direction}" if direction in DIRECTIONS else ""
        if self._leads:
            self._out.put("ml.eval", "g", value, f"{self._tags},metric:{clean(metric)}{told}")
            self._out.flush_if_due(urgent=True)  # its arrival ends the time to solution

    @harmless
    def batch_size(self, samples: Number) -> None:
        """Samples in one step of the whole run."""
        if self._leads_host:
            self._state("ml.batch_size", samples, self._tags)

    @harmless
    def world_size(self, processes: Number) -> None:
        if self._leads_host:
            self._state("ml.world_size", processes, self._tags)

    @harmless
    def resume(self, step: int) -> None:
        """Continues the run from a checkpoint at that step: steps beyond it are lost."""
        with self._out.lock:
            self._step = int(number(step, "c"))
            self._stepped = True
            self._out.put_event(event("restart", str(self._step), self._tags))
            self._out.put("ml.step", "g", self._step, self._tags)
        self._out.flush_if_due(urgent=True)

    @harmless
    def stop(self, status: str = "success") -> None:
        """Ends the run. Leaving its `with` calls this; a process that exits without it reports "aborted"."""
        stop = event("run_stop", chosen(status, STATUSES, "status"), f"{_date(self._wall())}{self._tags}")
        self._settle()
        self._out.close(stop)
        self._out.lose("unsent", len(self._pending))
        _process.open_runs.discard(self)
        if not _process.open_runs:
            _process.leave_sigterm()

    def finish(self, exit_code: Optional[int] = None) -> None:
        """Like stop(), named as in other loggers: success, unless the code is not 0."""
        self.stop("aborted" if exit_code else "success")

    def _split(self, split: str) -> str:
        return f"{self._tags},split:{chosen(split, SPLITS, 'split')}"

    def _observe(self, name: str, seconds: Optional[Number], tags: str) -> None:
        """Reports a duration of a histogram. One a second of each also names its trace, on a line of its own."""
        now = self._clock()
        if seconds is not None and now >= self._traced.get(name, now):
            self._traced[name] = now + FLUSH_SECONDS
            tags += _trace.tags(self._environ)
        self._out.put(name, "d", seconds, tags)

    def _count(self, split: str, samples: Optional[Number], tokens: Optional[Number], kind: str,
               flops: Optional[Number] = None, dtype: Optional[str] = None) -> None:
        tags, of_kind = self._split(split), f"kind:{chosen(kind, KINDS, 'kind')}"
        of_dtype = f"dtype:{chosen(dtype or self._dtype(), DTYPES, 'dtype')}" if flops is not None or dtype else ""
        self._out.put("ml.samples", "c", samples, tags)
        self._out.put("ml.tokens", "c", tokens, f"{tags},{of_kind}")
        self._out.put("ml.flops", "c", flops, f"{self._tags},{of_dtype}")

    def _dtype(self) -> str:
        known = told(self._out.standing, "precision")
        return known if known in DTYPES else "bf16"

    def _custom(self, name: str, value: Any) -> None:
        if name not in self._customs:
            if len(self._customs) >= _scalars.CUSTOM:
                say_once("log", f"{name}: no more than {_scalars.CUSTOM} names")
                return self._drop("full")
            self._customs.add(name)
        self._out.put("ml.custom", "g", value, f"{self._tags},metric:{name}")

    def _next_step(self, step: Optional[int], steps: int) -> Optional[float]:
        with self._out.lock:
            now = self._clock()
            self._step = self._step + steps if step is None else int(number(step, "c"))
            took = None if self._step_began is None else now - self._step_began
            self._step_began, self._stepped, self._stepper = now, True, threading.get_ident()
            self._out.put("ml.step", "g", self._step, self._tags)
        return took

    @harmless
    def _begin(self, phase: Phase) -> None:
        now = self._clock()
        entry = self._phases.begin(phase, now)
        if phase.device:
            entry.stretch = begun()
        if phase.name in OUTSIDE_STEPS:
            if self._step_began is not None and self._stepper == threading.get_ident():
                entry.step_so_far = now - self._step_began
            self._out.flush_if_due(urgent=True)  # these may be long, and nothing is sent during them

    @harmless
    def _end(self, phase: Phase) -> None:
        now = self._clock()
        entry = self._phases.end(phase, now)
        if entry is None:
            return
        if entry.step_so_far is not None:
            self._step_began = now - entry.step_so_far
        if entry.stretch is None or not ended(entry.stretch):
            self._put_phase(phase.name, max(0.0, entry.took))
        else:
            self._end_on_device(phase.name, entry.stretch)
        self._out.flush_if_due()

    def _end_on_device(self, name: str, stretch: Stretch) -> None:
        """Queues the stretch, because the GPU's time is available later."""
        if not self._pending.add(name, stretch):
            return self._drop("full")
        around = next((outer.stretch for outer in reversed(self._phases.entries) if outer.stretch), None)
        if around is not None:
            around.inner.append(stretch)
        self._read_device()

    def _state(self, name: str, value: Number, tags: str) -> None:
        """A gauge that is repeated to the daemon once a minute."""
        self._out.keep((name, "g", tags), [number(value, "g")])
        self._out.put(name, "g", value, tags)
        self._out.flush_if_due()
