#!/usr/bin/env python3
"""Processes that ask for orders as PyTorch's Kineto does, with the byte layouts of its IpcFabricConfigClient.cpp.

usage: kineto_double.py COUNT [--folder DIR] [--every SECONDS] [--run NAME --jobs SOCKET [--slow-after SECONDS]] [--never-busy]

Prints the pid of each process, then serves until its input ends. A process that gets an order is busy for the duration of the
order, then writes PATH_PID.json, as Kineto does. It reports steps of 0.1 s to its run, and later of 1 s.
"""
import argparse
import contextlib
import os
import signal
import socket
import struct
import sys
import time
import uuid

HEADER = struct.Struct("=Q32s")
DAEMON = "\0dynolog\0"


class Client:
    """One process's end: a socket with a name, in the abstract namespace or in a folder."""

    def __init__(self, folder: str | None = None) -> None:
        name = f"dynoconfigclient{uuid.uuid4()}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.to = f"{folder}/dynolog" if folder else DAEMON
        self.socket.bind(f"{folder}/{name}" if folder else f"\0{name}\0")
        self.socket.settimeout(0.09)  # Kineto waits nine times 10 ms
        if folder:
            os.chmod(f"{folder}/{name}", 0o666)

    def exchange(self, kind: bytes, payload: bytes) -> bytes | None:
        """The payload of the answer; None if there is none in time, or no daemon."""
        try:
            self.socket.sendto(HEADER.pack(len(payload), kind) + payload, self.to)
            answer, source = self.socket.recvfrom(65536)
        except (TimeoutError, ConnectionRefusedError, FileNotFoundError):
            return None
        size, said = HEADER.unpack(answer[:40])
        # Kineto ends its process on the second, and allocates what the first says.
        assert size == len(answer) - 40, f"the header promises {size} bytes, {len(answer) - 40} came"
        assert source in (self.to, self.to.encode()), f"the answer came from {source!r}"
        assert said.rstrip(b"\0") == kind, said
        return answer[40:]

    def register(self) -> int:
        answer = self.exchange(b"ctxt", struct.pack("=iiq", 0, os.getpid(), 0))
        return struct.unpack("=i", answer)[0] if answer else -1

    def poll(self, is_free: bool = True, pid: int | None = None) -> str | None:
        answer = self.exchange(b"req", struct.pack("=iiqii", 2 if is_free else 0, 2, 0, pid or os.getpid(), os.getppid()))
        return None if answer is None else answer.decode()


def orders(text: str) -> dict[str, str]:
    lines = [line for line in text.split("\n") if line]
    assert all(line.count("=") == 1 and "#" not in line for line in lines), text
    return dict(line.split("=") for line in lines)


def write_trace(order: dict[str, str]) -> None:
    path = order["ACTIVITIES_LOG_FILE"].removesuffix(".json") + f"_{os.getpid()}.json"
    with contextlib.suppress(PermissionError), open(path, "x") as file:  # Kineto logs an error and goes on
        file.write('{"traceEvents": []}')


def serve(arguments: argparse.Namespace, steps: socket.socket | None) -> None:
    client, order, until = Client(arguments.folder), None, 0.0
    client.register()
    begun = next_step = time.monotonic()
    while os.getppid() == arguments.parent:
        if order and time.monotonic() >= until:
            write_trace(order)
            order = None
        text = client.poll(is_free=order is None or arguments.never_busy)
        if text:
            order = orders(text)
            until = time.monotonic() + int(order["ACTIVITIES_DURATION_MSECS"]) / 1000
            if arguments.never_busy:
                order = None
        if steps and time.monotonic() >= next_step:
            seconds = 0.1 if time.monotonic() - begun < arguments.slow_after else 1
            report = f"ml.steps:1|c|#run:{arguments.run}\nml.step.seconds:{seconds}|d|#run:{arguments.run}"
            with contextlib.suppress(OSError):  # the daemon restarts
                steps.sendto(report.encode(), arguments.jobs)
            next_step = time.monotonic() + seconds - 0.05
        time.sleep(arguments.every)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--folder")
    parser.add_argument("--every", type=float, default=0.1)
    parser.add_argument("--run")
    parser.add_argument("--jobs")
    parser.add_argument("--slow-after", type=float, default=1e9)
    parser.add_argument("--never-busy", action="store_true")
    arguments = parser.parse_args()
    arguments.parent = os.getpid()
    children = []
    for _ in range(arguments.count):
        if child := os.fork():
            children.append(child)
            continue
        os.close(0)
        serve(arguments, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if arguments.run else None)
        os._exit(0)
    print(*children, flush=True)
    sys.stdin.read()
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
