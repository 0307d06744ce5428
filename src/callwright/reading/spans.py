"""Where each character of an output went: into the answer, into reasoning, into the arguments of a call, or nowhere.

Readers emit everything they read, in order, structure as `Markup`. So the parts of an output are found by the texts of
the events; text that no event repeats literally belongs to a value written another way, such as `7` in
`<arg_value>7</arg_value>`.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from typing import Literal, TypeAlias

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

SpanPart: TypeAlias = Literal["content", "reasoning", "name", "arguments", "markup"]


class Span(Struct, frozen=True):
    """The characters `begin` to `end` of an output, and the part of the turn that they became.

    `call` is the number of the call in the turn, from 0, for its name and arguments.
    """

    begin: int
    end: int
    part: SpanPart
    call: int | None = None


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
    """A call as its reader emitted it, before any check: its arguments, and their sources. It ended when the output was
    read up to `place`.
    """

    index: int
    name: str
    arguments: str
    sources: list[WrittenArguments]
    place: int


class TracedProblem(Struct, frozen=True):
    """A problem that a reader reported when the output was read up to `place`."""

    problem: Problem
    place: int


class SpanRecorder:
    """Collects an output and the events of its reader, each with the place up to which the output was read then."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._events: list[tuple[Event, int]] = []

    def feed(self, text: str) -> None:
        """More of the output."""
        self._pieces.append(text)

    def add(self, event: Event, place: int) -> None:
        """An event that was emitted when the output was read up to `place`."""
        self._events.append((event, place))

    def spans(self) -> tuple[Span, ...]:
        """All characters read so far, in order, without gaps."""
        return self._found()[0]

    def calls(self) -> list[TracedCall]:
        """The calls, in the order in which they began."""
        calls = self._found()[1]
        return [TracedCall(call.index, call.name, call.arguments, call.sources, call.place) for call in calls]

    def problems(self) -> list[TracedProblem]:
        """The problems that the reader reported."""
        return [TracedProblem(event, place) for event, place in self._events if isinstance(event, Problem)]

    def _found(self) -> "tuple[tuple[Span, ...], list[_Call]]":
        finder = _Finder("".join(self._pieces))
        for event, place in self._events:
            finder.take(event, place)
        finder.rest()
        structure = _Structure(_merged(finder.found), finder.output)
        for call in finder.calls:
            structure.find(call)
        return tuple(structure.spans()), finder.calls


class _Call(Struct):
    """A call, and the places of its start and end events."""

    index: int
    name: str
    begun: int
    ended: int
    arguments: str = ""
    sources: list[WrittenArguments] = []
    place: int = 0

    def is_from(self, begin: int, end: int) -> None:
        """Map the arguments since the last known place to this part of the output, written another way."""
        told = self.sources[-1].last if self.sources else 0
        self.sources.append(WrittenArguments(told, len(self.arguments), begin, end, exact=False))

    def is_from_gap(self) -> None:
        """Extend the previous source to the latest arguments: some readers know a value only at its end."""
        if self.sources and not self.sources[-1].exact:
            last = self.sources.pop()
            self.sources.append(WrittenArguments(last.first, len(self.arguments), last.begin, last.end, exact=False))


class _Finder:
    """Goes through an output, event by event."""

    def __init__(self, output: str) -> None:
        self.found: list[Span] = []
        self.calls: list[_Call] = []
        self.output = output
        self._at = 0
        self._open: int | None = None  # the call that has begun
        self._is_word = False  # the event before was structure of a call, and a word

    def take(self, event: Event, place: int) -> None:
        """Find the source of an event."""
        match event:
            case CallStarted(index, name):
                self._open = index
                self.calls.append(_Call(index, name, self._at, len(self.output)))
            case CallEnded():
                self._open = None
                self.calls[-1].ended, self.calls[-1].place = self._at, place
            case ContentDelta(text):
                self._find(text, place, "content")
            case ReasoningDelta(text):
                self._find(text, place, "reasoning")
            case Markup(text):
                self._find(text, place, "markup")
                self._is_word = self._open is not None and text.isalnum()
                return
            case ArgumentsDelta(index, text):
                call = self.calls[-1]
                first = len(call.arguments)
                call.arguments += text
                begin, size = self._at, self._written(text)
                if size:
                    call.sources.append(WrittenArguments(first, first + size, begin, begin + size, exact=True))
                    self._put(size, "arguments", index)
                elif (word := self._word_before()) is not None:
                    self.found[-1] = Span(word.begin, word.end, "arguments", index)
                    call.is_from(word.begin, word.end)
                else:
                    call.is_from_gap()

        self._is_word = False

    def _written(self, text: str) -> int:
        """How much of the arguments' text is here literally; only characters that we add, such as a quotation mark, may
        follow.
        """
        written = self.output[self._at : self._at + len(text)]
        size = next((at for at, (one, two) in enumerate(zip(text, written, strict=False)) if one != two), len(written))
        return size if size == len(text) or text.startswith('"', size) else 0

    def _word_before(self) -> Span | None:
        """A word that was structure until it became a value: `True`, emitted as `true` after it."""
        return self.found[-1] if self._is_word and self.found and self.found[-1].part == "markup" else None

    def rest(self) -> None:
        """Take the rest of the output, after the last event."""
        self._gap(len(self.output))

    def _find(self, text: str, place: int, part: SpanPart) -> None:
        # Text after a call has line feeds before it that the model did not write.
        for written in dict.fromkeys((text, text.lstrip())):
            at = self.output.find(written, self._at, max(place, self._at + len(written))) if written else -1
            if at >= 0:
                self._gap(at)
                self._put(len(written), part)
                return

    def _gap(self, end: int) -> None:
        """Locate text that no event repeats: white space that was left out, or a value that was written another way."""
        missing = self.output[self._at : end].rstrip()
        value = missing.lstrip()
        if self._open is not None and value:
            goes_on = any(span.end == self._at and span.part == "arguments" for span in self.found[-1:])
            if not goes_on:
                self._put(len(missing) - len(value), "markup")
            size = len(missing if goes_on else value)
            self.calls[-1].is_from(self._at, self._at + size)
            self._put(size, "arguments", self._open)
        self._put(end - self._at, "markup")

    def _put(self, size: int, part: SpanPart, call: int | None = None) -> None:
        if size:
            self.found.append(Span(self._at, self._at + size, part, call))
            self._at += size


def _merged(spans: Iterable[Span]) -> list[Span]:
    """The same, neighbours of one kind joined."""
    out: list[Span] = []
    for span in spans:
        if out and (out[-1].part, out[-1].call) == (span.part, span.call):
            out[-1] = Span(out[-1].begin, span.end, span.part, span.call)
        else:
            out.append(span)
    return out


class _Structure:
    """Finds in the structure of an output the parts that no event has located: names of calls, and the arguments of a
    call in free text, which is emitted before the text that contained it.
    """

    def __init__(self, spans: list[Span], output: str) -> None:
        self._spans = spans
        self._output = output
        self._begins = [span.begin for span in spans]
        self._calls: dict[int, int] = {}  # the beginning of each
        self._last = 0  # the end of the last one
        self._solid = [span.end for span in spans if span.part != "markup"]
        self._found: list[Span] = []  # in order, without overlaps
        for span in spans:
            if span.call is not None:
                self._calls.setdefault(span.call, span.begin)
                self._last = span.end

    def find(self, call: _Call) -> None:
        """Find the parts of the next call."""
        if call.arguments and call.index not in self._calls:
            at, size = self._output.find(call.arguments, self._last), len(call.arguments)
            if at >= 0:
                call.sources = [WrittenArguments(0, size, at, at + size, exact=True)]
            self._put(at, Span(0, size, "arguments", call.index))
        last = self._calls.get(call.index, max(call.ended, call.place))
        told = bisect_right(self._solid, last)
        at = self._output.find(call.name, self._solid[told - 1] if told else 0, last)
        self._put(at, Span(0, len(call.name), "name", call.index))

    def spans(self) -> list[Span]:
        """All of them, those that were found in their places."""
        out: list[Span] = []
        found = iter(self._found)
        part = next(found, None)
        for span in self._spans:
            begin = span.begin
            while part is not None and part.begin < span.end:
                if begin < part.begin:
                    out.append(Span(begin, part.begin, "markup"))
                out.append(part)
                begin, part = part.end, next(found, None)
            if begin < span.end:
                out.append(span if begin == span.begin else Span(begin, span.end, "markup"))
        return out

    def _put(self, at: int, part: Span) -> None:
        """Note a part at a place in structure; ignored if the place is not in structure."""
        end = at + part.end
        number = bisect_right(self._begins, at) - 1
        if at < 0 or part.end == 0 or number < 0:
            return
        around = self._spans[number]
        place = bisect_left(self._found, at, key=lambda one: one.end - 1)
        is_taken = place < len(self._found) and self._found[place].begin < end
        if around.part != "markup" or end > around.end or is_taken:
            return
        self._found.insert(place, Span(at, end, part.part, part.call))
        insort(self._solid, end)
        assert part.call is not None
        self._calls[part.call] = min(at, self._calls.get(part.call, at))
        self._last = max(self._last, end)
