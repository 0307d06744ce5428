"""Writes JSON arguments for formats that write values as plain text between tags: `<parameter=n>5</parameter>`.

The schema gives the type of a text. If it allows only text, the text streams verbatim; anything else is converted when
it is complete. A text that fits no allowed type stays text, and the check reports it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from callwright.calls.coerce import as_integer, bare_text, read_number
from callwright.calls.toolset import Toolset
from callwright.events import ArgumentsDelta, Event, Problem
from callwright.schema.keywords import properties
from callwright.schema.plain import tool_schema
from callwright.schema.resolve import Schema, branches, chosen, merged, wanted_type
from callwright.streaming.reader import Markers, Stretch
from callwright.tolerant_json.codec import NotJsonError, decode, encode, encode_inside
from callwright.tolerant_json.reader import read_json
from callwright.tolerant_json.scalars import is_number

_EMPTY: Final[Schema] = {}
_BOOLEANS: Final = {"true": "true", "false": "false"}
_NULLS: Final = frozenset(("null", "none", "nil"))


class ArgumentsWriter:
    """Writes the arguments of call `index` of the tool `name` as one JSON object, member by member, as
    `ArgumentsDelta`s.

    `call` is the index; `given` are the names written so far, in order.
    """

    def __init__(self, emit: Callable[[Event], object], index: int, name: str, tools: Toolset) -> None:
        tool = tools.get(tools.resolve_name(name))
        self._emit = emit
        self.call = index
        self._root: Schema = tool_schema(tool) or _EMPTY
        self._choices: Sequence[Schema] = branches(self._root, self._root)
        self._chooses = len(self._choices) > 1
        self._declared = merged(self._choices)
        self._value: list[str] = []  # the JSON of the latest member, stored if it may choose a branch
        self.given: dict[str, None] = {}
        self._latest = ""
        self._begun = False

    def declares(self, key: str) -> bool:
        """Whether the tool has a parameter of this name."""
        return key in properties(self._declared)

    def schema(self, key: str) -> object:
        """The schema of a parameter in the branch chosen by the members so far, or None."""
        self._choose()
        return properties(self._declared).get(key, self._declared.get("additionalProperties"))

    def is_text(self, key: str) -> bool:
        """Whether a parameter can be nothing but text, so that it may stream."""
        return self.text_only(self.schema(key))

    def is_untyped(self, schema: object) -> bool:
        """Whether a schema names no type."""
        return not _kinds(schema, self._root)

    def text_only(self, schema: object) -> bool:
        """Whether a schema allows text only."""
        return _is_any_text(branches(schema, self._root)) if isinstance(schema, Mapping) else False

    def allows_text(self, key: str) -> bool:
        """Whether a parameter can be text."""
        kinds = _kinds(self.schema(key), self._root)
        return not kinds or "string" in kinds

    def allows_structure(self, key: str) -> bool:
        """Whether a parameter can be an object or an array."""
        kinds = _kinds(self.schema(key), self._root)
        return not kinds or not kinds.isdisjoint(("object", "array"))

    def inside(self, schema: object, key: str | None) -> tuple[set[str], object]:
        """The container types (`object`, `array`) that a schema allows, and the schema of the member `key`, or of the
        items (None).
        """
        kinds: set[str] = set()
        member: object = None
        for branch in branches(schema, self._root):
            kind = wanted_type(branch)
            kinds |= {kind} & {"object", "array"}
            if member is None and kind == "array" and key is None:
                member = branch.get("items")
            elif member is None and kind == "object" and key is not None:
                member = properties(branch).get(key, branch.get("additionalProperties"))
        return kinds, member

    def cast_to_schema(self, text: str, schema: object) -> str:
        """The JSON for a text, converted to this schema. A number or null written in another form is reported."""
        value = cast_to_schema(text, schema, self._root)
        bare = bare_text(text)
        if value != bare and (value == "null" or (is_number(value) and not is_number(bare))):
            self._emit(Problem("argument_coerced", f"{bare!r} was read as {value}", call=self.call))
        return value

    def key(self, key: str) -> None:
        """Begin a member."""
        self._choose()
        self._put(("," if self._begun else "{") + encode(key).decode() + ":")
        self._begun = True
        self.given[key] = None
        self._latest = key

    def json(self, text: str) -> None:
        """Write JSON as it is."""
        self._emit(self.of_json(text))

    def of_json(self, text: str) -> ArgumentsDelta:
        """The event that writes JSON as it is."""
        if self._chooses:
            self._value.append(text)
        return ArgumentsDelta(self.call, text)

    def open_text(self) -> None:
        """Begin a string."""
        self.json('"')

    def of_text(self, piece: str) -> ArgumentsDelta:
        """The event that writes more of a string."""
        inside = encode_inside(piece)
        if self._chooses:
            self._value.append(inside)
        return ArgumentsDelta(self.call, inside)

    def text(self, piece: str) -> None:
        """Write more of a string."""
        if piece:
            self._emit(self.of_text(piece))

    def close_text(self) -> None:
        """End a string."""
        self.json('"')

    def cut(self, text: str) -> None:
        """Report the text of a value that was cut off before it could be converted."""
        if text:
            self._emit(Problem("incomplete_arguments", "a value that was cut", call=self.call, text=text))

    def close(self) -> None:
        """End the object."""
        self._put("}" if self._begun else "{}")

    def _choose(self) -> None:
        """Leave the branches that the last member allows, if it is a constant of theirs."""
        if not self._value or not self.given:
            return
        json, self._value = "".join(self._value), []
        try:
            value = decode(json)
        except NotJsonError:
            return
        self._choices = chosen(self._choices, self._latest, value, self._root)
        self._chooses = len(self._choices) > 1
        self._declared = merged(self._choices)

    def _put(self, text: str) -> None:
        self._emit(ArgumentsDelta(self.call, text))


def written_stretch(
    markers: Markers, writer: ArgumentsWriter | None, keep: Callable[[str], None], holds: str = "", most: int = 0
) -> Stretch:
    """The stretch of a value up to a marker: its text is passed to `keep`, and written if there is a writer. `holds`:
    characters that are held back at the end of a delta, see `Stretch`.
    """
    if writer is None:
        return Stretch(markers.firsts, markers.literals, keep, holds, most)
    of_text = writer.of_text

    def note(text: str) -> str:
        keep(text)
        return of_text(text).text

    return Stretch(
        markers.firsts,
        markers.literals,
        holds=holds,
        most=most,
        call=writer.call,
        inside=encode_inside,
        note=note,
    )


def unwritten(text: str, value: str) -> str:
    """The text if its JSON does not contain it literally, else nothing: the events together must contain all of the
    output.
    """
    return "" if value in (text, encode(text).decode()) else text


def unread_json(writer: ArgumentsWriter, key: str, value: str, index: int) -> Problem | None:
    """Why the value of a parameter stayed text (`value` is its JSON) that should have been an object or an array; None
    if it may be text, or none of these.
    """
    if value[0] != '"' or writer.allows_text(key) or not ("{" in value or "[" in value):
        return None
    if not writer.allows_structure(key):
        return None
    text = decode(value).strip()
    if text[:1] in ("{", "[") and _is_json(text):
        return Problem("argument_repeated", f"a name in {key!r} is given twice, with different values", call=index)
    return Problem("non_json_arguments", f"the JSON of {key!r} cannot be read", call=index)


def cast_to_schema(text: str, schema: object, root: Schema) -> str:
    """The JSON for a text, by its schema: a member of an enum, null, a number, a boolean, an object or array if allowed
    and the text is one; else a string. Without a type, any JSON; if text is also allowed, only whole JSON.

    For an integer `007` becomes `7`, and `None` becomes null; if text is also allowed, they stay `"007"`, `"None"`.
    """
    choices = branches(schema, root)
    kinds = _kinds(schema, root)
    may_be_text = not kinds or "string" in kinds
    bare = text.strip() if may_be_text else bare_text(text)
    if kinds == {"string"} or (bare == "" and may_be_text):
        return encode(text).decode()
    if (member := _member(text, choices)) is not None:
        return member
    if not kinds:
        return bare if _is_json(bare) else encode(text).decode()
    low = bare.lower()
    is_null = low in _NULLS and not may_be_text
    if "null" in kinds and (bare == "null" or is_null):
        return "null"
    if json := _number(bare, kinds, may_be_text=may_be_text):
        return json
    if "boolean" in kinds and low in _BOOLEANS:
        return _BOOLEANS[low]
    if json := _container(bare, kinds, may_be_text=may_be_text):
        return json
    return "null" if is_null else encode(text).decode()


def _number(bare: str, kinds: set[str], *, may_be_text: bool) -> str:
    """The JSON of a number, `""` if the text is not one that these types allow."""
    if kinds.isdisjoint(("integer", "number")):
        return ""
    number = (as_integer(bare) if is_number(bare) else "") if may_be_text else read_number(bare)
    return number if number and ("number" in kinds or not may_be_text or _is_integer(number)) else ""


def _container(bare: str, kinds: set[str], *, may_be_text: bool) -> str:
    """The JSON of an object or array, `""` if the text is not one that these types allow."""
    if kinds.isdisjoint(("object", "array")) or bare[:1] not in ("{", "[") or (may_be_text and not _is_json(bare)):
        return ""
    return _structure(bare) if not may_be_text or ("object" if bare[0] == "{" else "array") in kinds else ""


def _member(text: str, choices: Sequence[Schema]) -> str | None:
    """The JSON of the constant that a text is, a text before any other."""
    members: list[Any] = []
    for choice in choices:
        named = [choice["const"]] if "const" in choice else choice.get("enum")
        members += named if isinstance(named, list) else []
    for said in (text, text.strip()):
        if said in members:
            return encode(said).decode()
    written = [encode(member).decode() for member in members]
    bare = as_integer(bare_text(text))
    return bare if bare in written else None


def _is_json(text: str) -> bool:
    try:
        decode(text)
    except NotJsonError:
        return False
    return True


def _structure(text: str) -> str:
    """The JSON of an object or array, repaired if need be; `""` if the text is neither, or not certain."""
    node = read_json(text)
    return node.text() if node is not None and node.kind in ("object", "array") else ""


def _is_any_text(choices: Sequence[Schema]) -> bool:
    return all(wanted_type(choice) == "string" for choice in choices)


def _kinds(schema: object, root: Schema) -> set[str]:
    """The types that a schema allows; empty if it allows any."""
    kinds: set[str] = set()
    for branch in branches(schema, root) if isinstance(schema, Mapping) else ():
        kind = wanted_type(branch)
        found = {kind} if kind else _of_members(branch)
        if not found:
            return set()
        kinds |= found
    return kinds


def _of_members(branch: Schema) -> set[str]:
    """The types of an enum's members, for an enum without a type."""
    members: list[Any] = list(branch.get("enum") or ())
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", dict: "object"}
    return {names.get(type(member), "array") for member in members}


def _is_integer(number: str) -> bool:
    return number.lstrip("-").isdecimal()
