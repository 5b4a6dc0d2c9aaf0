"""A real training by Lightning's Trainer on the CPU. Prints its own values as JSON. usage: lightning_job.py NAME [fail|two]
"fail": a step raises; "two": two processes."""
import json
import logging
import sys
import time
import warnings
from pathlib import Path

import lightning.pytorch as pl
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packaging/python"))
import gpumeter  # noqa: E402

SAMPLES, BATCH, ACCUMULATED, EPOCHS = 90, 8, 2, 2  # 12 batches of an epoch, the last with 2 samples: 6 steps


class Classifier(pl.LightningModule):
    def __init__(self, fails: bool) -> None:
        super().__init__()
        self.fails = fails
        self.layer = torch.nn.Linear(4, 2)

    def training_step(self, batch, index):
        if self.fails and self.trainer.global_step == 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
        loss = torch.nn.functional.cross_entropy(self.layer(batch["x"]), batch["y"])
        self.log("train_loss", loss, on_step=True, on_epoch=True, sync_dist=True)
        self.log("margin", loss * 2)
        return loss

    def validation_step(self, batch, index):
        scores = self.layer(batch["x"])
        self.log("val_loss", torch.nn.functional.cross_entropy(scores, batch["y"]), sync_dist=True)
        self.log("val_acc", (scores.argmax(-1) == batch["y"]).float().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


class Witness(pl.Callback):
    """The same events, written down."""

    def __init__(self) -> None:
        self.began, self.seconds, self.steps = None, 0.0, 0
        self.evaluations: list = []
        self.validated = 0.0

    def on_train_batch_start(self, trainer, module, batch, index):
        self.began = self.began or time.monotonic()

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        if trainer.global_step > self.steps:
            self.steps = trainer.global_step
            self.seconds += time.monotonic() - self.began
            self.began = None
            self.loss, self.margin = (trainer.callback_metrics[name].item() for name in ("train_loss_step", "margin"))

    def on_validation_start(self, trainer, module):
        self.validation = time.monotonic()

    def on_validation_end(self, trainer, module):
        if not trainer.sanity_checking:
            self.validated += time.monotonic() - self.validation
            self.evaluations.append({name: trainer.callback_metrics[name].item() for name in ("val_loss", "val_acc")})


def data(count: int) -> torch.utils.data.DataLoader:
    x = torch.randn(count, 4, generator=torch.Generator().manual_seed(count))
    return torch.utils.data.DataLoader([{"x": each, "y": int(each.sum() > 0)} for each in x], batch_size=BATCH)


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.manual_seed(1)
    witness = Witness()
    callback = gpumeter.lightning_callback(sys.argv[1], targets={"val_acc": 0.01})
    model = Classifier(fails=sys.argv[2:] == ["fail"])
    trainer = pl.Trainer(max_epochs=EPOCHS, accelerator="cpu", precision="bf16-mixed", accumulate_grad_batches=ACCUMULATED, logger=False,
                         log_every_n_steps=1, enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=True,
                         devices=2 if sys.argv[2:] == ["two"] else 1, callbacks=[witness, callback])
    trainer.fit(model, data(SAMPLES), data(20))
    trained = trainer.callback_metrics["train_loss"].item()  # the mean of the last epoch
    if trainer.global_rank != 0:
        return
    print(json.dumps({"steps": witness.steps, "samples": SAMPLES * EPOCHS, "seconds": witness.seconds, "loss": witness.loss, "trained": trained,
                      "margin": witness.margin, "evaluations": witness.evaluations, "validated": witness.validated,
                      "version": pl.__version__, "dropped": {}}))


if __name__ == "__main__":
    main()
