#!/usr/bin/env python3
"""A real Slurm in a separately booted machine: jobs with names, allocations and energy on the page of the built daemon.

Requires root, systemd-nspawn, Debian's slurmctld, slurmd and munge, and the hierarchies of cgroup v1, because Slurm refuses
the unified one next to others.
"""
import os
import sys
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import booted  # noqa: E402

BINARY = Path(os.environ.get("GPUMETER_BINARY", booted.ROOT / "build/release/gpumeter")).resolve()
CGROUPS = Path("/sys/fs/cgroup")
HIERARCHIES = ("freezer", "memory", "cpuset", "devices")


def enter(folders: list[Path]) -> None:
    """This process and all that it starts get folders of their own, so that Slurm's are not among the machine's."""
    for folder in folders:
        folder.mkdir()
        if folder.parent.name == "cpuset":
            for name in ("cpuset.cpus", "cpuset.mems"):
                (folder / name).write_text((folder.parent / name).read_text())
        (folder / "cgroup.procs").write_text(str(os.getpid()))


def leave(folders: list[Path]) -> None:
    for folder in folders:
        with suppress(OSError):
            (folder.parent / "cgroup.procs").write_text(str(os.getpid()))
        for path, _, _ in os.walk(folder, topdown=False):
            with suppress(OSError):
                os.rmdir(path)


def main() -> int:
    if reason := booted.missing({"slurmctld": "slurmctld", "slurmd": "slurmd", "munged": "munge", "sbatch": "slurm-client",
                                 "ip": "iproute2", "unshare": "util-linux"}):
        return booted.skip(reason)
    if absent := [name for name in HIERARCHIES if not (CGROUPS / name / "cgroup.procs").exists()]:
        return booted.skip(f"this machine has no hierarchy of cgroup v1 for {' '.join(absent)}")
    folders = [CGROUPS / name / f"gpumeter-slurm-{os.getpid()}" for name in HIERARCHIES]
    try:
        enter(folders)
    except OSError as error:
        leave(folders)
        return booted.skip(f"no cgroups can be made here: {error}")
    try:
        return booted.run_inside(HERE / "booted_slurm_machine.py", [str(BINARY)], [BINARY.parent], seconds=400, cgroups=1)
    finally:
        leave(folders)


if __name__ == "__main__":
    sys.exit(main())
