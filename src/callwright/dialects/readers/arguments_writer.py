"""Arguments of formats that write them as text between tags, as the JSON that they mean.

The schema says what a text is: where it allows text only, the text flows as it is written, verbatim; everything else is
read when it is whole. A text that fits nothing the schema allows stays text, and the check names it.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from callwright.calls.toolset import Toolset
from callwright.events import ArgumentsDelta, Event, Problem
from callwright.schema.keywords import properties
from callwright.schema.resolve import Schema, branches, resolve, wanted
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.tolerant_json.reader import read_json
from callwright.tolerant_json.scalars import is_number

__all__ = ["ArgumentsWriter", "cast_to_schema", "unwritten"]

_EMPTY: Final[Schema] = {}
_BOOLEANS: Final = {"true": "true", "false": "false"}
_NULLS: Final = frozenset(("null", "none"))
# What may stand before a number, though not in JSON: a plus sign, zeros.
_PADDING = re.compile(r"\A\+?(-?)0*(?=\d)")


class ArgumentsWriter:
    """Writes the arguments of call `index` of the tool `name` as one JSON object, member by member."""

    def __init__(self, emit: Callable[[Event], object], index: int, name: str, tools: Toolset) -> None:
        tool = tools.get(tools.resolve_name(name))
        self._emit = emit
        self._index = index
        self._root: Schema = (tool.parameters if tool else None) or _EMPTY
        self.given: list[str] = []
        self._begun = False

    def declares(self, key: str) -> bool:
        """Whether the tool has a parameter of this name."""
        return key in properties(self._root)

    def schema(self, key: str) -> object:
        """The schema of a parameter; None when there is none."""
        return properties(self._root).get(key, self._root.get("additionalProperties"))

    def is_text(self, key: str) -> bool:
        """Whether the value of a parameter can be nothing but text, so that it may flow."""
        return self.text_only(self.schema(key))

    def is_untyped(self, schema: object) -> bool:
        """Whether a schema says nothing of a type."""
        return not _kinds(schema, self._root)

    def text_only(self, schema: object) -> bool:
        """Whether a schema allows text only; one that says nothing is read as text."""
        return _kinds(schema, self._root) <= {"string"}

    def allows_text(self, key: str) -> bool:
        """Whether the value of a parameter can be text."""
        kinds = _kinds(self.schema(key), self._root)
        return not kinds or "string" in kinds

    def inside(self, schema: object, key: str | None) -> tuple[set[str], object]:
        """What a container may be, `object` and `array`, and the schema of its member `key`; None = of its items."""
        kinds: set[str] = set()
        member: object = None
        for branch in branches(resolve(schema, self._root), self._root):
            kind = wanted(branch)
            kinds |= {kind} & {"object", "array"}
            if member is None and kind == "array" and key is None:
                member = branch.get("items")
            elif member is None and kind == "object" and key is not None:
                member = properties(branch).get(key, branch.get("additionalProperties"))
        return kinds, member

    def cast_to_schema(self, text: str, schema: object) -> str:
        """The JSON of a text that stands where this schema is wanted."""
        return cast_to_schema(text, schema, self._root)

    def key(self, key: str) -> None:
        """Begin a member."""
        self._put(("," if self._begun else "{") + encode(key).decode() + ":")
        self._begun = True
        self.given.append(key)

    def json(self, text: str) -> None:
        """Write JSON as it is."""
        self._put(text)

    def open_text(self) -> None:
        """Begin a text."""
        self._put('"')

    def text(self, piece: str) -> None:
        """More of a text."""
        if piece:
            self._put(encode(piece).decode()[1:-1])

    def close_text(self) -> None:
        """The text is over."""
        self._put('"')

    def cut(self, text: str) -> None:
        """Say what was there of a value that was cut before it could be read."""
        if text:
            self._emit(Problem("incomplete_arguments", "a value that was cut", call=self._index, text=text))

    def close(self) -> None:
        """The arguments are over."""
        self._put("}" if self._begun else "{}")

    def _put(self, text: str) -> None:
        self._emit(ArgumentsDelta(self._index, text))


def unwritten(text: str, value: str) -> str:
    """What its JSON does not hold of a text, word for word: nothing, or all of it."""
    return "" if value in (text, encode(text).decode()) else text


def cast_to_schema(text: str, schema: object, root: Schema) -> str:
    """The JSON of a text by its schema: null, integer, number, boolean, object or array where these are allowed and the
    text is one, else text.
    """
    kinds = _kinds(schema, root)
    bare = text.strip()
    if kinds <= {"string"} or (bare == "" and "string" in kinds):
        return encode(text).decode()
    low = bare.lower()
    if "null" in kinds and low in _NULLS:
        return "null"
    if kinds & {"integer", "number"}:
        number = bare if "string" in kinds else _PADDING.sub(r"\1", bare)
        if is_number(number):
            return number
    if "boolean" in kinds and low in _BOOLEANS:
        return _BOOLEANS[low]
    if kinds & {"object", "array"} and bare[:1] in ("{", "[") and (structure := _structure(bare)):
        return structure
    if low in _NULLS and "string" not in kinds:
        return "null"
    return encode(text).decode()


def _structure(text: str) -> str:
    """An object or a list: JSON as it is, or what the tolerant reader makes of it; `""` when it is none."""
    try:
        decode(text)
    except NotJsonError:
        node = read_json(text)
        if node is None or node.kind not in ("object", "array"):
            return ""
        return node.text()
    return text


def _kinds(schema: object, root: Schema) -> set[str]:
    """The types that a schema allows; empty when it says nothing."""
    if not isinstance(schema, dict) or not schema:
        return set()
    kinds: set[str] = set()
    for branch in branches(resolve(schema, root), root):
        kind = wanted(branch)
        kinds |= {kind} if kind else _of_members(branch)
    return kinds


def _of_members(branch: Schema) -> set[str]:
    """The types of the members of an enumeration without a type."""
    members: list[Any] = list(branch.get("enum") or ())
    if "const" in branch:
        members.append(branch["const"])
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", dict: "object"}
    return {names.get(type(member), "array") for member in members}
