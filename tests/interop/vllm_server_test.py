#!/usr/bin/env python3
"""A real vLLM on the processor with a tiny random model: tokens, requests and the time to the first token on the daemon's page are the server's own."""
import http.client
import json
import os
import subprocess
import sys
import tempfile
import unittest
from contextlib import contextmanager
from pathlib import Path

from server_pages import both_pages, histogram, watched
from harness import Page, fetch, free_port, key, wait_until

try:
    import vllm.version  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MODEL = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
         "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "hidden_act": "silu",
         "torch_dtype": "float32", "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False}
CONTEXT = 4096
# The weights are random and prompts are numbers of tokens, so that the model is its description alone. Nothing is downloaded or reported.
OPTIONS = ("--served-model-name", "tiny", "--load-format", "dummy", "--skip-tokenizer-init", "--enforce-eager", "--dtype", "float32",
           "--max-model-len", str(CONTEXT), "--max-num-seqs", "1", "--kv-cache-memory-bytes", str(64 << 20), "--host", "127.0.0.1")
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
INPUT = key("ml_server_tokens_total", kind="input")
OUTPUT = key("ml_server_tokens_total", kind="output")
REQUESTS = key("ml_server_requests_total")
RUNNING = key("ml_server_requests_running")
WAITING = key("ml_server_requests_waiting")
CACHE = key("ml_server_cache_utilization_ratio")
OWN = {INPUT: "vllm:prompt_tokens_total", OUTPUT: "vllm:generation_tokens_total", REQUESTS: "vllm:request_success_total",
       RUNNING: "vllm:num_requests_running", WAITING: "vllm:num_requests_waiting", CACHE: "vllm:kv_cache_usage_perc"}


@contextmanager
def vllm_server():
    """Yields the process and its port. It works at one request at a time."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(MODEL))
        log, port = Path(folder, "log"), free_port()
        with log.open("w") as output:
            process = subprocess.Popen([sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", folder, "--port", str(port), *OPTIONS],
                                       stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **ENVIRONMENT})
        try:
            def is_ready() -> bool:
                assert process.poll() is None, f"vLLM ended with {process.returncode}:\n{log.read_text()[-6000:]}"
                try:
                    return fetch(port, "/health").status == 200
                except OSError:
                    return False
            wait_until(is_ready, "vLLM is ready", 400, every=0.5)
            yield process, port
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def ask(port: int, prompt: "list[int]", tokens: int, is_streamed: bool) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    body = {"model": "tiny", "prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "detokenize": False, "stream": is_streamed,
            **({"stream_options": {"include_usage": True}} if is_streamed else {})}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    return connection


def complete(port: int, prompt: "list[int]", tokens: int, is_streamed: bool) -> dict:
    """The request's numbers of tokens, as the answer has them."""
    connection = ask(port, prompt, tokens, is_streamed)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    assert response.status == 200, text
    messages = [json.loads(line) for line in text.replace("data: ", "").replace("[DONE]", "").split("\n\n") if line.strip()]
    return messages[-1]["usage"]


class VllmServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server, cls.port = cls.enterClassContext(vllm_server())
        cls.daemon = cls.enterClassContext(watched(cls.server.pid, cls.port))

    def compare(self, shows: dict) -> Page:
        """The daemon's page gets there, and the server's own page says the same."""
        page, own = both_pages(self.daemon, self.port, shows)
        mine = {"server": "vllm", "port": str(self.port)}
        for (name, labels), theirs in OWN.items():
            self.assertEqual(page.one(name, **dict(labels), **mine), sum(own.of(theirs).values()), theirs)
        first_token = histogram(page, "ml_server_time_to_first_token_seconds", **mine)
        self.assertEqual(first_token, histogram(own, "vllm:time_to_first_token_seconds"))
        return page

    def test_1_whole_and_streamed_answers(self) -> None:
        read = written = 0
        asked = ((4, 6, False), (50, 1, False), (300, 150, True), (1, 33, True))
        for number, (length, tokens, is_streamed) in enumerate(asked, 1):
            usage = complete(self.port, [number + 10] * length, tokens, is_streamed)
            self.assertEqual((usage["prompt_tokens"], usage["completion_tokens"]), (length, tokens))
            read, written = read + length, written + tokens
            page = self.compare({INPUT: read, OUTPUT: written, REQUESTS: number, RUNNING: 0, WAITING: 0})
            self.assertEqual(page.one("ml_server_time_to_first_token_seconds_count"), number)

    def test_2_running_and_waiting_requests(self) -> None:
        asked = [ask(self.port, [7], CONTEXT - 1, is_streamed=True) for _ in range(3)]
        both_pages(self.daemon, self.port, {RUNNING: 1, WAITING: 2})
        for connection in asked:
            connection.close()
        self.compare({RUNNING: 0, WAITING: 0})

    def test_3_facts(self) -> None:
        page, _ = both_pages(self.daemon, self.port, {RUNNING: 0})
        mine = {"server": "vllm", "port": str(self.port)}
        self.assertEqual(page.one("ml_server_up", **mine), 1)
        self.assertEqual(page.one("ml_server_info", model="tiny", gpu="0", uuid="SIM-1-0", **mine), 1)
        self.assertGreaterEqual(page.one("ml_server_energy_joules_total", **mine), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
