#!/usr/bin/env python3
"""Given files of NCCL Inspector and the users of the GPUs, when looked at, then exactly this page; given what a hostile user may put in the folder, then a
complaint with its place, in bounded time."""
from __future__ import annotations

import math
import os
import random
import time
import unittest

from nccl_bench import ALL_REDUCE, Bench, FIXTURES, GPU, LINE, NAME, ON_GPU, SECOND, UUID, bandwidth, row
from gpumeter_nccl_files import inspector
from gpumeter_nccl_files.inspector import Inspector
from gpumeter_nccl_files.owners import Owners


def said_of(text: str) -> str:
    """What a file of Inspector says, as lines."""
    content = inspector.parse(text)
    keys = sorted(set().union(*content.means.values()))
    lines = [" ".join([*key, *(f"{means[key]:.6g}{unit}" for means, unit in zip(content.means.values(), ("B/s", "s")) if key in means)]) for key in keys]
    for kind in ("collective", "point_to_point"):
        lines += [f"{kind} {what} {counts[kind]:g}" for counts, what in zip(content.counts.values(), ("recorded", "lost")) if kind in counts]
    return "".join(f"{line}\n" for line in [*lines, content.complaint] if line)


class InspectorPageTest(unittest.TestCase):
    def test_the_samples_of_nvidia(self) -> None:
        """Of its README and blog: GB/s and microseconds, families interleaved, no HELP, no TYPE."""
        self.assertEqual(said_of((FIXTURES / "inspector_v5.1.prom").read_text()),
                         "all_reduce 4GiB and more node 6.78263e+11B/s 0.00949847s\n"
                         "receive 1MiB-16MiB node 1.92396e+10B/s 9.25781e-05s\n"
                         "reduce_scatter 16MiB-256MiB network 4.41181e+10B/s 0.104164s\n"
                         "send 1MiB-16MiB node 1.91634e+10B/s 9.28984e-05s\n"
                         "send 256MiB-4GiB node 4.649e+11B/s 0.00115487s\n")

    def test_means_of_lines_with_the_same_labels(self) -> None:
        """Geometric for bandwidths, arithmetic for durations."""
        one = 'collective="AllReduce",message_size="4-5MB",n_nodes="2",algo_proto="RING_LL"'
        two = 'collective="AllReduce",message_size="5-6MB",n_nodes="4",algo_proto="TREE_LL"'
        duration = "nccl_collective_exec_time_microseconds"
        self.assertEqual(said_of(f"{bandwidth(one, '100')}{duration}{{{one}}} 10\n{bandwidth(two, '400')}{duration}{{{two}}} 40\n"),
                         "all_reduce 1MiB-16MiB network 2e+11B/s 2.5e-05s\n")

    def test_sizes(self) -> None:
        for size, label in (("0B", "0-64KiB"), ("63-64KB", "0-64KiB"), ("64-65KB", "64KiB-1MiB"), ("1023-1024KB", "64KiB-1MiB"), ("1-2MB", "1MiB-16MiB"),
                            ("255-256MB", "16MiB-256MiB"), ("3-4GB", "256MiB-4GiB"), ("4-5GB", "4GiB and more"), ("2-3TB", "4GiB and more")):
            self.assertEqual(said_of(bandwidth(f'collective="Broadcast",n_nodes="1",message_size="{size}"', "1")), f"broadcast {label} node 1e+09B/s\n")

    def test_zero_is_absent(self) -> None:
        """A mean of 0 is Inspector's word for no timed operation."""
        labels = 'collective="AllGather",message_size="1-2MB",n_nodes="1"'
        self.assertEqual(said_of(bandwidth(labels, "0")), "")
        self.assertEqual(said_of(bandwidth(labels, "0") + f"nccl_collective_exec_time_microseconds{{{labels}}} 8\n"), "all_gather 1MiB-16MiB node 8e-06s\n")

    def test_the_counters_of_the_device(self) -> None:
        labels = '{version="v5.1",slurm_job_id="7",node="n1",gpu="GPU0"}'
        self.assertEqual(said_of(f"nccl_collectives_total{labels} 5120\nnccl_collectives_dropped_total{labels} 1024\nnccl_p2p_total{labels} 0\n"
                                 f"nccl_p2p_dropped_total{labels} 0\n"),
                         "collective recorded 5120\ncollective lost 1024\npoint_to_point recorded 0\npoint_to_point lost 0\n")

    def test_unknown_operations_are_others_and_unknown_families_are_ignored(self) -> None:
        self.assertEqual(said_of(bandwidth('collective="AllToAllV",message_size="1-2MB",n_nodes="1"', "3")
                                 + 'nccl_collective_exec_time_p99_microseconds{collective="AllReduce"} 7\n# a comment\n\n'), "other 1MiB-16MiB node 3e+09B/s\n")

    def test_a_bad_line_is_named_and_costs_only_itself(self) -> None:
        good = bandwidth('collective="Reduce",message_size="1-2MB",n_nodes="1"', "3")
        no_sample, no_number = "is no sample of a metric", "the value must be a number from 0 on"
        for bad, complaint in (('nccl_bus_bandwidth_gbs{collective="All\n', no_sample), ("{} 3\n", no_sample), ("nonsense\n", no_sample),
                               ("nccl_p2p_total{} 1_0\n", no_sample), ("nccl_p2p_total{" + " " * (4 << 20) + "\n", no_sample),
                               ("nccl_p2p_total{" + 'a="b",' * 65 + "} 1\n", no_sample), ("nccl_bus_bandwidth_gbs 3\n", "has no label collective"),
                               (bandwidth('collective="Reduce",message_size="4-5QB"', "3"), 'message_size must be a range such as "4-5GB", not "4-5QB"'),
                               (bandwidth('collective="Reduce",message_size="4-5GB"', "NaN"), no_number),
                               (bandwidth('collective="Reduce",message_size="4-5GB"', "+Inf"), no_number), ("nccl_p2p_total{} -1\n", no_number)):
            content = inspector.parse(good + bad + good)
            self.assertEqual((len(content.means["ml_nccl_bus_bandwidth_bytes_per_second"]), content.complaint), (1, f"line 2: {complaint}"))

    def test_labels(self) -> None:
        for line in ('nccl_p2p_total 7', ' nccl_p2p_total{ a = "}\\"\\n" , b="\\\\" ,}\t7 1700000000\r', 'nccl_p2p_total{a="",} 7.0e0 # {x="y"} 1'):
            self.assertEqual(said_of(line), "point_to_point recorded 7\n", line)
        self.assertEqual(inspector._sample('a{b="}\\"\\n\\\\",c="\u00e9"} 1'), ("a", {"b": '}"\n\\', "c": "\u00e9"}, 1.0))

    def test_at_most_64_combinations(self) -> None:
        text = "".join(bandwidth(f'collective="{op}",message_size="{size}",n_nodes="{nodes}"', "1")
                       for op in ("AllGather", "AllReduce", "AlltoAll", "Broadcast", "Gather", "Reduce")
                       for size in ("0B", "64-65KB", "1-2MB", "16-17MB", "256-257MB", "4-5GB") for nodes in (1, 2))
        content = inspector.parse(text)
        self.assertEqual(len(content.means["ml_nccl_bus_bandwidth_bytes_per_second"]), 64)
        self.assertEqual(content.complaint, "line 65: more than 64 combinations of operation, size and scope")

    def test_a_changed_file_gives_means_or_a_complaint(self) -> None:
        luck = random.Random(20260103)
        texts = [(FIXTURES / "inspector_v5.1.prom").read_text(), *(path.read_text(errors="replace") for path in (FIXTURES / "hostile").iterdir())]
        for text in texts:
            for _ in range(40):
                at, other = luck.randrange(len(text) + 1), luck.randrange(len(text) + 1)
                content = inspector.parse(text[:at] + luck.choice((chr(luck.randrange(256)), "", text[other:other + luck.randint(1, 30)])) + text[at + luck.randint(0, 5):])
                keys = set().union(*content.means.values())
                self.assertTrue(len(keys) <= inspector.MOST_KEYS and all(op and size and scope in ("node", "network") for op, size, scope in keys))
                self.assertTrue(all(0 < mean < math.inf for means in content.means.values() for mean in means.values()))


class InspectorTest(Bench):
    def setUp(self) -> None:
        super().setUp()
        self.reader = Inspector(str(self.tree), 30 * SECOND, self.say)

    def means(self) -> "list[str]":
        """The page without its comments and counts of files."""
        return [line for line in self.page().splitlines() if line.startswith("ml_")]

    def put_on_gpu(self, *uuids: str) -> None:
        self.series = [{"name": "gpu_up", "labels": {"gpu": str(at), "uuid": uuid}} for at, uuid in enumerate(uuids)]
        self.rows = [row(uid=os.getuid(), uuids=uuids)]

    def test_a_file_is_joined_to_its_gpu_and_run(self) -> None:
        self.write(NAME, (FIXTURES / "inspector_v5.1.prom").read_bytes())
        self.assertFalse(self.look(5))
        gpu = f'{{{ON_GPU},run="train.service",user="ann"'
        keys = [f'{gpu},op="{op}",size="{size}",scope="{scope}"}}' for op, size, scope in (
            ("all_reduce", "4GiB and more", "node"), ("receive", "1MiB-16MiB", "node"), ("reduce_scatter", "16MiB-256MiB", "network"),
            ("send", "1MiB-16MiB", "node"), ("send", "256MiB-4GiB", "node"))]
        bandwidths, durations = (678263000000, 19239600000, 44118100000, 19163400000, 464900000000), (0.009498, 0.000093, 0.104164, 0.000093, 0.001155)
        found = [line.rpartition(" ") for line in self.means()]
        self.assertEqual([(name, round(float(value), 6)) for name, _, value in found], [
            *((f"ml_nccl_bus_bandwidth_bytes_per_second{key}", value) for key, value in zip(keys, bandwidths)),
            *((f"ml_nccl_operation_duration_seconds{key}", value) for key, value in zip(keys, durations)),
            (f"ml_nccl_dump_timestamp_seconds{gpu}}}", 1790000000)])
        self.assertEqual((self.states(), self.said), ({"read": 1}, []))

    def test_the_counters(self) -> None:
        self.write(NAME, b"nccl_collectives_total{} 5\nnccl_collectives_dropped_total{} 1\n")
        self.look(5)
        gpu = f'{{{ON_GPU},run="train.service",user="ann",kind="collective"}}'
        self.assertIn(f"# TYPE ml_nccl_recorded_operations_total counter\nml_nccl_recorded_operations_total{gpu} 5\n", self.page())
        self.assertIn(f"# TYPE ml_nccl_lost_operations_total counter\nml_nccl_lost_operations_total{gpu} 1\n", self.page())

    def test_the_run_is_the_one_that_the_job_reports(self) -> None:
        self.rows = [row(uid=os.getuid(), run="bert")]
        self.write(NAME, LINE)
        self.look(5)
        self.assertIn(f'{{{ON_GPU},run="bert",user="ann"{ALL_REDUCE}', self.page())

    def test_a_mig_instance_is_its_partition(self) -> None:
        mig = {"gpu": "0", "uuid": GPU, "partition": "1g.18gb:7", "mig_uuid": "MIG-d2000000-0000-5000-8000-000000000001"}
        self.series += [{"name": "gpu_partition_info", "labels": mig}, {"name": "gpu_partition_info", "labels": {"gpu": "0", "uuid": GPU, "partition": "spx"}}]
        self.write("nccl_inspector_metrics_d2000000-0000-5000-8000-000000000001.prom", LINE)
        self.look(5)
        self.assertIn(f'{{{ON_GPU},partition="1g.18gb:7",run="train.service",user="ann"{ALL_REDUCE}', self.page())

    def test_an_amd_card_is_found_by_its_letters(self) -> None:
        """HIP's UUID holds the letters of the card's unique_id."""
        self.put_on_gpu("GPU-00C0ffee00c0ff05")
        self.write("nccl_inspector_metrics_30306330-6666-6565-3030-633066663035.prom", LINE)
        self.look(5)
        self.assertIn('{gpu="0",uuid="GPU-00C0ffee00c0ff05",run=', self.page())

    def test_values_leave_after_three_intervals(self) -> None:
        self.write(NAME, LINE)
        self.look(90)
        self.assertEqual(len(self.means()), 2)
        self.look(90.5)
        self.assertEqual((self.means(), self.states()), ([], {"stale": 1}))

    def test_a_torn_file_keeps_the_values_before_it(self) -> None:
        """Inspector truncates the file and writes it line by line: empty, half a line, or younger than a second."""
        self.write(NAME, LINE)
        self.look(5)
        before = self.means()
        for torn in (b"", LINE[:40], LINE + LINE[:9]):
            self.write(NAME, torn, 30)
            self.assertTrue(self.look(40))
            self.assertEqual((self.means(), self.states()), (before, {"torn": 1}))
        self.write(NAME, LINE, 40)
        self.assertTrue(self.look(40.5))
        self.assertEqual(self.means(), before)
        self.assertFalse(self.look(42))
        self.assertNotEqual(self.means(), before)  # its time
        self.assertEqual(self.said, [])

    def test_a_torn_file_does_not_keep_stale_values(self) -> None:
        self.write(NAME, LINE)
        self.look(5)
        self.write(NAME, b"", 80)
        self.look(95)
        self.assertEqual(self.means(), [])

    def test_a_file_of_a_user_without_a_process_on_the_gpu_is_foreign(self) -> None:
        self.rows = [row(uid=os.getuid() + 1), row(2, os.getuid(), uuids=(GPU[:-1] + "1",))]
        self.write(NAME, LINE)
        self.look(5)
        self.assertEqual((self.means(), self.states()), ([], {"foreign": 1}))

    def test_only_the_configured_users(self) -> None:
        self.write(NAME, LINE)
        for allowed, state in ((["bob"], "foreign"), (["ann"], "read"), ([str(os.getuid())], "read")):
            self.owners = Owners(allowed)
            self.look(5)
            self.assertEqual(self.states(), {state: 1})

    def test_unknown_gpus_and_other_names(self) -> None:
        for name in (NAME.replace("c2", "e2"), NAME.replace("c2", "C2"), "nccl_inspector_metrics_.prom", "host-pid7.log", NAME + "\n"):
            self.write(name, LINE)
        self.look(5)
        self.assertEqual((self.means(), self.states()), ([], {"unknown_gpu": 1}))

    def test_no_links_and_no_pipes(self) -> None:
        elsewhere, path = self.write("elsewhere", LINE), self.tree / NAME
        for make, why in ((lambda: path.symlink_to(elsewhere), "is no plain file"), (lambda: os.link(elsewhere, path), "has more than one name"),
                          (lambda: os.mkfifo(path), "is no plain file"), (lambda: path.symlink_to("/dev/zero"), "is no plain file")):
            make()
            self.look(5)
            self.assertEqual((self.means(), self.states(), self.said), ([], {"invalid": 1}, [f"{NAME}: {why}"]))
            path.unlink()
            self.look(6)
            self.said.clear()

    def test_a_large_file_is_refused(self) -> None:
        self.write(NAME, b"\n" * (inspector.MOST_BYTES + 1))
        self.look(5)
        self.assertEqual(self.said, [f"{NAME}: has 4194305 bytes, 4194304 at the most"])

    def test_a_bad_line_costs_nothing_else(self) -> None:
        self.put_on_gpu(GPU, GPU[:-1] + "1")
        self.write(NAME, LINE + b"nonsense\n")
        self.write(NAME.replace("0.prom", "1.prom"), LINE)
        self.look(5)
        self.look(6)
        self.assertEqual((self.said, self.states(), len(self.means())), ([f"{NAME}: line 2: is no sample of a metric"], {"read": 1, "invalid": 1}, 4))
        self.write(NAME, LINE, 10)
        self.look(15)
        self.assertEqual((self.said[1:], self.states()), ([f"{NAME}: "], {"read": 2}))

    def test_a_removed_file_leaves_the_page(self) -> None:
        self.write(NAME, LINE)
        self.look(5)
        (self.tree / NAME).unlink()
        self.look(6)
        self.assertEqual((self.means(), self.states()), ([], {}))

    def test_a_folder_that_is_none(self) -> None:
        for path, said in (("missing", []), ("file", [f"file: {self.tree}/file: Not a directory"])):
            self.write("file", b"")
            self.reader = Inspector(f"{self.tree}/{path}", 30 * SECOND, self.say)
            for _ in range(2):
                self.assertFalse(self.look(5))
            self.assertEqual(self.said, said)

    def test_files_of_unknown_gpus_take_no_place_of_a_gpu(self) -> None:
        """The attack: files that look like those of GPUs which the machine does not have."""
        for gpu in range(10_000, 13_000):
            self.write(f"{NAME[:-10]}{gpu}.prom", LINE)
        self.write(NAME, LINE)
        self.assertFalse(self.look(5))
        self.assertEqual(self.states(), {"read": 1, "unknown_gpu": 511})

    def test_the_most_lines_take_bounded_time(self) -> None:
        """A file of only line ends, and one of lines that are no sample."""
        for text in (b"\n" * inspector.MOST_BYTES, b"x{" * (inspector.MOST_BYTES // 2 - 1) + b"y\n", b"x\n" * (inspector.MOST_BYTES // 2),
                     LINE * (inspector.MOST_BYTES // len(LINE))):
            began = time.monotonic()
            self.write(NAME, text)
            self.look(5)
            self.assertLess(time.monotonic() - began, 60)
            self.assertEqual(sum(self.states().values()), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
