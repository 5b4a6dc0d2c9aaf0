#!/usr/bin/env python3
"""The callback in a real training by Lightning's Trainer: compares the daemon's page with the training's own values."""
import sys
import unittest

try:
    import lightning
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from real_run import RealRun, value


class LightningTest(RealRun):
    def test_a_training(self) -> None:
        known = self.trained("lightning_job.py", "fit")
        last, losses = known["evaluations"][-1], [each["val_loss"] for each in known["evaluations"]]
        page = self.compare("fit", {
            'ml_steps_total{split="train"}': 12, "ml_step": 12, 'ml_samples_total{split="train"}': known["samples"],
            'ml_step_duration_seconds_count{split="train"}': 12, 'ml_steps_total{split="eval"}': 6,
            'ml_samples_total{split="eval"}': 40, 'ml_phases_total{phase="eval"}': 2, "ml_batch_size": 16, "ml_world_size": 1,
        }, {'ml_eval_value{metric="acc"}': last["val_acc"], 'ml_eval_value{metric="loss"}': last["val_loss"],
            'ml_eval_best_value{metric="loss"}': min(losses), 'ml_loss{split="eval"}': last["val_loss"],
            'ml_target_value{metric="acc"}': 0.01, 'ml_loss{split="train"}': known["trained"],
            'ml_custom{metric="margin"}': known["margin"], 'ml_custom{metric="learning_rate"}': 0.01})
        self.assertEqual(known["steps"], 12)
        self.assert_all_reported(page, known)
        self.assertEqual(self.facts(page, "fit"), {"framework": "lightning", "version": known["version"], "model": "Classifier",
                                                   "precision": "bf16", "data_parallel": "1"})
        self.assertGreater(value(page, 'ml_time_to_solution_seconds{run="fit",metric="acc"}') or 0, 0)
        self.assertIsNotNone(value(page, 'ml_run_stop_timestamp_seconds{run="fit",status="success"}'))
        took = self.took(page, "fit")
        print(f"lightning {lightning.__version__}: 12 steps took {took:.4f} s, by the training's own clock {known['seconds']:.4f} s", flush=True)
        self.assertAlmostEqual(took, known["seconds"], delta=0.05 * known["seconds"] + 0.05)
        evaluated = value(page, 'ml_phase_seconds_total{run="fit",phase="eval"}')
        self.assertAlmostEqual(evaluated, known["validated"], delta=0.05 * known["validated"] + 0.02)

    def test_two_processes(self) -> None:
        known = self.trained("lightning_job.py", "two", "two")
        last = known["evaluations"][-1]
        page = self.compare("two", {
            'ml_steps_total{split="train"}': 2 * known["steps"], "ml_step": known["steps"], 'ml_samples_total{split="train"}': 2 * 2 * 45,
            'ml_step_duration_seconds_count{split="train"}': 2 * known["steps"], "ml_batch_size": 32, "ml_world_size": 2,
        }, {'ml_eval_value{metric="acc"}': last["val_acc"], 'ml_loss{split="eval"}': last["val_loss"], 'ml_loss{split="train"}': known["trained"]})
        self.assertEqual(self.facts(page, "two")["data_parallel"], "2")
        self.assert_all_reported(page, known)
        self.assertIsNotNone(value(page, 'ml_run_stop_timestamp_seconds{run="two",status="success"}'))
        print(f"two processes: {known['steps']} steps each, {known['evaluations']}", flush=True)

    def test_a_training_that_runs_out_of_memory(self) -> None:
        done = self.ended("lightning_job.py", "oom", "fail")
        self.assertIn("OutOfMemoryError", done.stderr)
        page = self.compare("oom", {"ml_out_of_memory_errors_total": 1, "ml_step": 3, 'ml_steps_total{split="train"}': 3}, {})
        self.assertIsNotNone(value(page, 'ml_run_stop_timestamp_seconds{run="oom",status="aborted"}'))


if __name__ == "__main__":
    unittest.main(verbosity=2)
