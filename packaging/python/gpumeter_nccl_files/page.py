"""The pages in Prometheus' text format."""
from __future__ import annotations

from typing import Dict, List

# Seconds after which the daemon drops the page if the program no longer writes it. A look at hostile dumps may take a minute.
_EXPIRES = 300
# Limits of the daemon: it refuses a page with more than 2000 series or a mebibyte, so that a user with many files would cost the others theirs.
_MOST_SERIES = 1900
_MOST_BYTES = 900_000
# Names, types and texts as in collectors/api.
FAMILIES = {
    "ml_nccl_bus_bandwidth_bytes_per_second": "Bus bandwidth of the GPU's NCCL operations in bytes per second: the geometric mean since the last dump of NCCL "
    "Inspector, by op, by size of the messages, and by scope: node or network. Inspector counts no operations: groups of ranks and algorithms that share the "
    "labels weigh the same.",
    "ml_nccl_operation_duration_seconds": "Duration of the GPU's NCCL operations in seconds: the mean since the last dump of NCCL Inspector, with the labels of "
    "ml_nccl_bus_bandwidth_bytes_per_second.",
    "ml_nccl_recorded_operations_total": "Operations that NCCL Inspector recorded on the GPU since the job's start, by kind: collective or point_to_point. "
    "Absent unless the job sets NCCL_INSPECTOR_PROM_DUMP_STATS.",
    "ml_nccl_lost_operations_total": "Recorded operations that NCCL Inspector overwrote before a dump, by kind. They are missing in its means.",
    "ml_nccl_dump_timestamp_seconds": "Unix time of NCCL Inspector's last dump for the GPU.",
    "ml_flight_recorder_collective": "Sequence number of the rank's last collective operation in a process group at the time of PyTorch's dump, by state: "
    "enqueued, started, or completed. A rank that enqueued fewer operations than others of the group stands behind.",
    "ml_flight_recorder_dump_timestamp_seconds": "Unix time of the rank's dump by PyTorch's flight recorder.",
    "gpumeter_nccl_files": "Files of NCCL Inspector and of PyTorch's flight recorder in the configured places, by source and state. read: on the page; torn: "
    "still being written; stale: too old; foreign: the owner has no process on the GPU, or is not among nccl.users; unknown_gpu: no GPU of this machine; "
    "invalid: not readable, the log has the reason.",
}


class Page:
    def __init__(self) -> None:
        self._samples: Dict[str, Dict[str, float]] = {family: {} for family in FAMILIES}

    def add(self, family: str, value: float, labels: Dict[str, str]) -> None:
        """Samples with the same labels add up. A label without a value is left out."""
        text = ",".join(f'{name}="{_escaped(label)}"' for name, label in labels.items() if label)
        samples = self._samples[family]
        samples[text] = samples.get(text, 0) + value

    def texts(self) -> List[str]:
        """One or more pages, as many as the daemon's limits make necessary."""
        begin = f"# gpumeter: expires {_EXPIRES}s\n"
        texts, count = [begin], 0
        for family, samples in self._samples.items():
            kind = "counter" if family.endswith("_total") else "gauge"
            head = f"# HELP {family} {FAMILIES[family]}\n# TYPE {family} {kind}\n"
            lines: List[str] = []
            size = len(texts[-1].encode())
            for labels, value in samples.items():
                line = f"{family}{{{labels}}} {value!r}".removesuffix(".0") + "\n"
                if count == _MOST_SERIES or size + len(line.encode()) > _MOST_BYTES:
                    texts[-1] += head * bool(lines) + "".join(lines)
                    texts.append(begin)
                    lines, count, size = [], 0, 0
                lines.append(line)
                count += 1
                size += len(line.encode())
            texts[-1] += head * bool(lines) + "".join(lines)
        return texts


def _escaped(label: str) -> str:
    readable = label.encode("utf-8", "replace").decode()
    return readable.replace("\\", r"\\").replace('"', r'\"').replace("\n", r"\n")
