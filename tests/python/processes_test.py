#!/usr/bin/env python3
"""A run in processes other than the one that began it: forked, spawned, pickled, copied; and ended by SIGTERM."""
from __future__ import annotations

import copy
import importlib
import importlib.util
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from receiver import CLIENT, Receiver, gpumeter

PHASES = 100

# A dataset holds the run, as it does in a data loader's workers; two workers, each half of the phases.
WORKERS = f"""
import multiprocessing, sys, gpumeter

class Dataset:
    def __init__(self, run): self.run = run
    def __getitem__(self, index):
        with self.run.phase("data_loading"): pass
        return index

def work(dataset, first):
    for index in range(first, {PHASES}, 2): dataset[index]

def ended_by_pool(run):
    with multiprocessing.Pool(2, initializer=begin, initargs=(run,)) as pool:
        pool.map(one, range({PHASES}), chunksize=1)  # leaving the pool ends its processes by SIGTERM

def begin(run):
    global dataset
    dataset = Dataset(run)

def one(index): dataset[index]

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    with gpumeter.run("job", framework="f") as run:
        run.target("loss", 0.5)
        if sys.argv[2:] == ["pool"]:
            ended_by_pool(run)
        else:
            workers = [multiprocessing.Process(target=work, args=(Dataset(run), first)) for first in (0, 1)]
            for worker in workers: worker.start()
            for worker in workers: worker.join()
            assert [worker.exitcode for worker in workers] == [0, 0]
"""
METHODS = ("fork", "spawn", "forkserver")


class JobTest(unittest.TestCase):
    def setUp(self) -> None:
        self.receiver = self.enterContext(Receiver())
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, program: str, *arguments: str) -> subprocess.Popen[str]:
        (self.folder / "job.py").write_text(program)
        job = subprocess.Popen([sys.executable, "-B", "-W", "error", "-W", "ignore::DeprecationWarning", self.folder / "job.py",
                                *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={"PYTHONPATH": str(CLIENT), "GPUMETER_SOCKET": self.receiver.path, "PATH": os.environ["PATH"]})
        self.addCleanup(job.communicate)
        self.addCleanup(job.kill)
        return job


class ProcessesTest(JobTest):
    def lines_of(self, program: str, *arguments: str) -> list[str]:
        job = self.start(program, *arguments)
        _, errors = job.communicate(timeout=60)
        self.assertEqual((job.returncode, errors), (0, ""))
        return self.receiver.lines()

    def test_workers(self) -> None:
        for method in METHODS:
            with self.subTest(method):
                lines = self.lines_of(WORKERS, method)
                self.assertEqual(phases(lines), PHASES)
                starts = [line for line in lines if ":run_start|" in line]
                self.assertEqual((len(starts), len(set(starts))), (3, 1), "the same T and facts from each process")
                self.assertIn("framework:f", starts[0])
                self.assertEqual([line.split("|d:")[0] for line in lines if ":run_stop|" in line], ["_e{8,7}:run_stop|success"])
                self.assertIn(":run_stop|", lines[-1])

    def test_workers_that_a_pool_ends(self) -> None:
        for method in METHODS:
            with self.subTest(method):
                self.assertEqual(phases(self.lines_of(WORKERS, method, "pool")), PHASES)

    def test_a_rank_that_is_given_after_the_run(self) -> None:
        lines = self.lines_of("""
import multiprocessing, os, gpumeter
def train(rank, run):
    os.environ["RANK"] = os.environ["LOCAL_RANK"] = str(rank)
    run.step(samples=1, loss=rank)
    run.batch_size(7)
if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    run = gpumeter.run("job")
    ranks = [multiprocessing.Process(target=train, args=(rank, run)) for rank in range(3)]
    for rank in ranks: rank.start()
    for rank in ranks: rank.join()
    run.finish()
""")
        self.assertEqual([line for line in lines if "ml.loss" in line or "ml.batch" in line],
                         ["ml.loss:0|g|#run:job,split:train", "ml.batch_size:7|g|#run:job"])
        self.assertEqual(sum(line.startswith("ml.steps:1|") for line in lines), 3)

    def test_a_config_that_a_worker_cannot_have(self) -> None:
        """Of a class that a spawned process does not define; one that holds the run itself; one that cannot be pickled."""
        for config in ("Settings()", "{'run': run}", "lambda: None"):
            with self.subTest(config):
                lines = self.lines_of(f"""
import logging, multiprocessing, gpumeter
logging.getLogger("gpumeter").addHandler(logging.NullHandler())
def train(run): run.step(step=7)
if __name__ == "__main__":
    class Settings: pass
    multiprocessing.set_start_method("spawn")
    run = gpumeter.run("job", config={{"model": "m"}})
    run.config["held"] = {config}
    worker = multiprocessing.Process(target=train, args=(run,))
    worker.start()
    worker.join()
    assert worker.exitcode == 0
    run.finish()
""")
                self.assertEqual([line for line in lines if line.startswith("ml.step:")], ["ml.step:7|g|#run:job"])

    def test_a_fork_while_a_thread_holds_the_lock(self) -> None:
        """Locks of a running run and of a finished one: no thread in the child would release them."""
        for over in (False, True):
            with self.subTest(over=over), gpumeter.Run("job", path=self.receiver.path, environ={}, sigterm=False) as run:
                if over:
                    run.finish()
                held, released = threading.Event(), threading.Event()

                def hold() -> None:
                    with run._out.lock:
                        held.set()
                        released.wait(30)
                holder = threading.Thread(target=hold)
                holder.start()
                held.wait(30)
                child = os.fork()
                if child == 0:
                    signal.alarm(10)
                    run.step()
                    os._exit(0)
                released.set()
                holder.join()
                self.assertEqual(os.waitpid(child, 0)[1], 0)

    @unittest.skipUnless(importlib.util.find_spec("_xxsubinterpreters"), "this Python has another name for them")
    def test_a_sub_interpreter_has_no_signals(self) -> None:
        interpreters = importlib.import_module("_xxsubinterpreters")
        interpreter = interpreters.create()
        self.addCleanup(interpreters.destroy, interpreter)
        interpreters.run_string(interpreter, f"""
import sys
sys.path.insert(0, {str(CLIENT)!r})
import gpumeter
with gpumeter.Run("job", path={self.receiver.path!r}, environ={{}}) as run: run.step()
assert not run.dropped, run.dropped
""")
        self.assertEqual(ends(self.receiver.lines()), ["success"])

    def test_copies_are_the_same_run(self) -> None:
        with gpumeter.Run("job", path=self.receiver.path, environ={}, config={"lr": 0.1, "sink": lambda: None}) as run:
            for same in (copy.copy(run), copy.deepcopy({"a": [run]})["a"][0], pickle.loads(pickle.dumps(run))):
                self.assertIs(same, run)
        self.assertEqual(len([line for line in self.receiver.lines() if "run_start" in line]), 1)

    def test_a_pickle_of_a_run_that_is_over_is_over(self) -> None:
        run = gpumeter.Run("job", path=self.receiver.path, environ={})
        run.finish()
        self.receiver.lines()
        other = pickle.loads(pickle.dumps(run))
        other.step()
        other.finish()
        self.assertEqual((self.receiver.lines(), other.dropped["stopped"] > 0), ([], True))

    def test_a_pickle_in_a_process_of_another_program(self) -> None:
        """It is the same run in another job's process: its name, its T, its facts, the last step's number and the config."""
        lines = self.lines_of("""
import pickle, subprocess, sys, gpumeter
run = gpumeter.run("job", config={"model": "m", "lr": 0.1})
run.step(step=41)
other = ("import pickle, sys; run = pickle.loads(bytes.fromhex(sys.argv[1])); "
         "run.step(); run.finish(run.config['lr'] == 0.1)")
subprocess.run([sys.executable, "-c", other, pickle.dumps(run).hex()], check=True)
run.finish()
""")
        starts = [line for line in lines if "run_start" in line]
        self.assertEqual((len(starts), len(set(starts))), (2, 1))
        self.assertTrue(starts[0].endswith("|#run:job,model:m"))
        self.assertEqual([line for line in lines if line.startswith("ml.step:")], ["ml.step:41|g|#run:job", "ml.step:42|g|#run:job"])
        self.assertEqual(ends(lines), ["aborted", "success"])


STEPS = """
import signal, sys, time, gpumeter
run = gpumeter.run("job"{arguments})
{more}
for step in range(7): run.step(samples=1)
print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, flush=True)
time.sleep(30)
"""


class SigtermTest(JobTest):
    def after_sigterm(self, arguments: str = "", more: str = "") -> tuple[int, str, list[str]]:
        """How the job ends, what it printed, and its steps and end as the daemon has them."""
        job = self.start(STEPS.format(arguments=arguments, more=more))
        printed = job.stdout.readline()
        job.send_signal(signal.SIGTERM)
        rest, errors = job.communicate(timeout=20)
        self.assertEqual(errors, "")
        lines = self.receiver.lines()
        return job.returncode, printed + rest, [f"{steps(lines)} steps", *ends(lines)]

    def test_the_default_s_place(self) -> None:
        self.assertEqual(self.after_sigterm(), (-signal.SIGTERM, "False\n", ["7 steps", "aborted"]))

    def test_switched_off(self) -> None:
        off = (-signal.SIGTERM, "True\n", ["1 steps"])
        self.assertEqual(self.after_sigterm(arguments=", sigterm=False"), off)
        os.environ["GPUMETER_SIGTERM"] = "0"
        self.addCleanup(os.environ.pop, "GPUMETER_SIGTERM")
        more = "import os; os.environ['GPUMETER_SIGTERM'] = '0'; run.finish(); run = gpumeter.run('job')"
        code, printed, what = self.after_sigterm(more=more)
        self.assertEqual((code, printed, what[1:]), (-signal.SIGTERM, "True\n", ["success"]))

    def test_a_handler_of_the_job_s_own_decides(self) -> None:
        own = "signal.signal(signal.SIGTERM, lambda *_: (run.finish(), sys.exit(3)))"
        self.assertEqual(self.after_sigterm(more=own), (3, "False\n", ["7 steps", "success"]))

    def test_a_handler_that_calls_the_one_before_decides_too(self) -> None:
        own = ("import os; before = signal.getsignal(signal.SIGTERM)\n"
               "signal.signal(signal.SIGTERM, lambda *_: (before(*_), os.write(1, b'saved\\n'), run.finish(), sys.exit(0)))")
        self.assertEqual(self.after_sigterm(more=own), (0, "False\nsaved\n", ["7 steps", "success"]))

    def test_while_a_call_is_sending(self) -> None:
        """The signal arrives when the lines are taken and not yet sent; then one whose handler raises."""
        sending = """
import os
send = gpumeter._outbox.send
def interrupted(path, lines):
    gpumeter._outbox.send = send
    os.kill(os.getpid(), {signal})
    send(path, lines)
def sending():
    for step in range(7): run.step(samples=1)
    gpumeter._outbox.send = interrupted
    run.eval("a", 1)
"""
        job = self.start(STEPS.format(arguments="", more=sending.format(signal="signal.SIGTERM") + "sending()"))
        self.assertEqual((job.communicate(timeout=20), job.returncode), (("", ""), -signal.SIGTERM))
        lines = self.receiver.lines()
        self.assertEqual((steps(lines), [line for line in lines if "ml.eval" in line], ends(lines)),
                         (7, ["ml.eval:1|g|#run:job,metric:a"], ["aborted"]))
        within = sending.format(signal="signal.SIGINT") + "with run:\n  sending()"
        job = self.start(STEPS.format(arguments="", more=within))
        self.assertIn("KeyboardInterrupt", job.communicate(timeout=20)[1])
        lines = self.receiver.lines()
        self.assertEqual((steps(lines), ends(lines)), (7, ["aborted"]))

    def test_one_that_was_there_before_stays(self) -> None:
        job = self.start("""
import signal, gpumeter
def own(*_): pass
for before in (own, signal.SIG_IGN):
    signal.signal(signal.SIGTERM, before)
    with gpumeter.run("job"): print(signal.getsignal(signal.SIGTERM) == before)
    print(signal.getsignal(signal.SIGTERM) == before)
""")
        self.assertEqual(job.communicate(timeout=20), ("True\n" * 4, ""))

    def test_the_default_is_back_after_the_run_and_in_a_forked_child(self) -> None:
        job = self.start("""
import os, signal, gpumeter
default = lambda: signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
with gpumeter.run("job"):
    print(default(), flush=True)
    if not os.fork():
        print(default(), flush=True)
        os._exit(0)
    os.wait()
print(default())
""")
        self.assertEqual(job.communicate(timeout=20), ("False\nTrue\nTrue\n", ""))


def steps(lines: list[str]) -> int:
    return sum(int(line.split(":")[1].split("|")[0]) for line in lines if line.startswith("ml.steps:"))


def ends(lines: list[str]) -> list[str]:
    return re.findall(r"run_stop\|(\w+)", "\n".join(lines))


def phases(lines: list[str]) -> int:
    return sum(line.split("|")[0].count(":") for line in lines if line.startswith("ml.phase.seconds:"))


if __name__ == "__main__":
    unittest.main(warnings="error")
