#!/usr/bin/env python3
"""Runs the tests of a build; what fails runs a second time, alone, and the report names it.

usage: run.py BUILD_FOLDER LOG CTEST_ARGUMENT...

Many of the tests wait for real programs, sockets and clocks beside each other on few cores: one of two thousand may then wait too briefly. A test
that also fails alone fails the run, and so does any report of a sanitizer, which is never a matter of time. LOG gets the output; its last lines
are ctest's summary, after the failed checks of GoogleTest, which the long output above them would hide, and the slowest tests.
$BESIDE is the number of a process that works beside the tests; failed tests run again after it has ended.
"""
import os
import re
import subprocess
import sys
import time
from pathlib import Path

SANITIZER = re.compile(rb"ERROR: AddressSanitizer|ERROR: LeakSanitizer|WARNING: ThreadSanitizer|: runtime error: ")
FAILED_CHECK = re.compile(rb"^(?:.*: Failure$|\[  FAILED  \] .*|FAIL: .*|ERROR: .*)")
TIME = re.compile(rb"Test +#\d+: (\S+) .* (\d+\.\d+) sec")
AROUND = 6  # lines after a failed check: the expected and the actual values


def ctest(build: str, log, *arguments: str) -> tuple[int, bytes]:
    """The exit status and the output, which is shown and logged while it comes."""
    command = ["ctest", "--test-dir", build, "--output-on-failure", *arguments]
    output = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        for line in process.stdout:
            output.append(line)
            for target in (sys.stdout.buffer, log):
                target.write(line)
                target.flush()
    return process.returncode, b"".join(output)


def failed_checks(output: bytes) -> str:
    lines = output.splitlines()
    kept = [line for at, line in enumerate(lines) if any(map(FAILED_CHECK.match, lines[max(0, at - AROUND):at + 1]))]
    return b"\n".join(kept[:200]).decode(errors="replace")


def summary(output: bytes) -> bytes:
    return output[output.rfind(b"\n", 0, output.rfind(b"tests passed")) + 1:]


def slowest(output: bytes) -> bytes:
    times = sorted(((float(seconds), name) for name, seconds in TIME.findall(output)), reverse=True)[:10]
    return b"The slowest tests, in seconds: " + b", ".join(b"%s %.0f" % (name, seconds) for seconds, name in times) + b"\n"


def wait_for(process: str) -> None:
    while Path("/proc", process, "cwd").exists():  # a process that has ended but was not waited for has none
        time.sleep(1)


def main() -> int:
    build, path, *arguments = sys.argv[1:]
    with open(path, "wb") as log:
        status, output = ctest(build, log, *arguments)
        for target in (sys.stdout.buffer, log):
            target.write(slowest(output))
            target.flush()
        if status == 0:
            return 0
        print(f"== the failed checks:\n{failed_checks(output)}", flush=True)
        if SANITIZER.search(output) or b"tests passed" not in output:
            return status
        if beside := os.environ.get("BESIDE"):
            wait_for(beside)
        print("== the failed tests run again, alone", flush=True)
        status, again = ctest(build, log, "--rerun-failed", "--no-tests=error")
        print(f"== the failed checks:\n{failed_checks(again)}" if status else "== all passed alone; the first summary is that of the whole run", flush=True)
        for target in (sys.stdout.buffer, log):
            target.write(summary(output) + slowest(output) + summary(again))
            target.flush()
    return status


if __name__ == "__main__":
    sys.exit(main())
