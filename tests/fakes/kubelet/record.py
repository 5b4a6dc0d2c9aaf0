#!/usr/bin/env python3
"""Writes tests/fixtures/kubelet: messages that the unit tests decode, made from the definitions of Kubernetes."""
from pathlib import Path

import messages as k

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures/kubelet"
IDS = {name: digit * 64 for name, digit in (("train", "a"), ("logger", "b"), ("serve", "c"), ("etcd", "d"))}

train = k.pod("bert-7d9c5b8f6-x2x4z", "0f1e2d3c-1111-4222-8333-444455556666", {"train": IDS["train"]}, sidecars={"logger": IDS["logger"]},
              labels={"pod-template-hash": "7d9c5b8f6", "team": "nlp", "app.kubernetes.io/name": "bert", "secret": "not exported"},
              owner=("ReplicaSet", "bert-7d9c5b8f6"),
              devices={"train": {"nvidia.com/gpu": ["GPU-5a::0", "GPU-5a::1", "MIG-77"], "claim:gpus/one": ["gpu.nvidia.com/node-1/gpu-3"]}})
static = k.pod("etcd-node-1", "6d3a0f8e-0000-4000-8000-000000000001", {"etcd": IDS["etcd"]}, ns="kube-system", owner=("Node", "node-1"),
               annotations={"kubernetes.io/config.hash": "7260904bbd08e72e4dff95d9fccd2ee8"})
done = k.pod("old-job-1", "aaaaaaaa-1111-4222-8333-444455556666", {"main": "e" * 64}, phase="Succeeded", owner=("Job", "old-job"),
             devices={"main": {"nvidia.com/gpu": ["GPU-gone"]}})

runtime = k.cri.ListContainersResponse()
for container in ("train", "logger"):
    made = runtime.containers.add(id=IDS[container], pod_sandbox_id="f" * 64, state=k.cri.CONTAINER_RUNNING, created_at=1)
    made.metadata.name, made.image.image = container, "registry.example/train:1"
    made.labels.update({"io.kubernetes.pod.name": train.metadata.name, "io.kubernetes.pod.namespace": "ml",
                        "io.kubernetes.pod.uid": train.metadata.uid, "io.kubernetes.container.name": container})
runtime.containers.add(id="0" * 64).labels.update({"com.docker": "not the kubelet's"})

MESSAGES = {
    "pod.pb": train.SerializeToString(),
    "static_pod.pb": static.SerializeToString(),
    "ended_pod.pb": done.SerializeToString(),
    "event.pb": k.event("ADDED", train),
    "list.pb": k.pods.ListPodsResponse(pods=[each.SerializeToString() for each in (train, static, done)]).SerializeToString(),
    "resources.pb": k.resources({("ml", "bert-7d9c5b8f6-x2x4z", "train"): {"nvidia.com/gpu": ["GPU-5a::0"]},
                                 ("ml", "amd-0", "main"): {"amd.com/gpu": ["0000:19:00.0"]}},
                                {("ml", "dra-0", "main"): [("gpu.nvidia.com", "gpu-1-mig-2g47gb-14-0")]}).SerializeToString(),
    "containers.pb": runtime.SerializeToString(),
    "containers_request.pb": k.cri.ListContainersRequest(filter=k.cri.ContainerFilter(
        state=k.cri.ContainerStateValue(state=k.cri.CONTAINER_RUNNING))).SerializeToString(),
}

if __name__ == "__main__":
    FIXTURES.mkdir(exist_ok=True)
    for name, content in MESSAGES.items():
        (FIXTURES / name).write_bytes(content)
