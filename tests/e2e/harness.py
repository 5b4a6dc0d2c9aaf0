"""Runs the built daemon for a test: starts it on a free port, waits until it is ready, fetches, parses, stops.

The binary is $GPUMETER_BINARY (ctest sets it to the built one), otherwise build/release/gpumeter.
"""
import contextlib
import functools
import http.client
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics_strictly
from prometheus_client.parser import text_string_to_metric_families as parse_text

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter"))
TEXT = "text/plain;version=0.0.4"
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
START_SECONDS = 60  # generous: a sanitizer's build on a busy machine
STOP = 20.0  # s, SIGTERM to exit. 5 are designed, which a busy machine may exceed; what waits for a call that hangs takes longer


# The host's part in the page, which is read every 10 s: a lost GPU's paths leave by then, its readings at once.
OF_THE_HOST = ("gpu_topology_info", "gpu_host_pressure_seconds_total")
CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE = 1 << 2, 1 << 19  # linux/capability.h


def may_give(capabilities: int) -> bool:
    """setpriv can give a program these: the test runs as root, in no container that lacks them."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("CapEff:")[2].split()[0], 16) & capabilities == capabilities


@functools.cache
def is_sanitized() -> bool:
    """The binary has AddressSanitizer: it takes several times the memory, so that no test of a limit applies."""
    return b"__asan_init" in Path(BINARY).read_bytes()


def free_port(family: int = socket.AF_INET) -> int:
    """Outside the kernel's own range, so that no connection of another test takes it before the daemon listens."""
    while True:
        port = random.randrange(12000, 32000)
        with socket.socket(family) as probe, contextlib.suppress(OSError):
            probe.bind(("localhost" if family == socket.AF_INET else "::1", port))
            return port


def with_detail(arguments: tuple[str, ...], detail: str | None) -> list[str]:
    """Most tests look at values whose series the standard page, the default, omits."""
    is_given = detail is None or any(each.startswith("--metrics.detail") for each in arguments)
    return list(arguments) if is_given else [f"--metrics.detail={detail}", *arguments]


def run(*arguments: str, timeout: float = START_SECONDS, env: dict | None = None, detail: str | None = "full") -> subprocess.CompletedProcess:
    """The binary run to its end: version, checks, --once, whose page is the full one; detail=None: as configured."""
    is_page = any(each.startswith("--once") for each in arguments)
    return subprocess.run([BINARY, *with_detail(arguments, detail if is_page else None)], capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(env or {})})


def wait_until(true, what: str, seconds: float = START_SECONDS, every: float = 0.05):
    """Returns the first result of `true()` that is neither false nor None; raises AssertionError with `what` if there is none."""
    end = time.monotonic() + seconds
    while (asked := time.monotonic()) < end:
        found = true()
        if found:
            return found
        time.sleep(max(every, 3 * (time.monotonic() - asked)))  # parsing pages takes at most a quarter of a processor
    raise AssertionError(f"not within {seconds} s: {what}")


def has_ended(process: subprocess.Popen) -> bool:
    """Its main thread has; one that hangs in a system call keeps the process in the table."""
    return process.poll() is not None or Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


@dataclass
class Response:
    status: int
    headers: list[tuple[str, str]]  # as sent, in order, names as spelled
    body: bytes

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        assert len(found) <= 1, f"{name} is there {len(found)} times"
        return found[0] if found else None

    @property
    def text(self) -> str:
        return self.body.decode()


def fetch(port: int, path: str, headers: dict | None = None, method: str = "GET", body: bytes | None = None,
          host: str = "127.0.0.1", timeout: float = 30, tls: "ssl.SSLContext | None" = None) -> Response:
    """One request on a connection of its own. Timeouts and refusals are OSErrors."""
    if tls:
        connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=tls)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        return Response(response.status, response.getheaders(), response.read())
    finally:
        connection.close()


Key = tuple[str, tuple[tuple[str, str], ...]]


def key(name: str, /, **labels: str) -> Key:
    return name, tuple(sorted(labels.items()))


class Page(dict):
    """Samples by key(name, labels). `types` holds the type of each family, as the format names it."""

    def __init__(self, families):
        super().__init__()
        self.types = {}
        for family in families:
            self.types[family.name] = family.type
            for sample in family.samples:
                where = key(sample.name, **sample.labels)
                assert where not in self, f"the series {where} is on the page twice"
                self[where] = sample.value

    def of(self, name: str, /, **labels: str) -> "dict[Key, float]":
        """The samples of `name` that have at least these labels."""
        return {k: v for k, v in self.items() if k[0] == name and set(labels.items()) <= set(k[1])}

    def one(self, name: str, /, **labels: str) -> float | None:
        """The value of the only such sample; None where there is none."""
        found = list(self.of(name, **labels).values())
        assert len(found) <= 1, f"{name}{labels}: {len(found)} series"
        return found[0] if found else None

    def counters(self) -> "dict[Key, float]":
        return {k: v for k, v in self.items() if k[0].endswith("_total")}


def text_page(text: str) -> Page:
    return Page(parse_text(text))


def openmetrics_page(text: str) -> Page:
    return Page(parse_openmetrics_strictly(text))


def promtool_findings(text: str) -> str:
    """The complaints of `promtool check metrics` about a page of text 0.0.4."""
    said = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    return (said.stdout + said.stderr).strip() if said.returncode else ""


class Daemon:
    """A running gpumeter with the full page; a context manager that leaves no process behind. detail=None: the page is as configured."""

    def __init__(self, *arguments: str, env: dict | None = None, port: int | None = None, wait: bool = True,
                 pass_fds=(), state: str | None = None, wrap: "list[str] | None" = None, log: "Path | None" = None,
                 stderr: int | None = None, tls: "ssl.SSLContext | None" = None, detail: "str | None" = "full"):
        self.port = port or free_port()
        self.tls = tls
        self.folder = tempfile.TemporaryDirectory(prefix="gpumeter-test-")
        self.log_path = log or Path(self.folder.name, "log")
        defaults = []
        if not any(a.startswith(("--web.listen-address", "--web.systemd-socket")) for a in arguments):
            defaults.append(f"--web.listen-address=127.0.0.1:{self.port}")
        defaults.append(f"--path.state={state or self.folder.name}")
        self.api = Path(self.folder.name, "api.sock")
        if not any(a.startswith("--path.api") for a in arguments):
            defaults.append(f"--path.api={self.api}")
        if not any(a.startswith("--config.file") for a in arguments):
            config = Path(self.folder.name, "hermetic.yaml")
            config.write_text("kernel: {log: off}\n")  # the log of this machine is not the test's
            defaults.append(f"--config.file={config}")
        self.started = time.monotonic()
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen([*(wrap or []), BINARY, *defaults, *with_detail(arguments, detail)], stdout=log, stderr=log if stderr is None else stderr, pass_fds=pass_fds,
                                            env={**os.environ, **(env or {})})
        if wait:
            try:
                self.wait_ready()
            except BaseException:
                self.__exit__()
                raise

    def __enter__(self) -> "Daemon":
        return self

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def wait_ready(self, seconds: float = START_SECONDS) -> None:
        def ready() -> bool:
            assert self.process.poll() is None, f"the daemon ended with {self.process.returncode}:\n{self.log}"
            try:
                return self.fetch("/-/ready").status == 200
            except OSError:
                return False

        try:
            wait_until(ready, "/-/ready answers 200", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log}") from None

    def fetch(self, path: str, *arguments, **named) -> Response:
        return fetch(self.port, path, *arguments, **{"tls": self.tls, **named})

    def page(self, query: str = "") -> Page:
        """The page as a current Prometheus asks for it: OpenMetrics, strictly parsed."""
        response = self.fetch("/metrics" + query, {"Accept": OPENMETRICS})
        assert response.status == 200, f"{response.status}: {response.text}"
        return openmetrics_page(response.text)

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM, timeout: float = 30) -> tuple[int, float]:
        """Exit status and seconds it took."""
        asked = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(timeout)
        if self.process.returncode not in (0, -number):
            print(f"the daemon ended with {self.process.returncode}:\n{self.log}", file=sys.stderr)
        return self.process.returncode, time.monotonic() - asked


class Program:
    """A program that runs beside a daemon, with the daemon's files; a context manager that leaves no process behind. `page` is the file that it writes."""

    def __init__(self, name: str, daemon: Daemon, config: "Path | str", *arguments: str, pages: "Path | None" = None, env: dict | None = None,
                 wrap: "list[str] | None" = None):
        pages = pages or Path(daemon.folder.name, "pages")
        pages.mkdir(exist_ok=True)
        self.file = pages / f"{name.removeprefix('gpumeter-')}.prom"
        self.log_path = Path(daemon.folder.name, f"{name}.log")
        flags = [f"--config.file={config}", f"--api={daemon.api}", f"--pages={pages}"]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen([*(wrap or []), Path(BINARY).with_name(name), *flags, *arguments], stdout=log, stderr=log, env={**os.environ, **(env or {})})

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def page(self) -> Page:
        """The page that it wrote last; an empty one where there is none."""
        try:
            return text_page(self.file.read_text())
        except FileNotFoundError:
            return Page([])

    def stop(self, number: int = signal.SIGTERM, timeout: float = 30) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout)
