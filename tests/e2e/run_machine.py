"""A machine with known runs: simulated GPUs, processes in control groups chosen by the test, a daemon that can be
restarted, and a reading of the runs' series twice a second."""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from harness import Daemon, free_port, wait_until

HERE = Path(__file__).resolve().parent
SERIES = re.compile(r"(\w+)\{(.*)\} (\S+)")
LABEL = re.compile(r'(\w+)="([^"]*)"')
PATIENCE = 40


@dataclass
class Series:
    name: str
    labels: dict[str, str]
    value: float


@dataclass
class Look:
    """The values on the page, with their times."""
    at: float
    series: list[Series]

    def of(self, name: str, **labels: str) -> list[Series]:
        return [one for one in self.series if one.name == name and labels.items() <= one.labels.items()]

    def sum(self, name: str, **labels: str) -> float | None:
        found = self.of(name, **labels)
        return sum(one.value for one in found) if found else None

    def gpus(self, run: str) -> dict[str, str]:
        return {one.labels["gpu"]: one.labels.get("source", "?") for one in self.of("ml_run_gpu_info", run=run)}

    def status(self, run: str) -> str:
        return "".join(one.labels["status"] for one in self.of("ml_run_stop_timestamp_seconds", run=run)) or "-"


def parsed(text: str) -> list[Series]:
    found = (SERIES.fullmatch(line) for line in text.splitlines() if line.startswith(("ml_", "gpu_workload_")))
    return [Series(one[1], dict(LABEL.findall(one[2])), float(one[3])) for one in found if one]


class Job:
    """A process with children, and their output, one line each."""

    def __init__(self, machine: "RunMachine", program: str, **environment: str) -> None:
        self.said: list[dict[str, Any]] = []
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "RANK", "WORLD_", "LOCAL_"))}
        self.process = subprocess.Popen([sys.executable, "-B", "-c", f"from run_job import *\n{program}"], stdout=subprocess.PIPE,
                                        start_new_session=True, cwd=HERE, text=True,
                                        env={**clean, "RUN_MACHINE": str(machine.folder), "GPUMETER_SOCKET": machine.socket, **environment})
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        with self.process.stdout:
            for line in self.process.stdout:
                self.said.append(json.loads(line))

    def all(self, what: str) -> list[dict[str, Any]]:
        return [one for one in self.said if one["what"] == what]

    def wait_for(self, what: str, count: int = 1) -> float:
        """The time of the line's n-th occurrence."""
        return wait_until(lambda: len(found := self.all(what)) >= count and found[count - 1]["at"], f"the job says {what}", PATIENCE)

    def ended(self) -> float:
        """When its program was through, by its own clock: a busy machine shows the end of a process late."""
        self.wait()
        return max(one["at"] for one in self.all("ended"))

    def signal(self, number: int) -> float:
        """To all of its processes, as a control group is killed. When that was."""
        os.killpg(self.process.pid, number)
        return time.time()

    def wait(self) -> int:
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)  # a child that is left keeps the pipe open
        return self.process.returncode


@dataclass
class RunMachine:
    gpus: int = 1
    folder: Path = field(init=False)
    looks: list[Look] = field(default_factory=list)

    def __enter__(self) -> "RunMachine":
        self._exits = ExitStack()
        self.folder = Path(self._exits.enter_context(tempfile.TemporaryDirectory(prefix="gpumeter-runs-")))
        (self.folder / "proc").mkdir()
        self.socket, self._port = str(self.folder / "jobs.sock"), free_port()
        for gpu in range(self.gpus):
            (self.folder / f"gpu{gpu}").touch()
        off = {"enabled": False}
        simulated = {"enabled": True, "devices": self.gpus,
                     "processes": [f"{gpu}={self.folder}/gpu{gpu},busy=0.5,memory=1GiB" for gpu in range(self.gpus)]}
        self._config = self.folder / "gpumeter.yaml"
        self._config.write_text(json.dumps({
            "jobs": {"socket": self.socket, "stream_socket": ""}, "paths": {"procfs": str(self.folder / "proc")},
            "collectors": {"simulated": simulated, "nvidia": off, "amd": off}}))
        self._jobs: list[Job] = []
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self.start()
        self._watcher.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._watcher.join(10)
        for job in self._jobs:
            try:
                job.signal(9)
            except ProcessLookupError:
                pass
        self.stop()
        self._exits.close()

    def start(self) -> None:
        self.daemon = Daemon(f"--config.file={self._config}", port=self._port, state=str(self.folder))

    def stop(self) -> None:
        self.daemon.__exit__()

    def job(self, program: str, **environment: str) -> Job:
        self._jobs.append(Job(self, program, **environment))
        return self._jobs[-1]

    def look(self) -> Look | None:
        try:
            return Look(time.time(), parsed(self.daemon.fetch("/metrics?exclude[]=daemon").text))
        except OSError:  # it is being restarted
            return None

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
            if look := self.look():
                self.looks.append(look)

    def when(self, true: Any, what: str, seconds: float = PATIENCE) -> Look:
        """The first look from now on for which the condition is true."""
        begun = len(self.looks)
        return wait_until(lambda: next((look for look in self.looks[begun:] if true(look)), None), what, seconds, every=0.1)
