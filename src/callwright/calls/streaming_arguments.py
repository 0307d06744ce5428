"""Arguments as they stream: repaired and coerced, and sent as soon as each part of them is certain.

What was sent is at every moment a prefix of the final JSON, and the model's own bytes where these were right. A string
streams if the schema takes any text. A number, a boolean or an enum member waits for its end: `"5` may become `5`. An
undeclared name that may be an alias holds back the rest of its object.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Final

import msgspec

from callwright.calls.aliases import ParameterNames, may_rename
from callwright.calls.coerce import as_integer, constant
from callwright.calls.fit import is_torn, json_problems, object_for_text, repair_and_validate, step_problems
from callwright.calls.json_forms import ARGUMENT_KEYS, NAME_KEYS
from callwright.calls.repair import ArgumentRepair, Repair
from callwright.calls.toolset import Toolset
from callwright.calls.whole_arguments import is_valid_as_is
from callwright.events import Problem, ProblemKind
from callwright.schema.compiled import Members, Place, compiled_schema, members_of, place_of
from callwright.schema.keywords import properties
from callwright.schema.resolve import Schema, chosen
from callwright.stream_reader import Parse, silent_reader
from callwright.tolerant_json.certain import JsonRepair, by_quotes, doubt, without_words
from callwright.tolerant_json.codec import encode
from callwright.tolerant_json.markers import TRAILING
from callwright.tolerant_json.reader import JsonReader, TooDeepError, Where, read_json
from callwright.tolerant_json.tree import Member, Node

__all__ = ["StreamingArguments"]

# Objects and arrays stream down to this depth; deeper ones are held to their end.
_MAX_FLOWING: Final = 8
# What of a string's text may end it or need repair, as the inside of a class of characters.
_MATTERS: Final = r'"\\\x00-\x1f,'
# What of these does not, as JSON, and as text; what may repeat a prompt is left out.
_CERTAIN: Final = r"""\\[\\/bfnrt]|\\"(?![\s,]|\Z)|,(?![ \t]*\Z)"""
_CERTAIN_TEXT: Final = r"""[\x00-\x1f]|"(?![^\S\x00-\x1f]|,|\Z)|,(?![ \t]*\Z)"""
# Text of a string that neither ends it nor needs repair; then what may follow at the end of a delta, to be held back.
_PLAIN = re.compile(rf"[^{_MATTERS}]*+(?:(?:{_CERTAIN}|\\u[0-9a-fA-F]{{4}})[^{_MATTERS}]*+|(?!))*+").match
# What of that the check holds back where no escape is cut, as JSON, and as text.
_TAIL: Final = r'\\"|,[ \t]{0,60}'
_TAIL_TEXT: Final = '"|, {0,60}'
# A token of a format that is no list.
_MARKER = re.compile(r"\s*\[/?[A-Z][A-Z_]+\]").match
_UNDECIDED = re.compile(r"""(?:\\(?:"|u[0-9a-fA-F]{0,3})?|,[ \t]{0,60})?\Z""").match
# Names in the texts of JSON.
_NAMED_IN_TEXT = re.compile(r"""([\w$.-]+)\\"\s*+:""").findall


class StreamingArguments:
    """The arguments of one call of the tool `name`. `problems` and `complete` are valid after `finish`.

    See `callwright.passing.Passing` for `flows` and `matters`.
    """

    matters: Final = _MATTERS
    certain: Final = _CERTAIN
    certain_text: Final = _CERTAIN_TEXT
    tail: Final = _TAIL
    tail_text: Final = _TAIL_TEXT

    def __init__(self, name: str, tools: Toolset) -> None:
        self.complete = True
        self._cut = False  # the output ended before the arguments did
        self.problems: list[Problem] = []
        self._name = name
        self._tools = tools
        self._compiled = compiled_schema(tools.get(name), tools.bounds)
        self._schema = self._compiled.schema
        self._steps: list[Repair] = []
        self._places: dict[int, Place] = {}
        self._scalar: Node | None = None  # the last value that was held: it may choose a branch
        # schemas that were made here, and that `_places` and `_declared` know by their `id()`
        self._kept: list[Schema] = []
        self._declared: dict[int, ParameterNames] = {}
        self.flows = False  # inside a string that streams, all read and nothing held back
        self._flowing = False  # inside a string that streams
        self._tail = ""  # the end of that string's text, held back: it may end the string
        self._raw: list[str] = []
        self._passed = ""  # arguments that came in one delta and were valid: they were never parsed here
        self._new: list[str] = []
        self._written: list[str] = []
        self._size = 0  # characters written so far, those of _new included
        self._run: Parse[None] | None = None  # the parse, once one is needed

    @property
    def text(self) -> str:
        """All that was sent so far."""
        return "".join(self._written)

    @property
    def is_checked(self) -> bool:
        """Whether the arguments came in one delta and were found valid, so that nobody has to validate them again."""
        return bool(self._passed) and not self.problems

    def feed(self, text: str) -> str:
        """Read a delta of the model's arguments; answers the JSON text that has become certain, `""` if none has."""
        if self.flows and _PLAIN(text).end() == len(text):  # type: ignore[union-attr]  # matches always
            self.pass_on(text, "")
            return text
        if not self._raw and is_valid_as_is(text, self._compiled):
            self._raw.append(text)
            self._written.append(text)
            self._passed = text
            return text
        self._raw.append(text)
        if self._passed:
            return ""  # they are complete: what follows is no part of them
        if self._tail or self.flows:
            text, self._tail = self._tail + text, ""
            end = _PLAIN(text).end()  # type: ignore[union-attr]  # matches always
            if end == len(text) or _UNDECIDED(text, end):
                text, self._tail = text[:end], text[end:]
                self.flows = not self._tail
                self._written.append(text)
                self._size += end
                return text
        run = self._run or self._begin()
        source = self._source
        source.push(text)
        next(run, None)
        self.flows = self._flowing and source.at == len(source.text)
        return self._sent()

    def pass_on(self, text: str, tail: str) -> None:
        """Read text that is certain as it is, and a tail that is held back."""
        self._raw += (text, tail)
        self._written.append(text)
        self._size += len(text)
        self._tail, self.flows = tail, not tail

    def finish(self, *, cut: bool) -> str:
        """The call is over, or the output was `cut`; answers the rest of the JSON text."""
        if self._passed:
            self._tell_trailing("".join(self._raw[1:]))
            return ""
        run = self._run or self._begin()
        if self._tail:
            self._source.push(self._tail)
        self._cut = cut
        self._source.end()
        for _ in run:
            raise AssertionError("the arguments are all there")
        sent = self._sent()
        self._judge()
        if not self.complete:
            # A call that was cut off is not repaired further: the model's bytes go out as they are.
            raw, all_sent = "".join(self._raw), self.text
            rest = raw[len(all_sent) :] if raw.startswith(all_sent) else ""
            if not raw.startswith(all_sent):
                self.problems.append(Problem("incomplete_arguments", "the arguments as they were written", text=raw))
            self._written.append(rest)
            return sent + rest
        self.problems = step_problems(self._steps) + self.problems
        return sent

    def _judge(self) -> None:
        """Say what was repaired; what may not be what the model meant leaves the call unfinished."""
        repairs = self._reader.repairs
        if not repairs or not self.complete:
            return
        self.problems = json_problems(repairs) + self.problems
        text = "".join(self._raw)
        if text.strip() == "{" and self._tools.requires_something(self._name):  # of which nothing was written
            self.complete = False
            return
        if why := doubt(repairs, text) or self._merged(repairs):
            self.complete = False
            _, words = without_words(text)
            kind: ProblemKind = "arguments_trailing_text" if words else "non_json_arguments"
            if "repeated_key" not in repairs:
                self.problems.append(Problem(kind, f"not certain: {why}", text=words))

    def _merged(self, repairs: Collection[JsonRepair]) -> str:
        """Why a text with odd quotes may hold more members; `""` if no parameter is named in one."""
        if not by_quotes(repairs):
            return ""
        named = [name for name in _NAMED_IN_TEXT(self.text) if name in self._compiled.properties]
        return f"a text in which {named[0]!r} is named" if named else ""

    def _begin(self) -> Parse[None]:
        """Start the parse."""
        self._source = silent_reader()
        self._reader = JsonReader(self._source)
        run = self._run = self._document()
        return run

    def _sent(self) -> str:
        sent = "".join(self._new)
        self._new.clear()
        self._written.append(sent)
        return sent

    # --- the document ---

    def _document(self) -> Parse[None]:
        try:
            lead = yield from self._reader.gap()
            while self._source.more(1):
                yield
            if self._source.done:
                return
            if self._source.text[self._source.at] == "{":
                yield from self._object(self._compiled.objects, self._schema, lead, "$", 0)
            else:
                yield from self._other()
                return
        except TooDeepError as error:
            self.problems.append(Problem("non_json_arguments", str(error)))
            rest = yield from self._rest()
            written, sent = "".join(self._raw), self.text + "".join(self._new)
            # What was read before it turned out to be too deep has not gone out, but for what flowed.
            self._put(written[len(sent) :] if written.startswith(sent) else rest)
            return
        yield from self._trailing()

    def _other(self) -> Parse[None]:
        """Arguments that are not an object: JSON in a string, a list with the object, or the text of the only
        parameter.
        """
        text = yield from self._rest()
        node = read_json(text.strip())
        if node is None or node.kind == "word" or _MARKER(text):
            node = Node("string", encode(text.strip()).decode())
        if not self._cut and self._write_if_valid(node):
            return
        self._put(text)
        self.complete = not self._cut
        if self.complete and is_torn(text, self._compiled.properties):
            self.complete = False
            self.problems.append(Problem("non_json_arguments", "not certain: a part of JSON"))

    def _write_if_valid(self, node: Node) -> bool:
        """Repair held arguments as a whole, and write them if they are then valid; answers whether they were."""
        fitted = repair_and_validate(node, self._name, self._tools)
        if not fitted.faults:
            self._steps += fitted.steps
            self._put(fitted.text)
        return not fitted.faults

    def _trailing(self) -> Parse[None]:
        """Read what follows the arguments."""
        rest = yield from self._rest()
        self._tell_trailing(rest)

    def _tell_trailing(self, rest: str) -> None:
        """Spare closers behind the arguments mean nothing, other text is a problem."""
        if self.complete and rest[TRAILING.match(rest).end() :]:  # type: ignore[union-attr]  # matches always
            self.problems.append(Problem("arguments_trailing_text", "text behind the arguments", text=rest))

    def _rest(self) -> Parse[str]:
        """Read all that is left."""
        pieces: list[str] = []
        while True:
            pieces.append(self._source.take(len(self._source.text)))
            if self._source.ended:
                return "".join(pieces)
            yield

    def _is_complete(self, node: Node) -> bool:
        """Whether a container is over: the model closed it, or stopped by itself behind a value, as in `{"a": 1`."""
        if not node.closed and node.kind in ("object", "array") and (self._cut or self._reader.cut):
            self.complete = False
        return self.complete

    # --- values ---

    def _object(self, choices: Sequence[Schema], place: object, prefix: str, path: str, depth: int) -> Parse[None]:
        """Read an object that may be any of the choices of the schema `place`: a constant among its members chooses."""
        node, _ = yield from self._reader.begin("object")
        members = self._compiled.members if choices is self._compiled.objects else self._members(choices)
        begin = self._size + len(prefix)
        names: list[str] = []
        given: set[str] = set()
        opening = f"{prefix}{{"
        while True:
            member = yield from self._reader.member(node, first=not names)
            if member is None:
                if self._is_complete(node):
                    self._put(f"{opening}{self._reader.tail}}}")
                elif names:
                    self._put(opening)
                return
            declared = members.declared
            is_open = len(choices) > 1 and self._is_open(members, member.name)
            if (
                is_open
                or member.name in given
                or (
                    member.name not in declared and self._may_mean_other(member.name, members, names, is_root=not depth)
                )
            ):
                held = yield from self._held(node, member)
                self._finish_held_members(node, held, place, opening, path, begin, is_root=not depth)
                return
            opening += member.lead(first=not names) + member.key.json + member.colon
            wants = declared.get(member.name, members.schema.get("additionalProperties"))
            nothing = None if member.name in members.needed else declared.get(member.name)
            written = yield from self._value(wants, opening, f"{path}.{member.name}", depth + 1, "object", nothing)
            given.add(member.name)
            if len(choices) > 1 and (value := constant(self._scalar)) is not ...:
                choices = chosen(choices, member.name, value, self._schema)
                members = self._members(choices)
            if written:
                names.append(member.name)
                opening = ""
            else:
                opening = opening[: len(opening) - len(member.lead(first=not names) + member.key.json + member.colon)]
            if not self.complete:
                return

    def _is_open(self, members: Members, name: str) -> bool:
        """Whether a member that branches say different things of, or that not all of them declare, is not yet decided:
        it is held, as a constant behind it may choose the branch.
        """
        schema = members.declared.get(name)
        if not isinstance(schema, Mapping) or (name in members.everywhere and "anyOf" not in schema):
            return False
        place = self._place(schema)
        return not (place.takes_only_text or all("const" in choice or "enum" in choice for choice in place.choices))

    def _members(self, choices: Sequence[Schema]) -> Members:
        """What an object may hold that may be any of these."""
        members = members_of(choices)
        self._kept.append(members.schema)
        return members

    def _held(self, node: Node, member: Member) -> Parse[list[Member]]:
        """Hold the rest of an object, from this member on."""
        held: list[Member] = []
        entry: Member | None = member
        while entry is not None:
            entry.value = yield from self._reader.value("object")
            held.append(entry)
            entry = yield from self._reader.member(node, first=False)
        node.tail = self._reader.tail
        return held

    def _finish_held_members(
        self, node: Node, held: list[Member], place: object, opening: str, path: str, begin: int, *, is_root: bool
    ) -> None:
        """Repair the held rest of an object together with what was already sent of it, and write it."""
        if not self._is_complete(node):
            self._put(opening)
            return
        said = self._sent_since(begin)
        earlier = read_json(f"{said}}}") if said else None
        if is_root and earlier is None:
            self._put(opening.removesuffix("{"))
            whole = msgspec.structs.replace(node, members=self._reader.given_once(held))
            if not self._write_if_valid(whole):
                self._put(whole.text())
            return
        before = earlier.members if earlier else []
        held = list(self._reader.given_once([*before, *held]))[len(before) :]
        mender = ArgumentRepair(self._schema, self._tools.hints.aliases)
        made = mender.value(msgspec.structs.replace(node, members=[*before, *held]), place, path, 0)
        self._put(opening)
        if self._is_in_doubt(mender.repairs):
            return
        self._steps += mender.repairs
        for number, member in enumerate(made.members[len(before) :], len(before)):
            self._put(member.lead(first=not number) + member.key.json + member.colon + member.value.text())
        self._put(f"{node.tail}}}")

    def _sent_since(self, begin: int) -> str:
        """The text written from a position on."""
        pieces: list[str] = []
        at = self._size
        for piece in chain(reversed(self._new), reversed(self._written)):
            if at <= begin:
                break
            pieces.append(piece)
            at -= len(piece)
        return "".join(reversed(pieces))[max(0, begin - at) :]

    def _may_mean_other(self, name: str, members: Members, given: list[str], *, is_root: bool) -> bool:
        """Whether an undeclared name may be an alias of a parameter, or a wrapper: `{"arguments": {…}}`."""
        if is_root and not given and (name in NAME_KEYS or name in ARGUMENT_KEYS or name == self._name):
            return True
        return (
            bool(members.declared)
            and may_rename(members.schema)
            and self._names(members.schema).resolve(name, members.needed, self._tools.hints.aliases) is not None
        )

    def _names(self, schema: Schema) -> ParameterNames:
        """The names that a schema declares. Kept: each undeclared name of an object asks."""
        found = self._declared.get(id(schema))
        if found is None:
            found = self._declared[id(schema)] = ParameterNames(properties(schema))
        return found

    def _array(self, schema: Schema, prefix: str, path: str, depth: int) -> Parse[None]:
        node, _ = yield from self._reader.begin("array")
        opening, number = f"{prefix}[", 0
        while True:
            item = yield from self._reader.item(node, first=not number)
            if item is None:
                if self._is_complete(node):
                    self._put(f"{opening}{self._reader.tail}]")
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
        """Write one value behind `prefix`, its key with what stands before it.

        False if it is null for the optional parameter of schema `droppable`, which may not be null: then nothing is
        written.
        """
        source, reader = self._source, self._reader
        while source.more(1):
            yield
        self._scalar = None
        mark = source.text[source.at : source.at + 1]
        place = self._compiled.places.get(id(schema)) or self._place(schema)
        if mark in ('"', "'", "“", "`") and place.takes_any_text:
            self._put(f'{prefix}"')
            self._flowing = mark == '"'
            closed = yield from reader.string(where, self._put)
            self._flowing = False
            if closed:
                self._put('"')
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
        may_go_on = source.done and self._cut and node.kind == "number"
        if reader.cut or may_go_on or not self._is_complete(node):
            self.complete = False
            self._put(prefix)
            return True
        if len(place.choices) == 1 and _fits_as_written(node, place.choices[0]):
            self._put(prefix + as_integer(node.json))
            return True
        mender = ArgumentRepair(self._schema, self._tools.hints.aliases)
        made = mender.value(node, schema, path, 0)
        if droppable is not None and mender.leaves_out(made, droppable):
            self._steps.append(Repair("null_left_out", path))
            return False
        if self._is_in_doubt(mender.repairs):
            self._put(prefix)
            return True
        self._steps += mender.repairs
        self._scalar = made
        self.problems += [Problem("invalid_arguments", f"{path}: no value was written")] * (made.kind == "missing")
        self._put(prefix + made.text())
        return True

    def _is_in_doubt(self, repairs: Sequence[Repair]) -> bool:
        """Whether these repairs made a text of an object that may be more than that: the call is then not complete."""
        tool = self._tools.get(self._name)
        path = object_for_text(repairs, tool) if repairs and tool is not None else ""
        if path:
            self.problems.append(Problem("invalid_arguments", f"{path}: expected a text, got an object"))
            self.complete = False
        return bool(path)

    def _place(self, schema: object) -> Place:
        """What may stand where a schema is said. Cached: all items of an array share one schema."""
        found = self._places.get(id(schema))
        if found is None:
            found = self._places[id(schema)] = place_of(schema, self._schema)
        return found

    def _put(self, text: str) -> None:
        self._new.append(text)
        self._size += len(text)


def _fits_as_written(node: Node, schema: Schema) -> bool:
    """Whether a number or boolean is of the wanted type and needs no repair, the usual case."""
    if "enum" in schema or "const" in schema:
        return False
    match schema.get("type"):
        case "number":
            return node.kind == "number"
        case "integer":
            return node.kind == "number" and node.json.lstrip("-").isdecimal()
        case "boolean":
            return node.kind == "literal" and node.json != "null"
    return False
