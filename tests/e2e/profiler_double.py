#!/usr/bin/env python3
"""A job with the profiler service of TensorFlow and JAX, as grpcio serves it.

usage: profiler_double.py PORT [--run NAME --jobs SOCKET [--slow-after SECONDS]] [--refuse]

Serves on [::]:PORT, as JAX does, and prints "ready". Writes each trace itself, to ROOT/SESSION/HOST.xplane.pb, as TensorFlow does.
Reports steps of 0.1 s to its run, and later of 1 s. Ends with its input.
"""
import argparse
import contextlib
import os
import socket
import sys
import threading
import time
from pathlib import Path

from profiler_messages import grpc, messages, serve

parser = argparse.ArgumentParser()
parser.add_argument("port")
parser.add_argument("--run")
parser.add_argument("--jobs")
parser.add_argument("--slow-after", type=float, default=1e9)
parser.add_argument("--refuse", action="store_true")
arguments = parser.parse_args()


def profile(request, context):
    time.sleep(request.opts.duration_ms / 1000)
    if arguments.refuse:
        context.abort(grpc.StatusCode.ALREADY_EXISTS, "Another profiling session active.")
    folder = Path(request.repository_root, request.session_id)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{request.host_name}.xplane.pb").write_bytes(b"trace of %d ms" % request.opts.duration_ms)
    return messages.ProfileResponse()


def report() -> None:
    out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    begun = time.monotonic()
    while True:
        seconds = 0.1 if time.monotonic() - begun < arguments.slow_after else 1
        with contextlib.suppress(OSError):  # the daemon has ended
            out.sendto(f"ml.steps:1|c|#run:{arguments.run}\nml.step.seconds:{seconds}|d|#run:{arguments.run}".encode(), arguments.jobs)
        time.sleep(seconds)


server, _ = serve(profile, f"[::]:{arguments.port}")
if arguments.run:
    threading.Thread(target=report, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
os._exit(0)
