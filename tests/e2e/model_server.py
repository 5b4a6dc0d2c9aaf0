#!/usr/bin/env python3
"""usage: model_server.py ENGINE_PID_FILE MODE:FILE...

A double of model servers: listens on one port for each argument and serves the recorded page FILE there as MODE says. Prints the
ports. Starts a child as its engine, whose pid it writes; the child holds the GPU, as with vLLM and SGLang."""
import http.server
import subprocess
import sys
import threading
import time
from pathlib import Path


class Handler(http.server.BaseHTTPRequestHandler):
    mode, page = "", b""

    def do_GET(self) -> None:
        {"plain": self.plain, "chunked": self.chunked, "redirect": self.redirect, "endless": self.endless, "slow": self.slow,
         "cut": self.cut, "missing": self.missing}[self.mode]()

    def head(self, status: int, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def plain(self) -> None:
        self.head(200, ("Content-Length", str(len(self.page))))
        self.wfile.write(self.page)

    def chunked(self) -> None:
        """As uvicorn with httptools: also to HTTP/1.0."""
        self.head(200, ("Transfer-Encoding", "chunked"))
        for start in range(0, len(self.page), 1000):
            piece = self.page[start:start + 1000]
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def redirect(self) -> None:
        self.head(307, ("Location", f"http://127.0.0.1:{ports[0]}/metrics"))

    def endless(self) -> None:
        self.head(200)
        try:
            while True:
                self.wfile.write(self.page)
        except OSError:
            pass

    def slow(self) -> None:
        self.head(200)
        try:
            for byte in self.page:
                self.wfile.write(bytes([byte]))
                time.sleep(0.5)
        except OSError:
            pass

    def cut(self) -> None:
        self.head(200, ("Content-Length", str(len(self.page) + 1)))
        self.wfile.write(self.page)

    def missing(self) -> None:
        self.head(404)

    def log_message(self, *_) -> None:
        pass


ports = []
for argument in sys.argv[2:]:
    mode, file = argument.split(":", 1)
    kind = type("Of", (Handler,), {"mode": mode, "page": Path(file).read_bytes()})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind)
    server.daemon_threads = True
    ports.append(server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
engine = subprocess.Popen(["sleep", "600"])
Path(sys.argv[1]).write_text(f"{engine.pid}\n")
print(*ports, flush=True)
try:
    sys.stdin.read()  # until the test closes it
finally:
    engine.kill()
