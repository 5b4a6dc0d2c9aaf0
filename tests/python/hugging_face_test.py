#!/usr/bin/env python3
"""The callback for Hugging Face's Trainer: given these events of a trainer, exactly these lines. The trainer is a stub
that calls what transformers 4 and 5 call; transformers itself is no package of Debian."""
from __future__ import annotations

import logging
import subprocess
import sys
import types
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

from receiver import CLIENT, Clock, Receiver, gpumeter


class TrainerCallback:
    """As transformers': every event is there and does nothing."""
    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None: ...
    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None: ...
    def on_substep_end(self, args: Any, state: Any, control: Any, **_: Any) -> None: ...
    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None: ...
    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None: ...


STUB = types.ModuleType("transformers")
STUB.TrainerCallback = TrainerCallback  # type: ignore[attr-defined]
STUB.__version__ = "4.57.0"  # type: ignore[attr-defined]


class Trainer:
    """The part of transformers.Trainer that calls callbacks: two processes, four samples and two batches in a step."""

    def __init__(self, callback: Any) -> None:
        self.callback = callback
        self.args = SimpleNamespace(train_batch_size=4, gradient_accumulation_steps=2, eval_batch_size=8, world_size=2,
                                    bf16=True, fp16=False)
        self.state = SimpleNamespace(global_step=0, num_input_tokens_seen=0, total_flos=0)

    def event(self, name: str, **more: Any) -> None:
        getattr(self.callback, name)(self.args, self.state, SimpleNamespace(), **more)

    def begin(self, **more: Any) -> None:
        self.event("on_train_begin", model=SimpleNamespace(config=SimpleNamespace(model_type="bert")), optimizer=None, **more)

    def step(self) -> None:
        self.event("on_step_begin")
        self.state.global_step += 1
        self.state.num_input_tokens_seen += 1000
        self.event("on_step_end")


class CallbackTest(unittest.TestCase):
    def setUp(self) -> None:
        self.receiver = self.enterContext(Receiver())
        self.enterContext(mock.patch.dict(sys.modules, {"transformers": STUB}))
        self.enterContext(mock.patch.dict("os.environ", {"GPUMETER_SOCKET": self.receiver.path}))
        self.addCleanup(logging.disable, logging.NOTSET)

    def lines(self) -> list[str]:
        """Without times."""
        lines = [line for line in self.receiver.lines() if not line.startswith("ml.step.seconds:")]
        return [line if "|d:" not in line else line.split("|d:")[0] + "|#" + line.split("|#")[1] for line in lines]

    def test_a_training(self) -> None:
        trainer = Trainer(gpumeter.hugging_face_callback("tune", targets={"eval_accuracy": 0.9, "loss": 0.5}))
        self.assertEqual(self.lines(), [], "a run begins with the training")
        trainer.begin()
        trainer.step()
        self.assertEqual(self.lines(), ["_e{9,4}:run_start|tune|#run:tune,framework:transformers,version:4.57.0,model:bert,"
                                        "precision:bf16,data_parallel:2",
                                        "ml.world_size:2|g|#run:tune",
                                        "ml.batch_size:16|g|#run:tune",
                                        "ml.target:0.9|g|#run:tune,metric:accuracy,direction:max",
                                        "ml.target:0.5|g|#run:tune,metric:loss,direction:min",
                                        "ml.step:1|g|#run:tune",
                                        "ml.steps:1|c|#run:tune,split:train",
                                        "ml.samples:8|c|#run:tune,split:train",
                                        "ml.tokens:500.0|c|#run:tune,split:train,kind:train"])
        trainer.step()
        trainer.state.total_flos = 4e15
        trainer.event("on_log", logs={"loss": 1.25, "learning_rate": 1e-5, "grad_norm": 2.5, "epoch": 0.5})
        trainer.event("on_prediction_step")
        trainer.event("on_evaluate", metrics={"eval_runtime": 12.5, "eval_loss": 1.5, "eval_accuracy": 0.75, "epoch": 1.0,
                                              "eval_samples_per_second": 80.0, "eval_steps_per_second": 10.0})
        trainer.event("on_log", logs={"eval_loss": 1.5, "eval_accuracy": 0.75, "epoch": 0.5})
        trainer.event("on_save")
        self.assertEqual(self.lines(), ["ml.step:2|g|#run:tune",
                                        "ml.steps:1|c|#run:tune,split:train",
                                        "ml.samples:8|c|#run:tune,split:train",
                                        "ml.tokens:500.0|c|#run:tune,split:train,kind:train",
                                        "ml.flops:2000000000000000.0|c|#run:tune,dtype:bf16",
                                        "ml.loss:1.25|g|#run:tune,split:train",
                                        "ml.custom:1e-05|g|#run:tune,metric:learning_rate",
                                        "ml.custom:2.5|g|#run:tune,metric:gradient_norm",
                                        "ml.custom:0.5|g|#run:tune,metric:epoch",
                                        "ml.steps:1|c|#run:tune,split:eval",
                                        "ml.samples:8|c|#run:tune,split:eval",
                                        "ml.phase.seconds:12.5|d|#run:tune,phase:eval",
                                        "ml.loss:1.5|g|#run:tune,split:eval",
                                        "ml.eval:1.5|g|#run:tune,metric:loss",
                                        "ml.eval:0.75|g|#run:tune,metric:accuracy"])
        trainer.event("on_train_end")
        self.assertEqual(self.lines(), ["ml.custom:0.5|g|#run:tune,metric:epoch",
                                        "_e{8,7}:run_stop|success|#run:tune"])

    def test_samples_are_those_of_the_batches(self) -> None:
        """An epoch of 22 samples in batches of 4: the last step has 6 samples, not 8. The loader is one of Accelerate 1.15, which says that it is
        of another class."""
        class Loader:
            __class__ = property(lambda self: list)  # type: ignore[assignment]

            def __iter__(self) -> Any:
                for size in (4, 4, 4, 4, 4, 2):
                    yield {"return_loss": True, "input_ids": SimpleNamespace(shape=(size, 128))}

        trainer, loader = Trainer(gpumeter.hugging_face_callback("tune")), Loader()
        trainer.begin(train_dataloader=loader)
        self.assertIsInstance(loader, Loader)
        self.assertIsInstance(loader, list)
        for _ in range(2):  # epochs
            batches = iter(loader)
            for _ in range(3):
                next(batches), next(batches)
                trainer.step()
        trainer.event("on_train_end")
        self.assertEqual(sum(int(line.split("|")[0].split(":")[1]) for line in self.lines() if line.startswith("ml.samples:")), 44)
        self.assertIs(type(loader), Loader)

    def test_a_loader_that_cannot_be_followed(self) -> None:
        class Loader:
            __slots__ = ()

            def __iter__(self) -> Any:
                return iter(())

        trainer = Trainer(gpumeter.hugging_face_callback("tune", targets={"accuracy": 0.9}))
        trainer.begin(train_dataloader=Loader())
        trainer.event("on_train_end")
        lines = "".join(self.lines())
        self.assertIn("ml.batch_size:", lines)
        self.assertIn("ml.target:0.9", lines)

    def test_a_step_lasts_from_its_begin_to_its_end(self) -> None:
        """Two batches each, with what comes between two steps: logs, an evaluation, a checkpoint."""
        clock = Clock()
        run = gpumeter.Run("tune", path=self.receiver.path, environ={}, clock=clock, wall=clock.wall)
        trainer = Trainer(gpumeter.hugging_face_callback(run))
        trainer.begin()
        for _ in range(3):
            clock.now += 2  # the loader's
            trainer.event("on_step_begin")
            for _ in range(2):
                clock.now += 0.25
            trainer.event("on_substep_end")
            trainer.state.global_step += 1
            trainer.event("on_step_end")
            clock.now += 5
            trainer.event("on_evaluate", metrics={"eval_runtime": 4.5, "eval_loss": 1.5})
            clock.now += 3
            trainer.event("on_save")
        run.stop()
        lines = self.receiver.lines()
        took = [value for line in lines if line.startswith("ml.step.seconds:") for value in line.split("|")[0].split(":")[1:]]
        self.assertEqual(took, ["0.5"] * 3)
        self.assertEqual([line.split("|")[0] for line in lines if line.startswith("ml.phase")], ["ml.phase.seconds:4.5"] * 3)

    def test_directions_as_the_arguments_have_them(self) -> None:
        trainer = Trainer(gpumeter.hugging_face_callback("tune", targets={"eval_edits": 5, "accuracy": 0.9}))
        trainer.args.metric_for_best_model, trainer.args.greater_is_better = "edits", False
        trainer.begin()
        trainer.event("on_evaluate", metrics={"eval_edits": 7, "eval_accuracy": 0.5})
        self.assertEqual([line for line in self.lines() if "metric:" in line], [
            "ml.target:5|g|#run:tune,metric:edits,direction:min", "ml.target:0.9|g|#run:tune,metric:accuracy,direction:max",
            "ml.eval:7|g|#run:tune,metric:edits,direction:min", "ml.eval:0.5|g|#run:tune,metric:accuracy"])

    def test_a_training_that_goes_on(self) -> None:
        trainer = Trainer(gpumeter.hugging_face_callback("tune"))
        trainer.state = SimpleNamespace(global_step=1200, num_input_tokens_seen=1_200_000, total_flos=9e18)
        trainer.begin()
        trainer.step()
        trainer.event("on_train_end")
        self.assertEqual(self.lines()[1:], ["ml.world_size:2|g|#run:tune",
                                            "ml.batch_size:16|g|#run:tune",
                                            "_e{7,4}:restart|1200|#run:tune",
                                            "ml.step:1200|g|#run:tune",
                                            "ml.step:1201|g|#run:tune",
                                            "ml.steps:1|c|#run:tune,split:train",
                                            "ml.samples:8|c|#run:tune,split:train",
                                            "ml.tokens:500.0|c|#run:tune,split:train,kind:train",
                                            "_e{8,7}:run_stop|success|#run:tune"])

    def test_a_run_of_the_caller_s_is_the_caller_s_to_end(self) -> None:
        with gpumeter.run("mine") as run:
            trainer = Trainer(gpumeter.hugging_face_callback(run))
            trainer.begin()
            trainer.event("on_train_end")
            self.assertFalse(any("run_stop" in line for line in self.lines()))
        self.assertEqual(self.lines()[-1], "_e{8,7}:run_stop|success|#run:mine")

    def test_a_trainer_of_another_kind(self) -> None:
        """Attributes that are not there, values that are no numbers: the training goes on."""
        logging.disable(logging.CRITICAL)
        trainer = Trainer(gpumeter.hugging_face_callback("tune"))
        trainer.args, trainer.state = SimpleNamespace(), SimpleNamespace()
        for name in ("on_train_begin", "on_step_end", "on_prediction_step", "on_log", "on_evaluate", "on_train_end"):
            trainer.event(name)
        trainer.begin()
        trainer.event("on_evaluate", metrics={"eval_runtime": "long", "eval_accuracy": None, "eval_f1": object()})
        self.assertEqual([line for line in self.lines() if "eval" in line], [])

    def test_it_is_a_callback_of_theirs(self) -> None:
        callback = gpumeter.hugging_face_callback("tune")
        self.assertIsInstance(callback, TrainerCallback)
        self.assertIsNone(callback.on_step_begin(None, None, None), "the control object stays theirs")

    def test_the_framework_is_imported_only_when_asked_for(self) -> None:
        program = """
import sys
before = set(sys.modules)
import gpumeter
strange = {name.split(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names) - {"gpumeter"}
print(sorted(strange))
"""
        said = subprocess.run([sys.executable, "-B", "-W", "error", "-c", program], env={"PYTHONPATH": str(CLIENT)},
                              capture_output=True, text=True, check=True, timeout=60)
        self.assertEqual((said.stdout, said.stderr), ("[]\n", ""))


if __name__ == "__main__":
    unittest.main(warnings="error")
