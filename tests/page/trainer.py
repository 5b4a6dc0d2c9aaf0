"""A job: sends the lines of a run to the daemon's socket, four steps a second, until it is killed.

Usage: trainer.py SOCKET RUN
"""
import math
import random
import socket
import sys
import time


def main(path: str, run: str) -> None:
    out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    tags = f"run:{run}"
    out.sendto(f"_e{{9,{len(run.encode())}}}:run_start|{run}|d:{int(time.time())}|#{tags}".encode(), path)
    step = 0
    while True:
        step += 1
        loss = 2.5 * math.exp(-step / 400) + 0.4 + random.random() * 0.1
        lines = [f"ml.steps:1|c|#{tags},split:train", f"ml.step:{step}|g|#{tags}", f"ml.samples:64|c|#{tags},split:train",
                 f"ml.loss:{loss:.4f}|g|#{tags},split:train", f"ml.phase.seconds:0.15|h|#{tags},phase:forward",
                 f"ml.phase.seconds:0.07|h|#{tags},phase:backward", f"ml.phase.seconds:0.03|h|#{tags},phase:data_loading"]
        out.sendto("\n".join(lines).encode(), path)
        time.sleep(0.25)


if __name__ == "__main__":
    main(*sys.argv[1:])
