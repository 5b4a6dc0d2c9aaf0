"""A fleet of nodes that replay one recording, each with its own GPUs and its own jobs.

The jobs are a mix as of a training and research cluster; a job that ends is followed at once by another, with a new number.
"""
import gzip
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from recording import GPUS, JOB, Line

STEP = 15.0  # seconds between two values of a gauge: each scrape finds another
UUID = b"-0000-4000-8000-"  # the part of the recorded GPUs' UUIDs that is replaced by the node's number
SERIAL = b"1650323"


@dataclass(frozen=True)
class Kind:
    share: float  # of the nodes
    gpus: int  # of a job; 0: no job
    seconds: float  # mean duration


MIX = (Kind(0.50, 8, 6 * 3600), Kind(0.30, 1, 20 * 60), Kind(0.10, 1, 120), Kind(0.10, 0, 3600))


@dataclass
class Job:
    number: int
    begin: float
    end: float


@dataclass
class Node:
    number: int
    kind: Kind
    random: random.Random
    jobs: list[Job | None] = field(default_factory=lambda: [None] * GPUS)  # by GPU

    def advance(self, now: float, numbers: Iterator[int]) -> None:
        for gpu in range(0, GPUS, self.kind.gpus or GPUS):
            job = self.jobs[gpu]
            if self.kind.gpus and (job is None or job.end <= now):
                # A job that runs at the beginning has been running for a while.
                begin = now if job else now - self.random.uniform(0, self.kind.seconds)
                job = Job(next(numbers), begin, now + self.random.expovariate(1 / self.kind.seconds))
                self.jobs[gpu:gpu + self.kind.gpus] = [job] * self.kind.gpus


class Fleet:
    def __init__(self, lines: list[Line], count: int, seed: int = 1):
        self.lines = lines
        chance = random.Random(seed)
        self.numbers = iter(range(1_000_000, 10_000_000))
        kinds = chance.choices(MIX, [kind.share for kind in MIX], k=count)
        self.nodes = [Node(number, kind, random.Random(chance.random())) for number, kind in enumerate(kinds)]
        self.common: dict[tuple[int, int], list[bytes | Line]] = {}
        self.sent = 0  # bytes, before compression

    def page(self, number: int, now: float) -> bytes:
        """The page of this node `now` seconds after the beginning, as gzip's bytes."""
        node = self.nodes[number]
        node.advance(now, self.numbers)
        parts = []
        for part in self.parts(int(now), number % 7):
            parts.append(part if isinstance(part, bytes) else self.of_jobs(part, node, now))
        text = b"".join(parts).replace(UUID, b"-%04x-4000-8000-" % number).replace(SERIAL, b"%07d" % number)
        self.sent += len(text)
        return gzip.compress(text, 1)

    def of_jobs(self, line: Line, node: Node, now: float) -> bytes:
        gpu = line.gpu
        jobs = {id(job): job for job in node.jobs} if gpu is None else {0: node.jobs[gpu]}
        return b"".join(line.prefix.replace(JOB, b"%d" % job.number) + b" " + number_of(line, now - job.begin, 0)
                        for job in jobs.values() if job)

    def parts(self, second: int, phase: int) -> list[bytes | Line]:
        """The page up to what is the node's own: its jobs' lines. All nodes of a phase share it for a second."""
        key = (second, phase)
        if key not in self.common:
            self.common = {old: parts for old, parts in self.common.items() if old[0] >= second - 1}
            self.common[key] = list(self.rendered(second, phase))
        return self.common[key]

    def rendered(self, second: int, phase: int) -> Iterator[bytes | Line]:
        text: list[bytes] = []
        for line in self.lines:
            if line.is_of_job:
                yield b"".join(text)
                yield line
                text = []
            elif line.values:
                text.append(line.prefix + b" " + number_of(line, second, phase))
            else:
                text.append(line.prefix + b"\n")
        yield b"".join(text)


def number_of(line: Line, seconds: float, phase: int) -> bytes:
    """A counter of a job begins at 0."""
    if line.rate is not None:
        value = (0 if line.is_of_job else line.values[0]) + line.rate * seconds
    else:
        value = line.values[(int(seconds / STEP) + phase) % len(line.values)]
    return b"%d\n" % value if value == int(value) and abs(value) < 1e6 else repr(value).encode() + b"\n"
