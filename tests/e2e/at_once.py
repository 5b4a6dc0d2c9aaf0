"""Runs the tests of a program concurrently, each in its own process: they wait more than they compute."""
import concurrent.futures
import subprocess
import sys
import unittest


def names(suite: unittest.TestSuite) -> list[str]:
    """As the command line of unittest takes them: Class.test."""
    found = []
    for test in suite:
        found += names(test) if isinstance(test, unittest.TestSuite) else [test.id().partition(".")[2]]
    return found


def run(name: str) -> bool:
    said = subprocess.run([sys.executable, "-B", sys.argv[0], name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(said.stdout, flush=True)
    return said.returncode == 0


def main(at_once: int = 6) -> None:
    """In place of unittest.main(), which still runs what the command line names."""
    if len(sys.argv) > 1:
        unittest.main(verbosity=2)
    tests = names(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        right = list(pool.map(run, tests))
    failed = [name for name, is_right in zip(tests, right) if not is_right]
    print(f"{len(tests)} tests; failed: {', '.join(failed) or 'none'}", flush=True)
    sys.exit(1 if failed else 0)
