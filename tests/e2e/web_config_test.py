#!/usr/bin/env python3
"""The web configuration file: users, headers and rate limit, by curl, many clients at once and a real Prometheus.

The cases and their files are exporter-toolkit's, from conformance/exporter-toolkit beside $GPUMETER_CAPTURES (default
../shared/captures). Rows of its table that do not apply here, with the reasons:
- web_config_users*.yml as they are: gpumeter rejects bob's hash of cost 18 at load, because one check takes seconds.
  The test shows that, and runs the rows without bob.
- web_config_noAuth_noHTTP2Cipher.bad.yml: the suite is required by HTTP/2 only, which gpumeter does not speak. It accepts
  the file.
- web_config_auth_clientCAs_missing.bad.yml: no row of the toolkit's own tests. gpumeter accepts it, as promtool does.
- "a new state that is wrong": the toolkit then answers 500; gpumeter keeps the last good state and reports it by a metric.
Rows about certificates, ciphers and curves are those of the test of TLS.
"""
import base64
import collections
import concurrent.futures
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
from pathlib import Path

import at_once
from harness import OPENMETRICS, ROOT, Daemon, fetch, free_port, openmetrics_page, run, wait_until

CASES = Path(os.environ.get("GPUMETER_CAPTURES") or ROOT.parent / "shared/captures").resolve().parent / "conformance/exporter-toolkit"
DAVE, ALICE, CAROL = ("dave", "dave123"), ("alice", "alice123"), ("carol", "carol123")
# CVE-2022-46146: user and password whose parts run into each other like those of the dummy hash.
CVE = (("alice$2y$12$1DpfPeqF9HzHJt.EWswy1exHluGfbhnn3yXhR7Xes6m3WJqFg0Wby", "fakepassword"),
       ("alice", "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSifakepassword"))
HEADERS = {"Strict-Transport-Security": "max-age=31536000; includeSubDomains", "X-Frame-Options": "deny",
           "X-Content-Type-Options": "nosniff", "X-XSS-Protection": "1",
           "Content-Security-Policy": "default-src 'self' *.test.example.net"}
# File -> the error at the start, as the toolkit words it or with the same meaning.
WRONG = {
    "somefile": "No such file",
    "web_config_junk.yml": "YAML",
    "web_config_junk_key.yml": "tls_server_config.cert_filse: unknown key",
    "web_config_noAuth_certPath_empty.bad.yml": "missing one of cert or cert_file",
    "web_config_noAuth_cert_empty.bad.yml": "missing one of cert or cert_file",
    "web_config_noAuth_keyPath_empty.bad.yml": "missing one of key or key_file",
    "web_config_noAuth_key_empty.bad.yml": "missing one of key or key_file",
    "web_config_noAuth_certPath_keyPath_empty.bad.yml": "missing one of cert or cert_file",
    "web_config_noAuth_certPath_invalid.bad.yml": "No such file",
    "web_config_noAuth_keyPath_invalid.bad.yml": "No such file",
    "web_config_noAuth_certPath_keyPath_invalid.bad.yml": "No such file",
    "web_config_noAuth.bad.yml": "client CA's have been configured without a Client Auth Policy",
    "web_config_auth_clientCAs_invalid.bad.yml": "No such file",
    "web_config_auth_user_list_invalid.bad.yml": "hashedSecret too short to be a bcrypted password",
    "web_config_noAuth_wrongTLSVersion.bad.yml": "unknown TLS version",
    "web_config_headers_content_type_options.bad.yml": "invalid value for",
    "web_config_headers_frame_options.bad.yml": "invalid value for",
    "web_config_headers_extra_header.bad.yml": 'HTTP header "Content-Type" can not be configured',
    "web_config_users_noTLS.good.yml": "the bcrypt cost 18 is above 14",
}


def basic(user: "tuple[str, str] | None") -> dict:
    return {"Authorization": "Basic " + base64.b64encode(":".join(user).encode()).decode()} if user else {}


class Served(Daemon):
    """A daemon with a web configuration; ready when it answers at all."""

    def __init__(self, file: Path, *arguments: str, user: "tuple[str, str] | None" = None, **named):
        self.user = user
        super().__init__("--simulate=1", f"--web.config.file={file}", *arguments, **named)

    def wait_ready(self, seconds: float = 60) -> None:
        def answers() -> bool:
            assert self.process.poll() is None, f"the daemon ended with {self.process.returncode}:\n{self.log}"
            try:
                return self.ask("/-/ready", self.user) in (200, 401, 429)
            except OSError:
                return False

        wait_until(answers, "an answer")

    def ask(self, path: str = "/metrics", user: "tuple[str, str] | None" = None) -> int:
        return self.fetch(path, basic(user)).status

    def figures(self):
        return openmetrics_page(self.fetch("/metrics", {"Accept": OPENMETRICS, **basic(self.user)}).text)


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        for case in CASES.glob("*.y*ml"):
            shutil.copy(case, self.folder)
        users = (CASES / "web_config_users_noTLS.good.yml").read_text()
        self.users = self.write("users.yml", re.sub(r"\n  bob: .*", "", users))
        self.assertNotIn("bob", self.users.read_text())

    def write(self, name: str, text: str) -> Path:
        """Replaces the file in one step."""
        path = self.folder / name
        (self.folder / "new").write_text(text)
        (self.folder / "new").rename(path)
        return path


class StartTest(Folder):
    def test_a_wrong_file_is_an_error_at_the_start(self) -> None:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
                        "-keyout", self.folder / "server.key", "-out", self.folder / "server.crt"], check=True, capture_output=True)
        for name, words in WRONG.items():
            for flags in (["--check-config"], ["--simulate=1", f"--web.listen-address=127.0.0.1:{free_port()}"]):
                said = run(f"--web.config.file={self.folder / name}", "--config.file=/dev/null", *flags)
                self.assertEqual(said.returncode, 2, f"{name}: {said.stdout}{said.stderr}")
                self.assertIn(words.lower(), said.stderr.lower(), name)
                self.assertIn(f"{self.folder / name}:", said.stderr)

    def test_relative_names_are_relative_to_the_file(self) -> None:
        path = self.write("web.yml", "tls_server_config: {cert_file: none.crt, key_file: none.key}\n")
        said = run("--check-config", f"--web.config.file={os.path.relpath(path)}", "--config.file=/dev/null")
        self.assertIn(f"/{self.folder.name}/none.crt cannot be read", said.stderr)

    def test_an_empty_file_is_plain_http(self) -> None:
        with Served(self.folder / "web_config_empty.yml") as daemon:
            self.assertEqual(daemon.ask(), 200)
            self.assertEqual(daemon.figures().one("gpumeter_web_config_last_reload_successful"), 1)
            self.assertEqual(daemon.stop()[0], 0)
        with Daemon("--simulate=1") as daemon:
            self.assertEqual(daemon.fetch("/metrics").status, 200)
            self.assertIsNone(daemon.page().one("gpumeter_web_config_last_reload_successful"))


class HeadersTest(Folder):
    def test_every_answer_has_the_headers(self) -> None:
        file = self.folder / "web_config_headers.good.yml"
        with Served(file) as daemon:
            for path, own in (("/metrics", {}), ("/metrics", {}), ("/-/healthy", {}), ("/none", {}), ("/" + "x" * 5000, {}),
                              ("/", {"Content-Security-Policy": None})):  # the page's own policy is stricter
                answer = daemon.fetch(path)
                for name, value in (HEADERS | own).items():
                    if value:
                        self.assertEqual(answer.header(name), value, f"{path}: {name}")
            self.assertIn("frame-ancestors 'none'", daemon.fetch("/").header("Content-Security-Policy"))
            # The cached page gets the headers of the file in force.
            self.write(file.name, "http_server_config: {headers: {X-Frame-Options: sameorigin}}\n")
            wait_until(lambda: daemon.fetch("/metrics").header("X-Frame-Options") == "sameorigin", "the new header")
            self.assertIsNone(daemon.fetch("/metrics").header("Strict-Transport-Security"))
            self.write(file.name, "")
            wait_until(lambda: daemon.fetch("/metrics").header("X-Frame-Options") is None, "no header")


class RateTest(Folder):
    def test_interval_zero_is_no_limit(self) -> None:
        with Served(self.folder / "web_config_rate_limiter_nonblocking.yaml") as daemon:
            self.assertEqual([daemon.ask() for _ in range(11)], [200] * 11)

    def test_without_burst_all_are_refused(self) -> None:
        text = (CASES / "web_config_rate_limiter_one_second.yaml").read_text()
        file = self.write("rate.yml", text + "http_server_config: {headers: {X-Frame-Options: deny}}\n")
        with Served(file) as daemon:
            for _ in range(3):
                answer = daemon.fetch("/metrics")
                self.assertEqual((answer.status, answer.text), (429, "Too Many Requests\n"))
                self.assertIsNone(answer.header("X-Frame-Options"))
            self.assertEqual(daemon.stop()[0], 0)

    def test_a_burst_passes(self) -> None:
        with Served(self.write("rate.yml", "rate_limit: {interval: 1h, burst: 6}\n")) as daemon:
            codes = [daemon.ask() for _ in range(12)]
            refused = codes.index(429)
            self.assertLessEqual(refused, 5)  # one or more tokens went to the wait for the start
            self.assertEqual(codes, [200] * refused + [429] * (12 - refused))


class UsersTest(Folder):
    def test_who_may_enter(self) -> None:
        with Served(self.users, user=DAVE) as daemon:
            answer = daemon.fetch("/metrics")
            self.assertEqual((answer.status, answer.text), (401, "Unauthorized\n"))
            self.assertEqual(answer.header("WWW-Authenticate"), "Basic")
            self.assertEqual(answer.header("Content-Type"), "text/plain; charset=utf-8")
            self.assertEqual(answer.header("X-Content-Type-Options"), "nosniff")
            for user, code in ((DAVE, 200), (ALICE, 200), (CAROL, 200), (("alice", "alice1234"), 401), (("dave", "bad"), 401),
                               (("fakeuser", "fakepassword"), 401), (("nonexistent", "x"), 401), (CVE[0], 401), (CVE[1], 401),
                               (("dave", ""), 401), (("", ""), 401)):
                self.assertEqual([daemon.ask("/metrics", user) for _ in range(2)], [code] * 2, user)
            for path in ("/", "/none", "/-/healthy", "/-/ready", "/api/v1/devices", "/api/v1/health"):
                self.assertEqual(daemon.ask(path), 401, path)
                self.assertNotEqual(daemon.ask(path, DAVE), 401, path)
            for value in ("Bearer x", "Basic", "Basic !", "Basic " + base64.b64encode(b"dave").decode(),
                          "Basic " + base64.b64encode(b"dave:dave123\0").decode()):
                self.assertEqual(daemon.fetch("/metrics", {"Authorization": value}).status, 401, value)
            wait_until(lambda: daemon.figures().one("gpumeter_http_requests_total", code="401") >= 25, "401 is counted")
            self.assertEqual(daemon.stop()[0], 0)

    def test_curl_and_odd_requests(self) -> None:
        with Served(self.users, user=DAVE) as daemon:
            def curl(*arguments: str) -> str:
                return subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", *arguments,
                                       f"http://127.0.0.1:{daemon.port}/metrics"], capture_output=True, text=True, timeout=60).stdout

            self.assertEqual(curl(), "401")
            self.assertEqual(curl("-u", "dave:dave123"), "200")
            self.assertEqual(curl("-u", "dave:dave1234"), "401")
            # Requests that are answered before their body is read; carol's password is not checked yet.
            self.assertEqual(curl("-u", "carol:carol123", "-H", "Content-Length: 0"), "200")
            self.assertEqual(curl("-u", "alice:alice123", "-d", "body"), "405")
            self.assertEqual(curl("-d", "body"), "401")
            self.assertEqual(curl("-X", "GET", "-d", "body", "-u", "x:y"), "401")
            # Two headers Authorization: neither is believed.
            self.assertEqual(curl("-u", "dave:dave123", "-H", basic_line(DAVE), "-H", basic_line(("dave", "bad"))), "401")

    def test_many_at_once(self) -> None:
        """150 good and 150 bad clients at once, before any password was checked. The good ones that wait for one check are answered
        together, which may be more than the limit of scrapes."""
        config = self.write("gpumeter.yaml", "web: {max_requests: 0}\n")
        with Served(self.users, f"--config.file={config}", user=DAVE) as daemon, concurrent.futures.ThreadPoolExecutor(60) as pool:
            for wrong in ("alice1234", "alice12345"):
                good = [pool.submit(daemon.ask, "/metrics", ALICE) for _ in range(150)]
                bad = [pool.submit(daemon.ask, "/metrics", ("alice", wrong)) for _ in range(150)]
                self.assertEqual(collections.Counter(f.result() for f in good), {200: 150})
                self.assertEqual(collections.Counter(f.result() for f in bad), {401: 150})

    def test_guesses_neither_enter_nor_keep_users_out(self) -> None:
        with Served(self.users, user=DAVE) as daemon, concurrent.futures.ThreadPoolExecutor(60) as pool:
            self.assertEqual(daemon.ask("/metrics", DAVE), 200)
            end = time.monotonic() + 5

            def guess(number: int) -> collections.Counter:
                seen: collections.Counter = collections.Counter()
                while time.monotonic() < end:
                    user = ("dave", "carol", "nobody")[number % 3]
                    seen[daemon.ask("/metrics", (user, f"{number} {sum(seen.values())}"))] += 1
                return seen

            def scrape(_) -> collections.Counter:
                seen: collections.Counter = collections.Counter()
                while time.monotonic() < end:
                    seen[daemon.ask("/metrics", DAVE)] += 1
                return seen

            guesses = [pool.submit(guess, number) for number in range(20)]
            scrapes = [pool.submit(scrape, number) for number in range(10)]
            # Guesses at carol's password fill the queue before she comes. At most her first requests are refused.
            time.sleep(1)
            tries = next(n for n in range(1, 100) if daemon.ask("/metrics", CAROL) == 200)
            good = sum((f.result() for f in scrapes), collections.Counter())
            bad = sum((f.result() for f in guesses), collections.Counter())
            print(f"good: {dict(good)}, guesses: {dict(bad)}, carol's requests until she entered: {tries}", flush=True)
            self.assertLessEqual(tries, 3)
            self.assertEqual(set(good), {200})
            self.assertLessEqual(set(bad), {401, 429})
            self.assertGreater(bad[429], 0)
            self.assertEqual(daemon.stop()[0], 0)

    def test_it_stops_while_clients_wait(self) -> None:
        """Neither requests that wait for a check nor clients that are gone keep the daemon."""
        with Served(self.users, user=DAVE) as daemon:
            clients = []
            for number in range(60):
                client = socket.create_connection(("127.0.0.1", daemon.port))
                line = "".join(f"{name}: {value}\r\n" for name, value in basic(("alice", str(number % 9))).items())
                client.sendall(f"GET /metrics HTTP/1.1\r\nHost: x\r\n{line}\r\n".encode())
                clients.append(client)
            for client in clients[::2]:
                client.close()
            code, seconds = daemon.stop()
            self.assertEqual(code, 0, daemon.log)
            for client in clients[1::2]:
                client.close()


def basic_line(user: tuple[str, str]) -> str:
    return "Authorization: " + basic(user)["Authorization"]


class ReloadTest(Folder):
    def test_the_file_is_read_again(self) -> None:
        text = self.users.read_text()
        with Served(self.users, user=DAVE) as daemon:
            self.assertEqual(daemon.ask("/metrics", DAVE), 200)
            self.write("users.yml", re.sub(r"\n  dave: .*", "", text))
            wait_until(lambda: daemon.ask("/metrics", DAVE) == 401, "dave is gone")
            self.assertEqual(daemon.ask("/metrics", CAROL), 200)
            self.users.write_text(text)  # in place
            wait_until(lambda: daemon.ask("/metrics", DAVE) == 200, "dave is back")
            self.write("users.yml", "")
            wait_until(lambda: daemon.ask() == 200, "nobody needs a password")

    def test_a_wrong_file_keeps_the_old_state(self) -> None:
        text = self.users.read_text()
        with Served(self.users, user=DAVE) as daemon:
            for wrong in ("nonsense: 1\n", "basic_auth_users: {dave: x}\n", "tls_server_config: {cert_file: none, key: k}\n"):
                self.write("users.yml", wrong)
                wait_until(lambda: daemon.figures().one("gpumeter_web_config_last_reload_successful") == 0, "the metric")
                self.assertEqual((daemon.ask("/metrics", DAVE), daemon.ask()), (200, 401))
                time.sleep(2.5)  # two more looks log nothing
                self.assertEqual(daemon.log.count(f"{self.users}:1: {wrong.split(':')[0]}"), 1, daemon.log)
                self.write("users.yml", text)
                wait_until(lambda: daemon.figures().one("gpumeter_web_config_last_reload_successful") == 1, "the metric")

    def test_sighup_reads_it_too(self) -> None:
        env = {"RUNTIME_DIRECTORY": str(self.folder)}
        with Served(self.users, user=DAVE, env=env) as daemon:
            def reload() -> subprocess.CompletedProcess:
                return run("--reload", str(daemon.process.pid), env=env)

            text = self.users.read_text()
            self.write("users.yml", re.sub(r"\n  dave: .*", "", text))
            self.assertEqual(reload().returncode, 0)
            self.assertEqual(daemon.ask("/metrics", DAVE), 401)
            self.write("users.yml", "users: {}\n")
            said = reload()
            self.assertEqual(said.returncode, 1)
            self.assertIn(f"{self.users}:1: users: unknown key", said.stderr)
            self.assertEqual(daemon.ask("/metrics", CAROL), 200)

    def test_another_path_needs_a_restart(self) -> None:
        config = self.write("gpumeter.yaml", f"web: {{config_file: {self.users}}}\n")
        env = {"RUNTIME_DIRECTORY": str(self.folder)}
        with Daemon("--simulate=1", f"--config.file={config}", env=env, wait=False) as daemon:
            wait_until(lambda: "Listening on" in daemon.log, "it listens")
            self.write("gpumeter.yaml", f"web: {{config_file: {self.folder}/web_config_empty.yml}}\n")
            said = wait_until(lambda: run("--reload", str(daemon.process.pid), env=env), "an outcome")
            self.assertIn("web.config_file needs a restart", said.stderr)


class ProbeTest(Folder):
    def test_the_watchdog_of_systemd_is_fed(self) -> None:
        """The daemon's own probe needs neither a user nor a token."""
        file = self.write("users.yml", self.users.read_text() + "rate_limit: {interval: 1h, burst: 0}\n")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            path = str(self.folder / "notify")
            notify.bind(path)
            notify.settimeout(60)
            with Served(file, env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "400000"}) as daemon:
                pings = 0
                while pings < 5:
                    pings += notify.recv(4096).decode().split("\n").count("WATCHDOG=1")
                self.assertEqual(daemon.ask("/-/healthy"), 429)
                self.assertNotIn("does not answer", daemon.log)


class PrometheusTest(Folder):
    def test_prometheus_scrapes_with_a_user(self) -> None:
        if shutil.which("prometheus") is None:
            self.skipTest("no prometheus")
        with Served(self.users, user=DAVE) as daemon:
            port = free_port()
            targets = f"static_configs: [{{targets: ['127.0.0.1:{daemon.port}']}}]"
            (self.folder / "prometheus.yml").write_text(f"""
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: good
    basic_auth: {{username: dave, password: dave123}}
    {targets}
  - job_name: bad
    basic_auth: {{username: dave, password: wrong}}
    {targets}
""")
            with open(self.folder / "log", "wb") as log, subprocess.Popen(
                    ["prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
                     f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log) as prometheus:
                try:
                    def up() -> dict:
                        try:
                            answer = fetch(port, "/api/v1/query?" + urllib.parse.urlencode({"query": "up"}))
                        except OSError:
                            return {}
                        if answer.status != 200:  # it replays its log first
                            return {}
                        found = json.loads(answer.text).get("data", {}).get("result", [])
                        return {r["metric"]["job"]: r["value"][1] for r in found}

                    wait_until(lambda: up() == {"good": "1", "bad": "0"}, "one job is up and one is not")

                    def errors() -> dict:  # those of the last scrape, which may take too long on a busy machine
                        targets_now = json.loads(fetch(port, "/api/v1/targets").text)["data"]["activeTargets"]
                        return {t["labels"]["job"]: t["lastError"] for t in targets_now}

                    refused = {"good": "", "bad": "server returned HTTP status 401 Unauthorized"}
                    wait_until(lambda: errors() == refused, "the scrape without the password is refused")
                finally:
                    prometheus.terminate()


if __name__ == "__main__":
    if not CASES.is_dir():
        print(f"skipped: no {CASES} (GPUMETER_CAPTURES names the captures beside it)")
        sys.exit(77)
    at_once.main(3)
