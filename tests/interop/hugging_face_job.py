"""A real training by Hugging Face's Trainer on the CPU, whose dataset holds the run. The last line of its output has the
training's own values, as JSON.

usage: hugging_face_job.py NAME FOLDER START_METHOD
"""
import json
import sys
import time
from pathlib import Path

import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packaging/python"))
import gpumeter  # noqa: E402

PAUSE = 0.5  # seconds that a checkpoint and an evaluation take longer than they would


class Items(torch.utils.data.Dataset):
    """Random tokens; whether the first is even is the label."""

    def __init__(self, count: int, run: gpumeter.Run) -> None:
        self.tokens = torch.randint(5, 100, (count, 8), generator=torch.Generator().manual_seed(count))
        self.run = run

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict:
        with self.run.phase("data_loading"):
            return {"input_ids": self.tokens[index], "labels": self.tokens[index][0] % 2}


class Trainer(transformers.Trainer):
    """Two slow things between steps."""

    def _save_checkpoint(self, *arguments, **named) -> None:
        time.sleep(PAUSE)
        super()._save_checkpoint(*arguments, **named)

    def evaluate(self, *arguments, **named) -> dict:
        time.sleep(PAUSE)
        return super().evaluate(*arguments, **named)


class Witness(transformers.TrainerCallback):
    """The same events, written down."""

    def __init__(self) -> None:
        self.began = self.seconds = 0.0
        self.logs: dict = {}
        self.evaluations: list = []

    def on_step_begin(self, args, state, control, **_) -> None:
        self.began = time.monotonic()

    def on_step_end(self, args, state, control, **_) -> None:
        self.seconds += time.monotonic() - self.began

    def on_log(self, args, state, control, logs, **_) -> None:
        self.logs.update(logs)

    def on_evaluate(self, args, state, control, metrics, **_) -> None:
        self.evaluations.append(dict(metrics))


def accuracy(prediction: transformers.EvalPrediction) -> dict:
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main() -> None:
    name, folder, method = sys.argv[1:]
    torch.manual_seed(1)
    config = transformers.BertConfig(vocab_size=100, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                                     intermediate_size=16)
    arguments = transformers.TrainingArguments(
        output_dir=folder, num_train_epochs=2, per_device_train_batch_size=4, gradient_accumulation_steps=2,
        per_device_eval_batch_size=8, eval_strategy="epoch", save_strategy="epoch", logging_steps=1, report_to=[],
        disable_tqdm=True, dataloader_num_workers=2, dataloader_persistent_workers=True, use_cpu=True,
        include_num_input_tokens_seen=True)
    torch.multiprocessing.set_start_method(method)
    witness = Witness()
    with gpumeter.run(name, framework="transformers", model="bert") as run:
        callback = gpumeter.hugging_face_callback(run, targets={"eval_accuracy": 0.01, "eval_loss": 0.001})
        trainer = Trainer(model=transformers.BertForSequenceClassification(config), args=arguments, compute_metrics=accuracy,
                          train_dataset=Items(96, run), eval_dataset=Items(16, run), callbacks=[witness, callback])
        began = time.monotonic()
        trainer.train()
        wall = time.monotonic() - began
        del trainer  # and with it the loaders' workers
    print(json.dumps({"steps": 24, "samples": 192, "tokens": 192 * 8, "eval_steps": 4, "eval_samples": 32, "loaded": 192 + 2 * 16,
                      "step_seconds": witness.seconds, "wall": wall, "logs": witness.logs, "evaluations": witness.evaluations,
                      "dropped": dict(run.dropped)}))


if __name__ == "__main__":
    main()
