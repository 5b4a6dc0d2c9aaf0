#!/usr/bin/env python3
"""Phases: nested ones share a thread's time, decorators, and the GPU's time by events of a stub of torch."""
from __future__ import annotations

import asyncio
import inspect
import logging
import sys
import threading
import unittest
from types import SimpleNamespace
from typing import Any, Iterator
from unittest import mock

from receiver import Clock, Receiver, gpumeter, run_at


class PhaseCase(unittest.TestCase):
    def setUp(self) -> None:
        self.receiver = self.enterContext(Receiver())
        self.clock = Clock()
        self.run_ = run_at(self.receiver.path, self.clock)
        self.addCleanup(self.run_.stop)
        self.receiver.datagrams()

    def took(self) -> dict[str, list[float]]:
        """Values by phase, in order."""
        self.clock.now += 1
        self.run_._out.flush_if_due()
        found: dict[str, list[float]] = {}
        for line in self.receiver.lines():
            if line.startswith("ml.phase.seconds:"):
                values, _, tags = line.partition("|")
                found.setdefault(tags.split("phase:")[1], []).extend(map(float, values.split(":")[1:]))
        return found


class PhasesTest(PhaseCase):
    def test_inner_time_is_not_the_outer_one_s(self) -> None:
        with self.run_.phase("forward"):
            self.clock.now += 1
            with self.run_.phase("communication"):
                self.clock.now += 2
                with self.run_.phase("h2d"):
                    self.clock.now += 4
                with self.run_.phase("communication"):
                    self.clock.now += 8
            self.clock.now += 16
            self.run_.phase_took("compile", 5)
        self.assertEqual(self.took(), {"forward": [12], "communication": [8, 2], "h2d": [4], "compile": [5]})

    def test_the_same_object_inside_itself(self) -> None:
        phase = self.run_.phase("forward")
        with phase:
            self.clock.now += 1
            with phase:
                self.clock.now += 2
        self.assertEqual(self.took(), {"forward": [2, 1]})

    def test_phases_that_end_in_another_order_share_the_time_too(self) -> None:
        first, second = self.run_.phase("forward"), self.run_.phase("backward")
        first.__enter__()
        self.clock.now += 1
        second.__enter__()
        self.clock.now += 2
        first.__exit__()
        self.clock.now += 4
        second.__exit__()
        self.assertEqual(self.took(), {"forward": [1], "backward": [6]})

    def test_each_thread_has_its_own(self) -> None:
        def other() -> None:
            with self.run_.phase("checkpoint_save"):  # in the background: no part of any step, and none is interrupted
                self.clock.now += 2
        self.run_.begin_step()
        with self.run_.phase("forward"):
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            self.clock.now += 1
        self.run_.step()
        self.run_._out.flush_if_due(urgent=True)
        lines = self.receiver.lines()
        self.assertIn("ml.step.seconds:3|d|#run:resnet50,split:train", lines)
        self.assertIn("ml.phase.seconds:3|d|#run:resnet50,phase:forward", lines)
        self.assertIn("ml.phase.seconds:2|d|#run:resnet50,phase:checkpoint_save", lines)

    def test_one_that_ends_where_it_did_not_begin_is_not_counted(self) -> None:
        phase = self.run_.phase("forward")
        thread = threading.Thread(target=phase.__enter__)
        thread.start()
        thread.join()
        phase.__exit__()
        self.assertEqual(self.took(), {})
        for _ in range(1000):
            phase.__enter__()
        self.assertLess(len(self.run_._phases.entries), 100)

    def test_a_function(self) -> None:
        @self.run_.phase("data_loading")
        def load(size: int, *, factor: int = 2) -> int:
            """Loads."""
            self.clock.now += 0.5
            return size * factor
        self.assertEqual((load(3), load(3, factor=3), load.__name__, load.__doc__), (6, 9, "load", "Loads."))
        self.assertEqual(self.took(), {"data_loading": [0.5, 0.5]})

    def test_a_coroutine_function(self) -> None:
        @self.run_.phase("data_loading")
        async def load(seconds: float) -> float:
            self.clock.now += seconds
            await asyncio.sleep(0)
            return seconds

        async def both() -> list[float]:
            return list(await asyncio.gather(load(1), load(2)))
        self.assertTrue(inspect.iscoroutinefunction(load))
        self.assertEqual(asyncio.run(both()), [1, 2])
        self.assertEqual(sum(self.took()["data_loading"]), 3, "of two at once each moment is counted once")

    def test_a_generator_function(self) -> None:
        """The time in it, not its consumer's; it does all that a generator does."""
        @self.run_.phase("data_loading")
        def batches(count: int) -> Iterator[Any]:
            given = []
            try:
                for number in range(count):
                    self.clock.now += 0.25
                    try:
                        given.append((yield number))
                    except KeyError:
                        given.append("error")
            finally:
                self.clock.now += 0.125
            return given
        for _ in batches(2):
            self.clock.now += 10
        self.assertTrue(inspect.isgeneratorfunction(batches))
        self.assertEqual(self.took(), {"data_loading": [0.25, 0.25, 0.125]})
        batch = batches(3)
        self.assertEqual((next(batch), batch.send("a"), batch.throw(KeyError())), (0, 1, 2))
        with self.assertRaises(StopIteration) as end:
            next(batch)
        self.assertEqual(end.exception.value, ["a", "error", None])
        batch = batches(3)
        next(batch)
        batch.close()
        with self.assertRaises(ValueError):
            batch = batches(3)
            next(batch)
            batch.throw(ValueError())

    def test_an_asynchronous_generator_is_left_alone_and_named_in_the_log(self) -> None:
        async def batches() -> Any:
            yield 1
        with self.assertLogs("gpumeter") as log:
            self.assertIs(self.run_.phase("h2d")(batches), batches)
        self.assertIn("batches is an asynchronous generator", log.output[0])

    def test_a_name_that_is_none_of_them_is_named_in_the_log_once(self) -> None:
        with self.assertLogs("gpumeter") as log:
            for _ in range(2):
                with self.run_.phase("data"):
                    pass
        self.assertEqual(len(log.output), 1)
        self.assertIn("phase data: counted as other; known are backward", log.output[0])
        self.assertEqual(self.took(), {"other": [0, 0]})


class Event:
    """As torch.cuda.Event: asks `gpu` for the time that its stream has reached; who synchronises fails."""
    gpu: "FakeCuda"

    def __init__(self, enable_timing: bool = False) -> None:
        assert enable_timing
        self.at: float | None = None

    def record(self) -> None:
        self.at = self.gpu.queued

    def query(self) -> bool:
        return self.at is not None and self.at <= self.gpu.reached

    def elapsed_time(self, end: "Event") -> float:
        assert self.query() and end.query(), "it would raise in torch"
        return (end.at - self.at) * 1000


class FakeCuda:
    """`queued` is when the GPU will be done with what it was given, `reached` the time where it is."""

    def __init__(self) -> None:
        self.queued, self.reached, self.used, self.capturing = 0.0, 0.0, True, False
        self.Event = type("Event", (Event,), {"gpu": self})

    def is_initialized(self) -> bool:
        return self.used

    def is_current_stream_capturing(self) -> bool:
        return self.capturing


class DeviceTest(PhaseCase):
    def setUp(self) -> None:
        super().setUp()
        self.gpu = FakeCuda()
        self.enterContext(mock.patch.dict(sys.modules, {"torch": SimpleNamespace(cuda=self.gpu)}))

    def test_the_gpu_s_time_once_it_is_known(self) -> None:
        with self.run_.phase("forward", device=True):
            self.gpu.queued += 0.5
            self.clock.now += 0.03125
        self.assertEqual(self.took(), {}, "the GPU is at it")
        self.gpu.reached = 0.5
        self.run_.step()
        self.assertEqual(self.took(), {"forward": [0.5]})

    def test_nested_ones_share_the_gpu_s_time(self) -> None:
        with self.run_.phase("forward", device=True):
            self.gpu.queued += 1
            with self.run_.phase("data_loading"):
                self.clock.now += 0.25
            with self.run_.phase("communication", device=True):
                self.gpu.queued += 2
            self.gpu.queued += 4
        self.gpu.reached = 100
        self.run_.step()
        self.assertEqual(self.took(), {"data_loading": [0.25], "communication": [2], "forward": [5]})

    def test_the_host_s_time_where_no_gpu_is_used(self) -> None:
        def one() -> dict[str, list[float]]:
            with self.run_.phase("forward", device=True):
                self.clock.now += 0.25
            return self.took()
        self.gpu.used = False
        self.assertEqual(one(), {"forward": [0.25]})
        self.gpu.used, self.gpu.capturing = True, True
        self.assertEqual(one(), {"forward": [0.25]})
        del sys.modules["torch"]
        self.assertEqual(one(), {"forward": [0.25]})
        self.assertNotIn("torch", sys.modules)

    def test_what_waits_for_the_gpu_is_bounded_and_counted(self) -> None:
        self.gpu.queued = 1e9
        for _ in range(1000):
            with self.run_.phase("forward", device=True):
                pass
        self.run_.stop()
        self.assertEqual(self.run_.dropped, {"full": 744, "unsent": 256})

    def test_a_gpu_that_fails_costs_the_value_alone(self) -> None:
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        with mock.patch.object(self.gpu.Event, "query", side_effect=RuntimeError("CUDA error")):
            with self.run_.phase("forward", device=True):
                self.gpu.queued += 1
            self.run_.step(samples=3)
        self.assertEqual(self.run_.dropped, {"refused": 1})
        self.assertIn("ml.steps:1|c|#run:resnet50,split:train", self.receiver.lines())


if __name__ == "__main__":
    unittest.main(warnings="error")
