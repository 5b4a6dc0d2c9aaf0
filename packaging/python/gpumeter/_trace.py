"""The trace in which a call is made, for exemplars."""
from __future__ import annotations

import re
import sys
from typing import Mapping

from ._guard import say_once

SAMPLED = 1  # of the flags: a trace that its tracer does not keep leads nowhere
# W3C Trace Context; of the variable, OpenTelemetry's "Environment Variables as Context Propagation Carriers".
TRACEPARENT = re.compile("(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


def tags(environ: Mapping[str, str]) -> str:
    """The tags of OpenTelemetry's current span if the job uses OpenTelemetry, otherwise those of the trace that started the process.
    Empty without a sampled trace."""
    opentelemetry = sys.modules.get("opentelemetry.trace")
    try:
        span = opentelemetry.get_current_span().get_span_context() if opentelemetry else None
        if span is not None and span.is_valid:
            return _tags(f"{span.trace_id:032x}", f"{span.span_id:016x}", int(span.trace_flags))
    except Exception as error:  # a version with another interface; the duration itself is still reported
        say_once("trace", error)
    parent = TRACEPARENT.fullmatch(environ.get("TRACEPARENT", ""))
    return _tags(parent[1], parent[2], int(parent[3], 16)) if parent else ""


def _tags(trace: str, span: str, flags: int) -> str:
    return f",trace_id:{trace},span_id:{span}" if flags & SAMPLED else ""
