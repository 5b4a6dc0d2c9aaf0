#!/usr/bin/env python3
"""A real server of llama.cpp with a tiny random model: the daemon's page has what the server's own page has, and what was asked."""
import http.client
import json
import subprocess
import sys
import tempfile
import unittest
from contextlib import contextmanager
from pathlib import Path

try:
    import llama_build
    import llama_model
    PROGRAM = llama_build.server()
except (ImportError, llama_build.NotBuilt) as error:
    print(f"skipped: {error}")
    sys.exit(77)

from server_pages import both_pages, watched  # noqa: E402  (finds the harness)
from harness import fetch, free_port, key, wait_until  # noqa: E402

INPUT = key("ml_server_tokens_total", kind="input")
OUTPUT = key("ml_server_tokens_total", kind="output")
RUNNING = key("ml_server_requests_running")
WAITING = key("ml_server_requests_waiting")
OWN = {INPUT: "llamacpp:prompt_tokens_total", OUTPUT: "llamacpp:tokens_predicted_total", RUNNING: "llamacpp:requests_processing",
       WAITING: "llamacpp:requests_deferred"}
ENDLESS = -1
OPTIONS = ("--metrics", "--parallel", "1", "--threads", "1", "--threads-http", "8", "--ctx-size", str(llama_model.CONTEXT), "--no-webui")


@contextmanager
def llama_server():
    """Yields the process and its port. It works at one request at a time."""
    with tempfile.TemporaryDirectory() as folder:
        model, log, port = Path(folder, "tiny.gguf"), Path(folder, "log"), free_port()
        llama_model.write(model)
        with log.open("w") as output:
            process = subprocess.Popen([PROGRAM, "--model", model, "--port", str(port), *OPTIONS], stdout=output, stderr=subprocess.STDOUT)
        try:
            def is_ready() -> bool:
                assert process.poll() is None, f"llama-server ended with {process.returncode}:\n{log.read_text()}"
                try:
                    return fetch(port, "/health").status == 200
                except OSError:
                    return False
            wait_until(is_ready, "llama-server is ready", 120)
            yield process, port
        finally:
            process.kill()
            process.wait()


def ask(port: int, prompt: str, tokens: int, is_streamed: bool) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("POST", "/completion", json.dumps({"prompt": prompt, "n_predict": tokens, "ignore_eos": True, "stream": is_streamed}),
                       {"Content-Type": "application/json"})
    return connection


def complete(port: int, prompt: str, tokens: int, is_streamed: bool) -> dict:
    """The last message of the answer, which has the request's figures."""
    connection = ask(port, prompt, tokens, is_streamed)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    assert response.status == 200, text
    return json.loads(text.split("data: ")[-1])


class LlamaServerTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server, self.port = self.enterContext(llama_server())
        self.daemon = self.enterContext(watched(self.server.pid, self.port, "llama-server"))

    def compare(self, shows: dict) -> None:
        """The daemon's page gets there, and the server's own page says the same."""
        page, own = both_pages(self.daemon, self.port, shows)
        for series, name in OWN.items():
            self.assertEqual(page.one(series[0], **dict(series[1]), port=str(self.port)), own.one(name), name)

    def test_tokens_of_whole_and_streamed_answers(self) -> None:
        read = written = 0
        # One token for each byte and one for the beginning. One prompt is repeated, so its tokens are in the cache.
        for prompt, tokens, is_streamed in (("a" * 20, 5, False), ("b" * 700, 1, False), ("c" * 300, 150, True), ("c" * 300, 7, True), ("d", 33, False)):
            figures = complete(self.port, prompt, tokens, is_streamed)["timings"]
            self.assertEqual(figures["prompt_n"] + figures["cache_n"], len(prompt) + 1)
            self.assertEqual(figures["predicted_n"], tokens)
            read, written = read + figures["prompt_n"], written + tokens
            self.compare({INPUT: read, OUTPUT: written, RUNNING: 0, WAITING: 0})
        self.assertLess(read, 20 + 700 + 300 + 300, "cached tokens do not count")

    def test_running_and_waiting_requests(self) -> None:
        asked = [ask(self.port, "a", ENDLESS, is_streamed=True) for _ in range(3)]
        self.compare({RUNNING: 1, WAITING: 2})
        for connection in asked:
            connection.close()
        self.compare({RUNNING: 0, WAITING: 0})

    def test_facts_and_what_the_server_does_not_count(self) -> None:
        complete(self.port, "a", 3, is_streamed=False)
        page, own = both_pages(self.daemon, self.port, {OUTPUT: 3})
        mine = {"server": "llama.cpp", "port": str(self.port)}
        self.assertEqual(page.one("ml_server_up", **mine), 1)
        self.assertEqual(page.one("ml_server_info", gpu="0", uuid="SIM-1-0", **mine), 1)
        self.assertGreaterEqual(page.one("ml_server_energy_joules_total", **mine), 0)
        absent = ("ml_server_requests_total", "ml_server_cache_utilization_ratio", "ml_server_time_to_first_token_seconds_count")
        self.assertEqual([name for name in absent if page.of(name)], [])
        self.assertEqual([name for name, _ in own if "request" in name], ["llamacpp:requests_processing", "llamacpp:requests_deferred"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
