"""What the tests of gpumeter-nccl-files share: a folder of files, the users of the GPUs, and the page that follows."""
from __future__ import annotations

import os
import re
import tempfile
import unittest
from pathlib import Path
from typing import Any

from receiver import CLIENT
from gpumeter_nccl_files import page
from gpumeter_nccl_files.folder import SECOND
from gpumeter_nccl_files.owners import Owners

ROOT = CLIENT.parent.parent
FIXTURES = ROOT / "tests/fixtures/nccl"
DUMPS = FIXTURES / "flight_recorder"
BEGIN = 1_790_000_000 * SECOND
UUID = "c2000000-0000-4000-8000-000000000000"
GPU = f"GPU-{UUID}"
RANK_0, RANK_1, RANK_2 = ((DUMPS / name).read_bytes() for name in ("rank_0.pickle", "rank_1.json", "rank_2.pickle"))


def row(pid: int = 1, uid: int = 0, owner: str = "ann", run: str = "", workload: str = "train.service", uuids: "tuple[str, ...]" = (GPU,)) -> "dict[str, Any]":
    """A process as the daemon has it in /api/v1/processes."""
    return {"pid": pid, "start_ticks": 5, "uid": uid, "owner": owner, "group": f"/system.slice/{workload}", "kind": "unit", "workload": workload or None,
            "user": owner if run else None, "run": run or None,
            "devices": [{"uuid": uuid, "gpu": 0, "present": True, "joules": None, "busy_seconds": 1.5} for uuid in uuids]}


def bandwidth(labels: str, value: str) -> str:
    return f"nccl_bus_bandwidth_gbs{{{labels}}} {value}\n"


NAME = f"nccl_inspector_metrics_{UUID}.prom"
LINE = bandwidth('collective="AllReduce",message_size="1-2MB",n_nodes="1"', "200").encode()
ON_GPU = f'gpu="0",uuid="{GPU}"'
ALL_REDUCE = ',op="all_reduce",size="1MiB-16MiB",scope="node"} 200000000000\n'


class Bench(unittest.TestCase):
    """A folder with files of the test's own user, who has a process on a GPU unless the test changes `rows`. Times are seconds since BEGIN."""
    reader: Any

    def setUp(self) -> None:
        self.tree = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-nccl-files-")))
        self.said: "list[str]" = []
        self.owners = Owners([])
        self.rows = [row(uid=os.getuid())]
        self.series = [{"name": "gpu_up", "labels": {"gpu": "0", "uuid": GPU}}]

    def say(self, path: str, complaint: str) -> None:
        self.said.append(f"{Path(path).name}: {complaint}")

    def write(self, name: str, data: bytes, at: float = 0, owner: "int | None" = None) -> Path:
        path = self.tree / name
        path.write_bytes(data)
        os.utime(path, ns=(self.at(at), self.at(at)))
        if owner is not None:
            os.chown(path, owner, owner)
        return path

    @staticmethod
    def at(seconds: float) -> int:
        return BEGIN + int(seconds * SECOND)

    def look(self, seconds: float) -> bool:
        self.owners.update_places(self.series)
        self.owners.update(self.rows)
        return self.reader.look(self.owners, self.at(seconds))

    def page(self) -> str:
        written = page.Page()
        self.reader.write(written)
        [text] = written.texts()
        return text

    def states(self) -> "dict[str, int]":
        """The samples of gpumeter_nccl_files."""
        return {label: int(count) for label, count in re.findall(r'^gpumeter_nccl_files\{source="\w+",state="(\w+)"\} (\d+)$', self.page(), re.M)}
