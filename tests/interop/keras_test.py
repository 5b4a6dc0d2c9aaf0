#!/usr/bin/env python3
"""The callback in a real training by Keras, on JAX and on TensorFlow: compares the daemon's page with the training's own values."""
import sys
import unittest

try:
    import jax
    import tensorflow
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from real_run import RealRun, value


class KerasTest(RealRun):
    def compare_training(self, backend: str, version: str) -> None:
        known = self.trained("keras_job.py", backend, KERAS_BACKEND=backend, TF_CPP_MIN_LOG_LEVEL="3", JAX_PLATFORMS="cpu")
        last, history = known["evaluations"][-1], known["history"]
        self.assertEqual((known["iterations"], len(known["evaluations"])), (21, 3))
        page = self.compare(backend, {
            'ml_steps_total{split="train"}': 21, "ml_step": 21, 'ml_samples_total{split="train"}': 300,
            'ml_step_duration_seconds_count{split="train"}': 21, 'ml_steps_total{split="eval"}': 9,
            'ml_phases_total{phase="eval"}': 3, "ml_batch_size": 16,
        }, {'ml_loss{split="train"}': history["loss"][-1], 'ml_loss{split="eval"}': last["loss"],
            'ml_eval_value{metric="accuracy"}': last["accuracy"], 'ml_eval_value{metric="loss"}': history["val_loss"][-1],
            'ml_eval_best_value{metric="accuracy"}': max(history["val_accuracy"]), 'ml_target_value{metric="accuracy"}': 0.01,
            'ml_custom{metric="accuracy"}': history["accuracy"][-1], 'ml_custom{metric="learning_rate"}': 0.01})
        self.assert_all_reported(page, known)
        self.assertEqual(self.facts(page, backend)["precision"], "fp32")
        self.assertEqual({name: self.facts(page, backend)[name] for name in ("framework", "version", "model")},
                         {"framework": "keras", "version": known["version"], "model": "mlp"})
        self.assertIsNotNone(value(page, f'ml_run_stop_timestamp_seconds{{run="{backend}",status="success"}}'))
        took, evaluated = self.took(page, backend), value(page, f'ml_phase_seconds_total{{run="{backend}",phase="eval"}}')
        print(f"keras {known['version']} on {backend} {version}: 21 steps took {took:.3f} s, the epochs by the training's own clock "
              f"{known['trained']:.3f} s", flush=True)
        self.assertAlmostEqual(took, known["trained"], delta=0.05 * known["trained"] + 0.05)
        self.assertAlmostEqual(evaluated, known["validated"], delta=0.05 * known["validated"] + 0.05)

    def test_on_jax(self) -> None:
        self.compare_training("jax", jax.__version__)

    def test_on_tensorflow(self) -> None:
        self.compare_training("tensorflow", tensorflow.__version__)


if __name__ == "__main__":
    unittest.main(verbosity=2)
