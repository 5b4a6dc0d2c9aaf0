"""gpumeter as a process: started, queried, measured, stopped."""
from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from .page import Page, fetch


class Daemon:
    def __init__(self, binary: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.state = tempfile.TemporaryDirectory(prefix="gpumeter-check-")
        # A file of its own, so that what is installed here decides nothing.
        config = Path(self.state.name, "gpumeter.yaml")
        config.write_text("")
        self.process = subprocess.Popen([binary, f"--web.listen-address=127.0.0.1:{port}", f"--path.state={self.state.name}",
                                         f"--config.file={config}", "--metrics.detail=full"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                fetch(f"{self.url}/-/ready")
                return
            except OSError:
                time.sleep(0.1)
        self.stop()
        raise RuntimeError("the daemon did not become ready within 30 s")

    def page(self) -> Page:
        return Page(fetch(f"{self.url}/metrics"))

    def cpu_seconds(self) -> float:
        """User and system time: fields 14 and 15 of /proc/PID/stat."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_bytes(self) -> int:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.state.cleanup()


class Elsewhere:
    """A daemon that somebody else runs: it can only be asked."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def page(self) -> Page:
        return Page(fetch(f"{self.url}/metrics"))

    def stop(self) -> None:
        pass
