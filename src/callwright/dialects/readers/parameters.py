"""Parses calls as named parameters between tags: `<function=f><parameter=k>v</parameter></function>` and its kin.

A value is plain text that may hold the tags themselves, as in a page about them. So a closing tag ends a value only if
another parameter or the end of the call follows. If the closing tag is missing, a parameter that the tool declares ends
the value, and so does the end of the call.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from msgspec import Struct

from callwright.calls.toolset import Toolset
from callwright.dialects.readers.arguments_writer import ArgumentsWriter, unwritten
from callwright.dialects.readers.prose import Marks, ProseReader
from callwright.events import ArgumentsDelta, CallEnded, CallStarted, Markup, Problem
from callwright.stream_reader import Markers, Parse, StreamReader, read_until
from callwright.tolerant_json.passthrough import JsonTerminators, pass_json

__all__ = ["ParameterReader", "ParameterTags"]

# The greatest length of the rest of an opening tag, in characters.
_MAX_HEAD: Final = 1_000
# Characters of look-ahead over white space between tags.
_MAX_BETWEEN: Final = 1_000
_MAX_VALUE: Final = 4_194_304
# A name without quotes ends before the first attribute: `my tool type="x"`.
_BARE = re.compile(r"(?P<name>.*?)(?=(?<!\s)\s++[\w:.-]++=|\Z)", re.DOTALL)
_ATTRIBUTE = re.compile(r"""([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))""")


class ParameterTags(Struct, frozen=True):
    """The tags of one format. The tags `call` and `parameter` go on with a name, up to `end`.

    `blocks` are pairs of tags around calls. `lines`: one line break on each side of a value belongs to the format.
    `control`: the tags are tokens of their own, which nobody types.
    """

    call: str
    call_end: str
    parameter: str
    parameter_end: str
    blocks: tuple[tuple[str, str], ...] = ()
    lines: bool = False
    end: str = ">"
    control: bool = True


def attributes(head: str) -> tuple[str, Mapping[str, str]]:
    """The name and the attributes in the rest of an opening tag, as in `"f" type="string"`."""
    head = head.strip().removesuffix("/").rstrip()
    if head[:1] in ('"', "'"):
        name, _, rest = head[1:].partition(head[0])
    else:
        bare = _BARE.match(head)
        assert bare is not None  # it matches always
        name, rest = bare["name"], head[bare.end() :]
    found = {key: next(filter(None, values), "") for key, *values in _ATTRIBUTE.findall(rest)}
    return name, found


def _schema(writer: ArgumentsWriter, key: str, rest: Mapping[str, str]) -> object:
    """The schema of a value: the tool's, or if that names no type, the `type` of the value's tag."""
    schema = writer.schema(key)
    return {"type": rest["type"]} if rest.get("type") and writer.is_untyped(schema) else schema


class ParameterReader(ProseReader):
    """Parses prose with calls of named parameters. A value has the type of the schema, else the `type` of its tag.

    `also` are further literals that may open a call, for a dialect's subclass.
    """

    def __init__(
        self,
        source: StreamReader,
        tools: Toolset,
        tags: ParameterTags,
        *,
        thoughts: tuple[tuple[str, str], ...] = (("<think>", "</think>"),),
        ends: tuple[str, ...] = (),
        also: tuple[str, ...] = (),
    ) -> None:
        openers = (*(begin for begin, _ in tags.blocks), tags.call, *also)
        self._form = tags
        self._block_ends = tuple(end for _, end in tags.blocks)
        self._closers = (tags.call_end, *self._block_ends)
        super().__init__(source, tools, Marks((*openers, *self._closers), thoughts, ends, tags.control))
        self._openers = openers
        self._tag_end = Markers(tags.end)
        # The markers at which reading stops: inside a call, and inside a value.
        self._inside = Markers(tags.parameter, tags.call_end, tags.call, *self._block_ends, *self._ends)
        self._in_value = Markers(
            tags.parameter_end, tags.parameter, tags.call_end, tags.call, *self._block_ends, *self._ends
        )
        stops = [end for end in (tags.call_end, tags.call, *self._block_ends, *self._ends) if end.startswith("<")]
        self._in_object = JsonTerminators(*stops, then=tuple(stop for stop in stops if stop != tags.call_end))

    def _may_begin_call(self, tag: str) -> Parse[bool]:
        """See `ProseReader`: a block goes on with a call, a call with a name."""
        if tag in self._closers:
            return False
        if tag != self._form.call:
            return (yield from self._comes(self._form.call))
        return (yield from self._names_call())

    def _last_call(self, text: str) -> int:
        """See `ProseReader`; a call in reasoning that is never closed ends it."""
        begins = [at for tag in self._openers if (at := text.find(tag)) >= 0]
        return min(begins, default=len(text))

    def _marked(self, blanks: str, tag: str) -> Parse[None]:
        if tag in self._closers:  # without its opener: the rest of a block when a call came before, else a mention
            yield from self._lone_end(blanks + tag)
            return
        inner = yield from self._held_blanks()
        if tag == self._form.call:
            if inner or not (yield from self._names_call()):
                self.emit(self._say(blanks + tag + inner))
                return
            self.markup(blanks)
            yield from self._calls(tag)
        elif (yield from self._comes(self._form.call)):
            self.emit(Markup(blanks + tag + inner))
            yield from self._calls("")
        elif (yield from self._comes(dict(self._form.blocks)[tag])) or (yield from self._comes(tag)):
            self.emit(Markup(blanks + tag + inner))  # an empty block, or its tag twice
        else:
            yield from self._unknown_block(blanks, tag, inner)

    def _unknown_block(self, blanks: str, tag: str, inner: str) -> Parse[None]:
        """A block that does not begin with a call: text, unless a dialect's subclass knows better."""
        self.emit(self._say(blanks + tag + inner))
        yield from ()

    def _names_call(self) -> Parse[bool]:
        """Whether the tag of a call goes on with a name, and what belongs to a call follows the tag."""
        form, source = self._form, self.source
        follows = (form.parameter, form.call_end, *self._block_ends, *self._ends, "{")
        while True:
            ahead = source.ahead(_MAX_HEAD)
            head, closed, behind = ahead.partition(form.end)
            if "\n" in head or "<" in (head if closed else head[: self._tag_end.partial_match_start(head, 0)]):
                return False
            behind = behind.lstrip()
            if closed and behind.startswith(follows):
                return True
            waits = not closed or not behind or any(literal.startswith(behind) for literal in follows)
            if not waits or not source.more(_MAX_HEAD):
                return bool(closed and not behind and source.ended)
            yield

    # --- calls ---

    def _calls(self, tag: str) -> Parse[None]:
        """Read calls, one after the other, to the end of their block. `tag`: what of the first was already read."""
        form = self._form
        while True:
            if not tag:
                self.emit(Markup(self.source.take(self.source.at + len(form.call))))
            else:
                self.emit(Markup(tag))
            tag = ""
            yield from self._call()
            yield from self._skip_blanks()
            if not (yield from self._call_follows()):
                break
        for end in self._block_ends:
            if (yield from self._comes(end)):
                self.emit(Markup(self.source.take(self.source.at + len(end))))
                yield from self._skip_blanks()

    def _call_follows(self) -> Parse[bool]:
        """Whether another call comes next."""
        return (yield from self._comes(self._form.call))

    def _call(self) -> Parse[None]:
        """Read one call, from its name on."""
        name, head = yield from self._read_name()
        self._call_begins()
        index = self.calls
        self.calls += 1
        self.emit(CallStarted(index, name))
        self.markup(head)
        yield from self._arguments(index, name)

    def _read_name(self) -> Parse[tuple[str, str]]:
        """Read the name of a call; answers it, and all that was read."""
        head, end = yield from read_until(self.source, self._tag_end, _MAX_HEAD)
        return attributes(head)[0], head + end

    def _arguments(self, index: int, name: str) -> Parse[None]:
        """Read the parameters of a call, to its end."""
        form, source = self._form, self.source
        yield from self._skip_blanks()
        if source.text.startswith("{", source.at):
            yield from self._object(index)
            return
        writer = ArgumentsWriter(self.emit, index, name, self.tools)
        complete = True
        marker = ""
        while True:
            junk, marker = yield from read_until(source, self._inside, _MAX_VALUE)
            if self._behind_blanks(junk):
                self.emit(Problem("arguments_trailing_text", "text between the parameters", call=index, text=junk))
            else:
                self.markup(junk)
            if marker != form.parameter:
                break
            self.emit(Markup(marker))
            if not (yield from self._parameter(writer)):
                marker, complete = "", False
                break
        if marker and marker != form.call_end:
            source.unread(marker)
        else:
            self.markup(marker)
        complete = complete and bool(marker)
        if complete:
            writer.close()
        self.emit(CallEnded(index, complete=complete))

    def _object(self, index: int) -> Parse[None]:
        """Read a JSON object in place of parameters: its bytes are the arguments."""
        source = self.source
        closed, marker = yield from pass_json(source, self._in_object, partial(ArgumentsDelta, index))
        if closed:
            rest, marker = yield from read_until(source, self._inside, _MAX_VALUE)
            if self._behind_blanks(rest):
                self.emit(Problem("arguments_trailing_text", "text behind the arguments", call=index, text=rest))
            else:
                self.markup(rest)
        if marker == self._form.call_end:
            self.emit(Markup(marker))
        else:
            source.unread(marker)
        self.emit(CallEnded(index, complete=closed or bool(marker)))

    def _parameter(self, writer: ArgumentsWriter) -> Parse[bool]:
        """Read one parameter, from its name on. False if the output was cut off in it."""
        head = yield from self._read_key()
        if head is None:
            return False
        key, rest = head
        if self._flows(writer, key, rest):
            writer.key(key)
            writer.open_text()
            whole = yield from self._read_value(writer, writer.text)
            if whole:
                writer.close_text()
            return whole
        pieces: list[str] = []
        whole = yield from self._read_value(writer, pieces.append)
        if whole:
            self._write(writer, key, "".join(pieces), rest)
        else:
            writer.cut("".join(pieces))
        return whole

    def _read_key(self) -> Parse[tuple[str, Mapping[str, str]] | None]:
        """Read the name of a parameter and the attributes of its tag; None if the output ended before the value."""
        head, closed = yield from read_until(self.source, self._tag_end, _MAX_HEAD)
        self.emit(Markup(head + closed))
        return attributes(head) if closed else None

    def _key_ahead(self, ahead: str) -> str | None:
        """The name of the parameter at the begin of a text; `""` if there is none, None if that is not known yet."""
        head, closed, _ = ahead.partition(self._form.end)
        if "\n" in head:
            return ""
        return attributes(head)[0] if closed else None

    @staticmethod
    def _behind_blanks(text: str) -> str:
        """A text without the white space that may stand between tags."""
        return text.lstrip()

    def _flows(self, writer: ArgumentsWriter, key: str, rest: Mapping[str, str]) -> bool:
        """Whether a value can be nothing but text, so that it may stream."""
        return writer.text_only(_schema(writer, key, rest))

    def _write(self, writer: ArgumentsWriter, key: str, text: str, rest: Mapping[str, str]) -> None:
        """Write a value that was held. `rest` are the attributes of its tag."""
        value = self._typed(writer, key, text, rest)
        self.markup(unwritten(text, value))
        writer.key(key)
        writer.json(value)

    def _typed(self, writer: ArgumentsWriter, key: str, text: str, rest: Mapping[str, str]) -> str:
        """The JSON of a held value."""
        return writer.cast_to_schema(text, _schema(writer, key, rest))

    def _read_value(self, writer: ArgumentsWriter, put: Callable[[str], object]) -> Parse[bool]:
        """Read a value to its end, in pieces for `put`; False if the output was cut off in it."""
        form, source = self._form, self.source
        if form.lines:
            while source.more(1):
                yield
            if source.text.startswith("\n", source.at):
                self.emit(Markup(source.take(source.at + 1)))
        held = ""  # a line break that is held back: the last one belongs to the format
        first = self._in_value.first

        def fast_path(text: str) -> bool:
            if not text or first(text) or (form.lines and text[-1] == "\n"):
                return False
            put(text)
            return True

        while True:
            text, marker = source.scan(self._in_value)
            text, held = held + text, ""
            if form.lines and text.endswith("\n"):
                text, held = text[:-1], "\n"
            if text:
                put(text)
            if not marker:
                if source.done:
                    self.markup(held)
                    return False
                if not held:
                    source.set_fast_path(fast_path)
                yield
                continue
            if (yield from self._ends_value(marker, writer)):
                self.markup(held)
                if marker == form.parameter_end:
                    self.emit(Markup(marker))
                else:
                    source.unread(marker)
                return True
            put(held + marker)
            held = ""

    def _ends_value(self, marker: str, writer: ArgumentsWriter) -> Parse[bool]:
        """Whether a marker inside a value ends it, by what follows."""
        form = self._form
        if marker == form.parameter_end:
            return (yield from self._followed_by(form.parameter, form.call_end, form.call, *self._block_ends))
        if marker == form.call_end:
            return (yield from self._followed_by_call(*self._block_ends))
        if marker == form.parameter:
            return (yield from self._begins_other(writer))
        if marker == form.call:
            return False
        return (yield from self._followed_by_call())

    def _followed_by_call(self, *also: str) -> Parse[bool]:
        """Whether another call, one of `also`, or the end of the output follows white space."""
        source, call = self.source, self._form.call
        known = (call, *self._openers, *also, *self._ends)
        while True:
            behind = self._behind_blanks(source.ahead(_MAX_BETWEEN))
            if behind.startswith((*also, *self._ends)):
                return True
            block = next((tag for tag in self._openers if tag != call and behind.startswith(tag)), "")
            inner = self._behind_blanks(behind[len(block) :])
            if inner.startswith(call) and (goes_on := self._goes_on_as_call(inner[len(call) :])) is not None:
                return goes_on
            begins = any(literal.startswith((inner, behind)) for literal in known)  # may become a longer tag
            waits = not inner or inner.startswith(call) or begins
            if not waits or not source.more(_MAX_BETWEEN):
                return not inner and source.ended
            yield

    def _goes_on_as_call(self, text: str) -> bool | None:
        """Whether the text behind a call's tag belongs to a call; None if that is not known yet."""
        return True

    def _followed_by(self, *literals: str) -> Parse[bool]:
        """Whether one of the literals, or the end of the output, follows white space."""
        source = self.source
        literals = (*literals, *self._ends)
        while True:
            behind = self._behind_blanks(source.ahead(_MAX_BETWEEN))
            if behind.startswith(literals):
                return True
            waits = not behind or any(literal.startswith(behind) for literal in literals)
            if not waits or not source.more(_MAX_BETWEEN):
                return not behind and source.ended
            yield

    def _begins_other(self, writer: ArgumentsWriter) -> Parse[bool]:
        """Whether the tag begins a declared parameter that was not given yet: then the closing tag before it is
        missing.
        """
        source = self.source
        while True:
            key = self._key_ahead(source.ahead(_MAX_HEAD))
            if key is not None or not source.more(_MAX_HEAD):
                return key is not None and writer.declares(key) and key not in writer.given
            yield
