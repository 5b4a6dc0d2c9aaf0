"""Facts of a run: text, words of closed sets, and sizes. They are tags of run_start and labels of ml_run_info."""
from __future__ import annotations

import contextlib
import re
import sys
from typing import Any, Callable, Dict, Mapping, Optional

from ._guard import say_once
from ._wire import Key, chosen, clean

TEXTS = ("framework", "version", "model")
SIZES = ("data_parallel", "tensor_parallel", "pipeline_parallel")
FACTS = (*TEXTS, "precision", "sharding", *SIZES)
PRECISIONS = frozenset({"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4", "int4", "mixed"})
SHARDINGS = frozenset({"fsdp", "hsdp", "zero1", "zero2", "zero3"})
_LARGEST = 999_999

# Names of precisions in trainers and configurations, without "mixed", "true", "pure" and punctuation.
_PRECISIONS = {"64": "fp64", "float64": "fp64", "double": "fp64", "32": "fp32", "float32": "fp32", "float": "fp32", "no": "fp32",
               "tensorfloat32": "tf32", "16": "fp16", "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "transformerengine": "fp8",
               "transformerenginefloat16": "fp8", "float8": "fp8"}


def precision(text: object) -> str:
    """The daemon's word for a precision as trainers name it ("bf16-mixed", "mixed_float16"), or the text itself."""
    bare = re.sub(r"mixed|true|pure|[-_ ]|^torch\.", "", str(text).lower())
    return _PRECISIONS.get(bare, bare or str(text))


def checked(name: str, value: Any) -> str:
    """The tag's value. Raises if the daemon would reject it."""
    if name in TEXTS:
        return clean(value)
    if name == "precision":
        return chosen(precision(value), PRECISIONS, name)
    if name == "sharding":
        return chosen(str(value), SHARDINGS, name)
    if name not in SIZES:
        raise ValueError(f"{name} is none of {' '.join(FACTS)}")
    size = int(value)
    if not 1 <= size <= _LARGEST:
        raise ValueError(f"{name} {size} is not from 1 to {_LARGEST}")
    return str(size)


def described(describe: Callable[..., Dict[str, Any]], *things: Any) -> Dict[str, Any]:
    """What a callback can find out. A trainer of another version may lack what the callback reads; the run begins all the same."""
    try:
        return {name: value for name, value in describe(*things).items() if value}
    except Exception as error:
        say_once("facts", error)
        return {}


def usable(found: Mapping[str, Any]) -> Dict[str, str]:
    """The facts of a config, which may use these names for other things."""
    facts: Dict[str, str] = {}
    for name, value in found.items():
        with contextlib.suppress(TypeError, ValueError):
            facts[name] = checked(name, value)
    return facts


def amended(start: Key, facts: Mapping[str, str], only_new: bool = False) -> Key:
    """The same run_start with these facts, or those that it lacks. No name in it contains "|" or ","; see clean()."""
    head, _, tail = start[0].partition("|#")
    run, *others = tail.split(",")
    known: Dict[str, str] = dict(tag.split(":", 1) for tag in others)
    known = {**facts, **known} if only_new else {**known, **facts}
    tags = "".join(f",{name}:{known[name]}" for name in FACTS if name in known)
    return (f"{head}|#{run}{tags}", "", "")


def told(standing: Mapping[Key, Any], name: str) -> str:
    """A fact of the run_start among these lines; empty if it is not known."""
    start = next((key[0] for key in standing if is_start(key)), "")
    found = re.search(f",{name}:([^,]*)", start.rpartition("|#")[2])
    return found[1] if found else ""


def is_start(key: Key) -> bool:
    return key[0].startswith("_e{9,")


# torch's ShardingStrategy: which of parameters, gradients and optimizer states are split.
FSDP = {"FULL_SHARD": "fsdp", "SHARD_GRAD_OP": "zero2", "HYBRID_SHARD": "hsdp", "_HYBRID_SHARD_ZERO2": "hsdp", "NO_SHARD": ""}


def zero(config: Mapping[str, Any]) -> str:
    """DeepSpeed's stage."""
    stage = dict(config.get("zero_optimization") or {}).get("stage")
    return f"zero{stage}" if stage in (1, 2, 3) else ""


def of_torch(device: Optional[object] = None) -> str:
    """fp32, or tf32 if torch may use it for the matrix multiplications of a CUDA device."""
    torch = sys.modules.get("torch")
    is_cuda = getattr(device, "type", "") == "cuda"
    return "tf32" if torch and is_cuda and torch.get_float32_matmul_precision() != "highest" else "fp32"
