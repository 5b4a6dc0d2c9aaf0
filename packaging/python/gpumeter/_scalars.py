"""Maps `run.log({...})` and `run(config={...})` to the daemon's vocabulary."""
from __future__ import annotations

import re
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

CUSTOM = 16  # names that the daemon keeps of a run

_OF_TRAINING = re.compile(r"(train|training)[/_.]", re.IGNORECASE)
_OF_EVALUATION = re.compile(r"(eval|evaluation|val|valid|validation)[/_.]", re.IGNORECASE)
_NO_EVALUATION = re.compile(r"(^|_)(runtime|time|epoch|step|steps|samples|model_preparation_time)$|_per_second$")
_KNOWN = {"lr": "learning_rate", "learning_rate": "learning_rate", "grad_norm": "gradient_norm", "gradient_norm": "gradient_norm"}

_LOWER_IS_BETTER = {"loss", "perplexity", "error", "wer", "cer", "rmse", "mse", "mae"}

_FACTS = {
    "framework": ("framework",),
    "version": ("framework_version", "version"),
    "model": ("model", "model_name", "model_type", "arch", "architecture"),
    "batch_size": ("global_batch_size", "batch_size"),
    "precision": ("precision", "mixed_precision"),
    "sharding": ("sharding",),
    "data_parallel": ("data_parallel", "data_parallel_size"),
    "tensor_parallel": ("tensor_parallel", "tensor_parallel_size"),
    "pipeline_parallel": ("pipeline_parallel", "pipeline_parallel_size"),
    "world_size": ("world_size",),
}


def words(values: Mapping[str, Any]) -> Iterator[Tuple[str, str, Any]]:
    """(word, name, value) of each scalar: word is loss, eval_loss, eval or custom. Text, mappings, sequences and None,
    some of which other loggers accept, are skipped."""
    for key, value in values.items():
        if value is None or isinstance(value, (str, bytes, Mapping, list, tuple)):
            continue
        yield (*_word(str(key)), value)


def _word(key: str) -> Tuple[str, str]:
    bare = _OF_TRAINING.sub("", key, count=1) if _OF_TRAINING.match(key) else key
    if bare.lower() == "loss":
        return "loss", "loss"
    if bare.lower() in _KNOWN:
        return "custom", _KNOWN[bare.lower()]
    found = _OF_EVALUATION.match(key)
    name = key[found.end():] if found else ""
    if not name or _NO_EVALUATION.search(name.lower()):
        return "custom", key
    return ("eval_loss" if name.lower() == "loss" else "eval"), name


def bare_evaluation(name: str) -> str:
    """The name of an evaluation without its prefix; every other name unchanged."""
    found = _OF_EVALUATION.match(name)
    return name[found.end():] or name if found else name


def is_loss(name: str) -> bool:
    return _word(name)[0] == "loss"


def better(metric: str) -> str:
    """The default direction of a metric, from the last word of its name. The daemon has the same rule."""
    words_of = re.split(r"[-_./: ]", metric.lower())
    return "min" if words_of[-1] in _LOWER_IS_BETTER or words_of[-2:] == ["error", "rate"] else "max"


def kept(config: Any) -> Dict[str, Any]:
    """The config, a mapping, a namespace (argparse) or a dataclass, as a dictionary."""
    if config is None:
        return {}
    return dict(config) if isinstance(config, Mapping) else dict(vars(config))


def facts(config: Mapping[str, Any]) -> Dict[str, Any]:
    """Facts as text, sizes as numbers, if they are there."""
    return {fact: value for fact, keys in _FACTS.items() for value in [_first(config, keys, fact)] if value is not None}


def _first(config: Mapping[str, Any], keys: Tuple[str, ...], fact: str) -> Optional[Any]:
    kind = int if fact.endswith(("_size", "_parallel")) else str
    return next((config[key] for key in keys if type(config.get(key)) is kind and config[key]), None)
