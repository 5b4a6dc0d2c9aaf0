"""The data of a Python pickle of protocol 2 to 5. To load a pickle by Python's own reader is to run its writer's code: a pickle is a program for a
stack machine, whose opcodes can call any function. This machine knows only those that build data (Lib/pickletools.py). Every other opcode is an
Error with its name and offset, and nothing of the pickle is used. Nothing recurses, and nothing hashes or compares what the pickle built."""
from __future__ import annotations

import struct
import time
from typing import Any, Callable, Dict, List, Tuple

# A dump of 2,000 entries with 60 frames each has a million values and 16 MB.
MOST_VALUES = 2 << 20
_MOST_MEMBERS = 4 << 20  # of lists, tuples and dicts
_MOST_STACK = 1 << 18
_MOST_MEMO = 1 << 20
_DEEPEST = 64  # containers under construction within each other
_LONGEST = 20.0  # seconds of the processor; a dump of two million values takes five
_STEPS = 1 << 16  # between two looks at the clock


class Error(ValueError):
    """The reason, with the place in the pickle."""


class Pairs(list):  # type: ignore[type-arg]
    """A dict of the pickle, as its keys and values in turn: keys of a stranger's pickle are not hashed."""
    __slots__ = ()


class _Machine:
    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.offset = data, 0, 0  # `offset`: of the opcode
        self.stack: List[Any] = []
        self.marks: List[int] = []
        self.memo: Dict[int, Any] = {}
        self.values = self.members = 0

    def run(self) -> Any:
        end = time.thread_time() + _LONGEST
        while True:
            if time.thread_time() > end:
                raise self.error(f"the pickle takes longer than {_LONGEST:g} s")
            if self.steps():
                return self.stack[0]

    def steps(self) -> bool:
        """True after STOP."""
        data, size = self.data, len(self.data)
        for _ in range(_STEPS):
            self.offset = at = self.at
            if at >= size:
                raise self.error("the pickle ends early")
            code = data[at]
            if at == 0 and code != 0x80:
                raise self.error(f"a pickle of protocol 2 to 5 begins with PROTO, not {code:#04x}")
            if code not in _OPCODES:
                raise self.error(f"opcode {_REFUSED.get(code, f'{code:#04x}')} is refused, only data is read")
            form, act = _OPCODES[code]
            argument = 0
            if form:
                if at + 1 + form.size > size:
                    raise self.error("the pickle ends early")
                argument = form.unpack_from(data, at + 1)[0]
                at += form.size
            self.at = at + 1
            act(self, argument)
            if code == 0x2e:
                return True
        return False

    def error(self, what: str) -> Error:
        return Error(f"byte {self.offset}: {what}")

    def protocol(self, version: int) -> None:
        if not 2 <= version <= 5 or self.offset:
            raise self.error(f"protocol {version} is not one from 2 to 5 at the start")

    def ignore(self, _: int) -> None:
        """A hint for readers of streams."""

    def stop(self, _: int) -> None:
        if len(self.stack) != 1 or self.marks:
            raise self.error(f"STOP with {len(self.stack)} values")

    def mark(self, _: int) -> None:
        if len(self.marks) == _DEEPEST:
            raise self.error(f"more than {_DEEPEST} open containers")
        self.marks.append(len(self.stack))

    def since_mark(self) -> int:
        if not self.marks or self.marks[-1] > len(self.stack):
            raise self.error("no mark")
        return len(self.stack) - self.marks.pop()

    def push(self, value: Any) -> None:
        self.values += 1
        if self.values > MOST_VALUES:
            raise self.error(f"more than {MOST_VALUES} values")
        self.place(value)

    def place(self, value: Any) -> None:
        if len(self.stack) == _MOST_STACK:
            raise self.error(f"more than {_MOST_STACK} values on the stack")
        self.stack.append(value)

    def take(self, length: int) -> bytes:
        if length > len(self.data) - self.at:
            raise self.error("the pickle ends early")
        self.at += length
        return self.data[self.at - length:self.at]

    def long_integer(self, length: int) -> None:
        if length > 8:
            raise self.error("an integer of more than 64 bits")
        self.push(int.from_bytes(self.take(length), "little", signed=True))

    def text(self, length: int) -> None:
        self.push(self.take(length).decode(errors="replace"))

    def bytes(self, length: int) -> None:
        self.push(self.take(length))

    def pop(self, kind: Callable[[List[Any]], Any], count: int) -> List[Any]:
        """Removes the last values, for a container of this kind."""
        if count > len(self.stack):
            raise self.error("too few values")
        if kind is Pairs and count % 2:
            raise self.error("a key without a value")
        self.members += count
        if self.members > _MOST_MEMBERS:
            raise self.error(f"more than {_MOST_MEMBERS} members")
        begin = len(self.stack) - count
        values = self.stack[begin:]
        del self.stack[begin:]
        return values

    def make(self, kind: Callable[[List[Any]], Any], count: int) -> None:
        self.push(kind(self.pop(kind, count)))

    def add(self, kind: type, count: int) -> None:
        """Moves the last values into the container below them."""
        if count >= len(self.stack):
            raise self.error("too few values")
        values = self.pop(kind, count)
        if type(self.stack[-1]) is not kind:
            raise self.error("no container for the values")
        self.stack[-1].extend(values)

    def put(self, place: int) -> None:
        if not self.stack:
            raise self.error("too few values")
        if place >= _MOST_MEMO:
            raise self.error(f"more than {_MOST_MEMO} places of the memo")
        self.memo[place] = self.stack[-1]

    def get(self, place: int) -> None:
        if place not in self.memo:
            raise self.error("nothing at the memo's place")
        self.place(self.memo[place])


_BYTE, _TWO, _FOUR, _EIGHT = (struct.Struct(form) for form in ("<B", "<H", "<I", "<Q"))
_OPCODES: "Dict[int, Tuple[Any, Callable[[_Machine, int], None]]]" = {
    0x80: (_BYTE, _Machine.protocol), 0x95: (_EIGHT, _Machine.ignore), 0x2e: (None, _Machine.stop),  # PROTO, FRAME, STOP
    0x28: (None, _Machine.mark),
    0x4e: (None, lambda it, _: it.push(None)), 0x88: (None, lambda it, _: it.push(True)), 0x89: (None, lambda it, _: it.push(False)),
    0x4b: (_BYTE, _Machine.push), 0x4d: (_TWO, _Machine.push), 0x4a: (struct.Struct("<i"), _Machine.push),  # BININT1, BININT2, BININT
    0x8a: (_BYTE, _Machine.long_integer), 0x8b: (_FOUR, _Machine.long_integer), 0x47: (struct.Struct(">d"), _Machine.push),
    0x8c: (_BYTE, _Machine.text), 0x58: (_FOUR, _Machine.text), 0x8d: (_EIGHT, _Machine.text),  # texts
    0x43: (_BYTE, _Machine.bytes), 0x42: (_FOUR, _Machine.bytes), 0x8e: (_EIGHT, _Machine.bytes),
    0x5d: (None, lambda it, _: it.push([])), 0x29: (None, lambda it, _: it.push(())), 0x7d: (None, lambda it, _: it.push(Pairs())),
    0x61: (None, lambda it, _: it.add(list, 1)), 0x65: (None, lambda it, _: it.add(list, it.since_mark())),  # APPEND, APPENDS
    0x73: (None, lambda it, _: it.add(Pairs, 2)), 0x75: (None, lambda it, _: it.add(Pairs, it.since_mark())),  # SETITEM, SETITEMS
    0x6c: (None, lambda it, _: it.make(list, it.since_mark())), 0x74: (None, lambda it, _: it.make(tuple, it.since_mark())),
    0x64: (None, lambda it, _: it.make(Pairs, it.since_mark())),
    0x85: (None, lambda it, _: it.make(tuple, 1)), 0x86: (None, lambda it, _: it.make(tuple, 2)), 0x87: (None, lambda it, _: it.make(tuple, 3)),
    0x71: (_BYTE, _Machine.put), 0x72: (_FOUR, _Machine.put), 0x94: (None, lambda it, _: it.put(len(it.memo))),  # BINPUT, MEMOIZE
    0x68: (_BYTE, _Machine.get), 0x6a: (_FOUR, _Machine.get),
}
# Names for the message; an opcode that is in neither table is refused too.
_REFUSED = {0x63: "GLOBAL", 0x93: "STACK_GLOBAL", 0x52: "REDUCE", 0x62: "BUILD", 0x69: "INST", 0x6f: "OBJ", 0x81: "NEWOBJ", 0x92: "NEWOBJ_EX",
            0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 0x50: "PERSID", 0x51: "BINPERSID"}


def parse(data: bytes) -> Any:
    """None, booleans, numbers, texts, bytes, lists, tuples and Pairs, which may contain each other and themselves."""
    return _Machine(data).run()
