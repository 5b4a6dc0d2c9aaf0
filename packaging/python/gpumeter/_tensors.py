"""Numbers and batches of torch."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

from ._wire import Number


def scalars(values: Mapping[str, Any], may_wait: bool) -> Dict[str, Number]:
    """Numbers, and tensors with one element, those of a GPU only with `may_wait`."""
    found: Dict[str, Number] = {}
    for name, value in values.items():
        if isinstance(value, (int, float)):
            found[name] = value
        elif getattr(value, "numel", int)() == 1 and (may_wait or value.device.type == "cpu"):
            found[name] = value.item()
    return found


def samples_of(batch: Any, depth: int = 4) -> Optional[int]:
    """The first dimension of the first tensor in a batch of tuples, lists and mappings; of text the length of its list."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else None
    if depth == 0 or isinstance(batch, (str, bytes)):
        return None
    parts: List[Any] = list(batch.values()) if isinstance(batch, Mapping) else list(batch) if isinstance(batch, (list, tuple)) else []
    if parts and all(isinstance(part, (str, bytes, int, float)) for part in parts):
        return len(parts)
    return next((count for part in parts for count in [samples_of(part, depth - 1)] if count is not None), None)
