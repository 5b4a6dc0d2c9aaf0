"""What the daemon can say of jobs, by its sources: a page has runs and workloads only while there are some."""
import re
from pathlib import Path

COLLECTORS = Path(__file__).resolve().parents[2] / "collectors"
OF_HISTOGRAM = ("_bucket", "_sum", "_count")


def series_names() -> set[str]:
    families = re.findall(r'(gauge|counter|histogram)\("((?:ml|gpu_workload)_\w+)"', (COLLECTORS / "api/catalog.hpp").read_text())
    return {name + suffix for kind, name in families for suffix in (OF_HISTOGRAM if kind == "histogram" else ("",))}


def label_values() -> set[str]:
    """Of the labels that are closed sets."""
    texts = [(COLLECTORS / "jobs" / name).read_text() for name in ("vocabulary.cpp", "run.cpp")]
    return {word for text in texts for word in re.findall(r'"(\w+)"', text)} | {"unattributed"}


def bucket_bounds() -> tuple[float, ...]:
    found = re.search(r"kBuckets = \{([^}]*)\}", (COLLECTORS / "jobs/vocabulary.hpp").read_text())
    return tuple(map(float, found[1].split(","))) if found else ()
