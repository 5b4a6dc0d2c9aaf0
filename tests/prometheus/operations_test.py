#!/usr/bin/env python3
"""Runs docs/scrape.md and docs/alerts.md as written: their files and commands, with Debian's
Prometheus and Alertmanager. Only paths, ports and steps that need root or systemd are replaced."""
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest
import urllib.request
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import BINARY, Daemon, free_port, wait_until  # noqa: E402

SHIPPED = ROOT / "packaging/prometheus"
PAGES = {page: (ROOT / f"docs/{page}.md").read_text() for page in ("scrape", "alerts")}
PROGRAMS = ("prometheus", "promtool", "prometheus-alertmanager", "amtool", "jsonnet")
SHIMS = {"sudo": 'exec "$@"\n',
         "apt-get": 'shift; exec dpkg-query --show "$@"\n',
         "systemctl": '[ "$1" = reload ] && kill -HUP "$(cat "$SHIMS/$2.pid")"\n'}


def blocks(page: str, section: str, language: str) -> list[str]:
    """The code of one language in a section, without the indentation of the list it is in."""
    part = re.search(rf"^## {section}$(.*?)(?=^## |\Z)", PAGES[page], re.M | re.S)
    assert part, section
    return [textwrap.dedent(code) for code in re.findall(rf"^ *```{language}\n(.*?)^ *```$", part[1], re.M | re.S)]


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("localhost", port)) == 0


class Machine:
    """The machine on which the commands run: a folder instead of /etc/prometheus, servers on free ports."""

    def __init__(self, folder: Path, gpumeter: int):
        self.folder, self.etc = folder, folder / "etc"
        self.servers: dict[str, subprocess.Popen] = {}
        self.ports = {10478: gpumeter, 9090: free_port(), 9093: free_port()}
        self.etc.mkdir()
        (folder / "packaging").symlink_to(ROOT / "packaging")  # ROOT may have a space in its name, and the commands quote nothing
        for name, script in SHIMS.items():
            (folder / name).write_text("#!/bin/sh\n" + script)
            (folder / name).chmod(0o755)

    def here(self, text: str) -> str:
        text = text.replace("/etc/prometheus", str(self.etc))
        text = re.sub(r"/usr/share/gpumeter/(prometheus|mixin)", rf"{self.folder}/packaging/\1", text)
        return re.sub(r"localhost:(\d+)", lambda m: f"localhost:{self.ports.get(int(m[1]), m[1])}", text)

    def run(self, commands: str) -> str:
        env = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "SHIMS": str(self.folder)}
        said = subprocess.run(["bash", "-ec", self.here(commands)], capture_output=True, text=True, env=env, timeout=200)
        assert said.returncode == 0, f"{commands}\n{said.stdout}{said.stderr}"
        return said.stdout

    def start(self, name: str, port: int, *arguments: str) -> None:
        (self.folder / f"{name}.data").mkdir()
        with (self.folder / f"{name}.log").open("wb") as log:
            self.servers[name] = subprocess.Popen([name, f"--web.listen-address=localhost:{self.ports[port]}", *arguments],
                                                  stdout=log, stderr=log)
        (self.folder / f"{name}.pid").write_text(str(self.servers[name].pid))
        wait_until(lambda: listens(self.ports[port]), f"{name} listens", 30)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def stop(self) -> None:
        for server in self.servers.values():
            server.kill()
            server.wait()


@unittest.skipUnless(all(map(shutil.which, PROGRAMS)), f"needs {', '.join(PROGRAMS)}")
class OperationsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        self.daemon = self.enterContext(Daemon("--simulate=1"))
        self.machine = Machine(folder, self.daemon.port)
        self.addCleanup(self.machine.stop)

    def test_scrape(self) -> None:
        install, check = blocks("scrape", "Scrape", "sh")
        config, = blocks("scrape", "Scrape", "yaml")
        prometheus = self.machine.etc / "prometheus.yml"
        prometheus.write_text("global: {scrape_interval: 15s}\n")
        self.machine.start("prometheus", 9090, f"--config.file={prometheus}", f"--storage.tsdb.path={self.machine.folder}/prometheus.data")
        self.assertEqual(self.machine.run(install).count("SUCCESS"), 3)
        prometheus.write_text(self.machine.here(config))
        self.assertIn("SUCCESS", self.machine.run(check))
        query = check.splitlines()[-1]
        self.assertTrue(query.startswith("promtool query"))
        wait_until(lambda: self.machine.run(query).count("=> 1 ") == 1, "the target is up", 40, every=1)
        rules = "count(gpu:gpu_present:bool)"
        wait_until(lambda: "=> " in self.machine.run(f"promtool query instant http://localhost:9090 '{rules}'"), "rules are evaluated", 40, every=1)
        self.assertNotRegex(self.machine.log("prometheus"), "level=(error|warn).*(config|rule)")

    def test_alerts(self) -> None:
        config, = blocks("alerts", "Alerts", "yaml")
        check, = blocks("alerts", "Alerts", "sh")
        alertmanager = self.machine.etc / "alertmanager.yml"
        alertmanager.write_text("route: {receiver: before}\nreceivers: [{name: before}]\n")
        self.machine.start("prometheus-alertmanager", 9093, f"--config.file={alertmanager}", "--cluster.listen-address=",
                           f"--storage.path={self.machine.folder}/prometheus-alertmanager.data")
        alertmanager.write_text(self.machine.here(config))
        self.assertEqual(self.machine.run(check).splitlines()[-1], "operators")
        unpaged = check.splitlines()[-1].replace("GpuLost", "GpuMemoryNearlyFull").replace("critical", "info")
        self.assertEqual(self.machine.run(unpaged).strip(), "nobody")
        wait_until(lambda: self.machine.log("prometheus-alertmanager").count("Completed loading of configuration file") == 2, "a reload", 20)
        listed, = re.findall(r"`(amtool --alertmanager.url[^`]+)`", PAGES["alerts"])
        self.machine.run(listed)

    def test_the_runbooks_can_be_linked(self) -> None:
        self.machine.run(blocks("scrape", "Scrape", "sh")[0])
        rules = self.machine.etc / "gpumeter/alerts.yml"
        shipped = rules.read_text()
        edits = re.findall(r"`(sudo sed -i [^`]+)`", PAGES["alerts"])
        pages = (r"'(.+ }})?https://.+", r"'(.+ }})?http://.+:10478/runbooks.*#\w+'", r"'https://wiki\.example\.org/gpumeter/runbooks#\w+'")
        for edit, page in zip(edits, pages, strict=True):
            rules.write_text(shipped)
            self.machine.run(edit)
            self.machine.run("promtool check rules /etc/prometheus/gpumeter/alerts.yml")
            links = re.findall(r"^ +runbook_url: (.+)$", rules.read_text(), re.M)
            self.assertTrue(links)
            for link in links:
                self.assertRegex(link, f"^{page}$")

    def test_own_limits(self) -> None:
        site, = blocks("alerts", "Your own limits", "jsonnet")
        render, = blocks("alerts", "Your own limits", "sh")
        (self.machine.etc / "gpumeter.jsonnet").write_text(site)
        (self.machine.etc / "gpumeter").mkdir()
        server = self.machine.servers["prometheus"] = subprocess.Popen(["sleep", "60"])
        (self.machine.folder / "prometheus.pid").write_text(str(server.pid))
        self.assertEqual(self.machine.run(render).count("SUCCESS"), 5)
        alerts = (self.machine.etc / "gpumeter/alerts.yml").read_text()
        self.assertIn('gpu_cause:gpu_throttle_seconds:rate5m{cause="thermal"} > 0.25', alerts)
        self.assertIn("runbook_url: 'https://wiki.example.org/gpumeter/runbooks#gputhermalthrottling'", alerts)


@unittest.skipUnless(all(map(shutil.which, PROGRAMS)), f"needs {', '.join(PROGRAMS)}")
class FireDrillTest(unittest.TestCase):
    """The three commands, at ports of their own: from a lost GPU to a page."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        self.ports = {port: str(free_port()) for port in ("10488", "9190", "9193")}
        shutil.copytree(SHIPPED, self.folder / "prometheus")
        drill = self.folder / "prometheus/examples/drill.yml"
        drill.write_text(self.here(drill.read_text()))

    def here(self, text: str) -> str:
        for port, own in self.ports.items():
            text = text.replace(f"localhost:{port}", f"localhost:{own}")
        return text.replace("/usr/share/gpumeter", str(self.folder))

    def start(self, command: str) -> None:
        command = re.sub("^gpumeter ", f"{shlex.quote(str(BINARY))} ", self.here(command)).replace("$(mktemp -d)", f"$(mktemp -d -p {self.folder})")
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(["bash", "-c", f"exec {command}"], stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def pages(self) -> dict[str, dict]:
        said = subprocess.run(["amtool", f"--alertmanager.url=http://localhost:{self.ports['9193']}", "alert", "-o", "json", "severity=critical"],
                              capture_output=True, text=True, timeout=30)
        return {alert["labels"]["alertname"]: alert for alert in json.loads(said.stdout or "[]")} if said.returncode == 0 else {}

    def test_a_lost_gpu_pages(self) -> None:
        drill, = blocks("alerts", "Fire drill", "sh")
        commands = drill.strip().splitlines()
        self.assertEqual([command.split()[0] for command in commands], ["gpumeter", "prometheus-alertmanager", "prometheus"])
        for command in commands:
            self.start(command)
        pages = wait_until(self.pages, "a page", 330, every=2)
        self.assertEqual(set(pages), {"GpuLost"})
        lost = pages["GpuLost"]
        self.assertEqual(lost["annotations"]["summary"], f"GPU 0 of localhost:{self.ports['10488']} is lost")
        self.assertNotIn("forget", lost["annotations"]["description"], "the bus lacks no card of this vendor")
        page, anchor = lost["annotations"]["runbook_url"].split("#")
        with urllib.request.urlopen(page, timeout=30) as answer:
            self.assertIn(f'<h2 id="{anchor}">GpuLost</h2>', answer.read().decode())
        self.assertEqual([receiver["name"] for receiver in lost["receivers"]], ["operators"])


class FilesTest(unittest.TestCase):
    def test_what_is_shipped_beside_the_rules_is_what_the_page_shows(self) -> None:
        for page, section, name in (("scrape", "Scrape", "prometheus.yml"), ("alerts", "Alerts", "alertmanager.yml")):
            shown, = blocks(page, section, "yaml")
            self.assertEqual((SHIPPED / "examples" / name).read_text(), shown, name)

    def test_only_rules_are_where_the_rules_are(self) -> None:
        said = subprocess.run(["promtool", "check", "rules", *map(str, SHIPPED.glob("*.yml"))], capture_output=True, text=True, timeout=60)
        self.assertEqual(said.returncode, 0, said.stderr)

    def test_both_examples_have_the_same_job(self) -> None:
        scrape = yaml.safe_load((SHIPPED / "examples/scrape.yml").read_text())["scrape_configs"]
        whole = yaml.safe_load((SHIPPED / "examples/prometheus.yml").read_text())["scrape_configs"]
        self.assertEqual(whole, [{key: value for key, value in scrape[0].items() if key != "scrape_interval"}])


if __name__ == "__main__":
    if not shutil.which("promtool"):
        print("skipped: there is no promtool (package prometheus)")
        sys.exit(77)
    unittest.main(verbosity=2)
