#!/usr/bin/env python3
"""Given processes in pods' control groups and a kubelet made of grpcio and Kubernetes' messages, then the page has the pods' names: over
new and deleted pods, a restart of the kubelet, its rate limit, and answers that are none."""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import ROOT, Daemon, wait_until
from kubelet_node import IDS, UIDS, errors, names, node, wait_for_names

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "fakes" / name) for name in ("kubelet", "nvml")]
from machine import Machine  # noqa: E402
try:
    import grpc
    import messages as k
    from server import Kubelet
except ImportError as error:
    print(f"skipped: requires python3-grpcio, python3-protobuf and protobuf-compiler ({error})")
    sys.exit(77)

BERT = {"namespace": "ml", "pod": "bert-7d9c5b8f6-x2x4z", "container": "train", "owner_kind": "Deployment", "owner": "bert", "label_team": "nlp"}
GPT = {"namespace": "ml", "pod": "gpt-0", "container": "main", "owner_kind": "StatefulSet", "owner": "gpt"}


def bert():
    return k.pod("bert-7d9c5b8f6-x2x4z", UIDS[0], {"train": IDS[0]}, labels={"pod-template-hash": "7d9c5b8f6", "team": "nlp", "other": "no"},
                 owner=("ReplicaSet", "bert-7d9c5b8f6"))


def gpt(uid: str = UIDS[1]):
    return k.pod("gpt-0", uid, {"main": IDS[1]}, owner=("StatefulSet", "gpt"))


def said_by(kubelet: "Kubelet", *arguments: str) -> list[str]:
    """The lines of tests/kubelet_names.cpp. The folder of the sockets is that of the logs too."""
    program = os.environ.get("GPUMETER_KUBELET_NAMES", str(ROOT / "build/release/tests/kubelet_names"))
    folder = str(kubelet.resources_socket.parent)
    said = subprocess.run([program, str(kubelet.pods_socket), str(kubelet.resources_socket), folder, *arguments], capture_output=True, text=True, check=True, timeout=600)
    return said.stdout.splitlines()


class KubeletTest(unittest.TestCase):
    def test_names_follow_the_watch_over_a_restart_of_the_kubelet(self) -> None:
        with node() as n, Kubelet(n.folder) as kubelet:
            kubelet.put(bert())
            with Daemon(n.config(labels=["team"])) as daemon:
                wait_for_names(daemon, UIDS[0], BERT)
                self.assertEqual(names(daemon, UIDS[1]), {})
                kubelet.put(gpt())
                wait_for_names(daemon, UIDS[1], GPT)
                self.assertEqual(daemon.page().one("gpumeter_names_source_up", source="pods_api"), 1)
                # The pod is deleted: its series stay for minutes, and so do its names. A pod of the same name is another.
                kubelet.delete(UIDS[1])
                kubelet.put(gpt("0f1e2d3c-1111-4222-8333-444455558888"))
                kubelet.stop()
                wait_until(lambda: daemon.page().one("gpumeter_names_source_up", source="pods_api") == 0, "the loss is seen")
                self.assertEqual((names(daemon, UIDS[0]), names(daemon, UIDS[1])), (BERT, GPT))
                kubelet.refusal = (grpc.StatusCode.FAILED_PRECONDITION, "sources have not synced")
                kubelet.start()
                wait_until(lambda: errors(daemon, "pods_api").get("not_ready"), "the kubelet is not ready")
                self.assertEqual(names(daemon, UIDS[0]), BERT)
                moved = bert()
                moved.metadata.labels["team"] = "vision"
                kubelet.pods[UIDS[0]] = moved
                kubelet.refusal = None
                wait_for_names(daemon, UIDS[0], {**BERT, "label_team": "vision"})
                self.assertEqual(daemon.page().one("gpumeter_names_source_up", source="pods_api"), 1)

    def test_a_reload_changes_sources_and_labels(self) -> None:
        with node() as n, Kubelet(n.folder) as kubelet:
            kubelet.put(bert())
            with Daemon(n.config()) as daemon:
                wait_for_names(daemon, UIDS[0], {name: value for name, value in BERT.items() if name != "label_team"})
                n.config(labels=["team"])
                daemon.send(signal.SIGHUP)
                wait_for_names(daemon, UIDS[0], BERT)
                n.config(enabled=False)
                daemon.send(signal.SIGHUP)
                wait_until(lambda: not daemon.page().of("gpumeter_names_source_up"), "no source is asked")

    def test_without_the_pods_api_logs_name_the_pods(self) -> None:
        with node() as n, Kubelet(n.folder, pods_api=False) as kubelet:
            kubelet.refusal = (grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
            (n.log / "containers").mkdir(parents=True)
            (n.log / f"pods/ml_gpt-0_{UIDS[1]}").mkdir(parents=True)
            (n.log / f"containers/bert-7d9c5b8f6-x2x4z_ml_train-{IDS[0]}.log").symlink_to(f"/var/log/pods/ml_bert-7d9c5b8f6-x2x4z_{UIDS[0]}/train/0.log")
            with Daemon(n.config()) as daemon:
                wait_for_names(daemon, UIDS[0], {name: BERT[name] for name in ("namespace", "pod", "container")})
                self.assertEqual(names(daemon, UIDS[1]), {"namespace": "ml", "pod": "gpt-0"})
                wait_until(lambda: errors(daemon, "pod_resources") == {"rate_limited": 1}, "the limit is counted")
                self.assertEqual(daemon.page().of("gpumeter_names_source_up", source="pods_api"), {})

    def test_pods_hold_gpus_without_a_process(self) -> None:
        """Two pods share GPU-1 by time slicing, one has a MIG instance by a claim; the fourth has ended."""
        shared = [bert(), gpt()]
        devices = {"nvidia.com/gpu.shared": ["GPU-1::0", "GPU-1::3"]}
        with tempfile.TemporaryDirectory() as folder:
            with Kubelet(Path(folder)) as kubelet:
                for pod, replica in zip(shared, ("GPU-1::0", "GPU-1::3")):
                    given = pod.status.containerStatuses[0].allocatedResourcesStatus.add(name="nvidia.com/gpu.shared")
                    given.resources.add(resourceID=replica, health="Healthy")
                    kubelet.put(pod)
                kubelet.put(k.pod("dra-0", "uid-3", {"main": "c" * 64}, devices={"main": {"claim:gpus/one": ["gpu.nvidia.com/node-1/gpu-1-mig-2g47gb-14-0"]}}))
                kubelet.put(k.pod("done-0", "uid-4", {"main": "d" * 64}, phase="Succeeded", devices={"main": devices}))
                since = f"since {k.STARTED}"
                bert_line = f"kubelet uuid GPU-1 {UIDS[0]} {since} k8s_container=train k8s_label_team=nlp k8s_namespace=ml k8s_owner=bert k8s_owner_kind=Deployment k8s_pod={BERT['pod']}"
                gpt_line = f"kubelet uuid GPU-1 {UIDS[1]} {since} k8s_container=main k8s_namespace=ml k8s_owner=gpt k8s_owner_kind=StatefulSet k8s_pod=gpt-0"
                dra_line = f"dra minor 1/mig-2g47gb-14-0 uid-3 {since} k8s_container=main k8s_namespace=ml k8s_pod=dra-0"
                self.assertEqual(said_by(kubelet), [bert_line, gpt_line, dra_line, "pods_api up"])
            with Kubelet(Path(folder), pods_api=False) as kubelet:
                kubelet.resources = k.resources({("ml", "bert-0", "train"): {"nvidia.com/gpu": ["GPU-1::0"]}, ("ml", "gpt-0", "main"): {"nvidia.com/gpu": ["GPU-1::3"]}})
                (Path(folder) / f"pods/ml_gpt-0_{UIDS[1]}").mkdir(parents=True)
                self.assertEqual(said_by(kubelet), [
                    f"kubelet uuid GPU-1 {UIDS[1]} since 0 k8s_container=main k8s_namespace=ml k8s_pod=gpt-0",
                    "kubelet uuid GPU-1 ml/bert-0 since 0 k8s_container=train k8s_namespace=ml k8s_pod=bert-0", "pod_resources up", "logs up"])

    def test_a_claim_of_a_mig_device_is_the_instance_at_its_place(self) -> None:
        instances = ", ".join(f"{{uuid: MIG-{gi}, gi: {gi}, ci: 0, name: A MIG 1g.10gb, gi_profile: 19, gi_start: {start}}}" for gi, start in ((7, 0), (9, 4)))
        gpu = f"devices: [{{uuid: GPU-0, minor: 2, mig: {{mode: enabled, mode_pending: enabled, most: 7, instances: [{instances}]}}}}]"
        with tempfile.TemporaryDirectory() as folder, Kubelet(Path(folder)) as kubelet, Machine(gpu) as machine:
            machine.config.write_text(machine.config.read_text() + f"kubernetes: {{enabled: true, pods_socket: {kubelet.pods_socket}, "
                                      f"pod_resources_socket: {kubelet.resources_socket}, log_path: {folder}}}\n")
            kubelet.put(k.pod("dra-0", "uid-3", {"main": "c" * 64}, devices={"main": {"claim:gpus/one": ["gpu.nvidia.com/node-1/gpu-2-mig-1g10gb-19-4"]}}))
            with Daemon(*machine.arguments, env=machine.env) as daemon:
                given = wait_until(lambda: daemon.page().of("gpu_allocation_info", source="dra"), "the claim is on the page")
                labels = [dict(labels) for _, labels in given]
                self.assertEqual([(each["uuid"], each.get("partition"), each["workload"]) for each in labels], [("GPU-0", "1g.10gb:9", "uid-3")])

    def test_many_calls_and_a_long_answer(self) -> None:
        """$KUBELET_CALLS calls, each on a connection of its own, of an answer longer than HTTP/2's first window of 64 KiB."""
        calls = int(os.environ.get("KUBELET_CALLS", "200"))
        with tempfile.TemporaryDirectory() as folder, Kubelet(Path(folder), pods_api=False) as kubelet:
            kubelet.resources = k.resources({("ml", f"pod-{i}", "main"): {"nvidia.com/gpu": [f"GPU-{i}-{j}" for j in range(8)]} for i in range(1000)})
            self.assertGreater(kubelet.resources.ByteSize(), 1 << 17)
            self.assertEqual(said_by(kubelet, str(calls)), [f"none {calls}"])

    def test_hostile_answers_change_nothing(self) -> None:
        with node() as n, hostile(n.folder / "kubelet.sock", lambda: os.urandom(65536)) as count, \
                hostile(n.folder / "pods-api.sock", endless_pings), Daemon(n.config(enabled="true")) as daemon:
            wait_until(lambda: errors(daemon, "pod_resources").get("malformed"), "the answer is malformed", 40)
            wait_until(lambda: errors(daemon, "pods_api"), "the watch failed", 40)
            self.assertGreater(count(), 0)
            self.assertEqual(names(daemon, UIDS[0]), {})
            self.assertEqual(daemon.stop()[0], 0)

    def test_a_machine_without_a_kubelet_has_no_such_series(self) -> None:
        with node() as n, Daemon(n.config()) as daemon:
            self.assertFalse([name for name, _ in daemon.page() if name.startswith("gpumeter_names_")])
            self.assertNotIn("names of pods", daemon.log)


def endless_pings() -> bytes:
    settings, ping = bytes(3) + b"\x04" + bytes(5), b"\0\0\x08\x06" + bytes(5) + b"8 bytes!"
    return settings + ping * 4000


@contextmanager
def hostile(path: Path, answer: Callable[[], bytes]) -> Iterator[Callable[[], int]]:
    """A server that sends bytes of its own to every client."""
    served = 0
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            nonlocal served
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                served += 1
                with client:
                    try:
                        client.sendall(answer())
                    except OSError:
                        pass

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield lambda: served
        finally:
            server.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    unittest.main()
