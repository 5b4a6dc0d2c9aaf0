"""Inside a booted systemd, as root: Debian's Prometheus and Alertmanager with the shipped scrape job and rules, and gpumeter as
a service with two simulated GPUs, one of which gets hot for a while. Its alert must reach Alertmanager and end there.

usage: alerting_machine.py BINARY|PACKAGE.deb
"""
import json
import re
import subprocess
import sys
import time
import urllib.request
from datetime import datetime, timezone
from pathlib import Path

RULES = Path(__file__).resolve().parents[2] / "packaging/prometheus"
AFTER, FOR = 10, 12  # s: when GPU 0 gets hot, and for how long
PATIENCE = 60  # s after the event's end; generous, for a busy machine
CONFIG = f"""
collectors:
  amd: {{enabled: false}}
  simulated: {{enabled: true, devices: 2, duty: 1, events: ["overheat 0 after {AFTER}s for {FOR}s"]}}
"""
PROMETHEUS = """
global: {evaluation_interval: 1s}
rule_files: [/etc/prometheus/gpumeter/rules.yml, /etc/prometheus/gpumeter/jobs.yml, /etc/prometheus/gpumeter/alerts.yml]
alerting: {alertmanagers: [{static_configs: [{targets: ["localhost:9093"]}]}]}
"""
# All that differs from what is shipped: seconds for minutes.
FASTER = ["-e", r"s/\[[15]m\]/[5s]/", "-e", r"s/^\( *for:\) .*/\1 2s/", "-e", "s/scrape_interval: 15s/scrape_interval: 1s/"]
UNITS = ("gpumeter", "prometheus", "prometheus-alertmanager")
HOT = ("GpuThermalThrottling", "GpuOverheating", "GpuTemperatureNearLimit")  # what one hot GPU raises, and nothing else


def run(*command: str) -> str:
    said = subprocess.run(command, capture_output=True, text=True)
    assert said.returncode == 0, f"{' '.join(command)}\n{said.stdout}{said.stderr}"
    return said.stdout


def faster(name: str) -> str:
    return run("sed", *FASTER, str(RULES / name))


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode()


def wait_for(url: str) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            get(url)
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def start_servers() -> None:
    write("/etc/prometheus/gpumeter/rules.yml", faster("rules.yml"))
    write("/etc/prometheus/gpumeter/jobs.yml", faster("jobs.yml"))
    write("/etc/prometheus/gpumeter/alerts.yml", faster("alerts.yml"))
    write("/etc/prometheus/prometheus.yml", PROMETHEUS + faster("examples/scrape.yml"))
    # Without it Alertmanager looks for a private address, and ends where there is loopback only.
    write("/etc/default/prometheus-alertmanager", 'ARGS="--cluster.listen-address="\n')
    # A container may not mount a /dev of the unit's own.
    write("/etc/systemd/system/prometheus.service.d/container.conf", "[Service]\nPrivateDevices=no\n")
    run("systemctl", "daemon-reload")
    run("systemctl", "reset-failed")
    run("systemctl", "restart", "prometheus-alertmanager", "prometheus")
    wait_for("http://localhost:9093/-/ready")
    wait_for("http://localhost:9090/-/ready")


def start_gpumeter(service: str) -> float:
    """When it was started, in Unix time: what the events count from."""
    if service.endswith(".deb"):
        run("apt-get", "install", "--yes", service)
    write("/etc/gpumeter/gpumeter.yaml", CONFIG)
    if service.endswith(".deb"):
        run("systemctl", "restart", "gpumeter")
    else:
        run("systemd-run", "--unit=gpumeter", "--property=Type=notify", "--property=StateDirectory=gpumeter", service)
    started = run("systemctl", "show", "--timestamp=us+utc", "--property=ExecMainStartTimestamp", "--value", "gpumeter")
    return datetime.strptime(started.strip(), "%a %Y-%m-%d %H:%M:%S.%f UTC").replace(tzinfo=timezone.utc).timestamp()


def page_is_hot() -> bool:
    return bool(re.search(r'^gpu_throttled\{gpu="0",.*cause="thermal"\} 1$', get("http://localhost:10478/metrics"), re.M))


def prometheus_is_hot() -> bool:
    found = json.loads(get("http://localhost:9090/api/v1/query?query=gpu_throttled%7Bgpu=%220%22,cause=%22thermal%22%7D"))
    return any(sample["value"][1] == "1" for sample in found["data"]["result"])


def look() -> tuple[dict[str, bool], list[dict]]:
    """The current state, in the order in which it should occur, and the alerts of Alertmanager."""
    states = [(alert["labels"]["alertname"], alert["labels"]["severity"], alert["state"])
              for alert in json.loads(get("http://localhost:9090/api/v1/alerts"))["data"]["alerts"]]
    there = json.loads(get("http://localhost:9093/api/v2/alerts"))
    holds = {"on gpumeter's page": page_is_hot(), "in Prometheus": prometheus_is_hot()}
    for state in ("pending", "firing"):
        holds[state] = (HOT[0], "warning", state) in states
    holds["in Alertmanager"] = any((a["labels"]["alertname"], a["labels"]["severity"]) == (HOT[0], "warning") for a in there)
    return holds, there


class Watch:
    """When each thing was seen first, when it was over, and every alert that Alertmanager had."""

    def __init__(self) -> None:
        self.first: dict[str, float] = {}
        self.over: dict[str, float] = {}
        self.alerts: dict[str, dict] = {}

    def note(self, what: str, holds: bool, now: float) -> None:
        if holds:
            self.first.setdefault(what, now)
            self.over.pop(what, None)
        elif what in self.first:
            self.over.setdefault(what, now)

    def until(self, end: float) -> None:
        """Returns when all has come and gone."""
        while time.time() < end:
            now, (holds, there) = time.time(), look()
            for what, holds_now in holds.items():
                self.note(what, holds_now, now)
            self.alerts |= {alert["fingerprint"]: alert for alert in there}
            if len(self.first) == len(holds) and not any(holds.values()) and not there:
                return
            time.sleep(0.1)
        raise AssertionError(f"not over after {PATIENCE} s; seen: {self.first}; now: {holds}; Alertmanager: {there}")

    def print(self, hot_at: float) -> None:
        lines = [(0.0, "the GPU gets hot"), (float(FOR), "the GPU is well again")]
        lines += [(at - hot_at, what) for what, at in self.first.items()]
        lines += [(at - hot_at, f"{what}: over") for what, at in self.over.items() if "pending" not in what]
        for at, what in sorted(lines):
            print(f"{at:+7.1f} s  {what}")


def check(watch: Watch) -> None:
    order = ["on gpumeter's page", "pending", "firing", "in Alertmanager"]
    times = [watch.first[what] for what in order]
    assert times == sorted(times), f"out of order: {dict(zip(order, times))}"
    seen = [(alert["labels"]["alertname"], alert["labels"].get("gpu")) for alert in watch.alerts.values()]
    assert set(seen) == {(name, "0") for name in HOT}, seen
    for alert in (alert for alert in watch.alerts.values() if alert["labels"]["alertname"] == HOT[0]):
        said = alert["annotations"]["description"]
        assert re.search(r"Temperatures now: core \d+ °C, hotspot \d+ °C, memory \d+ °C\.", said), said
        assert "Their limits: core 90 °C, hotspot 100 °C, memory 95 °C." in said, said
        print(f"{alert['labels']['severity']}: {alert['annotations']['summary']}\n  {said}")


def main() -> None:
    service = sys.argv[1]
    print(f"booted: {run('systemctl', '--version').splitlines()[0]}; gpumeter from {Path(service).name}", flush=True)
    hot_at = start_gpumeter(service) + AFTER
    start_servers()
    watch = Watch()
    try:
        watch.until(hot_at + FOR + PATIENCE)
    finally:
        watch.print(hot_at)
    check(watch)


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        subprocess.run(["journalctl", "--no-pager", "--lines=20", *(f"--unit={unit}" for unit in UNITS)], stdout=sys.stderr)
        raise
