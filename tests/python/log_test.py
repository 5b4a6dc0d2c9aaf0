#!/usr/bin/env python3
"""log(), config and finish(), as in other loggers: given these calls, exactly these lines."""
from __future__ import annotations

import argparse
import dataclasses
import logging
import unittest
from decimal import Decimal
from typing import Any

from receiver import Clock, Receiver, gpumeter, run_at


@dataclasses.dataclass
class Hyperparameters:
    lr: float = 0.1
    arch: str = "vit_b"


class LogTest(unittest.TestCase):
    def setUp(self) -> None:
        self.receiver = self.enterContext(Receiver())
        self.clock = Clock()
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def begun(self, environ: dict[str, str] | None = None, **info: Any) -> gpumeter.Run:
        run = run_at(self.receiver.path, self.clock, environ, **info)
        self.addCleanup(run.stop)
        return run

    def logged(self, values: Any, **named: Any) -> list[str]:
        """Without the run's tag, sorted."""
        run = self.begun()
        self.receiver.lines()
        run.log(values, **named)
        self.clock.now += 1
        run._out.flush_if_due()
        return sorted(line.replace("#run:resnet50", "#").replace("#,", "#") for line in self.receiver.lines())

    def test_known_words(self) -> None:
        self.assertEqual(self.logged({"loss": 2.5, "lr": 1e-4, "grad_norm": 0.75}),
                         ["ml.custom:0.0001|g|#metric:learning_rate", "ml.custom:0.75|g|#metric:gradient_norm",
                          "ml.loss:2.5|g|#split:train"])
        self.assertEqual(self.logged({"train/loss": 2, "train/learning_rate": 3, "train/gradient_norm": 4}),
                         ["ml.custom:3|g|#metric:learning_rate", "ml.custom:4|g|#metric:gradient_norm", "ml.loss:2|g|#split:train"])

    def test_evaluations(self) -> None:
        for loss, accuracy in (("val_loss", "val_acc"), ("val/loss", "val/acc"), ("eval_loss", "eval/acc"),
                               ("validation.loss", "Validation/acc")):
            self.assertEqual(self.logged({loss: 0.5, accuracy: 0.75}),
                             ["ml.eval:0.5|g|#metric:loss", "ml.eval:0.75|g|#metric:acc", "ml.loss:0.5|g|#split:eval"])
        self.assertEqual(self.logged({"eval_runtime": 3, "eval_samples_per_second": 4, "value": 5}),
                         ["ml.custom:3|g|#metric:eval_runtime", "ml.custom:4|g|#metric:eval_samples_per_second",
                          "ml.custom:5|g|#metric:value"])

    def test_scalars_of_its_own(self) -> None:
        self.assertEqual(self.logged({"rewards/margin": -1.5, "epoch": 2, "kl|a,b": True, 7: 8, "x" * 80: 1}),
                         ["ml.custom:-1.5|g|#metric:rewards/margin", "ml.custom:1.0|g|#metric:kl_a_b",
                          f"ml.custom:1|g|#metric:{'x' * 55}~{gpumeter._wire.fnv1a(b'x' * 80):08x}", "ml.custom:2|g|#metric:epoch",
                          "ml.custom:8|g|#metric:7"])

    def test_what_is_no_scalar(self) -> None:
        """Values other than scalars that such loggers accept are skipped; tensors and numbers that are not finite are rejected."""
        self.assertEqual(self.logged({"text": "a", "nothing": None, "list": [1], "nested": {"a": 1}, "ok": 1}),
                         ["ml.custom:1|g|#metric:ok"])
        self.assertEqual(self.logged({"nan": float("nan"), "tensor": object(), "decimal": Decimal(1), "ok": 1}),
                         ["ml.client.dropped:3|c|#reason:refused", "ml.custom:1|g|#metric:ok"])
        self.assertEqual(self.logged(["loss"]), ["ml.client.dropped:1|c|#reason:refused"])

    def test_names_are_bounded(self) -> None:
        lines = self.logged({f"scalar {number}": number for number in range(1000)})
        self.assertEqual(len([line for line in lines if "ml.custom" in line]), 14)
        self.assertIn("ml.client.dropped:986|c|#reason:full", lines)
        lines = self.logged({**{f"scalar {number}": number for number in range(14)}, "lr": 1, "grad_norm": 1})
        self.assertEqual(["ml.custom" in line for line in lines], [True] * 16)

    def test_a_step(self) -> None:
        self.assertEqual(self.logged({}, step=41), ["ml.step:41|g|#"])
        run = self.begun()
        run.step(step=7)
        self.receiver.lines()
        run.log({"loss": 1}, step=6)
        self.clock.now += 1
        run.count()
        self.assertEqual(self.receiver.lines(), ["ml.loss:1|g|#run:resnet50,split:train"], "step() counts the steps here")

    def test_one_rank_logs(self) -> None:
        run = self.begun({"RANK": "1"})
        self.receiver.lines()
        run.log({"loss": 1, "val_acc": 2, "other": 3}, step=4)
        self.clock.now += 1
        run.count()
        self.assertEqual(self.receiver.lines(), [])

    def test_finish(self) -> None:
        for arguments, status in (((), "success"), ((0,), "success"), ((None,), "success"), ((1,), "aborted")):
            self.begun().finish(*arguments)
            self.assertIn(f"run_stop|{status}|", self.receiver.lines()[-1])

    def test_config(self) -> None:
        config = {"lr": 0.1, "framework": "jax", "version": "0.4", "model": "gpt", "batch_size": 512, "world_size": 8,
                  "layers": [1]}
        for given in (config, argparse.Namespace(**config)):
            run = self.begun(config=given)
            self.assertEqual(self.receiver.lines(), [
                "_e{9,8}:run_start|resnet50|d:1763740800|#run:resnet50,framework:jax,version:0.4,model:gpt",
                "ml.world_size:8|g|#run:resnet50"])
            self.assertEqual(run.config, config)
            run.stop()
            self.assertEqual(self.receiver.lines()[0], "ml.batch_size:512|g|#run:resnet50")

    def test_what_is_given_outright_and_the_environment_come_before_the_config(self) -> None:
        config = {"model": "gpt", "world_size": 8, "global_batch_size": 4, "batch_size": 2}
        self.begun({"WORLD_SIZE": "16"}, model="bert", config=config).stop()
        lines = self.receiver.lines()
        self.assertTrue(lines[0].endswith(",model:bert"), lines[0])
        self.assertEqual(lines[1:3], ["ml.world_size:16|g|#run:resnet50", "ml.batch_size:4|g|#run:resnet50"])

    def test_other_configs(self) -> None:
        self.assertEqual(self.begun(config=Hyperparameters()).config, {"lr": 0.1, "arch": "vit_b"})
        self.assertTrue(self.receiver.lines()[0].endswith(",model:vit_b"))
        for strange in (7, [1], object(), {"model": object(), "batch_size": "many", "version": 2}):
            self.begun(config=strange).stop()
            self.assertEqual([line.split("|d:")[0] for line in self.receiver.lines()],
                             ["_e{9,8}:run_start|resnet50", "_e{8,7}:run_stop|success"])


if __name__ == "__main__":
    unittest.main(warnings="error")
