"""The configuration of a soak: eight simulated GPUs with random failures, and the changes that reloads make."""
from __future__ import annotations

import json
import random
from pathlib import Path

GPUS = 8
# Failures that take the device off the page, and the ones that only change its values.
ABSENT = ("hang", "lose", "reads")
VALUES = ("overheat", "fan", "throttle", "brake", "slowdown", "reliability", "clocks", "xid:79", "xid:48", "xid:31", "reset",
          "recovery:reset", "ecc", "corrected", "remap", "remap-failure", "unrepairable", "repair", "retirement", "memory", "links",
          "link-errors", "fabric", "fabric-health", "pcie-width", "pcie-speed", "pcie-fatal", "pcie-replays", "hardware", "ecc-mode", "driver")
POINT = ("xid", "reset", "pcie-fatal")  # at one moment


def events(dice: random.Random, seconds: float, begin: float) -> list[str]:
    """Failures of all devices between `begin` and `seconds`: one at a time for a device, about two a minute. All end 12 s earlier."""
    found = []
    for gpu in range(GPUS):
        at = begin + dice.uniform(0, 20)
        while at < seconds - 16:
            verb = dice.choice(ABSENT if dice.random() < 0.25 else VALUES)
            length = min(dice.uniform(4, 25), seconds - 12 - at)
            ends = "" if verb.partition(":")[0] in POINT else f" for {length:.0f}s"
            found.append(f"{verb} {gpu} after {at:.0f}s{ends}")
            at += length + dice.uniform(5, 25)
    return found


class Configuration:
    """Writes the file that the daemon reads. `folder` has the sockets and the pids of the processes on each GPU."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.path, self._folder, self._dice = folder / "gpumeter.yaml", folder, dice
        self.events: list[str] = []
        self._expected, self._retention, self._power = GPUS, 60, 420

    def write(self) -> None:
        off = {"enabled": False}
        simulated = {"enabled": True, "devices": GPUS, "events": self.events, "busy_power": self._power,
                     "processes": [f"{gpu}={self._folder}/gpu-{gpu}.pids" for gpu in range(GPUS)]}
        self._replace(json.dumps({  # JSON is YAML
            "paths": {"procfs": str(self._folder / "proc")}, "devices": {"expected": self._expected},
            "jobs": {"socket": f"{self._folder}/jobs.sock", "stream_socket": f"{self._folder}/stream.sock",
                     "limits": {"retention": f"{self._retention}s"}},
            "collectors": {"simulated": simulated, "nvidia": off, "amd": off}}, indent=1))

    def change(self) -> None:
        """The settings that apply without a restart of the collector."""
        self._expected = self._dice.choice((GPUS - 1, GPUS, GPUS + 1))
        self._retention = self._dice.choice((45, 60))
        self.write()

    def renew(self, seconds: float, begin: float = 3) -> None:
        """Other simulated devices: the collector is restarted, and its events count from that moment."""
        self._power = self._dice.randrange(380, 460)
        self.events = events(self._dice, seconds, begin)
        self.write()

    def spoil(self) -> None:
        self._replace("devices: {expected: many}\n")

    def _replace(self, text: str) -> None:
        fresh = self.path.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self.path)
