"""A process that has NCCL for the daemon: it maps a file of the name of NCCL's library, listens on a port as RAS does, and answers by
the documented protocol of the version that it plays. Prints one line for each connection and command.

rank.py LIBRARY PORT FORM ANSWER
LIBRARY: path of the file to map. FORM: json (NCCL 2.28.7 and later), text (2.24 to 2.28.6), torn (json, cut in the middle), silent
(accepts and never answers). ANSWER: file of the answer to STATUS; %PID% is this process.
"""
import mmap
import os
import socket
import sys
from pathlib import Path


def say(*words: object) -> None:
    print(*words, flush=True)


def serve(client: socket.socket, form: str, answer: str) -> None:
    is_json = False
    with client, client.makefile("rb") as lines:
        for line in lines:
            command = line.decode().rstrip("\r\n")
            say("asked", command)
            if form == "silent":
                continue
            word = command.lower()
            if word == "set format json" and form != "text":
                is_json = True
                client.sendall(b"OK\n")
            elif word.startswith("client protocol "):
                client.sendall(b"SERVER PROTOCOL 2\n")
            elif word.startswith("timeout "):
                client.sendall(b"OK\n")
            elif word in ("status", "verbose status"):
                text = answer.replace("%PID%", str(os.getpid())) if is_json else "NCCL version 2.27.3 compiled with CUDA 12.9\n"
                client.sendall(text[:len(text) // 2 if form == "torn" else None].encode())
                return
            else:
                client.sendall(f"ERROR: Unknown command {command}\n".encode())


def main() -> None:
    library, port, form, answer = sys.argv[1:]
    text = Path(answer).read_text()
    with open(library, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", int(port)))
        listener.listen(16384)
        say("ready", len(mapped))
        while True:
            client, _ = listener.accept()
            say("connected")
            serve(client, form, text)


if __name__ == "__main__":
    main()
