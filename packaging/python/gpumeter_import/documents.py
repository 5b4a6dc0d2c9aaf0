"""JSON and XML whose values know their lines, so that an error about the content can name the line."""
from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional
from xml.parsers import expat

from .texts import Refused

_MOST_LEVELS = 64
_BLANKS = re.compile("[ \t\r\n]*")
_CUT = "document ends here: the file is cut"


@dataclass
class Json:
    """A value and the line on which it begins. `value`: a dict or list of Json, a str, a float, a bool or None."""
    value: Any
    line: int

    @property
    def items(self) -> "List[Json]":
        """The values of an array or an object; none of anything else."""
        return list(self.value.values()) if isinstance(self.value, dict) else self.value if isinstance(self.value, list) else []

    @property
    def text(self) -> str:
        """Empty if the value is no text."""
        return self.value if isinstance(self.value, str) else ""

    @property
    def number(self) -> Optional[float]:
        return self.value if isinstance(self.value, float) else None

    def find(self, key: str) -> "Optional[Json]":
        """None if there is no such member, or the value is no object."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def text_of(self, key: str) -> str:
        member = self.find(key)
        return member.text if member else ""


class _JsonReader:
    """Arrays and objects are read here, for their lines; the standard library reads what is in them."""

    def __init__(self, text: str, line: int) -> None:
        self.text, self.at, self.line = text, 0, line
        self.decoder = json.JSONDecoder(parse_float=_finite, parse_int=_finite, parse_constant=_finite)

    def skip_blanks(self) -> None:
        end = _BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr]
        self.line += self.text.count("\n", self.at, end)
        self.at = end

    def take(self, token: str) -> bool:
        self.skip_blanks()
        found = self.text.startswith(token, self.at)
        self.at += len(token) if found else 0
        return found

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise self.error()

    def error(self) -> Refused:
        """Another character than the one that must be here."""
        return Refused(self.line, f"the JSON {_CUT}" if self.at >= len(self.text) else "no JSON")

    def document(self) -> Json:
        root = self.read(0)
        self.skip_blanks()
        if self.at < len(self.text):
            raise Refused(self.line, "text follows the JSON document")
        return root

    def read(self, level: int) -> Json:
        self.skip_blanks()
        line = self.line
        if level >= _MOST_LEVELS:
            raise Refused(line, f"more than {_MOST_LEVELS} levels")
        if self.take("{"):
            return Json(self.members(level + 1), line)
        if self.take("["):
            return Json(self.elements(level + 1), line)
        return Json(self.scalar(), line)

    def elements(self, level: int) -> List[Json]:
        if self.take("]"):
            return []
        values = [self.read(level)]
        while self.take(","):
            values.append(self.read(level))
        self.expect("]")
        return values

    def members(self, level: int) -> Dict[str, Json]:
        values: Dict[str, Json] = {}
        if self.take("}"):
            return values
        while True:
            self.skip_blanks()
            if not self.text.startswith('"', self.at):
                raise self.error()
            key = self.scalar()
            self.expect(":")
            values.setdefault(key, self.read(level))
            if not self.take(","):
                self.expect("}")
                return values

    def scalar(self) -> Any:
        try:
            value, self.at = self.decoder.raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            raise Refused(self.line, self.reason(error)) from None
        except ValueError:  # a number that is not finite
            raise Refused(self.line, "no JSON") from None
        if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
            raise Refused(self.line, "half a character")
        return value

    def reason(self, error: json.JSONDecodeError) -> str:
        if self.text.startswith('"', self.at) and self.text[error.pos:error.pos + 1] == "\n":
            return "a text has no end"
        if error.msg.startswith("Invalid \\escape"):
            return "an unknown escape in a text"
        return f"the JSON {_CUT}" if self.at >= len(self.text) or error.msg.startswith("Unterminated") else "no JSON"


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def parse_json(text: str, first_line: int = 1) -> Json:
    """One document. Blanks may follow it, nothing else. `first_line`: the number of the text's first line."""
    return _JsonReader(text, first_line).document()


@dataclass
class Element:
    """An element of an XML document, and the text directly in it."""
    name: str
    attributes: Dict[str, str]
    line: int
    children: "List[Element]" = field(default_factory=list)
    parts: List[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def attribute(self, key: str) -> str:
        return self.attributes.get(key, "")


def parse_xml(text: str) -> Element:
    """What programs write: elements, attributes and text. A document type is refused, because its entities can grow without bound."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    top = Element("", {}, 0)
    path = [top]

    def start(name: str, attributes: Dict[str, str]) -> None:
        if len(path) > _MOST_LEVELS:
            raise Refused(parser.CurrentLineNumber, f"more than {_MOST_LEVELS} levels")
        element = Element(name, attributes, parser.CurrentLineNumber)
        path[-1].children.append(element)
        path.append(element)

    def content(data: str) -> None:
        path[-1].parts.append(data)

    def refuse(*_: object) -> None:
        raise Refused(parser.CurrentLineNumber, "no XML of a program: it has a document type")

    parser.StartElementHandler, parser.EndElementHandler = start, lambda _: path.pop()
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = content, refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise Refused(error.lineno, _REASONS.get(expat.errors.messages[error.code], "no XML")) from None
    return top.children[0]


_REASONS = {**dict.fromkeys((expat.errors.XML_ERROR_NO_ELEMENTS, expat.errors.XML_ERROR_UNCLOSED_TOKEN, expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION),
                            f"the XML {_CUT}"),
            expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT: "text follows the XML document"}
