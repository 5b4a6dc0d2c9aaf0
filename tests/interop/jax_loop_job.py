"""A real training loop of JAX on the CPU, whose steps run after their calls have returned. Prints its own values as JSON.
usage: jax_loop_job.py NAME"""
import json
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packaging/python"))
import gpumeter  # noqa: E402

BATCH, WIDTH, STEPS = 64, 512, 40


def loss_of(weights, batch, truth):
    for weight in weights[:-1]:
        batch = jnp.tanh(batch @ weight)
    return jnp.mean((batch @ weights[-1] - truth) ** 2)


@jax.jit
def update(weights, batch, truth):
    loss, gradients = jax.value_and_grad(loss_of)(weights, batch, truth)
    return [weight - 0.01 * gradient for weight, gradient in zip(weights, gradients)], loss


def main() -> None:
    keys = jax.random.split(jax.random.PRNGKey(1), 4)
    weights = [jax.random.normal(key, (WIDTH, WIDTH)) / WIDTH ** 0.5 for key in keys[:3]]
    batch = jax.random.normal(keys[3], (BATCH, WIDTH))
    truth = batch.sum(axis=1, keepdims=True) * jnp.ones((1, WIDTH)) / WIDTH
    few, few_truths = batch[:8], truth[:8]
    jax.block_until_ready((weights, batch, truth, few, few_truths))
    losses = []
    mesh = jax.sharding.Mesh(jax.local_devices()[:1], ("data",))
    with gpumeter.run(sys.argv[1], facts={"precision": "float32"}) as run:
        step = gpumeter.jax_step(run, update, samples=BATCH, flops=6 * BATCH * WIDTH * WIDTH * 3, dtype="fp32", mesh=mesh)
        began = time.monotonic()
        weights, loss = step(weights, batch, truth)
        jax.block_until_ready(loss)
        compiled = time.monotonic() - began
        began = time.monotonic()
        for number in range(1, STEPS):
            weights, loss = step(weights, batch, truth)
            losses.append(loss)
        dispatched = time.monotonic() - began
        jax.block_until_ready(loss)
        seconds = time.monotonic() - began
        run.eval("mse", float(loss))
        small = step(weights, few, few_truths)  # another shape: JAX compiles again
        jax.block_until_ready(small)
        try:  # an allocation that really fails
            jax.block_until_ready(gpumeter.jax_step(run, jax.jit(lambda: jnp.ones((1 << 24, 1 << 22))))())
        except jax.errors.JaxRuntimeError as error:
            run.failed(error)  # the wrapper has seen it if JAX raised it from the call
    print(json.dumps({"steps": STEPS + 1, "samples": (STEPS + 1) * BATCH, "seconds": seconds, "dispatched": dispatched, "compiled": compiled,
                      "losses": [float(each) for each in losses], "last": float(small[1]), "version": jax.__version__,
                      "dropped": dict(run.dropped)}))


if __name__ == "__main__":
    main()
