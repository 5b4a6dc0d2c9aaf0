#!/usr/bin/env python3
"""A job with the worker server of PyTorch's debug server (torch.distributed.debug), as PyTorch 2.15 answers.

usage: debug_server_double.py PORT|PATH [--run NAME --jobs SOCKET [--slow-after SECONDS]] [--answer whole|cut|error] [--unnamed]

Serves on [::]:PORT or on a Unix socket, and prints "ready". Its threads have WorkerServer's name, unless --unnamed. Reports steps of 0.1 s to
its run, and later of 1 s. Ends with its input.
"""
import argparse
import contextlib
import http.server
import json
import os
import socket
import socketserver
import sys
import threading
import time
import urllib.parse
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("place")
parser.add_argument("--run")
parser.add_argument("--jobs")
parser.add_argument("--slow-after", type=float, default=1e9)
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


class UnixServer(http.server.ThreadingHTTPServer):
    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)


def serve() -> None:
    if not arguments.unnamed:
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("pt_workerserver")
    server.serve_forever()


def report() -> None:
    out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    begun = time.monotonic()
    while True:
        seconds = 0.1 if time.monotonic() - begun < arguments.slow_after else 1
        with contextlib.suppress(OSError):  # the daemon has ended
            out.sendto(f"ml.steps:1|c|#run:{arguments.run}\nml.step.seconds:{seconds}|d|#run:{arguments.run}".encode(), arguments.jobs)
        time.sleep(seconds)


is_path = arguments.place.startswith("/")
server = UnixServer(arguments.place, Handler) if is_path else Server(("::", int(arguments.place)), Handler)
threading.Thread(target=serve, daemon=True).start()
if arguments.run:
    threading.Thread(target=report, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
os._exit(0)
