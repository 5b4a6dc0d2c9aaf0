"""Kubernetes' messages for tests, made by protoc from the definitions beside this file. Requires protobuf-compiler and
python3-protobuf; raises ImportError without them."""
from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("core", "pods", "podresources", "cri")


def load() -> tuple:
    if not shutil.which("protoc"):
        raise ImportError("protoc is not installed")
    import google.protobuf  # noqa: F401
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", f"-I{HERE}", f"--python_out={folder}", *(f"{HERE}/{name}.proto" for name in NAMES)], check=True)
        sys.path.insert(0, folder)
        try:
            return tuple(importlib.import_module(f"{name}_pb2") for name in NAMES)
        finally:
            sys.path.remove(folder)


core, pods, podresources, cri = load()

STARTED = 1763800000  # seconds since 1970


def pod(name: str, uid: str, containers: dict[str, str], *, ns: str = "ml", labels: dict[str, str] | None = None, owner: tuple[str, str] | None = None,
        phase: str = "Running", annotations: dict[str, str] | None = None, devices: dict[str, dict[str, list[str]]] | None = None,
        sidecars: dict[str, str] | None = None):
    """`containers` and `sidecars`: name -> id; `devices`: container -> resource -> ids, as allocatedResourcesStatus has them."""
    made = core.Pod()
    made.metadata.name, made.metadata.namespace, made.metadata.uid = name, ns, uid
    made.metadata.resourceVersion, made.metadata.generation = "4711", 3
    made.metadata.labels.update(labels or {})
    made.metadata.annotations.update(annotations or {})
    if owner:
        made.metadata.ownerReferences.add(kind="Noise", name="not-the-controller", controller=False)
        made.metadata.ownerReferences.add(kind=owner[0], name=owner[1], uid="9f0e", apiVersion="v1", controller=True)
    made.spec.nodeName = "node-1"
    made.status.phase, made.status.qosClass = phase, "Guaranteed"
    made.status.startTime.seconds = STARTED
    for group, to in ((containers, made.status.containerStatuses), (sidecars or {}, made.status.initContainerStatuses)):
        for container, container_id in group.items():
            made.spec.containers.add(name=container, image="registry.example/train:1", command=["train"])
            status = to.add(name=container, ready=True, restartCount=0, image="registry.example/train:1", containerID=f"containerd://{container_id}")
            for resource, ids in (devices or {}).get(container, {}).items():
                given = status.allocatedResourcesStatus.add(name=resource)
                for device in ids:
                    given.resources.add(resourceID=device, health="Healthy")
    return made


def event(kind: str, of=None) -> bytes:
    return pods.WatchPodsEvent(type=kind, pod=of.SerializeToString() if of else b"").SerializeToString()


def resources(given: dict[tuple[str, str, str], dict[str, list[str]]], claims: dict[tuple[str, str, str], list[tuple[str, str]]] | None = None):
    """`given`: (namespace, pod, container) -> resource -> device ids; `claims`: the same -> (driver, device)."""
    answer = podresources.ListPodResourcesResponse()
    of_pod = {}
    for ns, name, container in [*given, *(claims or {})]:
        own = of_pod.get((ns, name)) or of_pod.setdefault((ns, name), answer.pod_resources.add(name=name, namespace=ns, cpu_ids=[0, 1]))
        part = own.containers.add(name=container, cpu_ids=[0, 1])
        part.memory.add(memory_type="memory", size=1 << 30)
        for resource, ids in given.get((ns, name, container), {}).items():
            devices = part.devices.add(resource_name=resource, device_ids=ids)
            devices.topology.nodes.add(ID=1)
        for driver, device in (claims or {}).get((ns, name, container), []):
            claim = part.dynamic_resources.add(claim_name="gpus", claim_namespace=ns)
            made = claim.claim_resources.add(driver_name=driver, pool_name="node-1", device_name=device)
            made.cdi_devices.add(name=f"k8s.{driver}/claim=0-{device}")
    return answer
