"""Pages of the real daemon with eight H100s of the fake NVML and a Slurm job on all of them, recorded a second apart.

A recording is a list of lines: the text before the number, and what the number does. A gauge goes through its recorded values,
a counter grows at its recorded rate. The nodes of a fleet replay it (fleet.py).
"""
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "e2e"), str(TESTS / "fakes/nvml")]
from harness import Daemon, wait_until  # noqa: E402
from machine import Machine  # noqa: E402

GPUS = 8
JOB = b"7654321"  # the recorded one
PID = 21180  # of the process that the scenario has on each GPU
PAGES = 12
# Eight GPUs that do not work in step: busy for a part of 5 to 12 seconds, and so is their power.
WAVE = """
    utilization:
      gpu: {{square: {{period: {period}, duty: 0.8, high: 99, low: 3}}}}
      memory: {{square: {{period: {period}, duty: 0.8, high: 45, low: 0}}}}
    power: {{draw: {{square: {{period: {period}, duty: 0.8, high: 655 W, low: 118 W}}}}}}
    temperature: {{gpu: {{square: {{period: {period}, duty: 0.5, high: 57 C, low: 54 C}}}}, margin: 24 C}}
"""
SCENARIO = "include: h100_8.yaml\nchange:\n" + "".join(f"  {n}:{WAVE.format(period=5 + n)}" for n in range(GPUS))


@dataclass
class Line:
    prefix: bytes  # up to the space before the number; a comment or an empty line as a whole
    values: tuple[float, ...] = ()  # of the recorded pages; empty: a comment
    rate: float | None = None  # a second, if it is a counter

    @property
    def gpu(self) -> int | None:
        """The index, if the line is of a GPU."""
        _, found, rest = self.prefix.partition(b'{gpu="')
        return int(rest[:rest.index(b'"')]) if found else None

    @property
    def is_of_job(self) -> bool:
        return b'workload="%s"' % JOB in self.prefix

    @property
    def family(self) -> bytes:
        return self.prefix.split(b"{")[0]


def cgroup(machine: Machine) -> None:
    """A /proc where the scenario's process belongs to the job."""
    own = machine.procfs / str(PID)
    own.mkdir(parents=True)
    for name in ("stat", "status", "comm"):
        (own / name).write_text(Path(f"/proc/{os.getpid()}/{name}").read_text())
    (own / "cgroup").write_text(f"0::/system.slice/slurmstepd.scope/job_{JOB.decode()}/step_0/user/task_0\n")


def recorded_pages(count: int, detail: str | None) -> tuple[list[bytes], float]:
    """The texts, and the seconds from the first to the last. `detail`: the value of metrics.detail; None: the default."""
    with Machine(SCENARIO) as machine:
        cgroup(machine)
        with Daemon(*machine.arguments, f"--path.procfs={machine.procfs}", env=machine.env, detail=detail) as daemon:
            wait_until(lambda: b"gpu_workload_share_ratio" in daemon.fetch("/metrics").body, "the job is seen")
            time.sleep(12)  # the host's part and the slow tier are on the page, and the list of series stands
            began, pages = time.monotonic(), []
            for _ in range(count):
                pages.append(daemon.fetch("/metrics").body)
                time.sleep(1)
            return pages, time.monotonic() - 1 - began


def record(count: int = PAGES, detail: str | None = None) -> list[Line]:
    pages, seconds = recorded_pages(count, detail)
    later = [dict(line.rsplit(b" ", 1) for line in page.splitlines() if not line.startswith(b"#")) for page in pages[1:]]
    lines, counters = [], set()
    for text in pages[0].splitlines():
        if text.startswith(b"#"):
            if text.startswith(b"# TYPE ") and text.endswith(b" counter"):
                counters.add(text.split(b" ")[2])
            lines.append(Line(text))
            continue
        prefix, first = text.rsplit(b" ", 1)
        values = tuple(map(float, [first, *(page.get(prefix, first) for page in later)]))
        line = Line(prefix, values)
        if line.family in counters:
            line.rate = max(0.0, (values[-1] - values[0]) / seconds)
        lines.append(line)
    return lines
