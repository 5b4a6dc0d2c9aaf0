#!/usr/bin/env python3
"""Given two simulated GPUs, when each kind of client fetches the pages, then they are right to the byte."""
import gzip
import json
import os
import shutil
import socket
import subprocess
import tempfile
import unittest

from harness import (OPENMETRICS, TEXT, Daemon, free_port, openmetrics_page, promtool_findings, run, text_page)

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores"
# What the releases of Prometheus send (2.42-2.48, 2.49-2.55, 3.5 and later).
PROMETHEUS_ACCEPTS = [
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
]


class PagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon("--simulate=2"))

    def test_text_is_clean_under_promtool(self):
        response = self.daemon.fetch("/metrics", {"Accept": TEXT})
        self.assertEqual((response.status, response.header("Content-Type")), (200, TEXT_TYPE))
        self.assertEqual(promtool_findings(response.text), "")

    def test_openmetrics_is_clean_under_the_strict_parser(self):
        response = self.daemon.fetch("/metrics", {"Accept": OPENMETRICS})
        self.assertEqual((response.status, response.header("Content-Type")), (200, OPENMETRICS_TYPE))
        self.assertTrue(response.text.endswith("\n# EOF\n"))
        openmetrics_page(response.text)

    def test_both_formats_have_the_same_series(self):
        text = text_page(self.daemon.fetch("/metrics", {"Accept": TEXT}).text)
        self.assertEqual(set(text), set(self.daemon.page()))

    def test_each_simulated_gpu_has_at_least_100_series(self):
        page = self.daemon.page()
        for gpu in "01":
            self.assertGreaterEqual(len([k for k in page if ("gpu", gpu) in k[1]]), 100)
        self.assertEqual(page.one("gpumeter_simulated"), 1)

    def test_devices_carry_their_labels(self):
        """But for who uses them: of these there may be many, and they are joined by uuid."""
        page = self.daemon.page()
        self.assertEqual({dict(labels)["gpu"] for _, labels in page.of("gpu_up")}, {"0", "1"})
        self.assertEqual(set(page.of("gpu_up").values()), {1})
        for (name, labels) in page:
            if "gpu" in dict(labels) and name.startswith("gpu_workload_"):
                self.assertEqual(dict(labels).keys(), {"gpu", "uuid", "kind", "workload"}, name)
            elif "gpu" in dict(labels) and name.startswith("gpu_"):
                self.assertTrue({"gpu", "uuid", "vendor", "model"} <= dict(labels).keys(), (name, labels))

    def test_what_each_prometheus_asks_for_is_openmetrics(self):
        for accept in PROMETHEUS_ACCEPTS:
            kind = self.daemon.fetch("/metrics", {"Accept": accept}).header("Content-Type")
            self.assertEqual(kind.split("; escaping")[0], OPENMETRICS_TYPE.split("; escaping")[0])

    def test_browser_and_curl_and_unknown_get_text(self):
        for accept in ("*/*", "text/html,application/xhtml+xml,*/*;q=0.8", "application/unknown",
                       "application/openmetrics-text;version=2.0.0"):
            self.assertEqual(self.daemon.fetch("/metrics", {"Accept": accept}).header("Content-Type"), TEXT_TYPE)

    def test_gzip_only_where_asked(self):
        for asked, given in (("gzip", "gzip"), ("gzip;q=0", None), ("identity", None), ("br, gzip;q=0.5", "gzip")):
            response = self.daemon.fetch("/metrics", {"Accept": TEXT, "Accept-Encoding": asked})
            self.assertEqual(response.header("Content-Encoding"), given, asked)
            self.assertEqual(response.header("Content-Length"), str(len(response.body)))
            self.assertEqual(response.header("Vary"), "Accept, Accept-Encoding")
            text = gzip.decompress(response.body) if given else response.body
            self.assertIn("gpu_up", text.decode())

    def test_head_has_the_headers_of_get_and_no_body(self):
        head = self.daemon.fetch("/metrics", {"Accept": TEXT}, "HEAD")
        self.assertEqual((head.status, head.header("Content-Type"), head.body), (200, TEXT_TYPE, b""))
        self.assertGreater(int(head.header("Content-Length")), 1000)

    def test_other_methods_are_refused(self):
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            response = self.daemon.fetch("/metrics", method=method)
            self.assertEqual((response.status, response.header("Allow")), (405, "GET, HEAD"), method)

    def test_unknown_path(self):
        response = self.daemon.fetch("/metric")
        self.assertEqual((response.status, response.header("Content-Type").split(";")[0]), (404, "text/plain"))

    def test_collect_and_exclude(self):
        only = self.daemon.page("?collect[]=simulated")
        self.assertTrue(only.of("gpu_power_watts"))
        without = self.daemon.page("?exclude[]=simulated")
        self.assertFalse(without.of("gpu_power_watts"))
        self.assertEqual(len(self.daemon.page("?collect%5B%5D=simulated").of("gpu_power_watts")), 2)

    def test_a_scraper_chooses_its_series(self):
        names = {detail: {name for name, _ in self.daemon.page(f"?detail={detail}")} for detail in ("standard", "full")}
        self.assertEqual(names["standard"] - names["full"], set())
        self.assertLessEqual({"gpu_throttle_reason_active", "gpu_power_instant_watts"}, names["full"] - names["standard"])
        refused = self.daemon.fetch("/metrics?detail=all")
        self.assertEqual((refused.status, refused.text), (400, "detail: unknown value. Use one of standard, full.\n"))

    def test_wrong_filters_are_400(self):
        missing = "Couldn't create filtered metrics handler: "
        for query, said in (
                ("?collect[]=simulated&exclude[]=simulated", "Combined collect and exclude queries are not allowed."),
                ("?collect[]=nosuch", missing + "missing collector: nosuch"),
                ("?collect[]=amd", missing + "disabled collector: amd")):
            response = self.daemon.fetch("/metrics" + query)
            self.assertEqual((response.status, response.text.rstrip("\n")), (400, said))

    def test_health_and_readiness(self):
        for path in ("/-/healthy", "/-/ready"):
            response = self.daemon.fetch(path)
            self.assertEqual((response.status, response.text), (200, "OK\n"), path)

    def test_devices_as_json(self):
        response = self.daemon.fetch("/api/v1/devices")
        self.assertEqual(response.header("Content-Type").split(";")[0], "application/json")
        devices = json.loads(response.text)
        devices = devices["devices"] if isinstance(devices, dict) else devices
        page = self.daemon.page()
        on_page = {(int(dict(k[1])["gpu"]), dict(k[1])["uuid"]) for k in page.of("gpu_up")}
        self.assertEqual({(d["index"], d["uuid"]) for d in devices}, on_page)

    def test_start_page_lists_the_devices_and_links(self):
        response = self.daemon.fetch("/")
        self.assertEqual(response.header("Content-Type").split(";")[0].lower(), "text/html")
        for part in ("/metrics", "/api/v1/devices", *{dict(k[1])["uuid"] for k in self.daemon.page().of("gpu_up")}):
            self.assertIn(part, response.text)


class ListenersTest(unittest.TestCase):
    def test_both_families_and_several_listeners(self):
        first, second = free_port(), free_port(socket.AF_INET6)
        with Daemon(f"--web.listen-address=127.0.0.1:{first}", f"--web.listen-address=[::1]:{second}", "--simulate=1",
                    port=first) as daemon:
            self.assertEqual(daemon.fetch("/-/ready").status, 200)
            daemon.port = second
            self.assertEqual(daemon.fetch("/-/ready", host="::1").status, 200)

    def test_localhost_listens_on_both_families(self):
        port = free_port()
        with Daemon(f"--web.listen-address=localhost:{port}", "--simulate=1", port=port) as daemon:
            self.assertEqual([daemon.fetch("/-/healthy", host=h).status for h in ("127.0.0.1", "::1")], [200, 200])

    def test_a_unix_socket_beside_a_port(self):
        """Every user may connect; check asks through it; a killed daemon's file is replaced; the exit removes it."""
        folder = tempfile.mkdtemp(prefix="gpumeter-test-")
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        path = f"{folder}/http.sock"

        def curl(*arguments: str) -> str:
            return subprocess.run(["curl", "-sS", "--max-time", "20", "--unix-socket", path, *arguments], capture_output=True, text=True,
                                  check=True).stdout

        port = free_port()
        arguments = [f"--web.listen-address=unix:{path}", f"--web.listen-address=127.0.0.1:{port}", "--simulate=2"]
        with Daemon(*arguments, port=port) as daemon:
            daemon.process.kill()
        self.assertTrue(os.path.exists(path))
        with Daemon(*arguments, port=port) as daemon:
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o666)
            self.assertEqual(len(text_page(curl("http://localhost/metrics")).of("gpu_up")), 2)
            self.assertIn(f"address=unix:{path}", daemon.log)
            asked = run("check", f"--url=unix:{path}", "--json")
            self.assertIn(asked.returncode, (0, 1, 2), asked.stdout + asked.stderr)
            self.assertEqual(len(json.loads(asked.stdout)["devices"]), 2)
            second = run(*arguments[:1], "--simulate=1", "--config.file=/dev/null", f"--path.state={folder}/state")
            self.assertEqual(second.returncode, 1)
            self.assertIn(f"cannot listen on unix:{path}: another process listens on this socket", second.stderr)
            if os.geteuid() == 0:
                nobody = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "curl", "-sS", "--unix-socket", path,
                                         "http://localhost/-/ready"], capture_output=True, text=True, check=True)
                self.assertEqual(nobody.stdout, "OK\n")
            self.assertEqual(daemon.stop()[0], 0)
        self.assertFalse(os.path.exists(path))

    def test_telemetry_path(self):
        with Daemon("--simulate=1", "--web.telemetry-path=/gpu") as daemon:
            self.assertEqual([daemon.fetch(path).status for path in ("/gpu", "/metrics")], [200, 404])


if __name__ == "__main__":
    unittest.main()
