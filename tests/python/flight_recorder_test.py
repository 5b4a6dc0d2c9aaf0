#!/usr/bin/env python3
"""Given dumps of PyTorch's flight recorder and the users of the GPUs, when looked at, then exactly this page; given what a hostile user may put in the
folder, then an error with its place, in bounded time and memory, and nothing of it is executed."""
from __future__ import annotations

import json
import os
import pickle
import random
import re
import threading
import time
import unittest
from pathlib import Path
from typing import Any

from nccl_bench import BEGIN, Bench, DUMPS, FIXTURES, GPU, RANK_0, RANK_1, RANK_2, ROOT, row
from gpumeter_nccl_files import flight_dump, flight_recorder, folder, page, pickles
from gpumeter_nccl_files.flight_recorder import FlightRecorder
from gpumeter_nccl_files.folder import SECOND, Folder
from gpumeter_nccl_files.owners import Owners, Run


def parsed(opcodes: bytes, protocol: int = 2) -> Any:
    """The data of the opcodes after PROTO, or the error."""
    try:
        return pickles.parse(bytes([0x80, protocol]) + opcodes)
    except pickles.Error as error:
        return str(error)


def dump_of(data: bytes) -> Any:
    try:
        return [(group.name, group.description, group.sequences) for group in flight_dump.parse(data)]
    except pickles.Error as error:
        return str(error)


class Calls:
    """Executed by Python's own reader of pickles."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


class PickleTest(unittest.TestCase):
    def test_data(self) -> None:
        for opcodes, value in ((b"N.", None), (b"K\x07.", 7), (b"M\x01\x02.", 513), (b"J\xff\xff\xff\xff.", -1), (b"\x8a\x00.", 0),
                               (b"\x8a\x01\x80.", -128), (b"\x8a\x08" + bytes(7) + b"\x80.", -1 << 63), (b"X\x02\0\0\0hi.", "hi"),
                               (b"\x8c\x02hi.", "hi"), (b"C\x02hi.", b"hi"), (b"G?\xf8\0\0\0\0\0\0.", 1.5), (b"(K\x01K\x02\x88t.", (1, 2, True)),
                               (b"K\x01K\x02\x86.", (1, 2)), (b"]q\0(K\x01K\x02eh\0\x86.", ([1, 2], [1, 2])), (b"}K\x01NsK\x03K\x04s.", [1, None, 3, 4]),
                               (b"](K\x01eK\x02a.", [1, 2]), (b"(K\x01K\x02d.", [1, 2]), (b"(K\x01l.", [1]), (b"X\x01\0\0\0\xff.", "\ufffd"),
                               (b"\x95\x11\0\0\0\0\0\0\0}\x94(\x8c\x01a\x94K\x01\x8c\x01b\x94]\x94h\x01au.", ["a", 1, "b", ["a"]])):
            self.assertEqual(parsed(opcodes), value, opcodes)

    def test_everything_that_is_no_data(self) -> None:
        """What "import os; os.system" needs, and what protocol 4 uses for it."""
        for opcodes, place in ((b"cos\nsystem\n(X\x02\0\0\0idtR.", "2: opcode GLOBAL"), (b"\x8c\x02os\x8c\x06system\x93.", "14: opcode STACK_GLOBAL"),
                               (b"N)R.", "4: opcode REDUCE"), (b"N}b.", "4: opcode BUILD"), (b"(ios\nsystem\n.", "3: opcode INST"), (b"(o.", "3: opcode OBJ"),
                               (b"N)\x81.", "4: opcode NEWOBJ"), (b"\x82\x01.", "2: opcode EXT1"), (b"Pid\n.", "2: opcode PERSID"),
                               (b"\xff.", "2: opcode 0xff"), (b"0.", "2: opcode 0x30"), (b"I1\n.", "2: opcode 0x49")):
            self.assertEqual(parsed(opcodes), f"byte {place} is refused, only data is read")
        for code in range(256):  # each opcode with values below it: data or an error, and never another exception
            for below in (b"", b"]N", b"((}NN", b"X\x02\0\0\0osX\x06\0\0\0system"):
                parsed(below + bytes([code]) + b"\0\0\0\0\0\0\0\0.")

    def test_what_is_wrong_and_where(self) -> None:
        for opcodes, error in ((b"X\x05\0\0\0hi.", "2: the pickle ends early"), (b"X\x05", "2: the pickle ends early"), (b"]K\x01", "5: the pickle ends early"),
                               (b"NN.", "4: STOP with 2 values"), (b".", "2: STOP with 0 values"), (b"(.", "3: STOP with 0 values"),
                               (b"h\x05.", "2: nothing at the memo's place"), (b"q\0.", "2: too few values"), (b"]u.", "3: no mark"),
                               (b"}(Nu.", "5: a key without a value"), (b"NNa.", "4: no container for the values"), (b"}(NNe.", "6: no container for the values"),
                               (b"]NNs.", "5: no container for the values"), (b"a.", "2: too few values"), (b"\x87.", "2: too few values"),
                               (b"N\x80\x02.", "3: protocol 2 is not one from 2 to 5 at the start"),
                               (b"\x8a\x09" + bytes(9) + b".", "2: an integer of more than 64 bits"), (b"\x8e" + b"\xff" * 8, "2: the pickle ends early"),
                               (b"\x8b\xff\xff\xff\xff.", "2: an integer of more than 64 bits")):
            self.assertEqual(parsed(opcodes), f"byte {error}", opcodes)
        self.assertEqual(parsed(b"N.", 6), "byte 0: protocol 6 is not one from 2 to 5 at the start")
        self.assertEqual(dump_of(b""), "byte 0: the pickle ends early")
        self.assertEqual(dump_of(b"(lp0\n."), "byte 0: a pickle of protocol 2 to 5 begins with PROTO, not 0x28")

    def test_bounds(self) -> None:
        self.assertEqual(parsed(b"(" * 65), "byte 66: more than 64 open containers")
        self.assertEqual(parsed(b"N" * 300_000), "byte 262146: more than 262144 values on the stack")
        self.assertEqual(parsed(b"Nr\xff\xff\xff\xff."), "byte 3: more than 1048576 places of the memo")
        self.assertEqual(parsed(b"]" + b"Na" * (2 << 20)), "byte 4194305: more than 2097152 values")
        self.assertEqual(parsed(b"]Nq\0a" + b"h\0a" * (4 << 20)), f"byte {6 + 3 * (4 << 20)}: more than 4194304 members")

    def test_depth_and_cycles_recurse_nowhere(self) -> None:
        deep = parsed(b"]" * 200_000 + b"a" * 199_999 + b".")
        self.assertEqual(len(deep), 1)
        del deep
        self.assertIsInstance(parsed(b")" + b"\x85" * 200_000 + b"."), tuple)
        self.assertEqual(dump_of(b"\x80\x02}X\x09\0\0\0pg_status]" + b"\x85" * 200_000 + b"s."),
                         "the dump has no process group with a name and a last operation")
        cycle = parsed(b"]q\0h\0a.")
        self.assertIs(cycle[0], cycle)
        self.assertEqual(dump_of(b"\x80\x02}q\0h\0h\0s."), "the dump has no pg_status, as those of PyTorch before 2.4")

    def test_an_endless_pickle_ends(self) -> None:
        self.addCleanup(setattr, pickles, "_LONGEST", pickles._LONGEST)
        pickles._LONGEST = 0.2
        began = time.monotonic()
        self.assertRegex(parsed(b"N" + b"q\0" * (16 << 20)), r"^byte \d+: the pickle takes longer than 0.2 s$")
        self.assertLess(time.monotonic() - began, 100)


class DumpTest(unittest.TestCase):
    """Dumps of PyTorch 2.15.0: rank 2 has not launched the seventh operation."""

    def test_the_dumps_of_pytorch(self) -> None:
        both = [("0", "default_pg", {"enqueued": 7, "completed": 6}), ("1", "", {"enqueued": 2, "completed": 2})]
        self.assertEqual(dump_of(RANK_0), both)
        self.assertEqual(dump_of((DUMPS / "rank_0_protocol_5.pickle").read_bytes()), both)
        self.assertEqual(dump_of(RANK_1), both)
        self.assertEqual(dump_of(RANK_2), [("0", "default_pg", {"enqueued": 6, "completed": 6})])

    def test_groups(self) -> None:
        """Two ranks count their groups differently: the entries have the names."""
        status = {"3": {"last_enqueued_collective": "9", "last_started_collective": "8", "last_completed_collective": 7},
                  "4": {"last_enqueued_collective": "1"}, "5": {"last_enqueued_collective": "1", "last_completed_collective": "-1"}}
        entries = [{"pg_id": 3, "process_group": ["17", "mesh_dp"]}, {"pg_id": 3, "process_group": ["other", ""]}, {"pg_id": 4, "process_group": ["x"]},
                   {"pg_id": 5, "process_group": ["a\n" + "\u00e9" * 40, "undefined"]}, {"pg_id": 9, "process_group": ["0", "default_pg"]}, 7, None]
        expected = [("17", "mesh_dp", {"enqueued": 9, "started": 8, "completed": 7}), ("a\ufffd" + "\u00e9" * 31, "", {"enqueued": 1})]
        whole = {"pg_status": status, "entries": entries}
        self.assertEqual(dump_of(json.dumps(whole).encode()), expected)
        for protocol in range(2, 6):
            self.assertEqual(dump_of(pickle.dumps(whole, protocol)), expected)
        many = {"pg_status": {str(at): {"last_enqueued_collective": 1} for at in range(20)},
                "entries": [{"pg_id": at, "process_group": [f"g{at}", ""]} for at in range(20)]}
        self.assertEqual(len(dump_of(json.dumps(many).encode())), flight_dump.MOST_GROUPS)

    def test_what_is_missing(self) -> None:
        for data, error in ((b'{"version":"2.1"}', "the dump has no pg_status, as those of PyTorch before 2.4"),
                            (b"\x80\x02}.", "the dump has no pg_status, as those of PyTorch before 2.4"),
                            (b'{"pg_status":{"0":{"last_enqueued_collective":"1"}},"entries":[]}', "the dump has no process group with a name and a last operation"),
                            (b'{"pg_status":{', "the dump is no complete JSON document"), (b'{"a":' + b"[" * 100_000, "the dump is no complete JSON document"),
                            (b'{"a":' + b"9" * 1_000_000 + b"}", "the dump is no complete JSON document"),
                            (b'{"a":[' + b"[]," * 2_000_000 + b"0]}", "more than 2097152 values"),
                            (b'{"pg_status":{"\\ud800":[]},"entries":{"x":[1]}}', "the dump has no process group with a name and a last operation")):
            self.assertEqual(dump_of(data), error, data[:60])

    def test_every_cut_is_an_error(self) -> None:
        for data in (RANK_0, RANK_1):
            for length in range(len(data)):
                self.assertIsInstance(dump_of(data[:length]), str, length)


    def test_a_changed_dump_gives_groups_or_an_error(self) -> None:
        """Bytes of the real dumps and of the fuzz corpus are changed, removed and repeated."""
        luck = random.Random(20260102)
        texts = [path.read_bytes() for folder in (DUMPS, FIXTURES / "hostile") for path in sorted(folder.iterdir())]
        found = 0
        for text in texts:
            for _ in range(40):
                at, other, length = luck.randrange(len(text) + 1), luck.randrange(len(text) + 1), luck.randint(1, 20)
                changed = luck.choice((text[:at] + bytes([luck.randrange(256)]) + text[at + 1:], text[:at] + text[at + length:],
                                       text[:at] + text[other:other + length] + text[at:]))
                said = dump_of(changed)
                if not isinstance(said, str):
                    found += 1
                    self.assertTrue(0 < len(said) <= flight_dump.MOST_GROUPS)
                    self.assertTrue(all(name and min(sequences.values()) >= 0 for name, _, sequences in said))
        self.assertGreater(found, 20)


class FlightRecorderTest(Bench):
    def setUp(self) -> None:
        super().setUp()
        self.reader = FlightRecorder([f"{self.tree}/rank_"], self.say)

    def test_the_page(self) -> None:
        """Names and texts are those of the catalogue."""
        self.write("rank_0", RANK_0)
        self.write("rank_1", RANK_1)
        self.write("rank_2", RANK_2, 1)
        self.write("rank_3", b"\x80\x02N.")
        self.assertFalse(self.look(30))
        rank = f'{{run="train.service",user="ann",prefix="{self.tree}/rank_",rank='
        pg = ',group="0",description="default_pg",state='
        catalogue = "".join((ROOT / "collectors/api" / name).read_text() for name in ("catalog.hpp", "self_catalog.hpp"))
        for family, text in page.FAMILIES.items():
            kind = "counter" if family.endswith("_total") else "gauge"
            self.assertRegex(catalogue, rf'{kind}\("{family}", "\w*", "{re.escape(text)}"\)')
        sequence, stamp, files = ("ml_flight_recorder_collective", "ml_flight_recorder_dump_timestamp_seconds", "gpumeter_nccl_files")
        lines = [f"# HELP {sequence} {page.FAMILIES[sequence]}", f"# TYPE {sequence} gauge",
                *(f"{sequence}{rank}{rest}" for rest in (
                    f'"0"{pg}"enqueued"}} 7', f'"0"{pg}"completed"}} 6', '"0",group="1",state="enqueued"} 2', '"0",group="1",state="completed"} 2',
                    f'"1"{pg}"enqueued"}} 7', f'"1"{pg}"completed"}} 6', '"1",group="1",state="enqueued"} 2', '"1",group="1",state="completed"} 2',
                    f'"2"{pg}"enqueued"}} 6', f'"2"{pg}"completed"}} 6')),
                f"# HELP {stamp} {page.FAMILIES[stamp]}", f"# TYPE {stamp} gauge",
                f'{stamp}{rank}"0"}} 1790000000', f'{stamp}{rank}"1"}} 1790000000', f'{stamp}{rank}"2"}} 1790000001',
                f"# HELP {files} {page.FAMILIES[files]}", f"# TYPE {files} gauge",
                f'{files}{{source="flight_recorder",state="read"}} 3', f'{files}{{source="flight_recorder",state="invalid"}} 1']
        self.assertEqual(self.page().splitlines(), ["# gpumeter: expires 300s", *lines])
        self.assertEqual(self.said, ["rank_3: the dump has no pg_status, as those of PyTorch before 2.4"])

    def test_labels_are_escaped(self) -> None:
        self.rows = [row(uid=os.getuid(), run='a"b\\c\n')]
        self.write("rank_0", RANK_2)
        self.look(30)
        self.assertIn('{run="a\\"b\\\\c\\n",user="ann"', self.page())

    def test_a_run_that_ended_is_kept_for_an_hour(self) -> None:
        self.write("rank_0", RANK_0)
        self.look(5)
        before = self.page()
        self.rows = []
        self.look(3600)
        self.assertEqual(self.page(), before)
        self.look(3601)
        self.assertEqual(self.states(), {"stale": 1})
        self.assertNotIn("ml_", self.page())

    def test_who_is_believed(self) -> None:
        me = os.getuid()
        for rows, allowed, age, run in (([], [], 5, None), ([row(uid=me + 1)], [], 5, None), ([row(uid=me, uuids=())], [], 5, None), ([{**row(uid=me), "uid": None}], [], 5, None),
                                        ([row(uid=me)], [], 5, Run("ann", "train.service")), ([row(uid=me, workload="")], [], 5, Run("ann", "unattributed")), ([row(uid=me, run="llama")], [], 5, Run("ann", "llama")),
                                        ([row(uid=me), row(2, me, run="llama")], [], 5, Run("ann", "")), ([row(uid=me)], ["bob"], 5, None),
                                        ([row(uid=me)], ["ann"], 5, Run("ann", "train.service")), ([row(uid=me)], [str(me)], 5, Run("ann", "train.service")),
                                        # The processes may belong to a later run of the same user.
                                        ([row(uid=me)], [], 300, Run("ann", ""))):
            self.owners, self.rows = Owners(allowed), rows
            self.reader.dumps.clear()
            self.write("rank_0", RANK_0)
            self.look(age)
            [dump] = self.reader.dumps.values()
            self.assertEqual((dump.state, dump.run), ("read", run) if run else ("foreign", Run("", "")), (rows, allowed))

    def test_dumps_of_an_earlier_stall_leave(self) -> None:
        self.write("rank_0", RANK_0)
        self.look(5)
        self.write("rank_2", RANK_2, 601)
        self.look(610)
        self.assertEqual(self.states(), {"read": 1, "stale": 1})
        self.assertNotIn('rank="0"', self.page())

    def test_a_torn_dump_is_read_later_or_refused(self) -> None:
        self.write("rank_0", RANK_0[:1000])
        self.assertTrue(self.look(5))
        self.assertEqual(self.states(), {"torn": 1})
        self.write("rank_0", RANK_0, 6)
        self.assertTrue(self.look(6.5))
        self.assertFalse(self.look(8))
        self.assertEqual(self.states(), {"read": 1})
        self.write("rank_1", RANK_1[:1000], 8)
        self.assertTrue(self.look(100))
        self.assertFalse(self.look(200))
        self.assertEqual((self.states(), self.said), ({"read": 1, "invalid": 1}, ["rank_1: the dump is not complete"]))
        self.write("rank_1", RANK_1, 201)
        self.look(210)
        self.assertEqual((self.states(), self.said[1:]), ({"read": 2}, ["rank_1: "]))

    def test_other_names_are_no_dumps(self) -> None:
        for name in ("rank_", "rank_0.bak", "rank_01", "rank_-1", "rank_x", "range_0", "rank_0\n", "rank_\u0661"):
            self.write(name, RANK_0)
        self.look(5)
        self.assertEqual(self.states(), {})

    def test_hostile_files(self) -> None:
        """Links, pipes, folders, devices of a user who has a process on a GPU: each is invalid with its reason, and the job's dump is read."""
        secret = self.write("secret", RANK_0)
        (self.tree / "rank_0").symlink_to(secret)
        os.link(secret, self.tree / "rank_1")
        os.mkfifo(self.tree / "rank_2")
        (self.tree / "rank_3").mkdir()
        with open(self.write("rank_4", b""), "wb") as large:
            large.truncate(flight_recorder.MOST_BYTES + 1)
        os.utime(self.tree / "rank_4", ns=(BEGIN, BEGIN))
        (self.tree / "rank_5").symlink_to("/dev/zero")
        (self.tree / "rank_6").symlink_to(self.tree / "nowhere")
        self.write("rank_7", pickle.dumps({"pg_status": Calls(self.tree / "executed")}))
        self.write("rank_8", RANK_2)
        self.look(30)
        self.assertEqual({line.partition(": ")[0]: line.partition(": ")[2] for line in self.said}, {
            **dict.fromkeys(("rank_0", "rank_2", "rank_3", "rank_5", "rank_6"), "is no plain file"), "rank_1": "has more than one name",
            "rank_4": "has 33554433 bytes, 33554432 at the most", "rank_7": self.said[7].partition(": ")[2]})
        self.assertRegex(self.said[7], r"^rank_7: byte \d+: opcode STACK_GLOBAL is refused, only data is read$")
        self.assertEqual(self.states(), {"invalid": 8, "read": 1})
        self.assertFalse((self.tree / "executed").exists())
        pickle.loads((self.tree / "rank_7").read_bytes())
        self.assertTrue((self.tree / "executed").exists(), "Python's reader executes the same file")
        self.said.clear()
        self.look(40)
        self.assertEqual(self.said, [], "a complaint is named once")

    def test_a_file_that_is_changed_while_it_is_read(self) -> None:
        """It grows, or another file is put in its place, after it was seen."""
        for change in (lambda path: path.open("ab").write(b"x"), lambda path: path.unlink() or self.write("rank_0", RANK_2, 1),
                       lambda path: path.unlink() or path.symlink_to("/etc/passwd")):
            path = self.write("rank_0", RANK_0)
            with Folder(str(self.tree)) as folder:
                seen = folder.look("rank_0")
                change(path)
                dump = flight_recorder.Dump("rank_", 0)
                try:
                    self.reader._take(folder, "rank_0", seen, self.at(30), dump)
                except OSError:
                    pass
            self.assertEqual((dump.state, dump.groups), ("torn", []))
            path.unlink()
        self.write("rank_0", RANK_0)
        stop = threading.Event()

        def grow() -> None:
            with open(self.tree / "rank_0", "ab") as file:
                while not stop.wait(0.0001):
                    file.write(b"x" * 100_000)
                    file.flush()
                    os.utime(self.tree / "rank_0", ns=(BEGIN, BEGIN))
                    if file.tell() > flight_recorder.MOST_BYTES:
                        file.truncate(len(RANK_0))
        writer = threading.Thread(target=grow)
        writer.start()
        try:
            for _ in range(100):
                self.look(30)
                [dump] = self.reader.dumps.values()
                self.assertIn(dump.state, ("torn", "invalid", "read"))
                if dump.state == "read":  # before the first change, or after the file was cut to what it was
                    self.assertEqual(dump.groups, flight_dump.parse(RANK_0))
        finally:
            stop.set()
            writer.join()

    @unittest.skipUnless(os.geteuid() == 0, "only root can make files of another user")
    def test_a_strangers_files_take_no_place_of_a_jobs(self) -> None:
        for rank in range(3000):
            self.write(f"rank_{rank}", RANK_0, 0, 4711)
        for rank in range(3000, 3008):
            self.write(f"rank_{rank}", RANK_1)
        self.look(30)
        self.assertEqual(self.states(), {"read": 8, "foreign": 56})
        self.rows = []
        self.look(100)
        self.assertEqual(self.states(), {"read": 8, "foreign": 56}, "the job has ended")
        self.rows = [row(uid=4711, owner="eve"), row(2, os.getuid())]
        self.look(110)
        self.assertEqual(self.states(), {"read": 64})
        self.assertIn('rank="3007"', self.page(), "two jobs share the places")

    def test_slow_dumps_of_one_user_wait(self) -> None:
        self.addCleanup(setattr, folder, "_MOST_SECONDS", folder._MOST_SECONDS)
        folder._MOST_SECONDS = -1.0
        self.write("rank_0", RANK_0)
        self.assertTrue(self.look(30))
        folder._MOST_SECONDS = 10.0
        self.assertFalse(self.look(31))
        self.assertEqual(self.states(), {"read": 1})

    def test_a_folder_that_is_none(self) -> None:
        for path in ("missing/rank_", "file/rank_", "link/rank_"):
            self.write("file", b"")
            if not (self.tree / "link").is_symlink():
                (self.tree / "link").symlink_to(self.tree)
            self.reader._prefixes[:] = [f"{self.tree}/{path}"]
            for _ in range(2):
                self.look(5)
        self.assertEqual(self.said, [f"file: {self.tree}/file: Not a directory", f"link: {self.tree}/link: Not a directory"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
