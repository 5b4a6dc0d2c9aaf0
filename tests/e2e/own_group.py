"""A /proc in which a process is in a control group chosen by the test; everything else is the kernel's. Standard library only: jobs
import it too."""
from __future__ import annotations

from pathlib import Path


def put_into(procfs: Path, pid: int, group: str) -> None:
    """For a daemon with `--path.procfs`. The folder of the process appears whole or not at all."""
    procfs.mkdir(exist_ok=True)
    fresh = procfs / f"new-{pid}"
    fresh.mkdir()
    for name in ("stat", "status", "comm"):
        (fresh / name).symlink_to(f"/proc/{pid}/{name}")
    (fresh / "cgroup").write_text(f"0::{group}\n")
    fresh.rename(procfs / str(pid))
