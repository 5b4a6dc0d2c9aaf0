#!/usr/bin/env python3
"""The callback and the client in a real training by Hugging Face's Trainer, with forked and with spawned loader workers:
compares the daemon's page with the training's own values."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import torch
    import transformers
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from harness import Page  # noqa: E402
from jobs import Folder, dropped, shown, value  # noqa: E402


class HuggingFaceTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = self.enterContext(Folder())
        self.daemon = self.enterContext(self.folder.daemon())
        self.scratch = self.enterContext(tempfile.TemporaryDirectory())

    def trained(self, method: str) -> dict:
        environ = {**os.environ, "GPUMETER_SOCKET": self.folder.datagram, "CUDA_VISIBLE_DEVICES": "",
                   "TOKENIZERS_PARALLELISM": "false"}
        ended = subprocess.run([sys.executable, "-B", HERE / "hugging_face_job.py", method, self.scratch, method],
                               capture_output=True, text=True, timeout=300, env=environ)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return json.loads(ended.stdout.splitlines()[-1])

    def page_of(self, run: str, known: dict) -> Page:
        labels = f'run="{run}"'
        return shown(self.daemon, {
            f'ml_steps_total{{{labels},split="train"}}': known["steps"], f"ml_step{{{labels}}}": known["steps"],
            f'ml_samples_total{{{labels},split="train"}}': known["samples"],
            f'ml_tokens_total{{{labels},split="train"}}': known["tokens"],
            f'ml_steps_total{{{labels},split="eval"}}': known["eval_steps"],
            f'ml_samples_total{{{labels},split="eval"}}': known["eval_samples"],
            f'ml_step_duration_seconds_count{{{labels},split="train"}}': known["steps"],
            f'ml_phases_total{{{labels},phase="data_loading"}}': known["loaded"],
            f'ml_phases_total{{{labels},phase="eval"}}': len(known["evaluations"]),
            f"ml_batch_size{{{labels}}}": 8, f"ml_world_size{{{labels}}}": 1})

    def compare(self, method: str) -> None:
        known = self.trained(method)
        page = self.page_of(method, known)
        last, logs = known["evaluations"][-1], known["logs"]

        def found(series: str) -> float:
            number = value(page, series.replace("{", f'{{run="{method}",'))
            self.assertIsNotNone(number, series)
            return number
        steps = found('ml_step_duration_seconds_sum{split="train"}')
        print(f"{method}, transformers {transformers.__version__}, torch {torch.__version__}: steps took {steps:.3f} s, "
              f"by the training's own clock {known['step_seconds']:.3f} s of {known['wall']:.3f} s", flush=True)
        self.assertAlmostEqual(steps, known["step_seconds"], delta=0.05 * known["step_seconds"] + 0.05)
        for series, number in (('ml_loss{split="train"}', logs["loss"]), ('ml_loss{split="eval"}', last["eval_loss"]),
                               ('ml_eval_value{metric="accuracy"}', last["eval_accuracy"]),
                               ('ml_eval_value{metric="loss"}', last["eval_loss"]),
                               ('ml_eval_best_value{metric="loss"}', min(each["eval_loss"] for each in known["evaluations"])),
                               ('ml_target_value{metric="accuracy"}', 0.01), ('ml_target_value{metric="loss"}', 0.001),
                               ('ml_custom{metric="learning_rate"}', logs["learning_rate"]),
                               ('ml_custom{metric="gradient_norm"}', logs["grad_norm"]),
                               ('ml_run_info{framework="transformers",model="bert",precision="fp32",data_parallel="1"}', 1)):
            with self.subTest(series):
                self.assertAlmostEqual(found(series), number, places=6)
        runtime = sum(each["eval_runtime"] for each in known["evaluations"])
        self.assertAlmostEqual(found('ml_phase_seconds_total{phase="eval"}'), runtime, places=3)
        self.assertGreater(found('ml_time_to_solution_seconds{metric="accuracy"}'), 0)
        self.assertIsNone(value(page, f'ml_time_to_solution_seconds{{run="{method}",metric="loss"}}'))
        self.assertIsNotNone(value(page, f'ml_run_stop_timestamp_seconds{{run="{method}",status="success"}}'))
        self.assertEqual((dropped(page), known["dropped"]), ({}, {}))

    def test_forked_workers(self) -> None:
        self.compare("fork")

    def test_spawned_workers(self) -> None:
        self.compare("spawn")


if __name__ == "__main__":
    unittest.main(verbosity=2)
