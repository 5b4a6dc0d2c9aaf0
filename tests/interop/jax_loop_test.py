#!/usr/bin/env python3
"""The client in a training loop of JAX: compares the daemon's page with the loop's own values."""
import sys
import unittest

try:
    import jax
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from real_run import RealRun, value


class JaxLoopTest(RealRun):
    def test_a_training_loop(self) -> None:
        known = self.trained("jax_loop_job.py", "loop", JAX_PLATFORMS="cpu")
        page = self.compare("loop", {
            'ml_steps_total{split="train"}': known["steps"], "ml_step": known["steps"], 'ml_samples_total{split="train"}': known["samples"],
            'ml_model_flops_total{dtype="fp32"}': known["steps"] * 6 * 64 * 512 * 512 * 3, 'ml_phases_total{phase="compile"}': 3,
            "ml_out_of_memory_errors_total": 1,
        }, {'ml_loss{split="train"}': known["last"], 'ml_eval_value{metric="mse"}': known["losses"][-1]})
        self.assert_all_reported(page, known)
        self.assertEqual(self.facts(page, "loop"), {"framework": "jax", "version": known["version"], "precision": "fp32", "data_parallel": "1"})
        self.assertEqual(page.of("ml_allocator_memory_bytes", run="loop"), {}, "JAX has no allocator's numbers for a CPU")
        self.assertIsNotNone(value(page, 'ml_run_stop_timestamp_seconds{run="loop",status="success"}'))
        compiled, took = value(page, 'ml_phase_seconds_total{run="loop",phase="compile"}'), self.took(page, "loop")
        print(f"jax {jax.__version__}: steps took {took:.3f} s, by the loop's own clock {known['seconds']:.3f} s ({known['dispatched']:.3f} s to "
              f"start them); compiled for {compiled:.3f} s", flush=True)
        self.assertAlmostEqual(took, known["seconds"], delta=0.1 * known["seconds"] + 0.05)
        self.assertGreater(compiled, 0.5 * known["compiled"], "three compilations, of which the loop measured one with its first step")


if __name__ == "__main__":
    unittest.main(verbosity=2)
