#!/usr/bin/env python3
"""usage: triton_server.py HTTP_PORT GRPC_PORT METRICS_PORT

Serves a model of three tokens by a real Triton on the processor. For each line of its input asks it once and prints the answer."""
import sys

import numpy as np
from pytriton.client import DecoupledModelClient
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

http, grpc, metrics = map(int, sys.argv[1:])


def tokens(requests):
    for token in range(3):
        yield [{"token": np.array([[token]], dtype=np.float32)} for _ in requests]


config = TritonConfig(http_address="127.0.0.1", grpc_address="127.0.0.1", http_port=http, grpc_port=grpc, metrics_port=metrics,
                      allow_gpu_metrics=False)
with Triton(config=config) as triton:
    triton.bind(model_name="tiny", infer_func=tokens, inputs=[Tensor(name="prompt", dtype=np.float32, shape=(1,))],
                outputs=[Tensor(name="token", dtype=np.float32, shape=(1,))], config=ModelConfig(max_batch_size=8, decoupled=True))
    triton.run()
    with DecoupledModelClient(f"grpc://127.0.0.1:{grpc}", "tiny") as client:
        print("ready", flush=True)
        for _ in sys.stdin:
            answers = client.infer_sample(np.array([1.0], dtype=np.float32))
            print(*(int(answer["token"][0]) for answer in answers), flush=True)
