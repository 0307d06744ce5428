"""The calls in a field: arguments stream if the declaration determines their form in advance."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from callwright.calls.json_forms import find_json_calls
from callwright.calls.toolset import Toolset
from callwright.events import ArgumentsDelta, CallEnded, CallStarted, Markup, Problem
from callwright.reading.arguments_writer import ArgumentsWriter, unwritten
from callwright.reading.json.block import MarkedJson
from callwright.reading.literal.literals import Ends, LiteralForm, LiteralReader
from callwright.response_template.declaration import Field
from callwright.response_template.plan import Mark, ReadingPlan
from callwright.response_template.values import (
    Value,
    beside,
    is_strict,
    json_of,
    lines,
    parsed,
    read_value,
    tags,
    text_in,
    transform,
)
from callwright.response_template.watch import Found, Watch
from callwright.streaming.reader import Markers, Parse, StreamReader, ending_blanks, read_until
from callwright.tolerant_json.passthrough import JsonTerminators, pass_json
from callwright.tolerant_json.tree import Node

# A field that must be read as a whole is held up to this size.
MAX_HELD: Final = 4_194_304
_MAX_BETWEEN: Final = 1_000
# Insignificant text around the arguments: white space, tags, surplus closers.
_STRUCTURE = re.compile(r"(?:\s|<[^<>]{0,200}>|(?!))*+\Z").match
_SURPLUS = re.compile(r"[\s}\]]*+")


class CallReader:
    """Reads the field that `opening` begins; `calls` continues from the number given.

    `refused` is the text of a field in which there is no call.
    """

    def __init__(self, source: StreamReader, tools: Toolset, plan: ReadingPlan, field: Field, calls: int) -> None:
        self.calls = calls
        self.refused = ""
        self._source = source
        self._emit = source.emit
        self._tools = tools
        self._plan = plan
        self._field = field
        self._closes = field.close.texts if field.close else ()

    def read(self, opening: Found[Mark]) -> Parse[None]:
        """Read up to and with the end of the field."""
        field = self._field
        if field.form == "made":
            body, closing = yield from hold(self._source, self._plan.closes[field.name])
            self._whole(opening, body, closing)
        elif field.content == "json":
            yield from self._json(opening)
        else:
            self._emit(Markup(opening.text))
            yield from self._members(self._name(opening.groups))

    def _name(self, groups: Mapping[str, str]) -> str:
        """The name of the call, which the beginning of its field contains."""
        call = self._field.transform
        written = str(call.get("function", call)["name"])
        return groups.get(written[1:-1], "") if written.startswith("{") else written

    def _start(self, name: str) -> int:
        self._emit(CallStarted(self.calls, name))
        self.calls += 1
        return self.calls - 1

    # --- JSON ---

    def _json(self, opening: Found[Mark]) -> Parse[None]:
        """JSON up to its end; if the end is not a literal, the field is held up to it."""
        stops = self._plan.stops[self._field.name]
        if stops is not None:
            yield from self._json_here(opening, stops)
            return
        body, closing = yield from hold(self._source, self._plan.closes[self._field.name])
        outer, self._source = self._source, StreamReader(self._emit)
        self._source.push(body)
        self._source.end()
        for _ in self._json_here(opening, JsonTerminators()):
            raise AssertionError("held text is whole")
        rest = self._source.take(len(self._source.text))
        self._source = outer
        if rest.strip():
            self._emit(Problem("arguments_trailing_text", "text after a call", call=self.calls - 1, text=rest))
        else:
            outer.markup(rest)
        outer.markup(closing.text if closing else "")

    def _json_here(self, opening: Found[Mark], stops: JsonTerminators) -> Parse[None]:
        if self._field.form == "object":
            yield from self._object(opening, stops)
            return
        self._emit(Markup(opening.text))
        name = self._name(opening.groups)
        index = self._start(name)
        yield from self._blanks()
        args = self._field.args
        if not self._source.text.startswith("{", self._source.at):
            yield from self._no_object(index, name, stops)
        elif args.string_delims or args.unquoted_keys:
            yield from self._notation(index, name, stops)
        else:
            end = yield from pass_json(self._source, stops, partial(ArgumentsDelta, index), index)
            self._emit(CallEnded(index, complete=end.is_sure))
            yield from self._behind(index, stops, end.stop)

    def _object(self, opening: Found[Mark], stops: JsonTerminators) -> Parse[None]:
        """Name and arguments in the JSON."""
        ends_itself = self._field.close is None or not stops.literals
        block = MarkedJson(self._source, self._tools, stops, self.calls, ends_itself=ends_itself)
        stop, rest = yield from block.read()
        self.calls = block.calls
        closing = stop if stop in self._closes else ""
        if block.refused:
            self.refused = opening.text + block.refused + closing
        else:
            self._emit(Markup(opening.text))
            self._source.markup(closing)
        self._source.unread(rest + ("" if closing else stop))

    def _no_object(self, index: int, name: str, stops: JsonTerminators) -> Parse[None]:
        """Arguments that are no object, or none at all."""
        text, stop = yield from read_until(self._source, Markers(*stops.literals), MAX_HELD)
        bare = text.strip()
        blanks = text.partition(bare) if bare else (text, "", "")
        self._source.markup(blanks[0] + blanks[2])
        if not bare and not self._tools.requires_something(name):
            bare = "{}"
        if bare:
            self._emit(ArgumentsDelta(index, bare))
        # Words are not arguments; a list or a text may contain them.
        self._emit(CallEnded(index, complete=bool(stop) and (not bare or bare[0] in '{["')))
        self._closed(stop)

    def _notation(self, index: int, name: str, stops: JsonTerminators) -> Parse[None]:
        """An object whose keys or strings are not written as in JSON."""
        self._emit(Markup(self._source.take(self._source.at + 1)))
        writer = ArgumentsWriter(self._emit, index, name, self._tools)
        form = LiteralForm(
            tuple(begin for begin, _ in self._field.args.string_delims),
            Ends(self._closes, tuple(stop for stop in stops.literals if stop not in self._closes)),
            self._tools.names_in(self._tools.resolve_name(name)),
        )
        reader = LiteralReader(
            self._source,
            writer.of_json,
            form,
            call=index,
            bare=lambda key: "any" if writer.is_untyped(writer.schema(key)) else "text" if writer.is_text(key) else "",
        )
        whole = yield from reader.arguments("}", ":")
        self._emit(CallEnded(index, complete=whole))
        yield from self._behind(index, stops, "")

    def _behind(self, index: int, stops: JsonTerminators, stop: str) -> Parse[None]:
        """Up to the end of the field, which a `stop` may have been."""
        if not stop and stops.literals and self._closes:
            rest, stop = yield from read_until(self._source, Markers(*stops.literals), MAX_HELD)
            if not stop:  # the end is missing: the rest is not part of the field
                surplus = _SURPLUS.match(rest)
                assert surplus is not None  # it matches always
                self._source.markup(surplus.group())
                self._source.unread(rest[surplus.end() :])
            elif _SURPLUS.fullmatch(rest):
                self._source.markup(rest)
            else:
                self._emit(Problem("arguments_trailing_text", "text after the arguments", call=index, text=rest))
        self._closed(stop)

    def _closed(self, stop: str) -> None:
        """Read the end of the field, but not the beginning of another."""
        if stop in self._closes:
            self._source.markup(stop)
        else:
            self._source.unread(stop)

    def _blanks(self) -> Parse[None]:
        source = self._source
        while True:
            source.markup(source.blanks())
            if source.at < len(source.text) or source.ended:
                return
            yield

    # --- arguments one by one ---

    def _members(self, name: str) -> Parse[None]:
        field = self._field
        index = self._start(name)
        writer = ArgumentsWriter(self._emit, index, name, self._tools)
        watches = self._plan.tags.get(field.name)
        if watches:
            whole = yield from self._tags(index, writer, *watches)
        else:
            body, closing = yield from hold(self._source, self._plan.ends[field.name])
            whole = closing is not None
            self._held_members(index, writer, body, whole=whole)
            self._end(index, closing)
        if whole:
            writer.close()
        self._emit(CallEnded(index, complete=whole))

    def _held_members(self, index: int, writer: ArgumentsWriter, body: str, *, whole: bool) -> None:
        field = self._field
        if field.tag:
            at = 0
            found, searched = tags(field.tag, body)
            for key, text, (begin, end) in found:
                self._junk(index, body[at:begin])
                self._value(writer, key, text)
                self._source.markup(body[begin:end])
                at = end
            whole = whole and searched
            rest = body[at:]
        else:
            pairs, rest = lines(body, field.args)
            for key, text in pairs:
                self._value(writer, key, text)
            self._source.markup(body)
        if whole:
            self._junk(index, rest)
        else:
            writer.cut(rest)

    def _tags(self, index: int, writer: ArgumentsWriter, before: Watch[Mark], inside: Watch[Mark]) -> Parse[bool]:
        """Tags as they come, up to the end of the field; False when the output was cut in them."""
        source = self._source
        while True:
            junk, found = yield from hold(source, before)
            self._junk(index, junk)
            if found is None or found.kind.kind != "open":
                self._end(index, found)
                return found is not None
            source.markup(found.text)
            key = found.groups.get("key", "")
            if self._flows(writer, key):
                writer.key(key)
                writer.open_text()
                if not (yield from self._upto(index, inside, writer.text)):
                    return False
                writer.close_text()
                continue
            pieces: list[str] = []
            if not (yield from self._upto(index, inside, pieces.append)):
                writer.cut("".join(pieces))
                return False
            self._value(writer, key, "".join(pieces))

    def _end(self, index: int, end: Found[Mark] | None) -> None:
        """The end of a call, or the beginning of the next one."""
        if end is not None and end.kind.kind == "next":
            self._emit(Problem("markup_repaired", "the end of a call is missing before the next", call=index))
            self._source.unread(end.text)
        else:
            self._source.markup(end.text if end else "")

    def _upto(self, index: int, watch: Watch[Mark], put: Callable[[str], object]) -> Parse[bool]:
        """Pass on a value up to its end, or that of its field; False when the output was cut in it."""
        source, watching = self._source, watch.begin()
        around = self._field.tag.around if self._field.tag else None
        trims = around is not None and around.trims
        held = ""  # white space that may be the last
        while True:
            text, found = watching.scan(source)
            text, held = held + text, ""
            held = ending_blanks(text)
            text = text[: len(text) - len(held)]
            put(text)
            if found is None:
                if source.done:
                    source.markup(held)
                    return False
                yield
            elif found.kind.kind == "open":
                if trims:
                    source.markup(held)
                else:
                    put(held)
                source.markup(found.text)
                return True
            elif (yield from self._ends_field()):
                self._emit(Problem("markup_repaired", "the end of a value is missing", call=index))
                source.markup(held)
                source.unread(found.text)
                return True
            else:
                put(held + found.text)
                watching, held = watch.begin(), ""

    def _ends_field(self) -> Parse[bool]:
        """Whether the end of the field in a value is real: the answer ends after it, or another field begins."""
        source = self._source
        while True:
            behind = source.ahead(_MAX_BETWEEN).lstrip()
            if behind.startswith(self._plan.begins):
                return True
            waits = not behind or any(text.startswith(behind) for text in self._plan.begins)
            if not waits or not source.more(_MAX_BETWEEN):
                return not behind and source.ended
            yield

    def _flows(self, writer: ArgumentsWriter, key: str) -> bool:
        """Whether a value can be nothing but text."""
        untyped = writer.is_untyped(writer.schema(key))
        return self._field.args.value_parser is None if untyped else writer.is_text(key)

    def _value(self, writer: ArgumentsWriter, key: str, text: str) -> None:
        """Write a value according to its schema, else to the declaration."""
        if writer.is_untyped(writer.schema(key)):
            value = json_of(parsed(text, self._field.args.value_parser))
        else:
            value = writer.cast_to_schema(text, writer.schema(key))
        self._source.markup(unwritten(text, value))
        writer.key(key)
        writer.json(value)

    def _junk(self, index: int, text: str) -> None:
        """Report text between arguments, or emit it as structure."""
        if _STRUCTURE(text):
            self._source.markup(text)
        else:
            self._emit(Problem("arguments_trailing_text", "text between the arguments", call=index, text=text))

    # --- the whole field ---

    def _whole(self, opening: Found[Mark], body: str, closing: Found[Mark] | None) -> None:
        """Calls that a transform builds from a whole field."""
        written = opening.text + body + (closing.text if closing else "")
        if closing is None:
            self._emit(Problem("incomplete_arguments", "a call that was cut", text=written))
            return
        groups = {**opening.groups, **(closing.groups if closing else {})}
        value = read_value(self._field, body)
        values = None if value is None else transform(self._field, value, groups)
        each = [self._call_in(value) for value in values or ()]
        calls = [call for found in each if found for call in found]
        if not calls or not all(each):
            self._emit(Problem("malformed_call", "a call that is not what its template declares"))
            self.refused = written
            return
        if self._field.content == "json" and not is_strict(self._field, body):
            self._emit(Problem("json_repaired", "the JSON of a call", call=self.calls))
        rest, repeated = beside(self._field, body)
        self._junk(self.calls, rest)
        for key in repeated:
            self._emit(Problem("argument_repeated", f"{key!r} was given twice", call=self.calls))
        for name, arguments in calls:
            index = self._start(name)
            if not arguments and not self._tools.requires_something(name):
                arguments = "{}"
            if arguments:
                self._emit(ArgumentsDelta(index, arguments))
            self._emit(CallEnded(index, complete=not repeated))
        self._emit(Markup(written))

    def _call_in(self, value: Value) -> list[tuple[str, str]] | None:
        """The names and arguments of the calls in a value; None without any."""
        if isinstance(value, Mapping):
            value = value.get("function", value)
        if isinstance(value, Node):
            forms = find_json_calls(value, self._tools)
            return [(form.name, form.arguments.text() if form.arguments else "") for form in forms] if forms else None
        name = text_in(value.get("name")) if isinstance(value, Mapping) else None
        if name is None or not isinstance(value, Mapping):
            return None
        arguments = value.get("arguments")
        if isinstance(arguments, Mapping):
            return [(name, self._cast_arguments(name, arguments))]
        return [(name, "" if arguments is None else json_of(arguments))]

    def _cast_arguments(self, name: str, arguments: Mapping[str, Value]) -> str:
        """Arguments of which some are texts, as the schema wants them."""
        out: list[str] = []
        writer = ArgumentsWriter(lambda event: out.append(event.text), 0, name, self._tools)  # type: ignore[union-attr]
        for key, value in arguments.items():
            schema = writer.schema(key)
            text = value if isinstance(value, str) and not writer.is_untyped(schema) else None
            writer.key(key)
            writer.json(json_of(value) if text is None else writer.cast_to_schema(text, schema))
        writer.close()
        return "".join(out)


def hold(source: StreamReader, watch: Watch[Mark]) -> Parse[tuple[str, Found[Mark] | None]]:
    """Hold text up to the next delimiter and return both; None if the output ended, or got too long, before one."""
    pieces: list[str] = []
    size, watching = 0, watch.begin()
    while True:
        text, found = watching.scan(source)
        if size + len(text) > MAX_HELD:
            source.unread((text + (found.text if found else ""))[MAX_HELD - size :])
            return "".join(pieces) + text[: MAX_HELD - size], None
        pieces.append(text)
        size += len(text)
        if found is not None or source.done:
            return "".join(pieces), found
        yield
