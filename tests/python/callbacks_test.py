#!/usr/bin/env python3
"""The callbacks for Lightning and Keras and the wrapper of JAX's steps: given these events, exactly these lines. The frameworks are stubs
with what the callbacks use; tests/interop has the real ones."""
from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import types
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

from receiver import CLIENT, Clock, Receiver, gpumeter, run_at


def stub(name: str, **content: Any) -> types.ModuleType:
    module = types.ModuleType(name)
    vars(module).update(content)
    return module


class Tensor:
    """Numbers of a device, which must not be waited for in the middle of a training."""

    def __init__(self, value: Any, device: str = "cpu", shape: tuple = ()) -> None:
        self.value, self.device, self.shape = value, SimpleNamespace(type=device), shape
        self.read = 0

    def numel(self) -> int:
        return 1

    def item(self) -> Any:
        self.read += 1
        return self.value


class CallbackTest(unittest.TestCase):
    STUBS: dict[str, types.ModuleType] = {}

    def setUp(self) -> None:
        self.receiver = self.enterContext(Receiver())
        self.enterContext(mock.patch.dict(sys.modules, self.STUBS))
        self.enterContext(mock.patch.dict("os.environ", {"GPUMETER_SOCKET": self.receiver.path}))
        self.addCleanup(logging.disable, logging.NOTSET)

    def lines(self) -> list[str]:
        """Without times, after what is collected has been sent."""
        for run in list(gpumeter._process.open_runs):
            run._out._flush()
        lines = [line for line in self.receiver.lines() if not line.startswith(("ml.step.seconds:", "ml.phase.seconds:"))]
        return [line if "|d:" not in line else line.split("|d:")[0] + "|#" + line.split("|#")[1] for line in lines]


class Lightning(CallbackTest):
    STUBS = {"lightning": stub("lightning"), "lightning.pytorch": stub("lightning.pytorch", Callback=object, __version__="2.5.5")}

    def setUp(self) -> None:
        super().setUp()
        strategy = type("FSDPStrategy", (), {})()
        strategy.root_device, strategy.sharding_strategy = SimpleNamespace(type="cuda"), SimpleNamespace(name="FULL_SHARD")
        self.trainer = SimpleNamespace(precision="bf16-mixed", strategy=strategy, world_size=2, global_rank=0, local_rank=0, global_step=0,
                                       log_every_n_steps=2, loggers=[], callback_metrics={}, optimizers=[], sanity_checking=False, ckpt_path=None)
        self.callback = gpumeter.lightning_callback("fit", targets={"val_acc": 0.9})
        self.module = type("Net", (), {})()

    def batch(self, steps: bool = True, samples: int = 4, loss: Any = None) -> None:
        batch = {"text": ["a"] * samples, "x": Tensor(0, shape=(samples, 8))}
        self.callback.on_train_batch_start(self.trainer, self.module, batch, 0)
        self.trainer.global_step += steps
        self.callback.on_train_batch_end(self.trainer, self.module, {"loss": loss} if loss else None, batch, 0)

    def start(self) -> None:
        self.callback.on_train_start(self.trainer, self.module)
        self.assertEqual(self.lines(), ["_e{9,3}:run_start|fit|#run:fit,framework:lightning,version:2.5.5,model:Net,precision:bf16,sharding:fsdp,"
                                        "data_parallel:2", "ml.world_size:2|g|#run:fit",
                                        "ml.target:0.9|g|#run:fit,metric:acc,direction:max"])

    def test_a_step_has_the_batches_that_it_accumulates(self) -> None:
        self.start()
        self.batch(steps=False)
        self.assertEqual(self.lines(), [])
        self.batch()
        self.assertEqual(self.lines(), ["ml.step:1|g|#run:fit", "ml.steps:1|c|#run:fit,split:train", "ml.samples:8|c|#run:fit,split:train",
                                        "ml.batch_size:16|g|#run:fit"])
        self.batch(samples=2)
        self.assertEqual(self.lines(), ["ml.step:2|g|#run:fit", "ml.steps:1|c|#run:fit,split:train", "ml.samples:2|c|#run:fit,split:train"])
        self.callback.on_train_end(self.trainer, self.module)
        self.assertEqual(self.lines(), ["_e{8,7}:run_stop|success|#run:fit"])

    def test_metrics_of_a_gpu_are_read_only_where_the_trainer_waits(self) -> None:
        self.start()
        loss = Tensor(2.5, "cuda")
        self.trainer.callback_metrics = {"train_loss": loss, "train_loss_step": loss, "margin": 3.0, "val_acc": Tensor(0.5, "cuda")}
        self.batch()
        self.lines()
        self.batch()
        self.assertEqual(self.lines()[3:], ["ml.custom:3.0|g|#run:fit,metric:margin"])
        self.assertEqual(loss.read, 0)
        self.callback.on_train_epoch_end(self.trainer, self.module)
        self.assertEqual(self.lines(), ["ml.loss:2.5|g|#run:fit,split:train", "ml.custom:3.0|g|#run:fit,metric:margin"])

    def test_the_loss_of_a_module_that_logs_none(self) -> None:
        self.start()
        self.trainer.loggers = ["a logger, for which the trainer waits"]
        for _ in range(2):
            self.batch(loss=Tensor(1.5, "cuda"))
        self.assertIn("ml.loss:1.5|g|#run:fit,split:train", self.lines())

    def test_a_validation_has_the_metrics_that_it_sets(self) -> None:
        self.start()
        kept = Tensor(1.0)
        self.trainer.callback_metrics = {"acc": kept, "val_loss": Tensor(9.0)}
        self.trainer.sanity_checking = True
        self.callback.on_validation_start(self.trainer, self.module)
        self.callback.on_validation_batch_end(self.trainer, self.module, None, Tensor(0, shape=(3, 1)), 0)
        self.callback.on_validation_end(self.trainer, self.module)
        self.assertEqual(self.lines(), [], "the trainer's check before the training")
        self.trainer.sanity_checking = False
        self.callback.on_validation_start(self.trainer, self.module)
        self.callback.on_validation_batch_end(self.trainer, self.module, None, (Tensor(0, shape=(3, 1)), 1), 0)
        self.trainer.callback_metrics = {"acc": kept, "val_loss": Tensor(0.25), "f1/dataloader_idx_0": Tensor(0.75)}
        self.callback.on_validation_end(self.trainer, self.module)
        self.assertEqual(self.lines(), ["ml.steps:1|c|#run:fit,split:eval", "ml.samples:3|c|#run:fit,split:eval",
                                        "ml.loss:0.25|g|#run:fit,split:eval", "ml.eval:0.25|g|#run:fit,metric:loss",
                                        "ml.eval:0.75|g|#run:fit,metric:f1"])

    def test_only_the_first_rank_reports_what_is_of_the_run(self) -> None:
        self.trainer.global_rank = self.trainer.local_rank = 1
        self.trainer.callback_metrics = {"loss": 1.0}
        self.callback.on_train_start(self.trainer, self.module)
        for _ in range(2):
            self.batch()
        self.assertEqual({line.split(":")[0] for line in self.lines()}, {"_e{9,3}", "ml.step", "ml.steps", "ml.samples"})

    def test_an_exception_ends_the_run_and_a_given_run_goes_on(self) -> None:
        self.start()
        error = type("OutOfMemoryError", (RuntimeError,), {})()
        self.callback.on_exception(self.trainer, self.module, error)
        self.assertEqual(self.lines(), ["ml.oom:1|c|#run:fit", "_e{8,7}:run_stop|aborted|#run:fit"])
        with gpumeter.run("given", model="mine") as run:
            callback = gpumeter.lightning_callback(run)
            callback.on_train_start(self.trainer, self.module)
            callback.on_train_end(self.trainer, self.module)
            self.assertIn("_e{9,5}:run_start|given|#run:given,model:mine,precision:bf16,sharding:fsdp,data_parallel:2", self.lines())
            self.assertIs(pickle.loads(pickle.dumps(callback))._run, run)

    def test_a_resumed_training(self) -> None:
        self.trainer.global_step, self.trainer.ckpt_path = 40, "last.ckpt"
        self.callback.on_train_start(self.trainer, self.module)
        self.assertIn("_e{7,2}:restart|40|#run:fit", self.lines())
        self.batch()
        self.assertIn("ml.step:41|g|#run:fit", self.lines())

    def test_every_rank_reads_the_metrics(self) -> None:
        """Lightning reduces a metric over all ranks when it is first read, so a rank that does not read it makes the others wait."""
        reads: list[str] = []
        trainer = type("Trainer", (), {**vars(self.trainer), "callback_metrics": property(lambda _: reads.append("metrics") or {})})()
        trainer.global_rank = 1
        for name in ("on_train_start", "on_train_epoch_end", "on_validation_start", "on_validation_end", "on_train_end"):
            getattr(self.callback, name)(trainer, self.module)
        self.callback.on_train_epoch_end(trainer, self.module)
        self.assertEqual(len(reads), 4)

    def test_a_trainer_without_facts_begins_all_the_same(self) -> None:
        logging.disable(logging.CRITICAL)
        del self.trainer.strategy, self.trainer.precision
        self.callback.on_train_start(self.trainer, self.module)
        self.assertEqual(self.lines()[0], "_e{9,3}:run_start|fit|#run:fit,framework:lightning,version:2.5.5,model:Net")

    def test_a_trainer_of_another_kind_does_not_fail(self) -> None:
        logging.disable(logging.CRITICAL)
        self.callback.on_train_start(None, self.module)
        self.callback.on_train_batch_end(SimpleNamespace(), self.module, None, None, 0)
        self.callback.on_validation_end(SimpleNamespace(), self.module)
        self.assertEqual(self.lines(), ["_e{9,3}:run_start|fit|#run:fit,framework:lightning,version:2.5.5,model:Net",
                                        "ml.client.dropped:3|c|#run:fit,reason:refused"])

    def test_layouts_of_other_strategies(self) -> None:
        from gpumeter._lightning import _layout
        layout = lambda kind, **more: _layout(SimpleNamespace(world_size=8, strategy=type(kind, (), more)()))
        mesh = {"data_parallel": SimpleNamespace(size=lambda: 4), "tensor_parallel": SimpleNamespace(size=lambda: 2)}
        mesh = type("Mesh", (dict,), {"mesh_dim_names": tuple(mesh)})(mesh)
        self.assertEqual(layout("DDPStrategy"), {"data_parallel": 8})
        self.assertEqual(layout("ModelParallelStrategy", _device_mesh=mesh), {"data_parallel": 4, "tensor_parallel": 2})
        self.assertEqual(layout("DeepSpeedStrategy", config={"zero_optimization": {"stage": 3}}), {"data_parallel": 8, "sharding": "zero3"})
        self.assertEqual(layout("FSDPStrategy", sharding_strategy=SimpleNamespace(name="HYBRID_SHARD")), {"data_parallel": 8, "sharding": "hsdp"})


class KerasCallback:
    def __init__(self) -> None:
        self.model = SimpleNamespace(name="mlp", dtype_policy=SimpleNamespace(compute_dtype="bfloat16"), steps_per_execution=1,
                                     optimizer=SimpleNamespace(iterations=0, learning_rate=0.5))
        self.params = {"steps": 3}


class Keras(CallbackTest):
    STUBS = {"keras": stub("keras", __version__="3.12.0", backend=stub("backend", backend=lambda: "torch"),
                           callbacks=stub("callbacks", Callback=KerasCallback), distribution=stub("distribution", distribution=lambda: None))}
    START = ["_e{9,5}:run_start|mnist|#run:mnist,framework:keras,version:3.12.0,model:mlp,precision:bf16", "ml.batch_size:8|g|#run:mnist"]

    def epoch(self, callback: Any, *batches: int) -> None:
        callback.on_epoch_begin(0)
        for batch in batches:
            callback.on_train_batch_begin(batch)

    def test_a_training(self) -> None:
        callback = gpumeter.keras_callback("mnist", batch_size=8, samples=20)
        callback.on_train_begin()
        self.epoch(callback, 0, 1, 2)
        self.assertEqual(self.lines(), [*self.START, "ml.step:1|g|#run:mnist", "ml.steps:1|c|#run:mnist,split:train", "ml.samples:8|c|#run:mnist,split:train",
                                        "ml.step:2|g|#run:mnist", "ml.steps:1|c|#run:mnist,split:train", "ml.samples:8|c|#run:mnist,split:train"],
                         "the third is not over")
        callback.on_test_begin()
        callback.on_test_batch_begin(0)
        callback.on_test_batch_begin(1)
        callback.on_test_end({"loss": 0.5, "accuracy": 0.75})
        callback.on_epoch_end(0, {"loss": 1.5, "accuracy": 0.5, "val_loss": 0.5})
        self.assertEqual(self.lines(), [
            "ml.step:3|g|#run:mnist", "ml.steps:1|c|#run:mnist,split:train", "ml.samples:4|c|#run:mnist,split:train",
            "ml.steps:2|c|#run:mnist,split:eval", "ml.loss:0.5|g|#run:mnist,split:eval", "ml.eval:0.5|g|#run:mnist,metric:loss",
            "ml.eval:0.75|g|#run:mnist,metric:accuracy", "ml.loss:1.5|g|#run:mnist,split:train", "ml.custom:0.5|g|#run:mnist,metric:accuracy",
            "ml.custom:0.5|g|#run:mnist,metric:learning_rate"])
        self.epoch(callback, 0, 1, 2)
        callback.on_epoch_end(1, {})
        self.assertEqual([line for line in self.lines() if line.startswith("ml.step:")], ["ml.step:6|g|#run:mnist"])
        callback.on_train_end()
        self.assertEqual(self.lines(), ["_e{8,7}:run_stop|success|#run:mnist"])

    def test_several_steps_at_once(self) -> None:
        callback = gpumeter.keras_callback("mnist", batch_size=8)
        callback.model.steps_per_execution = 2
        callback.model.optimizer.iterations = 100  # an earlier training's
        callback.on_train_begin()
        self.epoch(callback, 0, 2)
        callback.on_epoch_end(0, {})
        sent = self.receiver.lines()
        self.assertEqual([line for line in sent if line.startswith(("ml.steps", "ml.samples"))],
                         ["ml.steps:2|c|#run:mnist,split:train", "ml.samples:16|c|#run:mnist,split:train"])
        self.assertEqual([len(line.split("|")[0].split(":")) - 1 for line in sent if line.startswith("ml.step.seconds")], [2])
        self.assertEqual(self.lines()[:3], ["ml.step:103|g|#run:mnist", "ml.steps:1|c|#run:mnist,split:train", "ml.samples:8|c|#run:mnist,split:train"])

    def test_without_a_batch_size_there_are_no_samples(self) -> None:
        callback = gpumeter.keras_callback("mnist")
        callback.on_train_begin()
        self.epoch(callback, 0, 1)
        self.assertEqual(self.lines(), [self.START[0], "ml.step:1|g|#run:mnist", "ml.steps:1|c|#run:mnist,split:train"])

    def test_the_mesh_of_a_distribution(self) -> None:
        mesh = SimpleNamespace(axis_names=["batch", "model"], shape=(4, 2))
        layout = stub("distribution", distribution=lambda: SimpleNamespace(device_mesh=mesh, batch_dim_name="batch"))
        with mock.patch.object(sys.modules["keras"], "distribution", layout), gpumeter.run("given") as run:
            gpumeter.keras_callback(run).on_train_begin()
            self.assertEqual(self.lines()[-1], "_e{9,5}:run_start|given|#run:given,precision:bf16,data_parallel:4,tensor_parallel:2")

    def test_an_evaluation_outside_of_a_training(self) -> None:
        callback = gpumeter.keras_callback("mnist")
        callback.on_test_begin()
        callback.on_test_batch_begin(0)
        callback.on_test_end({"loss": 1.0})
        self.assertEqual(self.lines(), [])


class Array:
    """A result of JAX, which is there when the test says so."""

    def __init__(self, value: float = 0.5, shape: tuple = ()) -> None:
        self.value, self.shape = value, shape
        self.is_there = self.is_gone = False

    def is_ready(self) -> bool:
        assert not self.is_gone, "JAX raises for an array that was donated"
        return self.is_there

    def is_deleted(self) -> bool:
        return self.is_gone

    def __float__(self) -> float:
        assert self.is_there, "nobody may wait for it"
        if self.value < 0:
            raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes.")
        return self.value


class Jax(CallbackTest):
    def setUp(self) -> None:
        self.heard: list = []
        monitoring = stub("jax.monitoring", register_event_duration_secs_listener=self.heard.append)
        device = SimpleNamespace(memory_stats=lambda: {"bytes_in_use": 10, "peak_bytes_in_use": 20})
        self.STUBS = {"jax": stub("jax", __version__="0.8.1", monitoring=monitoring, process_count=lambda: 1, local_devices=lambda: [device, device],
                                  tree_util=stub("tree_util", tree_leaves=lambda output: list(output) if isinstance(output, tuple) else [output])),
                      "jax.monitoring": monitoring}
        super().setUp()
        self.enterContext(mock.patch.object(gpumeter._jax, "_is_listening", False))
        self.clock = Clock()
        self.run_ = run_at(self.receiver.path, self.clock, framework="flax")
        self.addCleanup(self.run_.stop)
        self.receiver.lines()

    def seconds(self, name: str) -> list[float]:
        self.run_._out._flush()
        self.raw = self.receiver.lines()
        return [float(value) for line in self.raw if line.startswith(name) for value in line.split("|")[0].split(":")[1:]]

    def test_steps_are_counted_when_their_results_are_there(self) -> None:
        outputs = [Array(0.5 + place) for place in range(5)]
        results = iter(outputs)
        mesh = SimpleNamespace(shape={"data": 2, "fsdp": 4, "tp": 2, "other": 3})
        step = gpumeter.jax_step(self.run_, lambda: next(results), samples=8, flops=100.0, mesh=mesh)
        self.run_.begin_step()
        for place in range(4):
            self.clock.now += 0.1
            self.assertIs(step(), outputs[place])
        lines = self.lines()
        self.assertIn("_e{9,8}:run_start|resnet50|#run:resnet50,framework:flax,version:0.8.1,sharding:hsdp,data_parallel:8,tensor_parallel:2", lines)
        self.assertFalse([line for line in lines if line.startswith(("ml.step", "ml.samples"))], "none of them has ended")
        outputs[0].is_there = outputs[1].is_there = outputs[3].is_there = True
        self.clock.now += 0.6
        step()
        self.assertEqual(self.seconds("ml.step.seconds"), [0.5, 0.5], "1 s for two")
        self.assertEqual([line for line in self.raw if line.startswith("ml.memory")], ["ml.memory:20|g|#run:resnet50,state:allocated",
                                                                                       "ml.memory:40|g|#run:resnet50,state:peak"])
        self.assertEqual([line for line in self.raw if line.startswith(("ml.steps", "ml.samples", "ml.flops", "ml.loss"))],
                         ["ml.steps:2|c|#run:resnet50,split:train", "ml.samples:16|c|#run:resnet50,split:train", "ml.flops:200.0|c|#run:resnet50,dtype:bf16",
                          "ml.loss:1.5|g|#run:resnet50,split:train"])
        outputs[2].is_gone = True  # donated to the next step
        self.run_.stop()
        last = self.receiver.lines()
        self.assertEqual([line.split("|#")[0] for line in last if line.startswith(("ml.steps", "ml.step:", "_e"))][:2], ["ml.step:5|g", "ml.steps:3|c"],
                         "those that still run are counted")

    def test_a_call_that_compiles_is_a_phase(self) -> None:
        def compiles(first: bool) -> Array:
            self.clock.now += 3 if first else 0
            for heard in self.heard if first else ():
                heard("/jax/core/compile/jaxpr_trace_duration", 0.5)
                heard("/jax/core/compile/backend_compile_duration", 1.5)
            self.heard[0]("/jax/other", 1.0)
            array = Array()
            array.is_there = True
            return array
        step = gpumeter.jax_step(self.run_, compiles)
        for place in range(3):
            self.run_.begin_step()
            self.clock.now += 0.25
            step(place == 0)
        self.assertEqual(self.seconds("ml.phase.seconds"), [3.0])
        self.assertIn("phase:compile", "".join(self.raw))
        self.assertIn("ml.steps:2|c|#run:resnet50,split:train", self.raw + self.receiver.lines())

    def test_errors_belong_to_the_job(self) -> None:
        def fails() -> None:
            raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes.")
        with self.assertRaises(RuntimeError):
            gpumeter.jax_step(self.run_, fails)()
        broken = Array(-1)  # the step fails on the device, after its call
        step = gpumeter.jax_step(self.run_, lambda: (broken, 1))
        step()
        broken.is_there = True
        step()
        self.assertIn("ml.oom:2|c|#run:resnet50", self.lines())


class ImportTest(unittest.TestCase):
    def test_the_client_imports_no_framework(self) -> None:
        program = "import sys, gpumeter; print([name for name in ('torch', 'jax', 'keras', 'lightning', 'tensorflow', 'transformers') if name in sys.modules])"
        done = subprocess.run([sys.executable, "-B", "-W", "error", "-c", program], capture_output=True, text=True, env={"PYTHONPATH": str(CLIENT)},
                              timeout=60)
        self.assertEqual((done.stdout, done.stderr), ("[]\n", ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
