#!/usr/bin/env python3
"""Prints what other StatsD clients send for one job: the recorded part of recorded_lines.txt.

Needs Debian's python3-statsd and python3-aiodogstatsd. Each line is one datagram, or what came on one connection,
with backslash, newline, tab and bytes that are not printable ASCII as \\\\, \\n, \\t and \\xNN."""
from __future__ import annotations

import asyncio
import socket
import tempfile
from importlib.metadata import version

import aiodogstatsd
import statsd


def escaped(data: bytes) -> str:
    return data.decode("latin-1").encode("unicode_escape").decode()


def received(sock: socket.socket) -> list[str]:
    """All datagrams; they are there already, loopback being synchronous."""
    sock.setblocking(False)
    out = []
    while True:
        try:
            out.append(escaped(sock.recv(65536)))
        except BlockingIOError:
            return out


def use_statsd(client: statsd.client.base.StatsClientBase) -> None:
    client.incr("ml.steps")
    client.incr("ml.samples", 256)
    client.decr("ml.samples", 2)
    client.gauge("ml.loss", 2.5)
    client.gauge("ml.loss", -1)
    client.gauge("ml.step", 4, delta=True)
    client.timing("ml.infer.seconds", 31.25)
    client.set("ml.users", "a")
    with client.pipeline() as pipe:
        pipe.incr("ml.steps")
        pipe.gauge("ml.step", 1234)


def statsd_over_udp() -> list[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        client = statsd.StatsClient("127.0.0.1", sock.getsockname()[1])
        use_statsd(client)
        client.close()
        return received(sock)


def statsd_over_a_stream() -> list[str]:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/s")
        listener.listen()
        client = statsd.UnixSocketStatsClient(f"{folder}/s")
        use_statsd(client)
        client.close()
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as stream:
            return [escaped(stream.read())]


async def use_aiodogstatsd(port: int) -> None:
    async with aiodogstatsd.Client(host="127.0.0.1", port=port, constant_tags={"run": "resnet50"}) as client:
        client.increment("ml.steps", tags={"split": "train"})
        client.increment("ml.samples", value=256, tags={"split": "train"})
        client.decrement("ml.samples", tags={"split": "train"})
        client.gauge("ml.loss", value=-2.5, tags={"split": "train"})
        client.gauge("ml.step", value=1234)
        client.histogram("ml.phase.seconds", value=0.02, tags={"phase": "data_loading"})
        client.distribution("ml.step.seconds", value=0.213, tags={"split": "train"})
        client.timing("ml.infer.seconds", value=30)


def aiodogstatsd_over_udp() -> list[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        asyncio.run(use_aiodogstatsd(sock.getsockname()[1]))
        return received(sock)


def main() -> None:
    for title, record in ((f"python3-statsd {version('statsd')}, UDP: a datagram each", statsd_over_udp),
                          (f"python3-statsd {version('statsd')}, Unix stream: a connection", statsd_over_a_stream),
                          (f"python3-aiodogstatsd {version('aiodogstatsd')}, UDP: a datagram each", aiodogstatsd_over_udp)):
        print(f"\n# {title}", *record(), sep="\n")


if __name__ == "__main__":
    main()
