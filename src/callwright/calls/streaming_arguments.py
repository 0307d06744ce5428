"""Arguments as they stream: strict JSON for the schema, as soon as each part of it is certain.

What was sent is at every moment a prefix of the final document, byte for byte the model's own where the model was
right. A text flows where the schema takes any text; a number, a boolean or a member of an enumeration goes out when it
is whole; a name that the tool does not declare but may mean holds what follows it in its object.
"""

import re
from collections.abc import Callable
from itertools import chain
from typing import Any, Final

import msgspec

from callwright.calls.aliases import may_rename, resolve_parameter_name
from callwright.calls.fit import json_problems, repair_and_validate, step_problems
from callwright.calls.json_forms import ARGUMENT_KEYS, NAME_KEYS
from callwright.calls.repair import ArgumentRepair, Repair
from callwright.calls.toolset import Toolset
from callwright.events import Problem
from callwright.schema.keywords import properties, required
from callwright.schema.resolve import Schema, branches, resolve, wanted
from callwright.stream_reader import Parse, silent_reader
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.tolerant_json.markers import TRAILING
from callwright.tolerant_json.reader import JsonReader, TooDeepError, Where, read_json
from callwright.tolerant_json.tree import Member, Node

__all__ = ["StreamingArguments"]

# Objects and lists flow down to this level; what stands deeper is held.
_MAX_FLOWING: Final = 8
# What of a flowing string neither ends it nor needs a closer look, and what may follow that is not decided yet.
_PLAIN = re.compile(r"""(?:[^"\\\x00-\x1f,]++|,(?![ \t]*\Z)|\\[\\/bfnrt]|\\"(?=[^\s,])|\\u[0-9a-fA-F]{4})*+""").match
_UNDECIDED = re.compile(r"""(?:\\(?:"|u[0-9a-fA-F]{0,3})?|,[ \t]{0,60})?\Z""").match
_EMPTY: Final[Schema] = {}


class StreamingArguments:
    """The arguments of one call of the tool `name`. `problems` and `complete` hold when it is finished."""

    def __init__(self, name: str, tools: Toolset) -> None:
        self.complete = True
        self.problems: list[Problem] = []
        self._name = name
        self._tools = tools
        tool = tools.get(name)
        self._schema: Schema = (tool.parameters if tool else None) or _EMPTY
        self._steps: list[Repair] = []
        self._choices: dict[int, list[Schema]] = {}
        self._flowing = False  # within a string that flows
        self._tail = ""  # of it, not decided yet
        self._raw: list[str] = []
        self._passed = ""  # arguments that came whole, of which nothing was read
        self._size = 0  # of what is written, the new included
        self._new: list[str] = []
        self._written: list[str] = []
        self._run: Parse[None] | None = None  # once something has to be read closely

    @property
    def text(self) -> str:
        """All that was sent so far."""
        return "".join(self._written)

    @property
    def is_checked(self) -> bool:
        """Whether they came whole and were found to fit their schema: nobody has to look again."""
        return bool(self._passed)

    def feed(self, text: str) -> str:
        """Read more of what the model writes; answers what has become certain."""
        if not self._raw and self._is_valid_as_is(text):
            self._raw.append(text)
            self._written.append(text)
            self._passed = text
            return text
        self._raw.append(text)
        run = self._run or self._begin()
        source = self._source
        if self._tail:
            text, self._tail = self._tail + text, ""
        if self._flowing and source.at == len(source.text):
            end = _PLAIN(text).end()  # type: ignore[union-attr]  # matches always
            if end == len(text) or _UNDECIDED(text, end):
                if end < len(text):
                    text, self._tail = text[:end], text[end:]
                self._written.append(text)
                self._size += end
                return text
        source.push(text)
        next(run, None)
        return self._sent()

    def finish(self, *, cut: bool) -> str:
        """The model has ended the call, or the output was `cut`; answers what is left."""
        if self._passed:
            return ""
        run = self._run or self._begin()
        if self._tail:
            self._source.push(self._tail)
        self._source.end(cut=cut)
        for _ in run:
            raise AssertionError("the arguments are all there")
        sent = self._sent()
        if not self.complete:
            # What is left of a half call is not mended, and of a good one nothing is lost.
            raw, all_sent = "".join(self._raw), self.text
            rest = raw[len(all_sent) :] if raw.startswith(all_sent) else ""
            self._written.append(rest)
            return sent + rest
        self.problems = json_problems(self._reader.repairs) + step_problems(self._steps) + self.problems
        return sent

    def _is_valid_as_is(self, text: str) -> bool:
        """Whether these are whole arguments that fit as they are. Objects within them may have names to mend."""
        if not (text.startswith("{") and text.endswith("}")):
            return False
        try:
            value = decode(text)
        except NotJsonError:
            return False
        return (
            value.keys() <= properties(self._schema).keys()
            and {dict, list}.isdisjoint(map(type, value.values()))
            and not self._tools.faults(self._name, value)
            and not self._tools.unusable_schema(self._name)  # which checks nothing, but may still mend
        )

    def _begin(self) -> Parse[None]:
        """Begin to read closely; arguments that have gone out, too, where more comes behind them."""
        self._source = silent_reader()
        self._reader = JsonReader(self._source)
        run = self._run = self._document()
        if self._passed:
            self._source.push(self._passed)
            next(run, None)
            self._new.clear()
            self._passed = ""
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
                yield from self._object(self._schema, lead, "$", 0)
            else:
                yield from self._other()
                return
        except TooDeepError as error:
            self.problems.append(Problem("non_json_arguments", str(error)))
            self._put((yield from self._rest()))
            return
        yield from self._trailing()

    def _other(self) -> Parse[None]:
        """Arguments that are no object: JSON in a string, a list with the object, the text of the one parameter."""
        text = yield from self._rest()
        node = read_json(text.strip())
        if node is None or node.kind == "word":
            node = Node("string", encode(text.strip()).decode())
        if self._source.cut or not self._write_if_valid(node):
            self._put(text)
            self.complete = not self._source.cut

    def _write_if_valid(self, node: Node) -> bool:
        """Whether arguments that had to be judged as a whole fit, and are written."""
        fitted = repair_and_validate(node, self._name, self._tools)
        if not fitted.faults:
            self._steps += fitted.steps
            self._put(fitted.text)
        return not fitted.faults

    def _trailing(self) -> Parse[None]:
        """What stands behind the document: closers mean nothing."""
        rest = yield from self._rest()
        if rest[TRAILING.match(rest).end() :]:  # type: ignore[union-attr]  # matches always
            self.problems.append(Problem("arguments_trailing_text", "text behind the arguments", text=rest))

    def _rest(self) -> Parse[str]:
        """All that is left."""
        pieces: list[str] = []
        while True:
            pieces.append(self._source.take(len(self._source.text)))
            if self._source.ended:
                return "".join(pieces)
            yield

    def _is_complete(self, node: Node) -> bool:
        """Whether a container ended that may be closed: the model closed it, or stopped behind a whole value."""
        if not node.closed and node.kind in ("object", "array") and (self._source.cut or self._reader.cut):
            self.complete = False
        return self.complete

    # --- values ---

    def _object(self, schema: Schema, prefix: str, path: str, depth: int) -> Parse[None]:
        node, _ = yield from self._reader.begin("object")
        declared = properties(schema)
        begin = self._size + len(prefix)
        names: list[str] = []
        opening = f"{prefix}{{"
        while True:
            member = yield from self._reader.next(node, first=not names)
            if member is None:
                if self._is_complete(node):
                    self._put(f"{opening}{self._reader.tail}}}")
                elif names:
                    self._put(opening)
                return
            assert isinstance(member, Member)
            if self._may_mean_other(member.name, schema, names, is_root=not depth):
                held = yield from self._held(node, member)
                self._finish_held_members(node, held, schema, opening, path, begin, is_root=not depth)
                return
            opening += member.lead(first=not names) + member.key.json + member.colon
            wants = declared.get(member.name, schema.get("additionalProperties"))
            nothing = None if member.name not in declared or member.name in required(schema) else declared[member.name]
            written = yield from self._value(wants, opening, f"{path}.{member.name}", depth + 1, "object", nothing)
            if written:
                names.append(member.name)
                opening = ""
            else:
                opening = opening[: len(opening) - len(member.lead(first=not names) + member.key.json + member.colon)]
            if not self.complete:
                return

    def _held(self, node: Node, member: Member) -> Parse[list[Member]]:
        """The rest of an object from this member on, whole."""
        held: list[Member] = []
        entry: Any = member
        while entry is not None:
            entry.value = yield from self._reader.value("object")
            held.append(entry)
            entry = yield from self._reader.next(node, first=False)
        node.tail = self._reader.tail
        return held

    def _finish_held_members(
        self, node: Node, held: list[Member], schema: Schema, opening: str, path: str, begin: int, *, is_root: bool
    ) -> None:
        """Write the held rest of an object, under the names and as the values that its schema wants."""
        if not self._is_complete(node):
            self._put(opening)
            return
        said = self._sent_since(begin)
        earlier = read_json(f"{said}}}") if said else None
        if is_root and earlier is None:
            self._put(opening.removesuffix("{"))
            whole = msgspec.structs.replace(node, members=held)
            if not self._write_if_valid(whole):
                self._put(whole.text())
            return
        before = earlier.members if earlier else []
        mender = ArgumentRepair(self._schema, self._tools.hints.aliases)
        made = mender.value(msgspec.structs.replace(node, members=[*before, *held]), schema, path, 0)
        self._steps += mender.repairs
        self._put(opening)
        for number, member in enumerate(made.members[len(before) :], len(before)):
            self._put(member.lead(first=not number) + member.key.json + member.colon + member.value.text())
        self._put(f"{node.tail}}}")

    def _sent_since(self, begin: int) -> str:
        """What is written from a position on."""
        pieces: list[str] = []
        at = self._size
        for piece in chain(reversed(self._new), reversed(self._written)):
            if at <= begin:
                break
            pieces.append(piece)
            at -= len(piece)
        return "".join(reversed(pieces))[max(0, begin - at) :]

    def _may_mean_other(self, name: str, schema: Schema, given: list[str], *, is_root: bool) -> bool:
        """Whether a name that is not declared may turn out to be another, or a wrapper around the arguments."""
        declared = properties(schema)
        if name in declared:
            return False
        if is_root and not given and (name in NAME_KEYS or name in ARGUMENT_KEYS or name == self._name):
            return True
        return (
            bool(declared)
            and may_rename(schema)
            and resolve_parameter_name(name, declared, required(schema), self._tools.hints.aliases) is not None
        )

    def _array(self, schema: Schema, prefix: str, path: str, depth: int) -> Parse[None]:
        node, _ = yield from self._reader.begin("array")
        opening, number = f"{prefix}[", 0
        while True:
            item = yield from self._reader.next(node, first=not number)
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
        """Write one value behind `prefix`. False where null stands for a parameter that is `droppable` and may not be
        null: then nothing is written.
        """
        source, reader = self._source, self._reader
        while source.more(1):
            yield
        mark = source.text[source.at : source.at + 1]
        choices = self._branches(schema)
        if mark in ('"', "'", "“", "`") and any(_takes_any_text(choice) for choice in choices):
            self._put(f'{prefix}"')
            yield from self._text(where)
            return True
        container: Callable[..., Parse[None]] | None = {"{": self._object, "[": self._array}.get(mark)
        fitting = [choice for choice in choices if wanted(choice) in ("", "object" if mark == "{" else "array")]
        if container and len(fitting) == 1 and depth < _MAX_FLOWING:
            yield from container(fitting[0], prefix, path, depth)
            return True
        node = yield from reader.value(where)
        may_go_on = source.done and source.cut and node.kind == "number"
        if reader.cut or may_go_on or not self._is_complete(node):
            self.complete = False
            self._put(prefix)
            return True
        if len(choices) == 1 and _fits_as_written(node, choices[0]):
            self._put(prefix + node.json)
            return True
        mender = ArgumentRepair(self._schema, self._tools.hints.aliases)
        made = mender.value(node, schema, path, 0)
        if droppable is not None and mender.leaves_out(made, droppable):
            self._steps.append(Repair("null_left_out", path))
            return False
        self._steps += mender.repairs
        self.problems += [Problem("invalid_arguments", f"{path}: no value was written")] * (made.kind == "missing")
        self._put(prefix + made.text())
        return True

    def _branches(self, schema: object) -> list[Schema]:
        """The choices that a schema leaves, found once for each: items of a list have the same one."""
        found = self._choices.get(id(schema))
        if found is None:
            found = self._choices[id(schema)] = branches(resolve(schema, self._schema), self._schema)
        return found

    def _text(self, where: Where) -> Parse[None]:
        self._flowing = self._source.text[self._source.at] == '"'
        closed = yield from self._reader.string(where, self._put)
        self._flowing = False
        if closed:
            self._put('"')
        else:
            self.complete = False

    def _put(self, text: str) -> None:
        self._new.append(text)
        self._size += len(text)


def _fits_as_written(node: Node, schema: Schema) -> bool:
    """Whether a number or a boolean is of the one type that is wanted: most are, and nothing is to be mended."""
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


def _takes_any_text(schema: Schema) -> bool:
    return wanted(schema) in ("", "string") and "enum" not in schema and "const" not in schema
