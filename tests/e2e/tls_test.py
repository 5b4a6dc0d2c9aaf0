#!/usr/bin/env python3
"""TLS of the HTTP server as curl, openssl and a real Prometheus see it, with certificates made here.

The rows are those of exporter-toolkit's tests that connect (../shared/conformance/exporter-toolkit/EXPECTED.md), with its files.
Rows without a counterpart:
- "http to https port": Go answers 400 with a sentence. libmicrohttpd closes the connection; PlainTest has its row.
- web_config_noAuth_noHTTP2Cipher.bad.yml: Go's HTTP/2 requires a suite. The server speaks HTTP/1.1 only and accepts the file.
- web_config_auth_clientCAs_missing.bad.yml: not used by the toolkit's tests; the file starts and every certificate is rejected.
- server.crt of the toolkit: its keyUsage forbids signatures, so GnuTLS offers neither TLS 1.3 nor ECDHE with it. All rows run with a
  certificate made here.
The rows of users, headers, the rate limit and of files that do not load are those of web_config_test.py.
"""
from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from harness import BINARY, Daemon, fetch, free_port, text_page, wait_until
from notifications import Notifications
from pki import Pki

SHARED = Path(os.environ.get("GPUMETER_CAPTURES", Path(__file__).parents[3] / "shared/captures")).parent
ROWS = SHARED / "conformance/exporter-toolkit"
EXPIRY = "gpumeter_web_certificate_expiry_timestamp_seconds"
NO_CLIENTS = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n"
VERIFIED = NO_CLIENTS + "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: tls-ca-chain.pem\n"
PASSWORD = "carol123"  # of the hash below, as EXPECTED.md states
USERS = "basic_auth_users:\n  carol: $2y$10$qRTBuFoULoYNA7AQ/F3ck.trZBPyjV64.oA4ZsSBCIWvXuvQlQTuu\n"


class TlsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        cls.template = Pki(folder)

    def setUp(self) -> None:
        """Each test has a copy of the certificates: some replace them."""
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        shutil.copytree(self.template.folder, folder, dirs_exist_ok=True)
        self.pki = object.__new__(Pki)
        self.pki.folder, self.pki.ca = Path(folder), Path(folder, "tls-ca-chain.pem")

    def daemon(self, text: str, *more: str, client: str | None = None, **named) -> Daemon:
        config = self.pki.write(text)
        return self.enterContext(Daemon("--simulate=1", f"--web.config.file={config}", *more, tls=self.pki.context(client), **named))

    def curl(self, port: int, *arguments: str, path: str = "/metrics") -> subprocess.CompletedProcess:
        return subprocess.run(["curl", "--silent", "--show-error", "--max-time", "20", "--cacert", str(self.pki.ca), "--output", "/dev/null",
                               "--write-out", "%{http_code}", *arguments, f"https://127.0.0.1:{port}{path}"], capture_output=True, text=True, timeout=30)

    def with_certificate(self, name: str) -> list[str]:
        return ["--cert", str(self.pki.folder / f"{name}.pem"), "--key", str(self.pki.folder / f"{name}.key")]

    def s_client(self, port: int, *arguments: str) -> str:
        """openssl's report of the handshake and the answer."""
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", str(self.pki.ca), "-verify_return_error",
                               "-ign_eof", *arguments], input="GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                              capture_output=True, text=True, timeout=30)
        return done.stdout + done.stderr

    def assert_refused(self, said: str, alert: str = "") -> None:
        self.assertNotIn("HTTP/1.1 ", said)
        if alert:
            self.assertIn(alert, said)


@unittest.skipUnless(ROWS.is_dir(), f"no {ROWS}")
class RowsTest(TlsTest):
    def start(self, name: str, client: str | None = None) -> int:
        return self.daemon((ROWS / name).read_text(), client=client).port

    def assert_serves(self, port: int, *arguments: str) -> str:
        said = self.s_client(port, *arguments)
        self.assertIn("HTTP/1.1 200 OK", said)
        return said

    def test_no_client_certificate_is_needed(self) -> None:
        port = self.start("web_config_noAuth.good.yml")
        self.assertEqual(self.curl(port).stdout, "200")
        self.assertIn("TLSv1.3", self.assert_serves(port))
        self.assertIn("TLSv1.2", self.assert_serves(port, "-tls1_2"))
        self.assert_refused(self.s_client(port, "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"))
        self.assertEqual(self.curl(port, *self.with_certificate("client")).stdout, "000", "no CA is configured: none is trusted")

    def test_files_that_only_connect(self) -> None:
        for name in ("web_config_noAuth_allCiphers.good.yml", "web_config_noAuth_allCurves.good.yml", "web_config_noAuth_noHTTP2.good.yml",
                     "web_config_noAuth_noHTTP2Cipher.bad.yml"):
            with self.subTest(name):
                self.assertEqual(self.curl(self.start(name)).stdout, "200")

    def test_all_ciphers_are_each_offered(self) -> None:
        port = self.start("web_config_noAuth_allCiphers.good.yml")
        for cipher in ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-RSA-AES128-SHA",
                       "ECDHE-RSA-AES256-SHA"):
            self.assertIn(f"Cipher is {cipher}", self.assert_serves(port, "-tls1_2", "-cipher", cipher))
        for suite in ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"):
            self.assertIn(f"Cipher is {suite}", self.assert_serves(port, "-tls1_3", "-ciphersuites", suite))
        self.assert_refused(self.s_client(port, "-tls1_2", "-cipher", "AES128-GCM-SHA256"))

    def test_some_ciphers(self) -> None:
        port = self.start("web_config_noAuth_someCiphers.good.yml")
        self.assert_serves(port, "-cipher", "ECDHE-RSA-AES128-GCM-SHA256")
        self.assert_refused(self.s_client(port, "-tls1_2", "-cipher", "ECDHE-RSA-AES256-SHA"))
        said = self.assert_serves(port, "-cipher", "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384")
        self.assertIn("Cipher is ECDHE-RSA-AES128-GCM-SHA256", said)
        # Not a row: the server's order has precedence.
        said = self.assert_serves(port, "-cipher", "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256")
        self.assertIn("Cipher is ECDHE-RSA-AES128-GCM-SHA256", said)
        self.assert_refused(self.s_client(port, "-tls1_3"))

    def test_some_ciphers_in_the_clients_order(self) -> None:
        port = self.start("web_config_noAuth_someCiphers_noOrder.good.yml")
        for first, second in (("128", "256"), ("256", "128")):
            names = {"128": "ECDHE-RSA-AES128-GCM-SHA256", "256": "ECDHE-RSA-AES256-GCM-SHA384"}
            said = self.assert_serves(port, "-cipher", f"{names[first]}:{names[second]}")
            self.assertIn(f"Cipher is {names[first]}", said)

    def test_curves(self) -> None:
        port = self.start("web_config_noAuth_allCurves.good.yml")
        for curve in ("P-256", "P-384", "P-521", "X25519"):
            self.assert_serves(port, "-curves", curve)
        port = self.start("web_config_noAuth_someCurves.good.yml")
        self.assert_serves(port, "-curves", "P-521")
        self.assert_refused(self.s_client(port, "-curves", "P-384"))
        self.assert_refused(self.s_client(port, "-curves", "P-521", "-tls1_2"))

    def test_inline_certificate_and_key(self) -> None:
        def indented(name: str) -> str:
            return (self.pki.folder / name).read_text().replace("\n", "\n    ").rstrip() + "\n"

        text = f"tls_server_config:\n  cert: |\n    {indented('server.crt')}  key: |\n    {indented('server.key')}"
        self.assertEqual(self.curl(self.daemon(text).port).stdout, "200")

    def test_any_client_certificate(self) -> None:
        port = self.start("tls_config_noAuth.requireanyclientcert.good.yml", "client_selfsigned")
        for name in ("client_selfsigned", "client2_selfsigned", "client"):
            self.assertEqual(self.curl(port, *self.with_certificate(name)).stdout, "200")
        self.assertEqual(self.curl(port).stdout, "000")

    def test_a_verified_client_certificate(self) -> None:
        port = self.start("tls_config_noAuth.requireandverifyclientcert.good.yml", "client_selfsigned")
        self.assertEqual(self.curl(port, *self.with_certificate("client_selfsigned")).stdout, "200")
        self.assertEqual(self.curl(port, *self.with_certificate("client2_selfsigned")).stdout, "000")
        self.assertEqual(self.curl(port).stdout, "000")

    def test_allowed_names(self) -> None:
        port = self.start("web_config_auth_client_san.good.yaml", "client2_selfsigned")
        self.assertEqual(self.curl(port, *self.with_certificate("client2_selfsigned")).stdout, "200")
        daemon = self.daemon((ROWS / "web_config_auth_client_san.bad.yaml").read_text(), wait=False)
        wait_until(lambda: "Listening on" in daemon.log, "it listens")
        pair = ["-cert", str(self.pki.folder / "client2_selfsigned.pem"), "-key", str(self.pki.folder / "client2_selfsigned.key")]
        for version in ("-tls1_2", "-tls1_3"):
            self.assert_refused(self.s_client(daemon.port, version, *pair), "alert bad certificate")

    def test_the_file_is_replaced_while_it_runs(self) -> None:
        """Its first state admits no client, because it names no CA."""
        daemon = self.daemon((ROWS / "web_config_noAuth.good.blocking.yml").read_text(), wait=False)
        wait_until(lambda: "Listening on" in daemon.log, "it listens")
        for arguments in ([], self.with_certificate("client")):
            self.assertEqual(self.curl(daemon.port, *arguments).stdout, "000")
        self.pki.write((ROWS / "web_config_noAuth.good.yml").read_text())
        wait_until(lambda: self.curl(daemon.port).stdout == "200", "the new file is in force", 10)

    def test_users_over_tls(self) -> None:
        """Without bob, whose hash of cost 18 is rejected."""
        text = re.sub("  bob: .*\n", "", (ROWS / "web_config_users.good.yml").read_text())
        daemon = self.daemon(text, wait=False)
        wait_until(lambda: "Listening on" in daemon.log, "it listens")
        for user, status in (("", "401"), ("dave:dave123", "200"), ("carol:carol123", "200"), ("dave:bad", "401"), ("nonexistent:x", "401")):
            arguments = ["--user", user] if user else []
            self.assertEqual(self.curl(daemon.port, *arguments).stdout, status, user)
        self.assert_own_clients_work(daemon.port)

    def assert_own_clients_work(self, port: int) -> None:
        """gpumeter check and gpumeter top, over TLS and with a password from a file."""
        login, url = self.pki.folder / "login", f"https://127.0.0.1:{port}"
        login.write_text("dave:dave123\n")
        login.chmod(0o600)
        known, user = ("--ca-file", str(self.pki.ca)), ("--login-file", str(login))
        top = [str(Path(BINARY).with_name("gpumeter-top")), "--once"]

        def said(program: list[str], *arguments: str) -> tuple[int, str]:
            done = subprocess.run([*program, "--url", url, *arguments], capture_output=True, text=True, timeout=30)
            return done.returncode, done.stdout + done.stderr

        check = [BINARY, "check"]
        wait_until(lambda: said(check, *known, *user) == (0, "GPU OK - 1 GPU ok | ok=1 degraded=0 failed=0 unknown=0\n"), "check answers", 20)
        self.assertIn("Simulated GPU", said(top, *known, *user)[1])
        self.assertRegex(said(check, *known)[1], "requires a user .web.config_file.: check --login-file")
        self.assertIn("certificate", said(check, *user)[1])
        self.assertEqual((said(check, *user)[0], said(top, *user)[0], said(top, *known)[0]), (3, 1, 1))
        login.write_text("dave:bad\n")
        self.assertIn("refuses the user dave", said(check, *known, *user)[1])

    def test_files_with_invented_names_do_not_start(self) -> None:
        for name, reason in (("web_config_noAuth_inventedCiphers.bad.yml", "unknown cipher: TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA2048"),
                             ("web_config_noAuth_inventedCurves.bad.yml", "unknown curve: CurveP257")):
            config = self.pki.write((ROWS / name).read_text())
            daemon = self.enterContext(Daemon("--simulate=1", f"--web.config.file={config}", wait=False))
            self.assertEqual(daemon.process.wait(30), 2)
            self.assertIn(reason, daemon.log)


class ThreeCommandsTest(TlsTest):
    def test_a_certificate_that_is_its_own_ca(self) -> None:
        """The command of docs/web-configuration.md."""
        text = (Path(__file__).parents[2] / "docs/web-configuration.md").read_text()
        command = re.search(r"sudo (openssl req .*?) &&", text, re.S)[1]
        command = command.replace("$(hostname -f)", "localhost").replace("/etc/gpumeter", str(self.pki.folder))
        subprocess.run(["sh", "-ec", command], check=True, capture_output=True, timeout=30)
        self.pki.ca = self.pki.folder / "server.crt"
        web = re.search(r"printf '(tls_server_config.*?)\\n'", text)[1]
        daemon = self.enterContext(Daemon("--simulate=1", f"--web.config.file={self.pki.write(web)}", wait=False))
        wait_until(lambda: "Listening on" in daemon.log, "it listens")
        done = subprocess.run(["curl", "--silent", "--show-error", "--cacert", str(self.pki.ca), "--resolve", f"localhost:{daemon.port}:127.0.0.1",
                               f"https://localhost:{daemon.port}/metrics"], capture_output=True, text=True, timeout=30)
        self.assertIn("gpumeter_build_info", done.stdout, done.stderr)
        self.assertNotIn("certificate", daemon.log, "no warning")


class PlainTest(TlsTest):
    def test_plain_http_to_the_port_of_tls_is_closed(self) -> None:
        port = self.daemon(NO_CLIENTS).port
        done = subprocess.run(["curl", "--silent", "--show-error", "--max-time", "20", f"http://127.0.0.1:{port}/metrics"], capture_output=True,
                              text=True, timeout=30)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")

    def test_tls_to_the_port_of_plain_http_is_no_handshake(self) -> None:
        daemon = self.enterContext(Daemon("--simulate=1"))
        self.assertNotEqual(self.curl(daemon.port).returncode, 0)
        self.assertIsNone(daemon.page().one(EXPIRY))

    def test_the_log_states_whether_tls_is_on(self) -> None:
        self.assertRegex(self.daemon(NO_CLIENTS).log, "TLS is enabled.*http2=false")
        self.assertIn("TLS is disabled", self.enterContext(Daemon("--simulate=1")).log)


class ReplacedTest(TlsTest):
    def presented(self, port: int) -> str:
        der = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", port)))
        return subprocess.run(["openssl", "x509", "-inform", "DER", "-noout", "-subject", "-nameopt", "multiline"], input=der, capture_output=True,
                              timeout=30, check=True).stdout.decode()

    def test_the_next_connection_has_the_new_certificate(self) -> None:
        daemon = self.daemon(NO_CLIENTS)
        kept = http.client.HTTPSConnection("127.0.0.1", daemon.port, timeout=20, context=self.pki.context())
        self.addCleanup(kept.close)
        kept.request("GET", "/metrics")
        kept.getresponse().read()
        old = kept.sock.getpeercert()["notAfter"]
        before = wait_until(lambda: daemon.page().one(EXPIRY), "the end is on the page")
        self.assertEqual(before, ssl.cert_time_to_seconds(old))
        self.pki.issue_server("/CN=renewed", days=60)
        wait_until(lambda: "renewed" in self.presented(daemon.port), "the new certificate is presented", 15)
        self.assertEqual(self.curl(daemon.port).stdout, "200")
        kept.request("GET", "/-/healthy")
        self.assertEqual(kept.getresponse().status, 200, "the old connection goes on")
        self.assertEqual(kept.sock.getpeercert()["notAfter"], old)
        wait_until(lambda: daemon.page().one(EXPIRY) - before == 30 * 86400 or daemon.page().one(EXPIRY) > before + 29 * 86400,
                   "the page has the new end", 10)

    def test_a_pair_that_does_not_match_keeps_the_old_one(self) -> None:
        daemon = self.daemon(NO_CLIENTS)
        (self.pki.folder / "server.key").write_text((self.pki.folder / "client.key").read_text())
        wait_until(lambda: "the key does not belong to the certificate" in daemon.log, "the log has the reason", 15)
        self.assertEqual(self.curl(daemon.port).stdout, "200")
        self.assertNotIn("PRIVATE KEY", daemon.log)


class EndTest(TlsTest):
    def end_on_page(self, port: int) -> float:
        """Read by a client that does not verify the certificate."""
        context = ssl._create_unverified_context()
        return text_page(fetch(port, "/metrics?detail=standard", tls=context).text).one(EXPIRY)

    def test_the_end_of_the_certificate_is_reported_once_per_change(self) -> None:
        daemon = self.daemon(NO_CLIENTS, wait=False)
        wait_until(lambda: "Listening on" in daemon.log, "it listens")
        said = []
        for days, line in ((13, "level=warn msg=\"the TLS certificate ends soon; clients that verify it cannot connect then\" end=20"),
                           (0, "level=error msg=\"the TLS certificate has ended; clients that verify it cannot connect\" end=20"),
                           (30, "level=info msg=\"the TLS certificate no longer ends soon\" end=20")):
            self.assertEqual([each for each in daemon.log.splitlines() if "certificate" in each], said)
            self.pki.issue_server(days=days)
            said.append(wait_until(lambda: next((each for each in daemon.log.splitlines() if line in each), None), line, 15))
            ends = time.time() + days * 86400
            wait_until(lambda: abs(self.end_on_page(daemon.port) - ends) < 60, "the page has the end", 15)
            time.sleep(2.5)  # two more looks


class LifeTest(TlsTest):
    def test_the_probe_needs_no_certificate(self) -> None:
        """systemd's watchdog is pinged although every client must present a certificate and a password."""
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        with Notifications(folder) as heard:
            env = {"NOTIFY_SOCKET": heard.path, "WATCHDOG_USEC": "1000000"}
            daemon = self.daemon(VERIFIED + USERS, client="client", wait=False, env=env)
            wait_until(lambda: sum("WATCHDOG" in said for said in heard.read()) >= 4, "pings", 20)
        self.assertNotIn("does not answer", daemon.log)

    def test_it_stops_with_connections_in_every_state(self) -> None:
        daemon = self.daemon(NO_CLIENTS)
        silent = self.enterContext(socket.create_connection(("127.0.0.1", daemon.port), timeout=20))
        partial = self.enterContext(socket.create_connection(("127.0.0.1", daemon.port), timeout=20))
        partial.sendall(b"\x16\x03\x01\x02\x00\x01")  # the start of a ClientHello
        idle = self.enterContext(self.pki.context().wrap_socket(socket.create_connection(("127.0.0.1", daemon.port), timeout=20),
                                                                server_hostname="localhost"))
        daemon.send(signal.SIGHUP)
        wait_until(lambda: "reload" in daemon.log, "it reloads", 20)
        self.assertEqual(self.curl(daemon.port).stdout, "200")
        status, seconds = daemon.stop()
        self.assertEqual(status, 0)
        self.assertLess(seconds, 5)
        for client in (silent, partial):
            self.assertEqual(client.recv(1), b"")
        self.assertEqual(idle.recv(1), b"")

    @unittest.skipUnless(shutil.which("systemd-socket-activate"), "needs systemd-socket-activate")
    def test_a_socket_from_systemd(self) -> None:
        port = free_port()
        wrap = ["systemd-socket-activate", f"--listen=127.0.0.1:{port}"]
        daemon = self.daemon(NO_CLIENTS, "--web.systemd-socket", port=port, wrap=wrap, wait=False)
        wait_until(lambda: self.curl(port).stdout == "200", "it serves on the passed socket", 20)
        self.assertEqual(daemon.stop()[0], 0)

    def test_a_client_renegotiates_in_vain(self) -> None:
        port = self.daemon(NO_CLIENTS).port
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_2", "-CAfile", str(self.pki.ca)], input="R\nR\nR\n",
                              capture_output=True, text=True, timeout=30)
        self.assertNotIn("HTTP/1.1 200", done.stdout)
        self.assertEqual(self.curl(port).stdout, "200")


PROMETHEUS = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: good
    scheme: https
    tls_config: {{ca_file: tls-ca-chain.pem, cert_file: client.pem, key_file: client.key}}
    basic_auth: {{username: carol, password: {password}}}
    static_configs: [{{targets: ["localhost:{port}"]}}]
  - job_name: no_certificate
    scheme: https
    tls_config: {{ca_file: tls-ca-chain.pem}}
    basic_auth: {{username: carol, password: {password}}}
    static_configs: [{{targets: ["localhost:{port}"]}}]
  - job_name: bad_password
    scheme: https
    tls_config: {{ca_file: tls-ca-chain.pem, cert_file: client.pem, key_file: client.key}}
    basic_auth: {{username: carol, password: guess}}
    static_configs: [{{targets: ["localhost:{port}"]}}]
  - job_name: other_ca
    scheme: https
    tls_config: {{ca_file: client_selfsigned.pem, cert_file: client.pem, key_file: client.key}}
    basic_auth: {{username: carol, password: {password}}}
    static_configs: [{{targets: ["localhost:{port}"]}}]
"""


@unittest.skipUnless(shutil.which("prometheus"), "needs prometheus")
class PrometheusTest(TlsTest):
    def test_it_scrapes_with_certificate_and_password(self) -> None:
        daemon = self.daemon(VERIFIED + USERS, client="client", wait=False)
        wait_until(lambda: "Listening on" in daemon.log, "it listens")
        config = self.pki.write(PROMETHEUS.format(port=daemon.port, password=PASSWORD), "prometheus.yml")
        port = free_port()
        log = self.enterContext(open(self.pki.folder / "prometheus.log", "wb"))
        server = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.pki.folder}/data",
                                   f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        self.addCleanup(lambda: (server.terminate(), server.wait(30)))

        def targets() -> dict[str, dict] | None:
            try:
                answer = json.loads(fetch(port, "/api/v1/targets").body)["data"]["activeTargets"]
            except (OSError, ValueError):
                return None
            found = {target["labels"]["job"]: target for target in answer}
            return found if len(found) == 4 and all(t["health"] != "unknown" for t in answer) else None

        found = wait_until(targets, "all targets were scraped", 60)
        time.sleep(3)  # more scrapes, each on the kept connection
        found = targets()
        self.assertEqual({job: target["health"] for job, target in found.items()},
                         {"good": "up", "no_certificate": "down", "bad_password": "down", "other_ca": "down"})
        self.assertEqual(found["good"]["lastError"], "")
        self.assertIn("401", found["bad_password"]["lastError"])
        self.assertIn("x509", found["other_ca"]["lastError"])
        print("\nwithout a certificate:", found["no_certificate"]["lastError"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
