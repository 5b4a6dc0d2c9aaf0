#!/usr/bin/env python3
"""Memory of the framework's allocator, failed allocations, and facts: given these numbers of a framework, exactly these lines. The
frameworks are stubs with the functions that the client calls."""
from __future__ import annotations

import argparse
import logging
import pickle
import re
import sys
import types
import unittest
from typing import Any
from unittest import mock

from receiver import CLIENT, STARTED, Clock, Receiver, gpumeter, run_at

START = f"_e{{9,8}}:run_start|resnet50|d:{STARTED}|#run:resnet50"
TAGS = "|#run:resnet50"


class Device:
    """torch.cuda, with two devices of which each has these bytes."""

    def __init__(self, allocated: int = 0, peak: int = 0, reserved: int = 0, ooms: int = 0) -> None:
        self.allocated, self.peak, self.reserved, self.ooms = allocated, peak, reserved, ooms
        self.is_used, self.asked = True, 0

    def is_initialized(self) -> bool:
        return self.is_used

    def is_current_stream_capturing(self) -> bool:
        return True

    def device_count(self) -> int:
        return 2

    def memory_stats_as_nested_dict(self, index: int) -> dict[str, Any]:
        self.asked += 1
        return {"allocated_bytes": {"all": {"current": self.allocated, "peak": self.peak}},
                "reserved_bytes": {"all": {"current": self.reserved, "peak": 0}}, "num_ooms": self.ooms if index == 0 else 0}


class MemoryTest(unittest.TestCase):
    def setUp(self) -> None:
        self.receiver = self.enterContext(Receiver())
        self.clock = Clock()
        self.device = Device(allocated=100, peak=150, reserved=200, ooms=3)
        self.torch = types.ModuleType("torch")
        self.torch.cuda = self.device  # type: ignore[attr-defined]
        self.enterContext(mock.patch.dict(sys.modules, {"torch": self.torch}))
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def started(self, **info: Any) -> gpumeter.Run:
        run = run_at(self.receiver.path, self.clock, **info)
        self.addCleanup(run.stop)
        return run

    def sent(self, run: gpumeter.Run, after: float = 1) -> list[str]:
        self.clock.now += after
        run._out.flush_if_due()
        return self.receiver.lines()

    def test_the_sum_of_the_devices_when_it_changes_and_each_minute(self) -> None:
        run = self.started()
        self.assertEqual(self.receiver.lines(), [START, "ml.memory:200|g|#run:resnet50,state:allocated", "ml.memory:400|g|#run:resnet50,state:reserved",
                                                 "ml.memory:300|g|#run:resnet50,state:peak", "ml.oom:0|c" + TAGS],
                         "failures before the run are not its own")
        self.assertEqual(self.sent(run), [])
        self.device.allocated = 120
        self.assertEqual(self.sent(run), ["ml.memory:240|g|#run:resnet50,state:allocated"])
        self.assertEqual(self.sent(run, 60), [START, "ml.memory:240|g|#run:resnet50,state:allocated", "ml.memory:400|g|#run:resnet50,state:reserved",
                                              "ml.memory:300|g|#run:resnet50,state:peak"])

    def test_it_is_read_once_a_second_and_at_the_end(self) -> None:
        run = self.started()
        asked = self.device.asked
        for _ in range(5):
            run.eval("top1", 0.5)  # each is sent at once
        self.assertEqual(self.device.asked, asked)
        self.receiver.lines()
        self.device.peak = 1000
        run.stop()
        self.assertEqual([line.split("|d:")[0] for line in self.receiver.lines()],
                         ["ml.memory:2000|g|#run:resnet50,state:peak", "_e{8,7}:run_stop|success"])

    def test_a_process_without_a_device_reports_nothing(self) -> None:
        self.device.is_used = False
        run = self.started()
        self.assertEqual(self.receiver.lines(), [START])
        self.device.is_used = True
        self.device.ooms = 1
        self.assertEqual(self.sent(run)[3:], ["ml.oom:1|c" + TAGS], "the first one counts")

    def test_failures_are_counted_once(self) -> None:
        run = self.started()
        self.receiver.lines()
        self.device.ooms = 5  # the job caught them
        self.assertEqual(self.sent(run), ["ml.oom:2|c" + TAGS])
        OutOfMemoryError = type("OutOfMemoryError", (RuntimeError,), {})
        error = OutOfMemoryError("CUDA out of memory.")
        self.device.ooms = 6  # torch has counted the one that it raises
        run.failed(error)
        run.failed(error)
        run.failed(ValueError("no memory of it"))
        run.failed(None)
        self.assertEqual(self.sent(run), ["ml.oom:1|c" + TAGS])
        self.device.ooms = 0  # the job has reset torch's count
        self.assertEqual(self.sent(run), [])
        self.device.ooms = 1
        self.assertEqual(self.sent(run), ["ml.oom:1|c" + TAGS])

    def test_a_framework_without_a_count(self) -> None:
        del sys.modules["torch"]
        for error in (type("ResourceExhaustedError", (Exception,), {})("OOM when allocating tensor"),
                      type("XlaRuntimeError", (RuntimeError,), {})("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1 bytes.")):
            with self.assertRaises(type(error)), self.started():
                raise error
            self.assertEqual([line.split("|d:")[0] for line in self.receiver.lines()], [START.split("|d:")[0], "ml.oom:1|c" + TAGS, "_e{8,7}:run_stop|aborted"])
        with self.assertRaises(OSError), self.started():
            raise OSError("RESOURCE_EXHAUSTED: quota")
        self.assertNotIn("ml.oom", "".join(self.receiver.lines()))

    def test_an_allocator_that_raises_is_not_asked_again(self) -> None:
        self.device.memory_stats_as_nested_dict = mock.Mock(side_effect=RuntimeError("pluggable"))  # type: ignore[method-assign]
        run = self.started()
        self.assertEqual(self.receiver.lines(), [START])
        run.step()
        self.sent(run)
        self.assertEqual(self.device.memory_stats_as_nested_dict.call_count, 1)
        self.assertEqual(run.dropped, {})

    def test_a_part_of_the_run_reports_its_own(self) -> None:
        run = self.started()
        packed = pickle.dumps(run)
        gpumeter._process.open_runs.discard(run)
        self.device.is_used = False  # as in a data loader's worker
        with mock.patch.dict("os.environ", {"GPUMETER_SOCKET": self.receiver.path}):
            part = pickle.loads(packed)
        self.addCleanup(gpumeter._process.open_runs.discard, part)
        self.receiver.lines()
        part.step()
        self.assertNotIn("ml.memory", "".join(self.receiver.lines()))


class FactsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.receiver = self.enterContext(Receiver())
        self.clock = Clock()
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def started(self, **info: Any) -> gpumeter.Run:
        run = run_at(self.receiver.path, self.clock, **info)
        self.addCleanup(run.stop)
        return run

    def test_facts_are_tags_of_the_start(self) -> None:
        run = self.started(framework="pytorch", facts={"precision": "bf16-mixed", "data_parallel": 8, "sharding": "fsdp", "tensor_parallel": "2"})
        self.assertEqual(self.receiver.lines(), [START + ",framework:pytorch,precision:bf16,sharding:fsdp,data_parallel:8,tensor_parallel:2"])
        run.facts(pipeline_parallel=4, precision="fp8", model="a,b|c")
        all_of_them = START + ",framework:pytorch,model:a_b_c,precision:fp8,sharding:fsdp,data_parallel:8,tensor_parallel:2,pipeline_parallel:4"
        self.clock.now += 1
        run.step()
        self.assertEqual(self.receiver.lines()[0], all_of_them)
        run.facts(precision="fp8")
        self.clock.now += 60
        run.step()
        self.assertEqual([line for line in self.receiver.lines() if "run_start" in line], [all_of_them], "the reminder has them too")

    def test_the_job_knows_better_than_a_callback(self) -> None:
        run = self.started(facts={"precision": "fp8"})
        run._found({"precision": "bf16", "data_parallel": 2})
        self.clock.now += 1
        run.step()
        self.assertIn(START + ",precision:fp8,data_parallel:2", self.receiver.lines())

    def test_words_of_trainers_are_the_daemons(self) -> None:
        from gpumeter._facts import precision
        words = {"32-true": "fp32", "16-mixed": "fp16", "bf16-mixed": "bf16", "bf16-true": "bf16", "64-true": "fp64", "transformer-engine": "fp8",
                 "transformer-engine-float16": "fp8", "mixed_float16": "fp16", "mixed_bfloat16": "bf16", "float32": "fp32",
                 "bfloat16": "bf16", "torch.bfloat16": "bf16", "no": "fp32", "int8": "int8", "mixed": "mixed", "BF16": "bf16"}
        self.assertEqual({word: precision(word) for word in words}, words)

    def test_the_sets_are_the_daemons(self) -> None:
        from gpumeter import _allocator, _facts
        wire = CLIENT.parent.parent / "collectors/jobs/wire"
        text = "".join((wire / name).read_text() for name in ("vocabulary.cpp", "vocabulary.hpp"))
        sets = {name: set(re.findall(r'"(\w+)"', words)) for name, words in re.findall(r"string_view k(\w+)\[\w*\]\s*=\s*\{([^}]*)\}", text)}
        self.assertEqual((sets["Precisions"], sets["Shardings"], sets["Dtypes"]), (gpumeter.PRECISIONS, gpumeter.SHARDINGS, gpumeter.DTYPES))
        self.assertEqual((sets["Splits"], sets["Phases"], sets["States"]), (gpumeter.SPLITS, gpumeter.PHASES, set(_allocator.STATES)))
        self.assertEqual(tuple(re.findall(r'Fact::\w+, "(\w+)"', text)), _facts.FACTS)

    def test_other_values_are_refused_one_by_one(self) -> None:
        run = self.started(facts={"precision": "ternary", "sharding": "ddp", "data_parallel": 0, "tensor_parallel": "two", "expert": 3, "model": "a"})
        self.assertEqual(self.receiver.lines()[0], START + ",model:a")
        self.assertEqual(run.dropped, {"refused": 5})

    def test_a_config_may_use_these_names_for_other_things(self) -> None:
        run = self.started(config=argparse.Namespace(precision="medium", mixed_precision="bf16", data_parallel=True, tensor_parallel_size=2, sharding="zero3"))
        self.assertEqual(self.receiver.lines()[0], START + ",sharding:zero3,tensor_parallel:2")
        self.assertEqual(run.dropped, {})


if __name__ == "__main__":
    unittest.main(verbosity=2)
