#!/usr/bin/env python3
"""A kubelet of grpc-go and Kubernetes' own services (go_kubelet): names and allocations over a restart, long answers, pings, connections that the
server ends, its rate limit and slow answers. Requires Go (as go_tls) of the version in go_kubelet/go.mod, and the Go modules named there."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import Daemon, wait_until  # noqa: E402
from kubelet_node import IDS, UIDS, errors, names, node, wait_for_names  # noqa: E402

GO = next((found for name in (os.environ.get("GO"), "go", "/usr/local/go/bin/go", "/usr/lib/go/bin/go") if name and (found := shutil.which(name))), None)
ASK = os.environ.get("GPUMETER_KUBELET_NAMES", str(ROOT / "build/release/tests/kubelet_names"))
BERT = {"Namespace": "ml", "Name": "bert-0", "UID": UIDS[0], "Container": "train", "ID": IDS[0]}
GPT = {"Namespace": "ml", "Name": "gpt-0", "UID": UIDS[1], "Container": "main", "ID": IDS[1]}
PROGRAM = ""


def labels(pod: dict[str, str]) -> dict[str, str]:
    return {"namespace": pod["Namespace"], "pod": pod["Name"], "container": pod["Container"]}


def given(pod: dict[str, str], *devices: str) -> dict[str, Any]:
    return {"Namespace": pod["Namespace"], "Name": pod["Name"], "Container": pod["Container"], "Devices": list(devices)}


class Kubelet:
    """The program, with its sockets in the folder. It starts with the first state."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.program = subprocess.Popen([PROGRAM, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "Kubelet":
        return self

    def __exit__(self, *_) -> None:
        self.program.stdin.close()
        self.program.kill()
        self.program.wait()
        self.program.stdout.close()

    def state(self, settings: dict[str, Any] | None = None, **state: Any) -> None:
        """Settings in addition to a server of both services."""
        whole = {"Settings": {"Serve": True, "PodsAPI": True, **(settings or {})}, **state}
        self.program.stdin.write(json.dumps(whole) + "\n")
        self.program.stdin.flush()
        assert self.program.stdout.readline() == "ok\n", "the kubelet ended"

    def said(self, *arguments: str) -> list[str]:
        """The lines of tests/kubelet_names.cpp. The folder of the sockets is that of the logs too."""
        command = [ASK, f"{self.folder}/pods-api.sock", f"{self.folder}/kubelet.sock", str(self.folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.splitlines()


class GoKubeletTest(unittest.TestCase):
    def kubelet(self) -> Kubelet:
        return self.enterContext(Kubelet(Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-kubelet-")))))

    def test_names_follow_the_watch_over_a_restart(self) -> None:
        with node() as n, Kubelet(n.folder) as kubelet:
            kubelet.state(Pods=[BERT])
            with Daemon(n.config()) as daemon:
                wait_for_names(daemon, UIDS[0], labels(BERT))
                kubelet.state(Pods=[BERT, GPT])
                wait_for_names(daemon, UIDS[1], labels(GPT))
                kubelet.state({"Serve": False})
                wait_until(lambda: daemon.page().one("gpumeter_names_source_up", source="pods_api") == 0, "the loss is seen")
                self.assertEqual((names(daemon, UIDS[0]), names(daemon, UIDS[1])), (labels(BERT), labels(GPT)))
                renamed = {**GPT, "Name": "gpt-1"}
                kubelet.state(Pods=[BERT, renamed])
                wait_for_names(daemon, UIDS[1], labels(renamed))
                self.assertEqual(daemon.page().one("gpumeter_names_source_up", source="pods_api"), 1)
                self.assertEqual(daemon.stop()[0], 0)

    def test_a_watch_survives_connections_that_the_server_ends(self) -> None:
        """MaxConnectionAge: GOAWAY after a second, the end a second later, over and over; pings in between."""
        with node() as n, Kubelet(n.folder) as kubelet:
            settings = {"AgeMilliseconds": 1000, "GraceMilliseconds": 1000, "PingMilliseconds": 1000}
            kubelet.state(settings, Pods=[BERT])
            with Daemon(n.config()) as daemon:
                wait_for_names(daemon, UIDS[0], labels(BERT))
                wait_until(lambda: errors(daemon, "pods_api").get("unavailable", 0) >= 2, "connections end", 40)
                kubelet.state(settings, Pods=[BERT, GPT])
                wait_for_names(daemon, UIDS[1], labels(GPT))
                self.assertEqual(names(daemon, UIDS[0]), labels(BERT))
                self.assertEqual(set(errors(daemon, "pods_api")), {"unavailable"})

    def test_allocations_of_pod_resources(self) -> None:
        kubelet = self.kubelet()
        kubelet.state({"PodsAPI": False}, Given=[given(BERT, "GPU-1", "GPU-2"), given(GPT, "GPU-3::0")])
        self.assertEqual(kubelet.said(), [
            *(f"kubelet uuid {gpu} ml/bert-0 since 0 k8s_container=train k8s_namespace=ml k8s_pod=bert-0" for gpu in ("GPU-1", "GPU-2")),
            "kubelet uuid GPU-3 ml/gpt-0 since 0 k8s_container=main k8s_namespace=ml k8s_pod=gpt-0", "pod_resources up"])

    def test_a_long_answer_in_many_frames(self) -> None:
        """1000 pods of 8 GPUs, in writes of 4 KiB, through windows of 64 KiB and a flow control that waits for ours."""
        kubelet = self.kubelet()
        many = [given({**BERT, "Name": f"pod-{i}"}, *(f"GPU-{i}-{j}-0000-4000-8000-000000000000" for j in range(8))) for i in range(1000)]
        kubelet.state({"PodsAPI": False, "WriteBytes": 4096}, Given=many)
        self.assertGreater(len(json.dumps(many)), 1 << 18)
        self.assertEqual(kubelet.said("20"), ["none 20"])
        self.assertEqual(len(kubelet.said()), 8001)

    def test_a_slow_answer_is_awaited_over_pings_and_goaway(self) -> None:
        """grpc-go closes a connection whose client answers no ping within a second, and one of GOAWAY at the end of the grace."""
        kubelet = self.kubelet()
        settings = {"PodsAPI": False, "PingMilliseconds": 1000, "AgeMilliseconds": 1000, "GraceMilliseconds": 20000}
        kubelet.state(settings, Given=[given(BERT, "GPU-1")], DelayMilliseconds=4500)
        self.assertEqual(kubelet.said("2"), ["none 2"])

    def test_the_end_of_the_grace_and_a_late_answer_are_failures(self) -> None:
        kubelet = self.kubelet()
        kubelet.state({"PodsAPI": False, "AgeMilliseconds": 500, "GraceMilliseconds": 500}, Given=[given(BERT, "GPU-1")], DelayMilliseconds=4000)
        self.assertEqual(kubelet.said("1"), ["unavailable 1"])
        kubelet.state({"PodsAPI": False}, Given=[given(BERT, "GPU-1")], DelayMilliseconds=15000)
        self.assertEqual(kubelet.said("1"), ["timeout 1"])

    def test_the_rate_limit_keeps_the_last_list(self) -> None:
        kubelet = self.kubelet()
        kubelet.state({"PodsAPI": False}, Given=[given(BERT, "GPU-1")], Refuse=True)
        self.assertEqual(kubelet.said("3"), ["rate_limited 3"])
        kubelet.state({"PodsAPI": False}, Given=[given(BERT, "GPU-1")])
        self.assertEqual(kubelet.said("3"), ["none 3"])

    def test_a_service_that_the_kubelet_lacks(self) -> None:
        """A kubelet before 1.35 has no socket of pods; one with the socket and without the service answers UNIMPLEMENTED."""
        kubelet = self.kubelet()
        kubelet.state({"PodsAPI": False}, Given=[given(BERT, "GPU-1")])
        (kubelet.folder / "pods-api.sock").symlink_to("kubelet.sock")
        lines = kubelet.said()
        self.assertEqual([line for line in lines if line.endswith(("up", "down"))], ["pods_api down", "pod_resources up"])


def build(folder: str) -> str:
    """The program, or the reason why it cannot be built. Go keeps what it compiled, so only the first build takes a minute."""
    program = f"{folder}/go_kubelet"
    if not GO:
        return "no Go compiler"
    done = subprocess.run([GO, "build", "-mod=readonly", "-buildvcs=false", "-o", program, "."], cwd=HERE / "go_kubelet", capture_output=True,
                          text=True, timeout=850, env={**os.environ, "GOFLAGS": os.environ.get("GOFLAGS", ""), "GOTOOLCHAIN": "local"})
    return program if done.returncode == 0 else f"go build: {done.stderr.strip().splitlines()[-1]}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        PROGRAM = build(work)
        if not os.path.exists(PROGRAM):
            print(f"skipped: {PROGRAM}")
            sys.exit(77)
        ended = unittest.main(verbosity=2, exit=False).result
    print("grpc-go's kubelet is understood" if ended.wasSuccessful() else "failed")
    sys.exit(not ended.wasSuccessful())
