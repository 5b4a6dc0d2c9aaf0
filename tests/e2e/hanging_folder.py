"""A folder whose calls hang when they are told to, for as long as they are told to: a FUSE file system in memory.

Needs python3-fusepy, /dev/fuse and the right to mount; missing() says what is not there.
"""
import errno
import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def missing() -> str:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse"
    try:
        import fusepy  # noqa: F401
    except (ImportError, OSError) as error:
        return str(error)
    return ""


class HangingFolder:
    """Mounted while in use. A thread that is inside a call that hangs cannot be killed: let it go on first."""

    def __init__(self):
        self.around = tempfile.TemporaryDirectory(prefix="gpumeter-test-")
        self.path = f"{self.around.name}/state"
        self.orders = Path(self.around.name, "orders")  # names of the calls that hang
        self.orders.mkdir()
        os.mkdir(self.path)

    def __enter__(self) -> "HangingFolder":
        self.server = subprocess.Popen([sys.executable, "-B", __file__, self.path, str(self.orders)])
        end = time.monotonic() + 20
        while not os.path.ismount(self.path):
            assert time.monotonic() < end and self.server.poll() is None, "the folder is not mounted"
            time.sleep(0.02)
        return self

    def __exit__(self, *_) -> None:
        self.go_on()
        subprocess.run(["fusermount", "-u", "-z", self.path], check=False)
        try:
            self.server.wait(5)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
        self.around.cleanup()

    def hang(self, call: str) -> None:
        (self.orders / call).touch()

    def go_on(self) -> None:
        for order in self.orders.iterdir():
            order.unlink()

    def hangs(self) -> bool:
        """A call hangs now."""
        return Path(self.around.name, "hanging").exists()


def serve(path: str, orders: str) -> None:
    import fusepy

    class Memory(fusepy.Operations):
        def __init__(self):
            self.files = {}

        def __call__(self, call, *arguments):
            while os.path.exists(f"{orders}/{call}"):
                Path(orders).with_name("hanging").touch()
                time.sleep(0.02)
            return super().__call__(call, *arguments)

        def getattr(self, path, fh=None):
            if path == "/":
                return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
            if path not in self.files:
                raise fusepy.FuseOSError(errno.ENOENT)
            return {"st_mode": stat.S_IFREG | 0o644, "st_nlink": 1, "st_size": len(self.files[path])}

        def readdir(self, path, fh):
            return [".", "..", *(name[1:] for name in self.files)]

        def create(self, path, mode, fi=None):
            self.files[path] = b""
            return 0

        def open(self, path, flags):
            return 0

        def read(self, path, size, offset, fh):
            return self.files[path][offset:offset + size]

        def write(self, path, data, offset, fh):
            self.files[path] = self.files[path][:offset] + data
            return len(data)

        def truncate(self, path, length, fh=None):
            self.files[path] = self.files[path][:length]

        def rename(self, old, new):
            self.files[new] = self.files.pop(old)

        def fsync(self, path, datasync, fh):
            return 0

        chmod = chown = utimens = lambda self, *arguments: 0

    fusepy.FUSE(Memory(), path, foreground=True, direct_io=True, attr_timeout=0, entry_timeout=0)


if __name__ == "__main__":
    serve(*sys.argv[1:])
