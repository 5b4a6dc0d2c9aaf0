"""The program gpumeter-import: reads one file and sends its results as datagrams, one a GPU."""
from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import stat
import sys
import time
from dataclasses import dataclass, field
from typing import Callable, Dict, List, NoReturn, Optional, Tuple

from . import ai_benchmark, clpeak, dcgm_diag, deepbench, mlperf, nccl_tests, nvbandwidth, rocm_bandwidth_test, transferbench
from .results import MOST_RESULTS, Sheet
from .texts import Refused, whole

NAME = "gpumeter-import"
# Each parser takes any text and the name of this machine. It raises Refused for a file that is cut, or that another program wrote. The
# format's name is the label `suite`.
FORMATS: Dict[str, Tuple[str, Callable[[str, str], Sheet]]] = {
    "clpeak": ("clpeak: text or XML of 1.1, XML of 2, JSON of 3", clpeak.parse),
    "nvbandwidth": ("nvbandwidth -j", nvbandwidth.parse),
    "dcgm-diag": ("dcgmi diag --json, DCGM 2 to 4", dcgm_diag.parse),
    "rocm-bandwidth-test": ("rocm-bandwidth-test: its matrices", rocm_bandwidth_test.parse),
    "transferbench": ("TransferBench: its transfers, as a table or CSV", transferbench.parse),
    "deepbench": ("DeepBench: its tables", deepbench.parse),
    "ai-benchmark": ("AI-Benchmark: what it prints", ai_benchmark.parse),
    "mlperf": ("MLPerf: :::MLLOG lines of training, or mlperf_log_summary.txt of inference", mlperf.parse),
    "nccl-tests": ("nccl-tests and rccl-tests: all_reduce_perf and the others", nccl_tests.parse),
}
# Larger than any result; a log that was given by mistake is refused.
_MOST_BYTES = 64 << 20


def parse_file(form: str, text: str, host: str) -> Sheet:
    """In addition to what the format refuses: a file without a result, or with more results than the daemon keeps."""
    sheet = FORMATS[form][1](text, host)
    sheet.suite = form
    for number in [number for number, gpu in sheet.gpus.items() if not gpu]:
        del sheet.gpus[number]
    last = 1 + text.count("\n")
    if not sheet.gpus:
        raise Refused(last, "the file has no result of a GPU")
    for number, gpu in sorted(sheet.gpus.items()):
        if len(gpu.values) > MOST_RESULTS:
            raise Refused(last, f"GPU {number} has more than {MOST_RESULTS} results, which the daemon would not keep")
    return sheet


@dataclass
class Mapping:
    """Which GPU of the daemon a GPU of the file is, as the tag that names it to the daemon: "gpu:3", "uuid:GPU-...", "pci:0000:0c:00.0"."""
    by_number: Dict[int, str] = field(default_factory=dict)  # by the number in the file
    in_order: List[str] = field(default_factory=list)        # those without a number


def parse_mapping(text: str, tag: str) -> Mapping:
    """GPUs separated by commas, each as NAME or NUMBER=NAME. `tag`: "gpu" for indexes, "uuid". ValueError for any other text."""
    mapping = Mapping()
    for entry in text.removesuffix(",").split(",") if text else ():
        first, equals, second = entry.partition("=")
        number, name = (whole(first), second) if equals else (None, entry)
        is_name = whole(name) is not None if tag == "gpu" else bool(re.fullmatch(r"[^|\0-\x20]+", name))
        if not is_name or (equals and number is None):
            raise ValueError(f'no GPU: "{entry}"')
        if number is None:
            mapping.in_order.append(f"{tag}:{name}")
        else:
            mapping.by_number[number] = f"{tag}:{name}"
    return mapping


def parcels_of(sheet: Sheet, mapping: Mapping, written: float) -> List[str]:
    """The lines of each GPU. Decides about each GPU of the file: the mapping by its number; the mapping in the order of numbers; otherwise its
    PCI address. A file about one GPU or about a whole machine may be given to several GPUs. ValueError if a GPU stays unknown. `written` is
    the time if the file has none."""
    numbers = sorted(sheet.gpus)
    listed = ", ".join(map(str, numbers))
    for number in sorted(mapping.by_number):
        if number not in sheet.gpus:
            raise ValueError(f"the file has no GPU {number}, only {listed}")
    is_for_all = sheet.is_of_machine or len(numbers) == 1
    if mapping.in_order and not is_for_all and len(mapping.in_order) != len(numbers):
        raise ValueError(f"the file has results of {len(numbers)} GPUs ({listed}), and {len(mapping.in_order)} are given")
    parcels: Dict[str, str] = {}
    for position, number in enumerate(numbers):
        for device in _devices_of(sheet, mapping, number, slice(None) if is_for_all else slice(position, position + 1)):
            if device in parcels:
                raise ValueError(f"two GPUs of the file are {device}")
            timestamp = written if sheet.timestamp is None else sheet.timestamp
            parcels[device] = sheet.gpus[number].lines(device, sheet.suite, timestamp)
    return list(parcels.values())


def _devices_of(sheet: Sheet, mapping: Mapping, number: int, in_order: slice) -> List[str]:
    if number in mapping.by_number:
        return [mapping.by_number[number]]
    if mapping.in_order or mapping.by_number:  # without one of its own, it is not among the chosen GPUs of the file
        return mapping.in_order[in_order]
    if sheet.gpus[number].pci:
        return [f"pci:{sheet.gpus[number].pci}"]
    raise ValueError(f"the file does not identify {'its GPUs' if sheet.is_of_machine else f'GPU {number}'}; name the GPUs with --gpu or --uuid")


def read_file(path: str) -> Tuple[str, Optional[float]]:
    """All of a file, or of the standard input if the path is "-", and the Unix time of its last change; None for a pipe. Waits for the end
    of a pipe."""
    with open(sys.stdin.fileno() if path == "-" else path, "rb", closefd=path != "-") as file:
        data = file.read(_MOST_BYTES + 1)
        status = os.fstat(file.fileno())
    if len(data) > _MOST_BYTES:
        raise ValueError("more than 64 MiB")
    return data.decode(errors="replace"), status.st_mtime if stat.S_ISREG(status.st_mode) else None


def send(parcels: List[str], path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
        out.connect(path)
        for parcel in parcels:
            out.send(parcel.encode())


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{NAME}: {message}\nTry '{NAME} --help'.\n")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from gpumeter import __version__  # the client, which nothing else here needs
        print(f"{NAME}, version {__version__}")
        parser.exit()


def options_of(arguments: List[str]) -> argparse.Namespace:
    formats = "".join(f"  {name:22}{what}\n" for name, (what, _) in FORMATS.items())
    parser = _Parser(NAME, description="Sends the results of other benchmarks to gpumeter.", epilog=f"Formats:\n{formats}", allow_abbrev=False,
                     add_help=False, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("format", metavar="FORMAT", help="The program that wrote the file, see below")
    parser.add_argument("file", metavar="FILE", help="What the program printed or wrote; - reads the standard input")
    parser.add_argument("-h", "--help", action="help", help="Print this help")
    parser.add_argument("--gpu", metavar="LIST", default="", help="The GPUs of the file by gpumeter's index: 3, or 0=3,1=2 by their numbers")
    parser.add_argument("--uuid", metavar="LIST", default="", help="The same by their uuids")
    parser.add_argument("--host", metavar="NAME", default="", help="The machine whose ranks count (default: this one)")
    # --socket is its former name, which the help omits.
    parser.add_argument("--jobs-socket", metavar="PATH", default="/run/gpumeter/jobs.sock",
                        help="The datagram socket of jobs (default /run/gpumeter/jobs.sock)")
    parser.add_argument("--socket", dest="jobs_socket", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument("--dry-run", action="store_true", help="Print the lines instead of sending them")
    parser.add_argument("--version", action=_Version, nargs=0, help="Print the version")
    options = parser.parse_args(arguments)
    if options.format not in FORMATS:
        parser.error(f'FORMAT must be one of {", ".join(FORMATS)}, not "{options.format}"')
    if options.gpu and options.uuid:
        parser.error("give either --gpu or --uuid")
    tag = "uuid" if options.uuid else "gpu"
    try:
        options.mapping = parse_mapping(options.uuid or options.gpu, tag)
    except ValueError as problem:
        parser.error(f"--{tag}: {problem}")
    return options


def run(options: argparse.Namespace) -> str:
    """Returns what the program prints. An error of the file is a ValueError with the whole message."""
    try:
        text, written = read_file(options.file)
        sheet = parse_file(options.format, text, options.host or socket.gethostname())
        parcels = parcels_of(sheet, options.mapping, time.time() if written is None else written)
    except Refused as problem:
        raise ValueError(f"{options.file}:{problem}") from None  # FILE:LINE: REASON
    except (OSError, ValueError) as problem:
        raise ValueError(f"{options.file}: {_reason(problem)}") from None
    if options.dry_run:
        return "".join(parcels)
    try:
        send(parcels, options.jobs_socket)
    except OSError as problem:
        raise ValueError(f"{options.jobs_socket}: {_reason(problem)}") from None
    return f"results of {len(parcels)} GPU(s) sent to {options.jobs_socket}\n"


def _reason(problem: Exception) -> str:
    return problem.strerror or str(problem) if isinstance(problem, OSError) else str(problem)


def main(arguments: List[str]) -> int:
    options = options_of(arguments)
    try:
        said = run(options)
    except ValueError as problem:
        sys.stderr.write(f"{NAME}: {problem}\n")
        return 1
    sys.stdout.buffer.write(said.encode(errors="surrogateescape"))
    sys.stdout.flush()
    return 0


def start() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as for `gpumeter import ... --dry-run | head`
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
