"""Tools of the checks inside a booted machine: run as root, look, print one line per check."""
import http.client
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

UNIT = "gpumeter.service"
CONFIG = Path("/etc/gpumeter/gpumeter.yaml")
DROP_INS = Path("/etc/systemd/system/gpumeter.service.d")
PATIENCE = 40  # s; generous, for a busy machine
IPV4, IPV6 = "http://127.0.0.1:10478", "http://[::1]:10478"

state = {"checks": 0}


def run(*command: str, env: dict[str, str] | None = None) -> str:
    said = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env)
    assert said.returncode == 0, f"{' '.join(command)}\n{said.stdout}{said.stderr}"
    return said.stdout


def given(text: str) -> None:
    print(f"\n{text}", flush=True)


def apart(one: object, other: object) -> object:
    """The differences of two lists; other values unchanged."""
    lists = isinstance(one, list) and isinstance(other, list) and sorted(one) != sorted(other)
    return [item for item in one if item not in other] if lists else one


def check(what: str, got: object, want: object) -> None:
    state["checks"] += 1
    print(f"  {'ok  ' if got == want else 'FAIL'} {what}", flush=True)
    assert got == want, f"{what}\n  is     {apart(got, want)!r}\n  not as {apart(want, got)!r}"


def becomes(what: str, look: Callable[[], object], want: object = True) -> None:
    """A check of what comes about in a while."""
    end = time.monotonic() + PATIENCE
    while (got := look()) != want and time.monotonic() < end:
        time.sleep(0.05)
    check(what, got, want)


def restart() -> None:
    # More than five starts in 10 s are too many for systemd; this sets its count back.
    subprocess.run(["systemctl", "reset-failed", UNIT], stderr=subprocess.DEVNULL)
    run("systemctl", "restart", UNIT)


def show(name: str, unit: str = UNIT) -> str:
    return run("systemctl", "show", "--value", f"--property={name}", unit).strip()


def is_active(unit: str = UNIT) -> str:
    return subprocess.run(["systemctl", "is-active", unit], capture_output=True, text=True).stdout.strip()


def is_enabled(unit: str) -> str:
    return subprocess.run(["systemctl", "is-enabled", unit], capture_output=True, text=True).stdout.strip()


def status_of(url: str) -> int:
    """0: no answer."""
    try:
        with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def answers(source: str) -> bool:
    """Whether a client with this address gets an answer on IPv4; a blocked client gets none."""
    client = http.client.HTTPConnection("127.0.0.1", 10478, timeout=2, source_address=(source, 0))
    try:
        client.request("GET", "/metrics")
        return client.getresponse().status == 200
    except OSError:
        return False
    finally:
        client.close()


def page() -> list[str]:
    """The lines of the page; empty without an answer."""
    try:
        with urllib.request.urlopen(f"{IPV4}/metrics", timeout=10) as answer:
            return answer.read().decode().splitlines()
    except OSError:
        return []


def value(series: str) -> str:
    """As the page has it; empty where it does not."""
    return next((line.rpartition(" ")[2] for line in page() if line.rpartition(" ")[0] == series), "")


def gpus(up: int) -> int:
    return sum(line.startswith("gpu_up{") and line.endswith(f" {up}") for line in page())


def journal(message: str) -> list[dict[str, str]]:
    """The entries of the service's unit that have this text in their message, with all their fields."""
    lines = run("journalctl", "--no-pager", "--output=json", f"--unit={UNIT}").splitlines()
    return [entry for entry in map(json.loads, lines) if message in str(entry.get("MESSAGE"))]


def configure(text: str) -> None:
    CONFIG.write_text(text)


def simulated(devices: int, events: str = "") -> str:
    """A configuration. The AMD collector is off: a card of the host would be seen here too."""
    return ("collectors:\n  amd: {enabled: false}\n"
            f"  simulated: {{enabled: true, devices: {devices}, events: [{events}]}}\n")


def drop_in(name: str, text: str) -> None:
    DROP_INS.mkdir(parents=True, exist_ok=True)
    (DROP_INS / name).write_text(text)
    run("systemctl", "daemon-reload")


def no_drop_ins() -> None:
    for path in DROP_INS.glob("*.conf"):
        path.unlink()
    run("systemctl", "daemon-reload")


def process_status() -> dict[str, str]:
    """/proc/PID/status of the service."""
    lines = Path(f"/proc/{show('MainPID')}/status").read_text().splitlines()
    return {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}
