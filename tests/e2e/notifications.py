"""A $NOTIFY_SOCKET like systemd's."""
import socket


class Notifications:
    """A $NOTIFY_SOCKET that collects the daemon's messages, one dict per datagram."""

    def __init__(self, folder: str):
        self.path = f"{folder}/notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)
        self.received = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def read(self) -> list[dict[str, str]]:
        while True:
            try:
                datagram = self.socket.recv(4096).decode()
            except BlockingIOError:
                return self.received
            self.received.append(dict(line.split("=", 1) for line in datagram.splitlines()))

    def keys(self) -> list[str]:
        """READY, RELOADING and STOPPING in the order in which they came."""
        return [k for message in self.read() for k in message if k in ("READY", "RELOADING", "STOPPING")]
