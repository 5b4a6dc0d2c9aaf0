#!/usr/bin/env python3
"""The client in a plain training loop of torch: compares the daemon's page with the loop's own values."""
import sys
import unittest

try:
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from real_run import RealRun, value


class TorchLoopTest(RealRun):
    def test_a_training_loop(self) -> None:
        known = self.trained("torch_loop_job.py", "loop")
        page = self.compare("loop", {
            'ml_steps_total{split="train"}': known["steps"], "ml_step": known["steps"], 'ml_samples_total{split="train"}': known["samples"],
            'ml_step_duration_seconds_count{split="train"}': known["steps"], 'ml_model_flops_total{dtype="fp32"}': known["flops"],
            **{f'ml_phases_total{{phase="{phase}"}}': known["steps"] for phase in ("forward", "backward", "optimizer")},
            'ml_phases_total{phase="eval"}': 2, "ml_batch_size": 16, "ml_out_of_memory_errors_total": 1,
        }, {'ml_loss{split="train"}': known["loss"], 'ml_eval_value{metric="accuracy"}': known["accuracies"][-1],
            'ml_eval_best_value{metric="accuracy"}': max(known["accuracies"]), 'ml_target_value{metric="accuracy"}': 0.6})
        self.assert_all_reported(page, known)
        self.assertEqual(self.facts(page, "loop"), {"framework": "pytorch", "version": known["version"], "model": "mlp",
                                                    "precision": "fp32", "data_parallel": "1"})
        self.assertEqual(page.of("ml_allocator_memory_bytes", run="loop"), {}, "there is no allocator of a device here")
        self.assertIsNotNone(value(page, 'ml_run_stop_timestamp_seconds{run="loop",status="success"}'))
        took = self.took(page, "loop")
        print(f"torch {torch.__version__}: {known['steps']} steps took {took:.4f} s, by the loop's own clock {known['seconds']:.4f} s", flush=True)
        self.assertAlmostEqual(took, known["seconds"], delta=0.05 * known["seconds"] + 0.02)


if __name__ == "__main__":
    unittest.main(verbosity=2)
