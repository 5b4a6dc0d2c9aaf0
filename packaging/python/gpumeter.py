"""Tells the gpumeter daemon of this machine what a job gets done: steps, samples, phases, evaluations.

    with gpumeter.run("resnet50") as run:
        for batch in loader:
            train(batch)
            run.step(samples=256)

No call raises, waits or starts a thread; without a daemon everything here does nothing. Values are collected and leave
as one Unix datagram a second, from within whichever call finds the second over: a call costs some microseconds. What
could not be sent is sent later, as far as the bounds below reach; what is lost is counted in `run.dropped`.
"""
from __future__ import annotations

import atexit
import functools
import logging
import numbers
import os
import socket
import threading
import time
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Set, Tuple, TypeVar, Union

__all__ = ["Run", "hugging_face_callback", "run"]

SOCKET = "/run/gpumeter/jobs.sock"  # or what GPUMETER_SOCKET names

# What the daemon refuses is not sent. A tag of a closed set is in it: a call with another split, kind, direction or
# dtype does nothing, an unknown phase is "other". The names that are free (run, metric, framework, version, model) are
# printable UTF-8 of 1 to 64 bytes without DogStatsD's own "|" and ",": see _clean. A value is a finite real number of
# at most 1e18, of a counter or duration not negative: see _number.
SPLITS = frozenset({"train", "eval", "infer"})
KINDS = frozenset({"input", "output", "train"})
DIRECTIONS = frozenset({"max", "min"})
DTYPES = frozenset({"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"})
STATUSES = frozenset({"success", "aborted"})
PHASES = frozenset({"data_loading", "h2d", "forward", "backward", "optimizer", "communication", "checkpoint_save",
                    "checkpoint_load", "eval", "compile", "init", "idle", "other"})
OUTSIDE_STEPS = frozenset({"checkpoint_save", "checkpoint_load", "eval", "compile", "init", "idle"})
NAME_BYTES = 64
LARGEST = 1e18

FLUSH_SECONDS = 1.0  # a fifteenth of Prometheus' usual interval
REMIND_SECONDS = 60.0  # a daemon started anew hears within this of the run's start, targets and sizes
DATAGRAM_BYTES = 8192  # what DogStatsD clients keep to on Unix sockets, and its agent reads
LINE_VALUES = 256  # of at most 13 bytes: a line fits into a datagram, whatever else it holds
LINES = 120  # the series that the daemon keeps of a run

Number = Union[int, float]
_Key = Tuple[str, str, str]  # name, type, tags; an event is a name alone
_Lines = Dict[_Key, List[Number]]
_Method = TypeVar("_Method", bound=Callable[..., None])

_log = logging.getLogger("gpumeter")
_said: Set[str] = set()
_open: Set["Run"] = set()


def _harmless(method: _Method) -> _Method:
    """A job never sees what goes wrong in here, beyond one line in the log for each method and value."""
    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self._drop("refused")
            _say_once(method.__name__, error)
    return guarded  # type: ignore[return-value]


def _say_once(what: str, error: Exception) -> None:
    if what in _said:
        return
    _said.add(what)
    try:
        _log.warning("not measured: %s: %s", what, error)
    except Exception:  # a handler of the job's own
        pass


def _clean(name: object) -> str:
    kept = "".join(c if c.isprintable() and c not in "|," else "_" for c in str(name))
    return kept.encode()[:NAME_BYTES].decode(errors="ignore") or "_"


def _chosen(value: str, choices: Iterable[str], what: str) -> str:
    if value not in choices:
        raise ValueError(f"{what} {value!r} is none of {' '.join(sorted(choices))}")
    return value


def _number(value: Any, kind: str) -> Number:
    """A tensor is refused: reading one would wait for its GPU."""
    if type(value) is not int and type(value) is not float:
        if not isinstance(value, numbers.Real):
            raise TypeError(f"{type(value).__name__} is not a number")
        value = float(value)
    if not (-LARGEST if kind == "g" else 0) <= value <= LARGEST:  # nor is NaN
        raise ValueError(f"{value} is out of range")
    return value  # type: ignore[no-any-return]


def _integer(environ: Mapping[str, str], *names: str) -> Optional[int]:
    texts = (environ.get(name, "") for name in names)
    return next((int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 10), None)


def _event(title: str, text: str, tail: str) -> _Key:
    return (f"_e{{{len(title.encode())},{len(text.encode())}}}:{title}|{text}{tail}", "", "")


def _add(lines: _Lines, key: _Key, value: Number) -> bool:
    """Counters are summed, of gauges the last is kept, of durations each. False: there is no room."""
    kind = key[1]
    held = lines.get(key)
    if held is None:
        if len(lines) >= LINES:
            return False
        lines[key] = [value]
    elif kind == "d":
        if len(held) >= LINE_VALUES:
            return False
        held.append(value)
    else:
        total = held[0] + value if kind == "c" else value
        if total > LARGEST:
            return False
        held[0] = total
    return True


def _text(key: _Key, values: List[Number]) -> bytes:
    name, kind, tags = key
    if not kind:
        return f"{name}\n".encode()
    packed = ":".join(format(value, ".7g") if kind == "d" else repr(value) for value in values)
    return f"{name}:{packed}|{kind}{tags}\n".encode()


def _datagrams(lines: _Lines) -> List[Tuple[List[_Key], bytes]]:
    """As few as hold these lines, each with the lines that it carries."""
    out: List[Tuple[List[_Key], bytes]] = []
    for key, values in lines.items():
        text = _text(key, values)
        if out and len(out[-1][1]) + len(text) <= DATAGRAM_BYTES:
            keys, before = out[-1]
            out[-1] = (keys + [key], before + text)
        else:
            out.append(([key], text))
    return out


def _send(path: str, lines: _Lines) -> None:
    """Takes out of `lines` what the daemon's queue took. A socket for this once: none is there to be inherited by a
    fork, to be closed by a daemonising job, or to be connected to a daemon that is gone."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.setblocking(False)
            for keys, datagram in _datagrams(lines):
                out.sendto(datagram, path)
                for key in keys:
                    del lines[key]
    except (OSError, ValueError, AttributeError):  # nobody there; its queue is full; no path; no Unix sockets here
        pass


class _Outbox:
    """The lines of a run until they are sent: once a second, by the call that finds it over; urgent ones at once."""

    def __init__(self, path: str, tags: str, clock: Callable[[], float]) -> None:
        self.path, self.tags, self.clock = path, tags, clock
        self.lock = threading.RLock()  # of the same thread again: a signal handler may end a step
        self.lines: _Lines = {}
        self.standing: _Lines = {}  # what the daemon is reminded of
        self.dropped: Dict[str, int] = {}
        self.due = self.remind_at = 0.0
        self.spoke = self.stuck = self.closed = False

    def put(self, name: str, kind: str, value: Optional[Number], tags: str) -> None:
        """Each value by itself: one that is refused costs none of the others."""
        if value is None:
            return
        try:
            checked = _number(value, kind)
        except (TypeError, ValueError) as error:
            self.drop("refused")
            _say_once(name, error)
            return
        if self.closed:
            self._lost("stopped", 1)
        elif not self._added((name, kind, tags), checked):
            self.flush_if_due(urgent=True)
            if not self._added((name, kind, tags), checked):
                self.drop("full")

    def put_event(self, event: _Key) -> None:
        with self.lock:
            if event in self.lines or len(self.lines) < LINES:
                self.lines[event] = []
            else:
                self.drop("full")

    def keep(self, key: _Key, values: List[Number]) -> None:
        with self.lock:
            if key in self.standing or len(self.standing) < LINES:
                self.standing[key] = values

    def drop(self, reason: str, values: int = 1) -> None:
        """Lost, and the daemon is to know."""
        self._lost(reason, values)
        if values:
            self._added(("ml.client.dropped", "c", f"{self.tags},reason:{reason}"), values)

    def flush_if_due(self, urgent: bool = False) -> None:
        """What is urgent goes now, unless the last attempt failed: that is not tried more than once a second."""
        if (urgent and not self.stuck) or self.clock() >= self.due:
            self._flush()

    def close(self, event: _Key) -> None:
        with self.lock:
            silent = self.closed or not self.spoke  # not spoken: a forked child that only inherited the run
            self.closed = True
            self.lines[event] = []
        if not silent:
            self._flush(last=True)
            self._lost("unsent", sum(max(1, len(values)) for values in self.lines.values()))

    def forked(self) -> None:
        """In the child: what the parent collected is the parent's to send, its lock may be held by a thread that is not here."""
        self.lock = threading.RLock()
        self.lines, self.dropped = {}, {}
        self.spoke = self.stuck = False
        self.due = self.remind_at = 0.0

    def _added(self, key: _Key, value: Number) -> bool:
        with self.lock:
            return _add(self.lines, key, value)

    def _lost(self, reason: str, values: int) -> None:
        with self.lock:
            if values:
                self.dropped[reason] = self.dropped.get(reason, 0) + values

    def _flush(self, last: bool = False) -> None:
        """Sends outside of the lock, so that no thread's step waits for another's system call."""
        now = self.clock()
        with self.lock:
            if self.closed and not last:
                return
            lines, self.lines = self.lines, {}
            self.due = now + FLUSH_SECONDS
            self.spoke = True
            if now >= self.remind_at:
                lines = {**self.standing, **lines}
                self.remind_at = now + REMIND_SECONDS
        _send(self.path, lines)
        self.stuck = bool(lines)
        if lines:
            self._put_back(lines)

    def _put_back(self, unsent: _Lines) -> None:
        with self.lock:
            newer, self.lines = self.lines, unsent
            for key, values in newer.items():
                if not values:
                    self.put_event(key)
                self.drop("full", sum(not _add(unsent, key, value) for value in values))


class _Phase:
    """A stretch of time inside a `with`; exceptions pass through it."""

    def __init__(self, owner: "Run", name: str) -> None:
        self.owner, self.name = owner, name
        self.began: Optional[float] = None
        self.step_so_far: Optional[float] = None

    def __enter__(self) -> "_Phase":
        self.owner._begin(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.owner._end(self)


class Run:
    """One run of a job, as this process takes part in it. Any thread may call any method."""

    def __init__(self, name: str, *, framework: str = "", version: str = "", model: str = "",
                 path: Optional[str] = None, environ: Mapping[str, str] = os.environ,
                 clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._leads = not _integer(environ, "RANK", "SLURM_PROCID")
        self._leads_host = not _integer(environ, "LOCAL_RANK", "SLURM_LOCALID")
        self._clock, self._wall = clock, wall
        self._name = _clean(name)
        self._tags = f"|#run:{self._name}"
        self._out = _Outbox(path or environ.get("GPUMETER_SOCKET") or SOCKET, self._tags, clock)
        self._stepped = False
        self._step = 0
        self._step_began: Optional[float] = None
        told = (("framework", framework), ("version", version), ("model", model))
        self._start({key: _clean(value) for key, value in told if value}, _integer(environ, "WORLD_SIZE", "SLURM_NTASKS"))

    @_harmless
    def _start(self, info: Mapping[str, str], world_size: Optional[int]) -> None:
        _open.add(self)
        tags = self._tags + "".join(f",{key}:{value}" for key, value in info.items())
        self._out.keep(_event("run_start", self._name, f"|d:{int(self._wall())}{tags}"), [])
        if world_size is not None:
            self.world_size(world_size)
        self._out.flush_if_due()

    @property
    def dropped(self) -> Mapping[str, int]:
        """Values by what became of them: refused, without room (full), still here at the end (unsent), after it (stopped)."""
        return dict(self._out.dropped)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: Optional[type], error: Optional[BaseException], _: object) -> None:
        well = kind is None or (isinstance(error, SystemExit) and error.code in (None, 0))
        self.stop("success" if well else "aborted")

    @_harmless
    def step(self, samples: Optional[Number] = None, *, tokens: Optional[Number] = None, flops: Optional[Number] = None,
             dtype: str = "bf16", loss: Optional[Number] = None, seconds: Optional[Number] = None,
             step: Optional[int] = None, split: str = "train") -> None:
        """A step is done. Samples, tokens and model FLOPs are those of this process, its number (`step`) that of the whole
        run. Its time in training is that since the last one, less evaluations, checkpoints and the like in between."""
        tags = self._split(split)
        first = split == "train" and not self._stepped
        if split == "train":
            took = self._next_step(step)
            seconds = took if seconds is None else seconds
        self._out.put("ml.steps", "c", 1, tags)
        self._out.put("ml.step.seconds", "d", seconds, tags)
        self._count(split, samples, tokens, "train" if split == "train" else "input", flops, dtype)
        self._out.put("ml.loss", "g", loss if self._leads else None, tags)
        self._out.flush_if_due(urgent=first)  # the daemon tells lost steps by the first number

    def begin_step(self) -> None:
        """A training step begins now; needed only where one does not begin with the end of the one before."""
        self._step_began = self._clock()

    @_harmless
    def count(self, *, samples: Optional[Number] = None, tokens: Optional[Number] = None, kind: str = "train",
              flops: Optional[Number] = None, dtype: str = "bf16", split: str = "train") -> None:
        """What this process got done, without the end of a step."""
        self._count(split, samples, tokens, kind, flops, dtype)
        self._out.flush_if_due()

    def phase(self, name: str) -> _Phase:
        """`with run.phase("data_loading"):`, one of PHASES."""
        return _Phase(self, name if isinstance(name, str) and name in PHASES else "other")

    @_harmless
    def phase_took(self, name: str, seconds: Number) -> None:
        """A phase that was measured elsewhere and has just ended."""
        phase, took = self.phase(name).name, _number(seconds, "d")
        self._out.put("ml.phase.seconds", "d", took, f"{self._tags},phase:{phase}")
        if phase in OUTSIDE_STEPS and self._step_began is not None:
            self._step_began = min(self._clock(), self._step_began + took)
        self._out.flush_if_due()

    @_harmless
    def inference(self, seconds: Optional[Number] = None, *, ttft: Optional[Number] = None,
                  itl: Union[Number, Iterable[Number], None] = None, input_tokens: Optional[Number] = None,
                  output_tokens: Optional[Number] = None, samples: Optional[Number] = 1) -> None:
        """A request is answered: its latency, the time to its first token, the latency or latencies between tokens."""
        self._out.put("ml.infer.seconds", "d", seconds, self._tags)
        self._out.put("ml.ttft.seconds", "d", ttft, self._tags)
        for gap in itl if isinstance(itl, Iterable) else (itl,):
            self._out.put("ml.itl.seconds", "d", gap, self._tags)
        self._count("infer", samples, input_tokens, "input")
        self._count("infer", None, output_tokens, "output")
        self._out.flush_if_due()

    @_harmless
    def loss(self, value: Number, *, split: str = "train") -> None:
        tags = self._split(split)
        if self._leads:
            self._out.put("ml.loss", "g", value, tags)
            self._out.flush_if_due()

    @_harmless
    def target(self, metric: str, value: Number, *, direction: str = "max") -> None:
        """The value at which the run has its solution: the first evaluation that reaches it ends the time to solution."""
        if self._leads:
            tags = f"{self._tags},metric:{_clean(metric)},direction:{_chosen(direction, DIRECTIONS, 'direction')}"
            self._state("ml.target", value, tags)

    @_harmless
    def eval(self, metric: str, value: Number, *, target: Optional[Number] = None, direction: str = "max") -> None:
        """An evaluation is done; of several ranks the first one tells it."""
        if target is not None:
            self.target(metric, target, direction=direction)
        if self._leads:
            self._out.put("ml.eval", "g", value, f"{self._tags},metric:{_clean(metric)}")
            self._out.flush_if_due(urgent=True)  # its time is that of the time to solution

    @_harmless
    def batch_size(self, samples: Number) -> None:
        """Samples in one step of the whole run."""
        if self._leads_host:
            self._state("ml.batch_size", samples, self._tags)

    @_harmless
    def world_size(self, processes: Number) -> None:
        if self._leads_host:
            self._state("ml.world_size", processes, self._tags)

    @_harmless
    def resume(self, step: int) -> None:
        """The run goes on from a checkpoint of that step: what had been done beyond it is lost."""
        with self._out.lock:
            self._step = int(_number(step, "c"))
            self._stepped = True
            self._out.put_event(_event("restart", str(self._step), self._tags))
            self._out.put("ml.step", "g", self._step, self._tags)
        self._out.flush_if_due(urgent=True)

    @_harmless
    def stop(self, status: str = "success") -> None:
        """The end of the run; leaving its `with` calls this, and the exit of a process that never did says "aborted"."""
        self._out.close(_event("run_stop", _chosen(status, STATUSES, "status"), f"|d:{int(self._wall())}{self._tags}"))
        _open.discard(self)

    def _split(self, split: str) -> str:
        return f"{self._tags},split:{_chosen(split, SPLITS, 'split')}"

    def _count(self, split: str, samples: Optional[Number], tokens: Optional[Number], kind: str,
               flops: Optional[Number] = None, dtype: str = "bf16") -> None:
        tags, of_kind = self._split(split), f"kind:{_chosen(kind, KINDS, 'kind')}"
        of_dtype = f"dtype:{_chosen(dtype, DTYPES, 'dtype')}"
        self._out.put("ml.samples", "c", samples, tags)
        self._out.put("ml.tokens", "c", tokens, f"{tags},{of_kind}")
        self._out.put("ml.flops", "c", flops, f"{self._tags},{of_dtype}")

    def _next_step(self, step: Optional[int]) -> Optional[float]:
        with self._out.lock:
            now = self._clock()
            self._step = self._step + 1 if step is None else int(_number(step, "c"))
            took = None if self._step_began is None else now - self._step_began
            self._step_began, self._stepped = now, True
            self._out.put("ml.step", "g", self._step, self._tags)
        return took

    @_harmless
    def _begin(self, phase: _Phase) -> None:
        now = phase.began = self._clock()
        if phase.name in OUTSIDE_STEPS:
            phase.step_so_far = None if self._step_began is None else now - self._step_began
            self._out.flush_if_due(urgent=True)  # these may be long, and nothing is sent in them

    @_harmless
    def _end(self, phase: _Phase) -> None:
        if phase.began is None:
            return
        now = self._clock()
        self._out.put("ml.phase.seconds", "d", now - phase.began, f"{self._tags},phase:{phase.name}")
        if phase.step_so_far is not None:
            self._step_began = now - phase.step_so_far
        self._out.flush_if_due()

    def _state(self, name: str, value: Number, tags: str) -> None:
        """A gauge that the daemon is reminded of."""
        self._out.keep((name, "g", tags), [_number(value, "g")])
        self._out.put(name, "g", value, tags)
        self._out.flush_if_due()

    def _drop(self, reason: str) -> None:
        self._out.drop(reason)

    def _forked(self) -> None:
        self._out.forked()
        self._stepped, self._step_began = False, None


def run(name: str, *, framework: str = "", version: str = "", model: str = "") -> Run:
    """A run begins; best as `with gpumeter.run("resnet50") as run:`."""
    return Run(name, framework=framework, version=version, model=model)


class _HuggingFace:
    """What our transformers.TrainerCallback does."""

    def __init__(self, run: Union[str, Run], targets: Mapping[str, Number], version: str) -> None:
        self._name, self._targets, self._version = run, targets, version
        self._run = run if isinstance(run, Run) else None
        self._processes = 1
        self._seen: Dict[str, Number] = {}

    @_harmless
    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        kind = getattr(getattr(model, "config", None), "model_type", "")
        self._run = self._run or Run(str(self._name), framework="transformers", version=self._version, model=kind)
        self._processes = max(1, args.world_size)
        self._run.world_size(self._processes)
        self._run.batch_size(self._samples(args) * self._processes)
        for metric, value in self._targets.items():  # the direction by TrainingArguments' own rule for greater_is_better
            self._run.target(metric, value, direction="min" if metric.endswith("loss") else "max")
        if state.global_step:
            self._run.resume(state.global_step)
        self._share(state, "num_input_tokens_seen")
        self._share(state, "total_flos")
        self._run.begin_step()

    @_harmless
    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._run:
            tokens = self._share(state, "num_input_tokens_seen")
            self._run.step(self._samples(args), tokens=tokens, step=state.global_step)

    @_harmless
    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._run:
            self._run.step(args.eval_batch_size, split="eval")

    @_harmless
    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Mapping[str, Any]] = None, **_: Any) -> None:
        if self._run:
            dtype = "bf16" if args.bf16 else "fp16" if args.fp16 else "fp32"
            self._run.count(flops=self._share(state, "total_flos"), dtype=dtype)
            if logs and "loss" in logs:
                self._run.loss(logs["loss"])

    @_harmless
    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Optional[Mapping[str, Any]] = None, **_: Any) -> None:
        found = {name[len("eval_"):]: value for name, value in (metrics or {}).items() if name.startswith("eval_")}
        if not self._run:
            return
        if "runtime" in found:
            self._run.phase_took("eval", found.pop("runtime"))
        if "loss" in found:
            self._run.loss(found["loss"], split="eval")
        for metric, value in found.items():
            if not metric.endswith("_per_second"):
                self._run.eval(metric, value)

    @_harmless
    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._run and self._run is not self._name:
            self._run.stop()
            self._run = None

    @staticmethod
    def _samples(args: Any) -> int:
        """Of one step of this process."""
        return int(args.train_batch_size * args.gradient_accumulation_steps)

    def _share(self, state: Any, name: str) -> Optional[Number]:
        """This process's part in what a sum over all of them has grown by since the last time."""
        total = getattr(state, name, None)
        if not isinstance(total, (int, float)):
            return None
        grown = total - self._seen.get(name, 0)
        self._seen[name] = total
        return grown / self._processes if grown > 0 else None

    def _drop(self, reason: str) -> None:
        if self._run:
            self._run._drop(reason)


def hugging_face_callback(run: Union[str, Run], targets: Optional[Mapping[str, Number]] = None) -> Any:
    """`Trainer(..., callbacks=[gpumeter.hugging_face_callback("bert", targets={"accuracy": 0.9})])`. A run that is given by
    its name begins and ends with the training."""
    import transformers  # type: ignore[import]
    kind = type("GpumeterCallback", (_HuggingFace, transformers.TrainerCallback), {})
    return kind(run, targets or {}, transformers.__version__)


@atexit.register
def _abort() -> None:
    for left in list(_open):
        left.stop("aborted")


def _after_fork() -> None:
    for inherited in list(_open):
        inherited._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
