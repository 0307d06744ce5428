"""Writes JSON arguments for formats that write values as plain text between tags: `<parameter=n>5</parameter>`.

The schema says what a text means. Where it allows only text, the text streams verbatim; anything else is converted when
it is whole. A text that fits no allowed type stays text, and the check reports it.
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
# What JSON does not allow before a number: a plus sign, zeros.
_PADDING = re.compile(r"\A\+?(-?)0*(?=\d)")


class ArgumentsWriter:
    """Writes the arguments of call `index` of the tool `name` as one JSON object, member by member, as
    `ArgumentsDelta`s.

    `given` are the names written so far.
    """

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
        """The schema of a parameter; None if there is none."""
        return properties(self._root).get(key, self._root.get("additionalProperties"))

    def is_text(self, key: str) -> bool:
        """Whether a parameter can be nothing but text, so that it may stream."""
        return self.text_only(self.schema(key))

    def is_untyped(self, schema: object) -> bool:
        """Whether a schema names no type."""
        return not _kinds(schema, self._root)

    def text_only(self, schema: object) -> bool:
        """Whether a schema allows text only. A schema without a type is read as text."""
        return _kinds(schema, self._root) <= {"string"}

    def allows_text(self, key: str) -> bool:
        """Whether a parameter can be text."""
        kinds = _kinds(self.schema(key), self._root)
        return not kinds or "string" in kinds

    def inside(self, schema: object, key: str | None) -> tuple[set[str], object]:
        """The container types (`object`, `array`) that a schema allows, and the schema of the member `key`; of the
        items if `key` is None.
        """
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
        """The JSON for a text, as this schema wants it."""
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
        """Begin a string."""
        self._put('"')

    def text(self, piece: str) -> None:
        """Write more of a string."""
        if piece:
            self._put(encode(piece).decode()[1:-1])

    def close_text(self) -> None:
        """End a string."""
        self._put('"')

    def cut(self, text: str) -> None:
        """Report what there was of a value that was cut off before it could be converted."""
        if text:
            self._emit(Problem("incomplete_arguments", "a value that was cut", call=self._index, text=text))

    def close(self) -> None:
        """End the object."""
        self._put("}" if self._begun else "{}")

    def _put(self, text: str) -> None:
        self._emit(ArgumentsDelta(self._index, text))


def unwritten(text: str, value: str) -> str:
    """The text if its JSON does not hold it word for word, else nothing: the events together must hold all of the
    output.
    """
    return "" if value in (text, encode(text).decode()) else text


def cast_to_schema(text: str, schema: object, root: Schema) -> str:
    """The JSON for a text, by its schema: null, a number, a boolean, an object or array if allowed and the text is one;
    else a string.

    For an integer `007` becomes `7`; where text is allowed, too, it stays `"007"`.
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
    """The JSON of an object or array, repaired if need be; `""` if the text is neither."""
    try:
        decode(text)
    except NotJsonError:
        node = read_json(text)
        if node is None or node.kind not in ("object", "array"):
            return ""
        return node.text()
    return text


def _kinds(schema: object, root: Schema) -> set[str]:
    """The types that a schema allows; empty if it names none."""
    if not isinstance(schema, dict) or not schema:
        return set()
    kinds: set[str] = set()
    for branch in branches(resolve(schema, root), root):
        kind = wanted(branch)
        kinds |= {kind} if kind else _of_members(branch)
    return kinds


def _of_members(branch: Schema) -> set[str]:
    """The types of an enum's members, for an enum without a type."""
    members: list[Any] = list(branch.get("enum") or ())
    if "const" in branch:
        members.append(branch["const"])
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", dict: "object"}
    return {names.get(type(member), "array") for member in members}
