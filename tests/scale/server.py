#!/usr/bin/env python3
"""Serves the pages of a fleet on one port, that of node 12 at /n12. usage: server.py RECORDING NODES PORT

At /cost: CPU seconds of this process and the bytes of all pages before compression."""
import asyncio
import json
import pickle
import sys
import time
from pathlib import Path

from fleet import Fleet

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


def answer(fleet: Fleet, path: str, began: float) -> bytes:
    if path == "/cost":
        body = json.dumps({"cpu": time.process_time(), "bytes": fleet.sent}).encode()
        return PLAIN % len(body) + body
    page = fleet.page(int(path.removeprefix("/n")), time.monotonic() - began)
    return HEAD % len(page) + page


async def main() -> None:
    recording, nodes, port = sys.argv[1:]
    fleet, began = Fleet(pickle.loads(Path(recording).read_bytes()), int(nodes)), time.monotonic()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                writer.write(answer(fleet, request.split(b" ", 2)[1].decode(), began))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", int(port))
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
