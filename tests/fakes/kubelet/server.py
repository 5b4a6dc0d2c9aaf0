"""A kubelet for tests: a gRPC server of grpcio on Unix sockets, with Kubernetes' messages (messages.py). Raises ImportError without
python3-grpcio, protobuf-compiler and python3-protobuf."""
from __future__ import annotations

import queue
import threading
from concurrent import futures
from pathlib import Path

import grpc
import messages as k


class Kubelet:
    """`pods`: by uid. `resources`: the answer of pod-resources. `refusal`: a status and message in place of every answer."""

    def __init__(self, folder: Path, pods_api: bool = True):
        self.pods_socket, self.resources_socket = folder / "pods-api.sock", folder / "kubelet.sock"
        self.pods_api = pods_api
        self.pods: dict[str, k.core.Pod] = {}
        self.resources = k.resources({})
        self.refusal: tuple[grpc.StatusCode, str] | None = None
        self.calls: dict[str, int] = {}
        self.lock = threading.Lock()
        self.watchers: list[queue.Queue] = []
        self.server: grpc.Server | None = None

    def __enter__(self) -> "Kubelet":
        self.start()
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def start(self) -> None:
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        if self.pods_api:
            self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1alpha1.Pods", {
                "ListPods": grpc.unary_unary_rpc_method_handler(self.list_pods, k.pods.ListPodsRequest.FromString, k.pods.ListPodsResponse.SerializeToString),
                "WatchPods": grpc.unary_stream_rpc_method_handler(self.watch, k.pods.WatchPodsRequest.FromString)}),))
            self.server.add_insecure_port(f"unix:{self.pods_socket}")
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1.PodResourcesLister", {
            "List": grpc.unary_unary_rpc_method_handler(self.list_resources, k.podresources.ListPodResourcesRequest.FromString,
                                                        k.podresources.ListPodResourcesResponse.SerializeToString)}),))
        self.server.add_insecure_port(f"unix:{self.resources_socket}")
        self.server.start()

    def stop(self) -> None:
        if self.server is None:
            return
        with self.lock:
            for watcher in self.watchers:
                watcher.put(None)
        self.server.stop(None).wait(10)
        self.server = None
        for socket in (self.pods_socket, self.resources_socket):
            socket.unlink(missing_ok=True)

    def put(self, pod) -> None:
        with self.lock:
            kind = "MODIFIED" if pod.metadata.uid in self.pods else "ADDED"
            self.pods[pod.metadata.uid] = pod
            self.tell(k.event(kind, pod))

    def delete(self, uid: str) -> None:
        """The event has the name, namespace and uid only, as the kubelet's."""
        with self.lock:
            gone = self.pods.pop(uid)
            left = k.core.Pod()
            left.metadata.name, left.metadata.namespace, left.metadata.uid = gone.metadata.name, gone.metadata.namespace, uid
            self.tell(k.event("DELETED", left))

    def tell(self, event: bytes) -> None:
        for watcher in self.watchers:
            watcher.put(event)

    def answer(self, name: str, context) -> None:
        with self.lock:
            self.calls[name] = self.calls.get(name, 0) + 1
            refusal = self.refusal
        if refusal:
            context.abort(*refusal)

    def list_pods(self, _, context):
        self.answer("ListPods", context)
        with self.lock:
            return k.pods.ListPodsResponse(pods=[pod.SerializeToString() for pod in self.pods.values()])

    def watch(self, _, context):
        self.answer("WatchPods", context)
        own: queue.Queue = queue.Queue()
        with self.lock:
            first = [k.event("ADDED", pod) for pod in self.pods.values()] + [k.event("INITIAL_SYNC_COMPLETE")]
            self.watchers.append(own)
        context.add_callback(lambda: own.put(None))
        yield from first
        while (event := own.get()) is not None:
            yield event
        with self.lock:
            self.watchers.remove(own)

    def list_resources(self, _, context):
        self.answer("List", context)
        with self.lock:
            return self.resources
