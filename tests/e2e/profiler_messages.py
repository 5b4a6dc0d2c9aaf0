"""The messages of the profiler service of TensorFlow and JAX, and a server of grpcio that speaks them. Ends the test as skipped if
grpcio or protoc is missing."""
import importlib
import shutil
import subprocess
import sys
import tempfile
from concurrent import futures
from pathlib import Path

PROTO = Path(__file__).resolve().parent.parent / "fakes/profiler"
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


def serve(profile, address: str, reuse: bool = True) -> tuple[grpc.Server, int]:
    """A server whose calls of Profile are answered by profile(request, context), and its port."""
    server = grpc.server(futures.ThreadPoolExecutor(2), options=[("grpc.so_reuseport", int(reuse))])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("tensorflow.ProfilerService", {
        "Profile": grpc.unary_unary_rpc_method_handler(profile, messages.ProfileRequest.FromString,
                                                       messages.ProfileResponse.SerializeToString)}),))
    port = server.add_insecure_port(address)
    server.start()
    return server, port
