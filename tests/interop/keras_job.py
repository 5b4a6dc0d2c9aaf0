"""A real training by Keras on the CPU. Prints its own values as JSON. usage: KERAS_BACKEND=jax|tensorflow|torch keras_job.py NAME"""
import json
import sys
import time
from pathlib import Path

import keras
import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packaging/python"))
import gpumeter  # noqa: E402

SAMPLES, BATCH, EPOCHS = 100, 16, 3  # 7 batches of an epoch, the last with 4 samples
TESTED = 40


class Witness(keras.callbacks.Callback):
    """The same events, written down. It has none for the end of a batch either."""

    def __init__(self) -> None:
        super().__init__()
        self.evaluations: list = []
        self.began = self.validated = self.trained = 0.0

    def on_train_batch_begin(self, batch, logs=None):
        if batch == 0:
            self.epoch = time.monotonic()

    def on_test_begin(self, logs=None):
        self.began = time.monotonic()
        self.trained += self.began - self.epoch

    def on_test_end(self, logs=None):
        self.validated += time.monotonic() - self.began
        self.evaluations.append({name: float(value) for name, value in logs.items()})


def data(count: int) -> tuple:
    x = numpy.random.default_rng(count).normal(size=(count, 4)).astype("float32")
    return x, (x.sum(axis=1) > 0).astype("int32")


def main() -> None:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(2, activation="softmax")],
                             name="mlp")
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    witness = Witness()
    callback = gpumeter.keras_callback(sys.argv[1], batch_size=BATCH, samples=SAMPLES, targets={"val_accuracy": 0.01})
    history = model.fit(*data(SAMPLES), batch_size=BATCH, epochs=EPOCHS, validation_data=data(TESTED), verbose=0,
                        callbacks=[callback, witness])
    print(json.dumps({"iterations": int(model.optimizer.iterations), "evaluations": witness.evaluations, "validated": witness.validated,
                      "trained": witness.trained, "history": {name: [float(each) for each in values] for name, values in history.history.items()},
                      "version": keras.__version__, "dropped": {}}))


if __name__ == "__main__":
    main()
