"""A client that holds as much of an HTTP server as it can: 300 idle connections, 20 that send a byte a second, and a stream of
requests that end with a FIN. It reopens connections that the server closes. Also read from standard input by another user's interpreter.
With `tls`, idle connections send nothing at all or nothing after the handshake, and the bytes are those of a ClientHello.

usage: http_attacker.py PORT SECONDS [tls] [--from=ADDRESS] [--idle=CONNECTIONS]
"""
from __future__ import annotations

import argparse
import selectors
import socket
import ssl
import time

IDLE, TRICKLING, HALF_CLOSED = 300, 20, 200
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


def insecure_context() -> ssl.SSLContext:
    """An attacker does not care whom it attacks."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def client_hello(curve: str = "") -> bytes:
    """The first message of a handshake, with a key of this group, or of the one that OpenSSL prefers."""
    sent = ssl.MemoryBIO()
    context = insecure_context()
    if curve:
        context.set_ecdh_curve(curve)
    client = context.wrap_bio(ssl.MemoryBIO(), sent)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return sent.read()


class Attacker:
    def __init__(self, port: int, tls: bool = False, address: str = "127.0.0.1", idle: int = IDLE):
        self.port, self.address, self.idle = port, address, idle
        self.tls = insecure_context() if tls else None
        self.drip = client_hello() if tls else b"G" * 512  # what a trickling connection sends, a byte at a time
        self.dripped: dict[socket.socket, int] = {}
        self.selector = selectors.DefaultSelector()
        self.counts = {"connections": 0, "closed": 0, "refused": 0, "half-closed": 0}
        self.held: dict[str, int] = {"idle": 0, "trickling": 0, "half-closed": 0}

    def open(self, kind: str) -> None:
        client = socket.socket()
        client.settimeout(5)
        try:
            client.bind((self.address, 0))
            client.connect(("127.0.0.1", self.port))
            if self.tls and (kind == "half-closed" or (kind == "idle" and self.counts["connections"] % 2)):
                client = self.tls.wrap_socket(client)
            if kind == "half-closed":
                client.sendall(REQUEST)
                socket.socket.shutdown(client, socket.SHUT_WR)
                self.counts["half-closed"] += 1
        except OSError:
            client.close()
            self.counts["refused"] += 1
            return
        client.setblocking(False)
        self.counts["connections"] += 1
        self.held[kind] += 1
        self.selector.register(client, selectors.EVENT_READ, kind)

    def close(self, client: socket.socket, kind: str) -> None:
        self.selector.unregister(client)
        self.dripped.pop(client, None)
        client.close()
        self.held[kind] -= 1
        self.counts["closed"] += 1

    def read(self) -> None:
        """Closes what the server has closed. The half-closed ones never read their answer to its end."""
        for key, _ in self.selector.select(0.01):
            try:
                over = not key.fileobj.recv(65536)
            except ssl.SSLWantReadError:
                over = False
            except OSError:
                over = True
            if over:
                self.close(key.fileobj, key.data)

    def trickle(self) -> None:
        for key in list(self.selector.get_map().values()):
            if key.data == "trickling":
                place = self.dripped.get(key.fileobj, 0)
                self.dripped[key.fileobj] = place + 1
                try:
                    key.fileobj.send(self.drip[place:place + 1])
                except OSError:
                    self.close(key.fileobj, key.data)

    def run(self, seconds: float) -> None:
        began = time.monotonic()
        next_byte = began
        while (now := time.monotonic()) < began + seconds:
            for kind, wanted in (("idle", self.idle), ("trickling", TRICKLING)):
                for _ in range(min(wanted - self.held[kind], 50)):
                    self.open(kind)
            if self.counts["half-closed"] < HALF_CLOSED * (now - began):
                self.open("half-closed")
            if now >= next_byte:
                self.trickle()
                next_byte += 1
            self.read()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("tls", nargs="?")
    parser.add_argument("--from", dest="address", default="127.0.0.1")
    parser.add_argument("--idle", type=int, default=IDLE)
    wanted = parser.parse_args()
    attacker = Attacker(wanted.port, wanted.tls == "tls", wanted.address, wanted.idle)
    attacker.run(wanted.seconds)
    print(" ".join(f"{name}={count}" for name, count in attacker.counts.items()))


if __name__ == "__main__":
    main()
