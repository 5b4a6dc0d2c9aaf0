"""The families of jobs and of results of benchmarks in the daemon's sources: a page has runs and workloads only while there are some."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLLECTORS = ROOT / "collectors"
OF_HISTOGRAM = ("", "_bucket", "_sum", "_count")  # "": of a native one


def series_names() -> set[str]:
    families = re.findall(r'(gauge|counter|histogram)\("((?:ml|gpu_workload|gpu_benchmark)_\w+)"', (COLLECTORS / "api/catalog.hpp").read_text())
    return {name + suffix for kind, name in families for suffix in (OF_HISTOGRAM if kind == "histogram" else ("",))}


def label_values() -> set[str]:
    """Of the labels that are closed sets."""
    texts = [(ROOT / name).read_text() for name in ("collectors/jobs/wire/vocabulary.cpp", "collectors/jobs/wire/vocabulary.hpp",
                                                    "collectors/jobs/model/run.hpp", "collectors/jobs/benchmarks/results.cpp",
                                                    "packaging/python/gpumeter_nccl_files/flight_dump.py")]
    return {word for text in texts for word in re.findall(r'"(\w+)"', text)} | {"unattributed"}


def bucket_ranges() -> dict[str, tuple[int, ...]]:
    """By family: first, last fine and last bound of its buckets, in eighths of an octave; beyond the fine ones each sixth."""
    families = dict(re.findall(r"&catalog::(\w+), .*\bk(\w+)\}", (COLLECTORS / "jobs/wire/vocabulary.cpp").read_text()))
    names = dict(re.findall(r'(\w+) = histogram\("(\w+)"', (COLLECTORS / "api/catalog.hpp").read_text()))
    ranges = dict(re.findall(r"constexpr Bounds k(\w+) = Range<([^>]*)>", (COLLECTORS / "jobs/wire/vocabulary.cpp").read_text()))
    return {names[family]: tuple(map(int, ranges[of].split(","))) for family, of in families.items() if of in ranges}
