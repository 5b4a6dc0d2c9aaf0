#!/usr/bin/env python3
"""A real Slurm in a separately booted machine: jobs with names, allocations and energy on the page of the built daemon.

Requires root, systemd-nspawn, Debian's slurmctld, slurmd and munge, and the hierarchies of cgroup v1, because Slurm refuses
the unified one next to others.
"""
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import booted  # noqa: E402

BINARY = Path(os.environ.get("GPUMETER_BINARY", booted.ROOT / "build/release/gpumeter")).resolve()
HIERARCHIES = ("freezer", "memory", "cpuset", "devices")


def main() -> int:
    if reason := booted.missing({"slurmctld": "slurmctld", "slurmd": "slurmd", "munged": "munge", "sbatch": "slurm-client",
                                 "ip": "iproute2", "unshare": "util-linux"}):
        return booted.skip(reason)
    if absent := [name for name in HIERARCHIES if not (booted.CGROUPS / name / "cgroup.procs").exists()]:
        return booted.skip(f"this machine has no hierarchy of cgroup v1 for {' '.join(absent)}")
    return booted.run_inside(HERE / "booted_slurm_machine.py", [str(BINARY)], [BINARY.parent], seconds=400,
                             version_1=[booted.CGROUPS / name for name in HIERARCHIES])


if __name__ == "__main__":
    sys.exit(main())
