#!/usr/bin/env python3
"""A job with the client runs as it would without: with no daemon, a frozen daemon, forks, threads,
exceptions, signals. Prints the cost of a call."""
from __future__ import annotations

import os
import signal
import socket
import threading
import unittest

import cost
from receiver import STARTED, Clock, Receiver, gpumeter, run_at, run_program

EVERY_CALL = """
import gpumeter
with gpumeter.run("job", framework="f", version="1", model="m") as run:
    run.begin_step()
    for step in range(50):
        for phase in sorted(gpumeter.PHASES):
            with run.phase(phase):
                pass
        run.step(samples=1, tokens=2, flops=3, loss=4)
        run.count(samples=1, split="infer")
        run.phase_took("eval", 1)
        run.inference(1, ttft=1, itl=[1, 2], input_tokens=1, output_tokens=2)
        run.loss(1)
        run.batch_size(1)
        run.world_size(1)
        run.target("a", 1)
        run.eval("a", 1, target=2)
        run.resume(7)
print("done")
"""


class NobodyThereTest(unittest.TestCase):
    """Every call returns without output, and the job ends normally."""

    def goes_on(self, path: str) -> None:
        ended = run_program(EVERY_CALL, path)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "done\n", ""))

    def test_no_socket(self) -> None:
        self.goes_on("/nonexistent/jobs.sock")

    def test_no_path(self) -> None:
        self.goes_on("x" * 200)

    def test_a_socket_that_nobody_holds(self) -> None:
        with Receiver() as receiver:
            receiver._socket.close()
            self.goes_on(receiver.path)

    def test_a_socket_of_streams(self) -> None:
        with Receiver() as receiver, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(receiver.path + "2")
            listener.listen()
            self.goes_on(receiver.path + "2")

    def test_a_daemon_that_is_frozen(self) -> None:
        with Receiver() as receiver:
            held = receiver.fill()
            self.goes_on(receiver.path)
            self.assertEqual(receiver.datagrams(), ["x"] * held)


class FrozenTest(unittest.TestCase):
    """Messages that could not be sent are sent later, within bounds."""

    def setUp(self) -> None:
        self.receiver = self.enterContext(Receiver())
        self.clock = Clock()
        self.run_ = run_at(self.receiver.path, self.clock)
        self.addCleanup(self.run_.stop)
        self.receiver.datagrams()
        self.receiver.fill()

    def test_sums_are_right_afterwards(self) -> None:
        for _ in range(1000):
            self.clock.now += 0.5
            self.run_.step(samples=32, loss=0.5)
        self.receiver.datagrams()
        self.clock.now += 1
        self.run_.count()
        durations = ":0.5" * gpumeter._wire.LINE_VALUES
        self.assertEqual(self.receiver.lines(), [
            f"_e{{9,8}}:run_start|resnet50|d:{STARTED}|#run:resnet50",  # a minute and more went by
            "ml.step:1000|g|#run:resnet50",
            "ml.steps:1000|c|#run:resnet50,split:train",
            "ml.samples:32000|c|#run:resnet50,split:train",
            "ml.loss:0.5|g|#run:resnet50,split:train",
            f"ml.step.seconds{durations}|d|#run:resnet50,split:train",
            "ml.client.dropped:743|c|#run:resnet50,reason:full"])
        self.assertEqual(self.run_.dropped, {"full": 743})  # of 999 durations: a first step has none

    def test_what_is_held_is_bounded(self) -> None:
        for number in range(10_000):
            self.run_.eval(f"metric {number}", number)
        self.assertEqual(len(self.run_._out.lines), gpumeter._wire.LINES)
        self.assertEqual(self.run_.dropped, {"full": 10_000 - gpumeter._wire.LINES})

    def test_so_is_what_the_daemon_is_reminded_of(self) -> None:
        for number in range(1000):
            self.clock.now += 1
            self.run_.target(f"metric {number}", number)
            self.run_.resume(number)
        out = self.run_._out
        self.assertEqual(len(out.standing), gpumeter._wire.LINES)
        self.assertLessEqual(len(out.lines), 2 * gpumeter._wire.LINES)  # both kinds, at the time of a reminder

    def test_what_is_left_at_the_end_is_counted(self) -> None:
        self.run_.count(samples=1)
        self.run_.stop()
        self.assertEqual(self.run_.dropped, {"unsent": 2})  # the samples and the end


class ForkTest(unittest.TestCase):
    def setUp(self) -> None:
        self.receiver = self.enterContext(Receiver())

    def sent_by(self, program: str) -> list[str]:
        ended = run_program("import gpumeter, os, sys\n" + program, self.receiver.path)
        self.assertEqual(ended.stderr, "")
        return [line.split("|d:")[0] for line in self.receiver.lines()]

    def test_a_child_that_only_inherits_the_run_says_nothing(self) -> None:
        self.assertEqual(self.sent_by("""
with gpumeter.run("job") as run:
    run.count(samples=1)
    if not os.fork():
        sys.exit()
    os.wait()
"""), ["_e{9,3}:run_start|job", "ml.samples:1|c|#run:job,split:train", "_e{8,7}:run_stop|success"])

    def test_a_child_that_takes_part_is_a_sender_of_its_own(self) -> None:
        self.assertEqual(self.sent_by("""
with gpumeter.run("job") as run:
    run.count(samples=1)
    if not os.fork():
        run.count(samples=2)
        sys.exit()
    os.wait()
"""), ["_e{9,3}:run_start|job",
            "_e{9,3}:run_start|job", "ml.samples:2|c|#run:job,split:train", "_e{8,7}:run_stop|success",
            "ml.samples:1|c|#run:job,split:train", "_e{8,7}:run_stop|success"])

    def test_a_fork_while_another_thread_is_in_a_call(self) -> None:
        self.assertEqual(self.sent_by("""
run = gpumeter.run("job")
run._out.lock.acquire()
import threading
def fork():
    if not os.fork():
        run.eval("a", 1)
        os._exit(0)
    os.wait()
thread = threading.Thread(target=fork)
thread.start()
thread.join()
run._out.lock.release()
run.stop()
"""), ["_e{9,3}:run_start|job", "_e{9,3}:run_start|job", "ml.eval:1|g|#run:job,metric:a", "_e{8,7}:run_stop|success"])


class EndTest(unittest.TestCase):
    def setUp(self) -> None:
        self.receiver = self.enterContext(Receiver())

    def last_of(self, body: str) -> tuple[int, str]:
        ended = run_program("import gpumeter, os, signal, sys\n" + body, self.receiver.path, check=False)
        return ended.returncode, self.receiver.lines()[-1].split("|d:")[0]

    def test_exceptions_pass_through(self) -> None:
        for error in (KeyError, KeyboardInterrupt):
            with self.assertRaises(error), gpumeter.Run("job", path=self.receiver.path) as run, run.phase("forward"):
                raise error
            self.assertEqual(self.receiver.lines()[-2].split(":")[0], "ml.phase.seconds")

    def test_how_jobs_end(self) -> None:
        success, aborted = "_e{8,7}:run_stop|success", "_e{8,7}:run_stop|aborted"
        within = 'with gpumeter.run("job"): '
        self.assertEqual(self.last_of(within + "pass"), (0, success))
        self.assertEqual(self.last_of(within + "sys.exit()"), (0, success))
        self.assertEqual(self.last_of(within + "sys.exit(3)"), (3, aborted))
        self.assertEqual(self.last_of(within + "1 / 0"), (1, aborted))
        self.assertEqual(self.last_of(within + "signal.raise_signal(signal.SIGINT)"), (-signal.SIGINT, aborted))
        self.assertEqual(self.last_of('gpumeter.run("job").stop()'), (0, success))
        self.assertEqual(self.last_of('gpumeter.run("job")'), (0, aborted), "that it was well has to be said")

    def test_a_job_that_is_killed_says_nothing_more(self) -> None:
        self.assertEqual(self.last_of('with gpumeter.run("job"): os.kill(os.getpid(), signal.SIGKILL)'),
                         (-signal.SIGKILL, "_e{9,3}:run_start|job"))

    def test_a_signal_handler_may_call_while_a_call_is_under_way(self) -> None:
        with gpumeter.Run("job", path=self.receiver.path) as run, run._out.lock:
            old = signal.signal(signal.SIGUSR1, lambda *_: run.step())
            os.kill(os.getpid(), signal.SIGUSR1)
            signal.signal(signal.SIGUSR1, old)
        self.assertIn("ml.steps:1|c|#run:job,split:train", self.receiver.lines())


class ThreadsTest(unittest.TestCase):
    def test_nothing_is_lost_and_nothing_counted_twice(self) -> None:
        with Receiver() as receiver:
            run = gpumeter.Run("job", path=receiver.path, environ={})
            threads = [threading.Thread(target=lambda: [run.step(samples=2) for _ in range(5000)]) for _ in range(8)]
            lines = []
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                lines += receiver.lines()
            lines += receiver.lines()  # makes room for the last
            run.stop()
            lines += receiver.lines()
        sums = {name: sum(int(line.split(":")[1].split("|")[0]) for line in lines if line.startswith(f"{name}:"))
                for name in ("ml.steps", "ml.samples")}
        self.assertEqual(sums, {"ml.steps": 40_000, "ml.samples": 80_000})
        self.assertEqual([line for line in lines if line.startswith("ml.step:")][-1], "ml.step:40000|g|#run:job")


class CostTest(unittest.TestCase):
    def test_what_a_call_costs(self) -> None:
        """Printed, not promised: the machine may be busy. That each call returns is what is tested."""
        for daemon in cost.DAEMONS:
            costs = cost.measure(daemon, calls=500)
            print(*costs, sep="\n", flush=True)
            self.assertEqual([(found.call, found.daemon, found.calls) for found in costs],
                             [(call, daemon, 500) for call in ("step", "phase", "inference", "eval")])


if __name__ == "__main__":
    unittest.main(warnings="error")
