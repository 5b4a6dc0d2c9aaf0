"""A real training loop of torch on the CPU. Prints its own values as JSON. usage: torch_loop_job.py NAME"""
import json
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packaging/python"))
import gpumeter  # noqa: E402

BATCHES = [16] * 9 + [6]  # the last of an epoch is smaller
EPOCHS = 2


def main() -> None:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    inputs = torch.randn(sum(BATCHES), 8)
    labels = (inputs[:, 0] > 0).long()
    seconds, accuracies = 0.0, []
    facts = {"precision": torch.get_default_dtype(), "data_parallel": 1}
    with gpumeter.run(sys.argv[1], framework="pytorch", version=torch.__version__, model="mlp", facts=facts) as run:
        run.batch_size(16)
        for _ in range(EPOCHS):
            for chunk, truth in zip(inputs.split(BATCHES), labels.split(BATCHES)):
                began = time.monotonic()
                run.begin_step()
                with run.phase("forward"):
                    loss = torch.nn.functional.cross_entropy(model(chunk), truth)
                with run.phase("backward"):
                    loss.backward()
                with run.phase("optimizer"):
                    optimizer.step()
                    optimizer.zero_grad()
                run.step(samples=len(chunk), flops=6 * len(chunk) * 8 * 34, dtype="fp32", loss=loss.item())
                seconds += time.monotonic() - began
            with run.phase("eval"), torch.no_grad():
                accuracies.append((model(inputs).argmax(-1) == labels).double().mean().item())
            run.eval("accuracy", accuracies[-1], target=0.6)
        try:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
        except torch.OutOfMemoryError as error:  # as a loop does that tries a smaller batch
            run.failed(error)
    print(json.dumps({"steps": EPOCHS * len(BATCHES), "samples": EPOCHS * sum(BATCHES), "seconds": seconds, "loss": loss.item(),
                      "flops": EPOCHS * sum(BATCHES) * 6 * 8 * 34, "accuracies": accuracies, "version": torch.__version__,
                      "dropped": dict(run.dropped)}))


if __name__ == "__main__":
    main()
