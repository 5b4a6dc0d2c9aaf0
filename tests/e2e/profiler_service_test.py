#!/usr/bin/env python3
"""The client of TensorFlow's and JAX's profiler service against a gRPC server of grpcio with the service's messages."""
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from concurrent import futures
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROTO = HERE.parent / "fakes/profiler"
PROGRAM = os.environ.get("GPUMETER_PROFILER_SERVICE", str(HERE.parent.parent / "build/release/tests/profiler_service"))
try:
    import google.protobuf  # noqa: F401
    import grpc
    if not shutil.which("protoc"):
        raise ImportError("protoc is not installed")
    with tempfile.TemporaryDirectory() as made:
        subprocess.run(["protoc", f"-I{PROTO}", f"--python_out={made}", f"{PROTO}/profiler_service.proto"], check=True)
        sys.path.insert(0, made)
        messages = importlib.import_module("profiler_service_pb2")
        sys.path.remove(made)
except ImportError as error:
    print(f"skipped: requires python3-grpcio, python3-protobuf and protobuf-compiler ({error})")
    sys.exit(77)


def ask(port: int, milliseconds: int = 50) -> str:
    return subprocess.run([PROGRAM, str(port), str(milliseconds), "/logs", "gpumeter_1", "node"], capture_output=True, text=True,
                          timeout=30, check=True).stdout.strip()


class ProfilerServiceTest(unittest.TestCase):
    def setUp(self) -> None:
        self.requests: list = []
        self.answer = messages.ProfileResponse()
        self.refusal = None
        self.server = grpc.server(futures.ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("tensorflow.ProfilerService", {
            "Profile": grpc.unary_unary_rpc_method_handler(self.profile, messages.ProfileRequest.FromString,
                                                           messages.ProfileResponse.SerializeToString)}),))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.addCleanup(lambda: self.server.stop(None).wait(10))

    def profile(self, request, context):
        self.requests.append(request)
        threading.Event().wait(request.opts.duration_ms / 1000)
        if self.refusal:
            context.abort(*self.refusal)
        return self.answer

    def test_asks_for_a_trace(self) -> None:
        self.assertEqual(ask(self.port), "/logs/plugins/profile/gpumeter_1/node.xplane.pb full")
        request, = self.requests
        self.assertEqual((request.duration_ms, request.opts.duration_ms, request.repository_root, request.session_id, request.host_name),
                         (50, 50, "/logs/plugins/profile", "gpumeter_1", "node"))
        self.assertEqual((request.opts.version, request.opts.host_tracer_level, request.opts.device_tracer_level,
                          request.opts.python_tracer_level, request.opts.enable_hlo_proto), (1, 2, 1, 0, True))

    def test_reports_an_empty_trace(self) -> None:
        self.answer.empty_trace = True
        self.answer.tool_data.add(name="x", data=b"y" * 100_000)
        self.assertEqual(ask(self.port), "/logs/plugins/profile/gpumeter_1/node.xplane.pb empty")

    def test_reports_refusals(self) -> None:
        self.refusal = (grpc.StatusCode.ALREADY_EXISTS, "Another profiling session active.")
        said = ask(self.port)
        self.assertTrue(said.startswith("failed refused: ") and "Another profiling session active." in said, said)
        self.server.stop(None).wait(10)
        self.assertEqual(ask(self.port), f"failed unavailable: port {self.port}: Connection refused")

    def test_limits_the_answer(self) -> None:
        self.answer.tool_data.add(name="x", data=bytes(2 << 20))
        self.assertTrue(ask(self.port).startswith("failed malformed: "))

    def test_finds_no_service_on_another_server(self) -> None:
        other = grpc.server(futures.ThreadPoolExecutor(1))
        port = other.add_insecure_port("127.0.0.1:0")
        other.start()
        self.addCleanup(lambda: other.stop(None).wait(10))
        self.assertTrue(ask(port).startswith("failed unimplemented: "))


if __name__ == "__main__":
    unittest.main(verbosity=2)
