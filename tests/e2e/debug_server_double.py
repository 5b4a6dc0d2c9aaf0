#!/usr/bin/env python3
"""A job with the worker server of PyTorch's debug server (torch.distributed.debug), as PyTorch 2.15 answers.

usage: debug_server_double.py PORT [--run NAME --jobs SOCKET] [--answer whole|cut|error] [--unnamed]

Serves on [::]:PORT and prints "ready". Its threads have WorkerServer's name, unless --unnamed. Reports steps to its run. Ends with its
input.
"""
import argparse
import contextlib
import http.server
import json
import os
import socket
import sys
import threading
import time
import urllib.parse
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("port", type=int)
parser.add_argument("--run")
parser.add_argument("--jobs")
parser.add_argument("--answer", default="whole")
parser.add_argument("--unnamed", action="store_true")
arguments = parser.parse_args()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        place = urllib.parse.urlparse(self.path)
        assert place.path == "/handler/torch_profile", self.path
        if arguments.answer == "error":
            return self.reply(500, b"Handler torch_profile failed: RuntimeError: Profiler is already enabled\n\nAt:\n")
        seconds = float(urllib.parse.parse_qs(place.query)["duration"][0])
        time.sleep(seconds)
        trace = json.dumps({"traceEvents": [{"name": "aten::linear", "dur": seconds}] * 20_000}).encode()
        self.reply(200, trace, len(trace) + (1 if arguments.answer == "cut" else 0))

    def reply(self, status: int, body: bytes, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *_) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6


def serve() -> None:
    if not arguments.unnamed:
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("pt_workerserver")
    server.serve_forever()


def report() -> None:
    out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    while True:
        with contextlib.suppress(OSError):  # the daemon has ended
            out.sendto(f"ml.steps:1|c|#run:{arguments.run}".encode(), arguments.jobs)
        time.sleep(0.1)


server = Server(("::", arguments.port), Handler)
threading.Thread(target=serve, daemon=True).start()
if arguments.run:
    threading.Thread(target=report, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
os._exit(0)
