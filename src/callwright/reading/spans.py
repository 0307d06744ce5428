"""The log of an output that is read with `trace`: each event with the characters that it was read from.

Readers emit everything they read, structure as `Markup`, and most events end at the place of their reader. So the log
places an event by comparison with the edges of the text that no event has yet; it does not search the output. A value
that is written in another way, `true` for `True`, has the text that its neighbours leave. The name of a call is in the
structure around its start. A call that is read as a whole, such as broken JSON, has the text of its block; that is
parsed for the places of its name and values.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Markup,
    Problem,
    ReasoningDelta,
)
from callwright.tolerant_json.placed import PlacedValue, placed_values
from callwright.tolerant_json.reader import read_json

SpanPart: TypeAlias = Literal["content", "reasoning", "name", "arguments", "markup"]
_PARTS: Final[dict[type, SpanPart]] = {
    ContentDelta: "content",
    ReasoningDelta: "reasoning",
    ArgumentsDelta: "arguments",
    Markup: "markup",
    Problem: "markup",
}
# Events that wait for their text while later ones are placed: a closing tag may be emitted before its value.
_MAX_WAITING: Final = 16
# Of events that share a text, those that it belongs to.
_OWNERS: Final = (ArgumentsDelta, ContentDelta, ReasoningDelta, Markup, Problem)
# Arguments that the model has not written: brackets, and the key of a value.
_ADDED = re.compile(r'(?:[\[\]{}",:\s]|\\[nrt]|(?!))*+\Z|.*":"?\Z', re.DOTALL).match
_BLANKS = re.compile(r"\s*+").match


class Span(Struct, frozen=True):
    """The characters `begin` to `end` of an output, and the part of the turn that they became.

    `call` is the number of the call in the turn, from 0, for its name and arguments.
    """

    begin: int
    end: int
    part: SpanPart
    call: int | None = None


class TracedEvent(Struct, eq=False):
    """An event, the `place` up to which the output was read when it was emitted, and the characters `begin` to `end`
    that it was read from. `exact`: they are its text, else that was written another way.
    """

    event: Event
    place: int
    begin: int = 0
    end: int = 0
    exact: bool = False

    @property
    def text(self) -> str:
        """The text of the event, if it has one."""
        return getattr(self.event, "text", "")


class WrittenArguments(Struct, frozen=True):
    """Maps the characters `first` to `last` of a call's arguments, as its reader emitted them, to `begin` to `end` in
    the output. `exact`: character by character, else written another way.
    """

    first: int
    last: int
    begin: int
    end: int
    exact: bool


class TracedCall(Struct):
    """A call as its reader emitted it, before any check: its arguments, and their sources. `members`: the names of the
    arguments of a call that was read as a whole, and the places of their values.
    """

    index: int
    name: str
    arguments: str = ""
    sources: list[WrittenArguments] = []
    members: Sequence[tuple[str, int, int]] = ()


class SpanRecorder:
    """Collects an output and the events of its reader."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.events: list[TracedEvent] = []  # their places are known after `read`

    def feed(self, text: str) -> None:
        """More of the output."""
        self._pieces.append(text)

    def add(self, event: Event, place: int) -> None:
        """An event that was emitted when the output was read up to `place`."""
        self.events.append(TracedEvent(event, place))

    def spans(self) -> tuple[Span, ...]:
        """All characters read so far, in order, without gaps."""
        return self.read()[0]

    def read(self) -> tuple[tuple[Span, ...], list[TracedCall]]:
        """The spans, and the calls in the order in which they began."""
        output = "".join(self._pieces)
        _place(self.events, output)
        calls = _Calls(self.events, output)
        spans = [
            Span(one.begin, one.end, _PARTS[type(one.event)], getattr(one.event, "index", None))
            for one in self.events
            if one.begin < one.end
        ]
        return _overlaid(_without_gaps(spans, output), calls.found, output), calls.calls


# --- the places of events ---


def _place(log: Sequence[TracedEvent], output: str) -> None:
    """Place all events with a text."""
    read, open_ = 0, list[TracedEvent]()
    for one in log:
        one.begin, one.end, one.exact = 0, 0, False
    passed = (0, 0)  # text before structure that was emitted first
    for place, group in groupby(log, key=lambda one: one.place):
        latest = [one for one in group if one.text]
        if passed[0] < passed[1]:
            said = [one for one in latest if isinstance(one.event, ContentDelta | ReasoningDelta)]
            _from_begin(output, *passed, said)
        latest = [one for one in latest if not one.exact]
        end = _closed(output, read, place, latest)
        open_ += latest
        read = _from_begin(output, read, end if end < place else len(output), open_)
        if end < place or read == place:
            if not open_ and read < end:
                passed = read, end
            _share(output, read, end, open_)
            read = place
    _share(output, read, len(output), open_)


def _closed(output: str, least: int, end: int, latest: list[TracedEvent]) -> int:
    """Place the structure, or else the last words, that end at the reader's place; returns their begin."""
    structure = [one for one in latest if isinstance(one.event, Markup) and not one.text.isspace()]
    words = [one for one in latest[-1:] if isinstance(one.event, ContentDelta)]
    for one in (*structure, *words):
        if output.endswith(one.text, least, end):
            latest.remove(one)
            one.begin, one.end, one.exact = end - len(one.text), end, True
            return one.begin
    return end


def _from_begin(output: str, at: int, end: int, open_: list[TracedEvent]) -> int:
    """Place the events whose text begins at a place, white space aside; returns the end of the last one."""
    while True:
        blank = _BLANKS(output, at).end()  # type: ignore[union-attr]  # matches always
        number, begin = _beginning(output, at, end, open_), at
        if number is None and at < blank:
            number, begin = _beginning(output, blank, end, open_[:1]), blank
        if number is None:
            return at
        one = open_.pop(number)
        at = begin + len(one.text if begin < blank else one.text.lstrip())
        one.begin, one.end, one.exact = begin, at, True
        if open_ and number == _MAX_WAITING - 1:  # the first one adds to the text, such as the key of an argument
            del open_[0]


def _beginning(output: str, at: int, end: int, open_: Sequence[TracedEvent]) -> int | None:
    """The number of the first event whose text begins here. That of text after a call has line feeds before it that
    the model did not write.
    """
    for number, one in enumerate(open_[:_MAX_WAITING]):
        text = one.text if output[at : at + 1].isspace() else one.text.lstrip()
        if number and text.isspace():
            continue  # it would be anywhere
        if text and output.startswith(text, at, end):
            return number
    return None


def _share(output: str, begin: int, end: int, open_: list[TracedEvent]) -> None:
    """Give events whose text was written another way the text that is left."""
    owner = min(open_, key=lambda one: _OWNERS.index(type(one.event)), default=None)
    begin, end = _trimmed(output, begin, end)
    for one in open_:
        is_own = owner is not None and type(one.event) is type(owner.event)
        one.begin, one.end = (begin, end) if is_own else (begin, begin)
    open_.clear()


# --- calls ---


class _Calls:
    """The calls of a log, and the places of their names; those of one that was read as a whole with all its values."""

    def __init__(self, log: Sequence[TracedEvent], output: str) -> None:
        self._log = log
        self._output = output
        self.calls: list[TracedCall] = []
        self.found: list[Span] = []
        self._values: dict[tuple[int, int], list[PlacedValue]] = {}  # of a block, those that no call has yet
        self._gaps = deque(_unclaimed(log, output))
        self._begun = 0  # the place of the call
        self._block = (0, 0)  # of the last call that was read as a whole
        by_index: dict[int, TracedCall] = {}
        for number, one in enumerate(log):
            match one.event:
                case CallStarted(index, name):
                    call = by_index[index] = TracedCall(index, name)
                    self.calls.append(call)
                    self._begun = one.place
                    self._name(number, call)
                case ArgumentsDelta(index):
                    self._argument(number, one, by_index[index])
                case CallEnded(index):
                    self._whole(number, by_index[index])

    def _argument(self, number: int, one: TracedEvent, call: TracedCall) -> None:
        first = len(call.arguments)
        call.arguments += one.text
        if one.begin == one.end and not _ADDED(one.text):
            parts = self._written_as(number, one)
            self.found += (Span(begin, end, "arguments", call.index) for begin, end in parts)
            if parts:
                one.begin, one.end = parts[0][0], parts[-1][1]
        if one.begin < one.end:
            call.sources.append(WrittenArguments(first, len(call.arguments), one.begin, one.end, one.exact))

    def _written_as(self, number: int, one: TracedEvent) -> list[tuple[int, int]]:
        """The text of a value that was written another way: text since its call began that is no event's, or structure
        until it became a value: `True`, emitted as `true` after it.
        """
        parts: list[tuple[int, int]] = []
        while self._gaps and self._gaps[0][1] <= one.place:
            gap = self._gaps.popleft()
            parts += [gap] * (gap[0] >= self._begun)
        at = number - 1
        while isinstance(self._log[at].event, ArgumentsDelta) and _ADDED(self._log[at].text):
            at -= 1
        text = self._log[at]
        is_value = isinstance(text.event, Markup) and text.place == one.place
        return parts or [(text.begin, text.end)] * is_value

    def _name(self, number: int, call: TracedCall) -> None:
        """Find the name of a call in the structure around its start."""
        for step in (-1, 1):
            at = number + step
            while 0 <= at < len(self._log) and isinstance(self._log[at].event, Markup | Problem):
                one = self._log[at]
                if one.exact and (place := one.text.rfind(call.name)) >= 0 and call.name:
                    begin = one.begin + place - (len(one.text) - (one.end - one.begin))
                    self.found.append(Span(begin, begin + len(call.name), "name", call.index))
                    return
                at += step

    def _whole(self, number: int, call: TracedCall) -> None:
        """Find the parts of a call that was read as a whole, in its block."""
        if len(call.sources) > 1 or any(source.exact for source in call.sources):
            return
        if call.sources:
            self._block = call.sources[0].begin, call.sources[0].end
        else:
            following = (self._log[at] for at in range(number + 1, len(self._log)))
            one = next((one for one in following if one.begin < one.end), None)
            if one is not None and isinstance(one.event, Markup | Problem):
                self._block = one.begin, one.end
        if self._block not in self._values:
            self._values[self._block] = placed_values(self._output, *self._block)
        self._values[self._block] = self._members(call, self._values[self._block])

    def _members(self, call: TracedCall, values: list[PlacedValue]) -> list[PlacedValue]:
        """Find a call among the values of a block; returns those after it."""
        node = read_json(call.arguments)
        names = {member.name for member in node.members} if node else set()
        places = {id(value.node): value for value in values}
        parts: list[Span] = []
        agreed = [self._agreed(value, names, call.arguments) for value in values]
        if most := max(agreed, default=0):
            found = values[agreed.index(most)]
            parts.append(Span(found.begin, found.end, "arguments", call.index))
            members = [(member.name, places[id(member.value)]) for member in found.node.members]
            call.members = [(name, value.begin, value.end) for name, value in members if name in names]
        for value in values:
            if value.text == call.name and not (parts and parts[0].begin <= value.begin < parts[0].end):
                parts.append(Span(value.begin, value.end, "name", call.index))
                break
        self.found += parts
        end = max((part.end for part in parts), default=0)
        return [value for value in values if value.begin >= end]

    @staticmethod
    def _agreed(value: PlacedValue, names: set[str], arguments: str) -> int:
        """How much of the arguments a value has: it may be their object, or a string that holds them."""
        if value.node.kind != "object":
            return int(value.text == arguments)
        own = {member.name for member in value.node.members}
        return len(own & names) if names else not own


def _unclaimed(log: Iterable[TracedEvent], output: str) -> Iterator[tuple[int, int]]:
    """The parts of the output that no event has, other than white space."""
    at = 0
    for begin, end in (*sorted((one.begin, one.end) for one in log if one.begin < one.end), (len(output), len(output))):
        if at < begin and not output[at:begin].isspace():
            yield _trimmed(output, at, begin)
        at = max(at, end)


# --- spans ---


def _without_gaps(spans: Iterable[Span], output: str) -> list[Span]:
    """The spans in order, without gaps and overlaps, neighbours of one kind joined; what nothing claims is markup.

    So is white space around arguments, which may be the format's or, in another chunk, the value's; between two parts
    of them it belongs to them.
    """
    out: list[Span] = []
    at = 0
    for span in (*sorted(spans, key=lambda span: (span.begin, span.end)), Span(len(output), len(output), "markup")):
        begin, end = max(at, span.begin), span.end
        if span.part == "arguments":
            begin, end = _trimmed(output, begin, end)
        if begin >= end and end < len(output):
            continue
        is_inside = span.part == "arguments" and _is_same(out, span) and output[at:begin].isspace()
        gap = span if is_inside else Span(at, begin, "markup")
        for one in (Span(at, begin, gap.part, gap.call), Span(begin, end, span.part, span.call)):
            if one.begin < one.end:
                out.append(Span(out.pop().begin, one.end, one.part, one.call) if _is_same(out, one) else one)
                at = one.end
    return out


def _is_same(spans: Sequence[Span], span: Span) -> bool:
    """Whether the last of some spans is of the same kind as another."""
    return bool(spans) and (spans[-1].part, spans[-1].call) == (span.part, span.call)


def _trimmed(output: str, begin: int, end: int) -> tuple[int, int]:
    """A part of the output without the white space on both sides."""
    written = output[begin:end].rstrip()
    return begin + len(written) - len(written.lstrip()), begin + len(written)


def _overlaid(spans: Sequence[Span], found: Iterable[Span], output: str) -> tuple[Span, ...]:
    """The spans, with those that were found in their structure in their places."""
    over = _without_gaps(found, output)
    out: list[Span] = []
    number = 0
    for span in spans:
        begin = span.begin
        while begin < span.end:
            while over[number].end <= begin:
                number += 1
            top = over[number]
            if top.part == "markup" or span.call not in (None, top.call):
                top = span
            end = min(span.end, over[number].end)
            out.append(Span(begin, end, top.part, top.call))
            begin = end
    return tuple(_without_gaps(out, output))
