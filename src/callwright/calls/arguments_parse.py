"""Parses the arguments of a call while they stream, repairs them by their schema and writes them as JSON.

A string streams if the schema allows any text. A number, a boolean or an enum member is written when it is complete:
`"5` may become `5`. If a name is not declared and may be an alias, the rest of its object is buffered.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

import msgspec

from callwright.calls.aliases import ParameterNames, may_rename
from callwright.calls.coerce import as_integer, constant, node_text
from callwright.calls.fit import is_torn, object_for_text, repair_and_validate
from callwright.calls.json_forms import LONE_KEYS, NAME_KEYS
from callwright.calls.repair import ArgumentRepair, Repair
from callwright.calls.toolset import Toolset
from callwright.events import Problem
from callwright.schema.compiled import CompiledSchema, Members, Place, members_of, place_of
from callwright.schema.keywords import properties
from callwright.schema.resolve import Schema, chosen
from callwright.streaming.reader import Parse, StreamReader
from callwright.tolerant_json.codec import encode
from callwright.tolerant_json.markers import TRAILING
from callwright.tolerant_json.reader import JsonReader, TooDeepError, Where, read_json
from callwright.tolerant_json.tree import Member, Node

# Objects and arrays stream down to this depth; deeper ones are buffered.
_MAX_FLOWING: Final = 8
# A token of a format that is no list.
_MARKER = re.compile(r"\s*\[/?[A-Z][A-Z_]+\]").match


class WrittenText:
    """The JSON text of one call, written in pieces. `size` is its length in characters."""

    def __init__(self) -> None:
        self.size = 0
        self._sent: list[str] = []
        self._new: list[str] = []

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join((*self._sent, *self._new))

    def put(self, text: str) -> None:
        """Write a piece, to be sent later."""
        self._new.append(text)
        self.size += len(text)

    def send(self) -> str:
        """Return the pieces that were not sent yet, and mark them as sent."""
        sent = "".join(self._new)
        self._new.clear()
        self._sent.append(sent)
        return sent

    def note_sent(self, text: str) -> None:
        """Write a piece that the caller sends itself."""
        self._sent.append(text)
        self.size += len(text)

    def since(self, begin: int) -> str:
        """The text from position `begin`."""
        pieces: list[str] = []
        at = self.size
        for piece in chain(reversed(self._new), reversed(self._sent)):
            if at <= begin:
                break
            pieces.append(piece)
            at -= len(piece)
        return "".join(reversed(pieces))[max(0, begin - at) :]


class _Schemas:
    """The schema of a tool by position in the arguments. Results are cached: all items of an array share a schema."""

    def __init__(self, name: str, compiled: CompiledSchema, tools: Toolset) -> None:
        self.compiled = compiled
        self.root = compiled.schema
        self._name = name
        self._aliases = tools.hints.aliases
        self._places: dict[int, Place] = {}
        self._declared: dict[int, ParameterNames] = {}
        # Holds the schemas that were built here: the caches above use their `id()` as key.
        self._made: list[Schema] = []

    def place(self, schema: object) -> Place:
        """The values that a schema allows."""
        found = self.compiled.places.get(id(schema)) or self._places.get(id(schema))
        if found is None:
            found = self._places[id(schema)] = place_of(schema, self.root)
        return found

    def members(self, choices: Sequence[Schema]) -> Members:
        """The members of an object that matches any of these schemas."""
        if choices is self.compiled.objects:
            return self.compiled.members
        members = members_of(choices)
        self._made.append(members.schema)
        return members

    def is_open(self, members: Members, name: str) -> bool:
        """Whether the branches of a union declare the member in different ways, or not all of them do.

        Such a member is buffered: a constant after it may select the branch.
        """
        schema = members.declared.get(name)
        if not isinstance(schema, Mapping) or (name in members.everywhere and "anyOf" not in schema):
            return False
        place = self.place(schema)
        return not (place.takes_only_text or all("const" in choice or "enum" in choice for choice in place.choices))

    def may_mean_other(self, name: str, members: Members, given: list[str], *, is_root: bool) -> bool:
        """Whether a name that is not declared may be an alias of a parameter, or a wrapper: `{"arguments": {…}}`."""
        if is_root and not given and (name in NAME_KEYS or name in LONE_KEYS or name == self._name):
            return True
        return (
            bool(members.declared)
            and may_rename(members.schema)
            and self._names(members.schema).resolve(name, members.needed, self._aliases) is not None
        )

    def _names(self, schema: Schema) -> ParameterNames:
        """The names of a schema's properties."""
        found = self._declared.get(id(schema))
        if found is None:
            found = self._declared[id(schema)] = ParameterNames(properties(schema))
        return found


class ArgumentsParse:
    """Parses the arguments of one call of the tool `name`, with its `compiled` schema, from `source` and writes them to
    `out`.

    `run` is the parser as a generator. `flowing` is true inside a string that streams. Set `cut` before the source ends
    if the output was truncated. `complete`, `steps` and `problems` are valid after the end. `raw` is the input in
    pieces.
    """

    def __init__(
        self,
        source: StreamReader,
        out: WrittenText,
        name: str,
        compiled: CompiledSchema,
        tools: Toolset,
        raw: list[str],
    ) -> None:
        self.complete = True
        self.problems: list[Problem] = []
        self.steps: list[Repair] = []
        self.flowing = False
        self.cut = False
        self.source = source
        self.reader = JsonReader(source)
        self.run = self._document()
        self._out = out
        self._schemas = _Schemas(name, compiled, tools)
        self._name = name
        self._tools = tools
        self._raw = raw
        self._scalar: Node | None = None  # the last value that was buffered: it may select a branch of a union

    def _document(self) -> Parse[None]:
        try:
            lead = yield from self.reader.gap()
            while self.source.more(1):
                yield
            if self.source.done:
                return
            if self.source.text[self.source.at] == "{":
                yield from self._object(self._schemas.compiled.objects, self._schemas.root, lead, "$", 0)
            else:
                yield from self._other()
                return
        except TooDeepError as error:
            self.problems.append(Problem("non_json_arguments", str(error)))
            rest = yield from self._rest()
            written, sent = "".join(self._raw), self._out.text
            # Nothing of it was sent yet, except the strings that stream.
            self._out.put(written[len(sent) :] if written.startswith(sent) else rest)
            return
        yield from self._trailing()

    def _other(self) -> Parse[None]:
        """Read arguments that are not an object: JSON in a string, a list with the object, or the value of the only
        parameter.
        """
        text = yield from self._rest()
        node = read_json(text.strip())
        if node is None or node.kind == "word" or _MARKER(text):
            node = Node("word", encode(text.strip()).decode())
        if not self.cut and self._write_if_valid(node):
            return
        self._out.put(text)
        self.complete = not self.cut
        if self.complete and is_torn(text, self._schemas.compiled.properties):
            self.complete = False
            self.problems.append(Problem("non_json_arguments", "not certain: a part of JSON"))

    def _write_if_valid(self, node: Node) -> bool:
        """Repair buffered arguments, write them if they are valid, and return whether they are."""
        fitted = repair_and_validate(node, self._name, self._tools)
        if not fitted.faults:
            self.steps += fitted.steps
            self._out.put(fitted.text)
        return not fitted.faults

    def _trailing(self) -> Parse[None]:
        """Read the text after the arguments."""
        rest = yield from self._rest()
        if self.complete:
            self.problems += trailing_problems(rest)

    def _rest(self) -> Parse[str]:
        """Read to the end."""
        pieces: list[str] = []
        while True:
            pieces.append(self.source.take(len(self.source.text)))
            if self.source.ended:
                return "".join(pieces)
            yield

    def _is_complete(self, node: Node) -> bool:
        """Whether the container ended: the model closed it, or stopped after a value, as in `{"a": 1`."""
        if not node.closed and node.kind in ("object", "array") and (self.cut or self.reader.cut):
            self.complete = False
        return self.complete

    def _object(self, choices: Sequence[Schema], place: object, prefix: str, path: str, depth: int) -> Parse[None]:
        """Read an object that may match any of `choices`, the branches of `place`. A constant member selects one."""
        node, _ = yield from self.reader.begin("object")
        members = self._schemas.members(choices)
        begin = self._out.size + len(prefix)
        names: list[str] = []
        given: set[str] = set()
        opening = f"{prefix}{{"
        while True:
            member = yield from self.reader.member(node, first=not names)
            if member is None:
                if self._is_complete(node):
                    self._out.put(f"{opening}{self.reader.tail}}}")
                elif names:
                    self._out.put(opening)
                return
            declared = members.declared
            is_open = len(choices) > 1 and self._schemas.is_open(members, member.name)
            may_mean_other = member.name not in declared and self._schemas.may_mean_other(
                member.name, members, names, is_root=not depth
            )
            if is_open or member.name in given or may_mean_other:
                held = yield from self._hold_members(node, member)
                self._finish_held_members(node, held, place, opening, path, begin, is_root=not depth)
                return
            opening += member.lead(first=not names) + member.key.json + member.colon
            wants = declared.get(member.name, members.schema.get("additionalProperties"))
            nothing = None if member.name in members.needed else declared.get(member.name)
            written = yield from self._value(wants, opening, f"{path}.{member.name}", depth + 1, "object", nothing)
            given.add(member.name)
            if len(choices) > 1 and (value := constant(self._scalar)) is not ...:
                choices = chosen(choices, member.name, value, self._schemas.root)
                members = self._schemas.members(choices)
            if written:
                names.append(member.name)
                opening = ""
            else:
                opening = opening[: len(opening) - len(member.lead(first=not names) + member.key.json + member.colon)]
            if not self.complete:
                return

    def _hold_members(self, node: Node, member: Member) -> Parse[list[Member]]:
        """Buffer the rest of an object, starting with this member."""
        held: list[Member] = []
        entry: Member | None = member
        while entry is not None:
            entry.value = yield from self.reader.value("object")
            held.append(entry)
            entry = yield from self.reader.member(node, first=False)
        node.tail = self.reader.tail
        return held

    def _finish_held_members(
        self, node: Node, held: list[Member], place: object, opening: str, path: str, begin: int, *, is_root: bool
    ) -> None:
        """Repair the buffered rest of an object together with the part that was sent, and write it."""
        if not self._is_complete(node):
            self._out.put(opening)
            return
        said = self._out.since(begin)
        earlier = read_json(f"{said}}}") if said else None
        if is_root and earlier is None:
            self._out.put(opening.removesuffix("{"))
            whole = msgspec.structs.replace(node, members=self.reader.given_once(held))
            if not self._write_if_valid(whole):
                self._out.put(whole.text())
            return
        before = earlier.members if earlier else []
        held = list(self.reader.given_once([*before, *held]))[len(before) :]
        mender = ArgumentRepair(self._schemas.root, self._tools.hints.aliases)
        made = mender.value(msgspec.structs.replace(node, members=[*before, *held]), place, path, 0)
        self._out.put(opening)
        if self._is_in_doubt(mender.repairs):
            return
        self.steps += mender.repairs
        for number, member in enumerate(made.members[len(before) :], len(before)):
            self._out.put(member.lead(first=not number) + member.key.json + member.colon + member.value.text())
        self._out.put(f"{node.tail}}}")

    def _array(self, schema: Schema, prefix: str, path: str, depth: int) -> Parse[None]:
        node, _ = yield from self.reader.begin("array")
        opening, number = f"{prefix}[", 0
        while True:
            item = yield from self.reader.item(node, first=not number)
            if item is None:
                if self._is_complete(node):
                    self._out.put(f"{opening}{self.reader.tail}]")
                return
            opening += item.lead(first=not number)
            yield from self._value(schema.get("items"), opening, f"{path}[{number}]", depth + 1, "array", None)
            opening = ""
            number += 1
            if not self.complete:
                return

    def _value(
        self, schema: object, prefix: str, path: str, depth: int, where: Where, droppable: object
    ) -> Parse[bool]:
        """Write `prefix`, which ends with the key, and one value.

        False if it is null for the optional parameter of schema `droppable`, which may not be null: then nothing is
        written.
        """
        source, reader = self.source, self.reader
        while source.more(1):
            yield
        self._scalar = None
        mark = source.text[source.at : source.at + 1]
        place = self._schemas.place(schema)
        if mark in ('"', "'", "“", "`") and place.takes_any_text:
            self._out.put(f'{prefix}"')
            self.flowing = mark == '"'
            closed = yield from reader.string(where, self._out.put)
            self.flowing = False
            if closed:
                self._out.put('"')
            else:
                self.complete = False
            return True
        fitting = place.objects if mark == "{" else place.arrays
        if mark in ("{", "[") and len(fitting) == 1 and depth < _MAX_FLOWING:
            if mark == "{":
                yield from self._object(fitting, schema, prefix, path, depth)
            else:
                yield from self._array(fitting[0], prefix, path, depth)
            return True
        node = yield from reader.value(where)
        may_go_on = source.done and self.cut and node.kind == "number"
        if reader.cut or may_go_on or not self._is_complete(node):
            self.complete = False
            self._out.put(prefix)
            return True
        if len(place.choices) == 1 and _fits_as_written(node, place.choices[0]):
            self._scalar = node
            self._out.put(prefix + as_integer(node.json))
            return True
        mender = ArgumentRepair(self._schemas.root, self._tools.hints.aliases)
        made = mender.value(node, schema, path, 0)
        if droppable is not None and mender.leaves_out(made, droppable):
            self.steps.append(Repair("null_left_out", path))
            return False
        if self._is_in_doubt(mender.repairs):
            self._out.put(prefix)
            return True
        self.steps += mender.repairs
        self._scalar = made
        self.problems += [Problem("invalid_arguments", f"{path}: no value was written")] * (made.kind == "missing")
        self._out.put(prefix + made.text())
        return True

    def _is_in_doubt(self, repairs: Sequence[Repair]) -> bool:
        """Whether a repair turned an object into text that may mean more: then the call is not complete."""
        tool = self._tools.get(self._name)
        path = object_for_text(repairs, tool) if repairs and tool is not None else ""
        if path:
            self.problems.append(Problem("invalid_arguments", f"{path}: expected a text, got an object"))
            self.complete = False
        return bool(path)


def _fits_as_written(node: Node, schema: Schema) -> bool:
    """Whether a number, a boolean or a text of an enum fits its schema and needs no repair, the usual case."""
    if "const" in schema:
        return False
    if "enum" in schema:
        members = schema["enum"] if schema.get("type") == node.kind == "string" else ()
        return isinstance(members, list) and node_text(node) in members
    match schema.get("type"):
        case "number":
            return node.kind == "number"
        case "integer":
            return node.kind == "number" and node.json.lstrip("-").isdecimal()
        case "boolean":
            return node.kind == "literal" and node.json != "null"
    return False


def trailing_problems(rest: str) -> list[Problem]:
    """The problem with text after the arguments. Extra closing brackets are no problem."""
    is_text = rest[TRAILING.match(rest).end() :]  # type: ignore[union-attr]  # matches always
    return [Problem("arguments_trailing_text", "text after the arguments", text=rest)] if is_text else []
