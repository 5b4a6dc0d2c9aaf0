#!/usr/bin/env python3
"""Given files of NCCL Inspector, dumps of PyTorch's flight recorder and the users of the GPUs, when looked at, then exactly this page; given what a
hostile user may put in the folder, then an error with its place, in bounded time and memory, and nothing of it is executed."""
from __future__ import annotations

import contextlib
import http.server
import json
import math
import os
import pickle
import random
import re
import resource
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any

from receiver import CLIENT
from gpumeter_nccl_files import flight_dump, flight_recorder, folder, inspector, page, pickles
from gpumeter_nccl_files.flight_recorder import FlightRecorder
from gpumeter_nccl_files.folder import SECOND, Folder
from gpumeter_nccl_files.inspector import Inspector
from gpumeter_nccl_files.owners import Owners, Run

ROOT = CLIENT.parent.parent
FIXTURES = ROOT / "tests/fixtures/nccl"
DUMPS = FIXTURES / "flight_recorder"
BEGIN = 1_790_000_000 * SECOND
UUID = "c2000000-0000-4000-8000-000000000000"
GPU = f"GPU-{UUID}"
RANK_0, RANK_1, RANK_2 = ((DUMPS / name).read_bytes() for name in ("rank_0.pickle", "rank_1.json", "rank_2.pickle"))


def row(pid: int = 1, uid: int = 0, owner: str = "ann", run: str = "", workload: str = "train.service", uuids: "tuple[str, ...]" = (GPU,)) -> "dict[str, Any]":
    """A process as the daemon has it in /api/v1/processes."""
    return {"pid": pid, "start_ticks": 5, "uid": uid, "owner": owner, "group": f"/system.slice/{workload}", "kind": "unit", "workload": workload or None,
            "user": owner if run else None, "run": run or None,
            "devices": [{"uuid": uuid, "gpu": 0, "present": True, "joules": None, "busy_seconds": 1.5} for uuid in uuids]}


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


class Bench(unittest.TestCase):
    """A folder with files of the test's own user, who has a process on a GPU unless the test changes `rows`. Times are seconds since BEGIN."""
    reader: Any

    def setUp(self) -> None:
        self.tree = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-nccl-files-")))
        self.said: "list[str]" = []
        self.owners = Owners([])
        self.rows = [row(uid=os.getuid())]
        self.series = [{"name": "gpu_up", "labels": {"gpu": "0", "uuid": GPU}}]

    def say(self, path: str, complaint: str) -> None:
        self.said.append(f"{Path(path).name}: {complaint}")

    def write(self, name: str, data: bytes, at: float = 0, owner: "int | None" = None) -> Path:
        path = self.tree / name
        path.write_bytes(data)
        os.utime(path, ns=(self.at(at), self.at(at)))
        if owner is not None:
            os.chown(path, owner, owner)
        return path

    @staticmethod
    def at(seconds: float) -> int:
        return BEGIN + int(seconds * SECOND)

    def look(self, seconds: float) -> bool:
        self.owners.update_places(self.series)
        self.owners.update(self.rows)
        return self.reader.look(self.owners, self.at(seconds))

    def page(self) -> str:
        written = page.Page()
        self.reader.write(written)
        [text] = written.texts()
        return text

    def states(self) -> "dict[str, int]":
        """The samples of gpumeter_nccl_files."""
        return {label: int(count) for label, count in re.findall(r'^gpumeter_nccl_files\{source="\w+",state="(\w+)"\} (\d+)$', self.page(), re.M)}


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


def said_of(text: str) -> str:
    """What a file of Inspector says, as lines."""
    content = inspector.parse(text)
    keys = sorted(set().union(*content.means.values()))
    lines = [" ".join([*key, *(f"{means[key]:.6g}{unit}" for means, unit in zip(content.means.values(), ("B/s", "s")) if key in means)]) for key in keys]
    for kind in ("collective", "point_to_point"):
        lines += [f"{kind} {what} {counts[kind]:g}" for counts, what in zip(content.counts.values(), ("recorded", "lost")) if kind in counts]
    return "".join(f"{line}\n" for line in [*lines, content.complaint] if line)


def bandwidth(labels: str, value: str) -> str:
    return f"nccl_bus_bandwidth_gbs{{{labels}}} {value}\n"


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


NAME = f"nccl_inspector_metrics_{UUID}.prom"
LINE = bandwidth('collective="AllReduce",message_size="1-2MB",n_nodes="1"', "200").encode()
ON_GPU = f'gpu="0",uuid="{GPU}"'
ALL_REDUCE = ',op="all_reduce",size="1MiB-16MiB",scope="node"} 200000000000\n'


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


SERIES = json.dumps({"series": [{"name": "gpu_up", "labels": {"gpu": "0", "uuid": GPU}, "value": 1}]}).encode()


class PagesTest(unittest.TestCase):
    def test_many_series_are_several_pages(self) -> None:
        """The daemon refuses a page with more than 2000 series or a mebibyte."""
        for length, count in ((10, 2), (2000, 7)):
            whole = page.Page()
            for at in range(3000):
                whole.add("ml_nccl_dump_timestamp_seconds", at, {"run": "r" * length, "gpu": str(at)})
            whole.add("gpumeter_nccl_files", 3000, {"state": "read"})
            texts = whole.texts()
            self.assertGreaterEqual(len(texts), count)
            lines = [[line for line in text.splitlines() if not line.startswith("#")] for text in texts]
            self.assertEqual(sum(map(len, lines)), 3001)
            self.assertEqual(len({line for each in lines for line in each}), 3001)
            for text, rows in zip(texts, lines):
                self.assertTrue(text.startswith("# gpumeter: expires 300s\n# HELP "))
                self.assertTrue(0 < len(rows) <= 2000 and len(text.encode()) <= 1 << 20)
                self.assertEqual(text.count("# TYPE "), len({row.partition("{")[0] for row in rows}))


class Daemon(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """The daemon's API."""
    daemon_threads = True
    answer = b""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_processes, is_series = self.path == "/api/v1/processes", self.path == "/api/v1/series?match[]=gpu_up&match[]=gpu_partition_info"
        self.send_response(200 if is_processes or is_series else 404)
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):  # the program read enough
            self.wfile.write(SERIES if is_series else self.server.answer)  # type: ignore[attr-defined]

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: object) -> None:
        pass


class ProgramTest(unittest.TestCase):
    def setUp(self) -> None:
        self.tree = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-nccl-files-")))
        (self.tree / "pages").mkdir()
        self.page = self.tree / "pages/nccl-files.prom"
        self.command = [CLIENT / "gpumeter-nccl-files", f"--flight-recorder={self.tree}/rank_", f"--api-socket={self.tree}/api.sock", f"--page={self.page}"]
        for rank, data in enumerate((RANK_0, RANK_1, RANK_2)):
            (self.tree / f"rank_{rank}").write_bytes(data)
            os.utime(self.tree / f"rank_{rank}", (time.time() - 5,) * 2)
        self.daemon = self.enterContext(Daemon(str(self.tree / "api.sock"), Handler))
        self.daemon.answer = json.dumps({"processes": [row(uid=os.getuid(), run="llama")]}).encode()
        thread = threading.Thread(target=self.daemon.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.daemon.shutdown)

    def run_once(self, *options: str, **limits: Any) -> subprocess.CompletedProcess:
        return subprocess.run([*self.command, "--once", *options], capture_output=True, text=True, timeout=60, env={"PATH": os.environ["PATH"]}, **limits)

    def test_a_page_of_the_daemons_processes(self) -> None:
        said = self.run_once()
        self.assertEqual((said.returncode, said.stdout, said.stderr), (0, "", ""))
        page = self.page.read_text()
        self.assertIn(f'ml_flight_recorder_collective{{run="llama",user="ann",prefix="{self.tree}/rank_",rank="2",group="0",'
                      'description="default_pg",state="enqueued"} 6\n', page)
        self.assertTrue(page.endswith('gpumeter_nccl_files{source="flight_recorder",state="read"} 3\n'))
        self.assertEqual(([path.name for path in self.page.parent.iterdir()], self.page.stat().st_mode & 0o777), ([self.page.name], 0o644))

    def test_a_page_of_both_sources(self) -> None:
        (self.tree / NAME).write_bytes(LINE + b"nccl_p2p_total{a=\"\\n<2>\"} -1\n")
        os.utime(self.tree / NAME, (time.time() - 5,) * 2)
        said = self.run_once(f"--inspector={self.tree}")
        self.assertEqual(said.returncode, 0)
        self.assertEqual(said.stderr, "gpumeter-nccl-files: NCCL Inspector's file is not read, or not all of it; it is tried again when it changes: "
                                      f"{self.tree}/{NAME}: line 2: the value must be a number from 0 on\n")
        text = self.page.read_text()
        self.assertIn(f'ml_nccl_bus_bandwidth_bytes_per_second{{{ON_GPU},run="llama",user="ann"{ALL_REDUCE}', text)
        self.assertTrue(text.endswith('gpumeter_nccl_files{source="flight_recorder",state="read"} 3\n'
                                      'gpumeter_nccl_files{source="inspector",state="invalid"} 1\n'), text)

    def test_its_page_ends_with_it(self) -> None:
        with subprocess.Popen([*self.command, f"--inspector={self.tree}/missing"], stderr=subprocess.PIPE, text=True) as running:
            self.assertEqual(running.stderr.readline(), "gpumeter-nccl-files: a folder of NCCL Inspector's files or the flight recorder's dumps does not "
                                                        f"exist yet: {self.tree}/missing\n")
            end = time.monotonic() + 60
            while not self.page.exists() and time.monotonic() < end:
                time.sleep(0.02)
            self.assertIn('state="read"} 3', self.page.read_text())
            running.send_signal(signal.SIGTERM)
            self.assertEqual(running.wait(30), 0)
        self.assertFalse(self.page.exists())

    def test_without_the_daemon(self) -> None:
        (self.tree / "api.sock").unlink()
        said = self.run_once()
        self.assertEqual(said.returncode, 0)
        self.assertRegex(said.stderr, r"^gpumeter-nccl-files: the daemon cannot be asked .*api\.sock: .*No such file or directory\n$")
        self.assertIn('state="foreign"} 3', self.page.read_text())

    def test_answers_that_are_none(self) -> None:
        for answer in (b"", b"no JSON", b"[]", b'{"processes": 5}', b'{"processes": [{}]}', b'{"processes": [{"devices": [1]}]}', b"[" * 100_000,
                       b'{"processes": "' + b"x" * (17 << 20)):
            self.daemon.answer = answer
            said = self.run_once()
            self.assertEqual(said.returncode, 0, said.stderr)
            self.assertIn('state="foreign"} 3', self.page.read_text(), answer[:40])

    def test_a_page_that_cannot_be_written(self) -> None:
        """A folder, or nothing, is in its place: it says so, leaves nothing behind, and ends well."""
        self.page.mkdir()
        said = self.run_once()
        self.assertEqual(said.returncode, 0)
        self.assertRegex(said.stderr, r"^gpumeter-nccl-files: the page cannot be written: .*Is a directory.*\n$")
        self.assertEqual(list(self.page.parent.iterdir()), [self.page])

    def test_wrong_options(self) -> None:
        for options, why in ((("--flight-recorder=relative",), '--flight-recorder must be an absolute path, such as "/var/log/torch/trace_rank_", not "relative"'),
                             ((f"--flight-recorder={self.tree}/rank_",), "--flight-recorder must name each prefix once"), (("--interval=0",), "--interval must be 1 to 60 seconds"),
                             (("--nosuch",), "--nosuch")):
            said = self.run_once(*options)
            self.assertEqual(said.returncode, 2)
            self.assertIn(why, said.stderr)

    def test_a_hostile_dump_takes_bounded_memory(self) -> None:
        """The limit is that of the unit. A list of two million dicts, and JSON of as many lists."""
        (self.tree / "rank_3").write_bytes(b"\x80\x02]" + b"}a" * ((2 << 20) - 1) + b".")
        (self.tree / "rank_4").write_bytes(b'{"a":[' + b"[]," * ((1 << 20) - 2) + b"0]}")
        for rank in (3, 4):
            os.utime(self.tree / f"rank_{rank}", (time.time() - 5,) * 2)
        limit = 1 << 30
        said = self.run_once(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertEqual(said.stderr.count("the dump has no pg_status"), 2, said.stderr)
        self.assertIn('state="read"} 3', self.page.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
