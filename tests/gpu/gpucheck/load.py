"""Work for the GPU, in a separate process: bf16 matrix products by torch."""
from __future__ import annotations

import json
import os
import subprocess
import sys

# seconds, on, off: products for `on` seconds, then nothing for `off`, for so long. It prints what it did.
PROGRAM = """
import json, sys, time, torch
seconds, on, off = map(float, sys.argv[1:4])
size = 8192
a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
b = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
for _ in range(5): a @ b
torch.cuda.synchronize()
print("ready", flush=True)
started, busy, products = time.perf_counter(), 0.0, 0
while time.perf_counter() - started < seconds:
    on_since = time.perf_counter()
    while time.perf_counter() - on_since < on:
        for _ in range(4): a @ b
        torch.cuda.synchronize()
        products += 4
    busy += time.perf_counter() - on_since
    if off: time.sleep(off)
elapsed = time.perf_counter() - started
print(json.dumps({"elapsed": elapsed, "duty": busy / elapsed, "flops": products * 2 * size**3 / elapsed}))
"""


def available(uuid: str) -> bool:
    probe = "import torch; raise SystemExit(0 if torch.cuda.is_available() else 1)"
    return subprocess.run([sys.executable, "-c", probe], env=environment(uuid), capture_output=True, timeout=120).returncode == 0


def environment(uuid: str) -> dict[str, str]:
    return {**os.environ, "CUDA_VISIBLE_DEVICES": uuid}


class Load:
    """As a context: running within it, once the GPU is warm."""

    def __init__(self, uuid: str, seconds: float, on: float = 1, off: float = 0) -> None:
        command = [sys.executable, "-c", PROGRAM, str(seconds), str(on), str(off)]
        self.process = subprocess.Popen(command, env=environment(uuid), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self) -> Load:
        assert self.process.stdout
        if self.process.stdout.readline().strip() != "ready":
            self.__exit__()
            raise RuntimeError("torch could not start work on the GPU")
        return self

    def result(self) -> dict[str, float]:
        """Waits for its end."""
        out, _ = self.process.communicate(timeout=600)
        return json.loads(out)

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
