"""The characters of an output, in order, each with its part in the parsed answer.

Text that was parsed here is divided by the spans of its parser. Parts that a server has parsed itself (reasoning,
calls) are in between, in the order of arrival.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from callwright.events import Problem
from callwright.reading.spans import Span, SpanPart, TracedCall, TracedEvent
from callwright.tolerant_json.reader import read_json

_QUOTE: Final = '"'
_WORD: Final = re.compile(r"\w+")


class Piece(Struct):
    """Neighbouring characters of which the same became. `argument` is the top-level argument whose value they are;
    `problems` are numbers among those of the reading.
    """

    text: str
    part: SpanPart
    call: int | None = None
    argument: str | None = None
    problems: list[int] = []


class _Part(NamedTuple):
    """A place in the whole output, and what became of it."""

    begin: int
    end: int
    part: SpanPart
    call: int | None


class _Mark(NamedTuple):
    """A place in the whole output that holds a value of a call."""

    begin: int
    end: int
    call: int
    argument: str


P = TypeVar("P", _Part, _Mark)
_ByCall: TypeAlias = tuple[dict[int, list[_Mark]], dict[tuple[str, int | None], _Part]]


class _Own(Struct):
    """A call that the server has parsed: what of the output are its name and its arguments."""

    id: str | None
    name: str = ""
    arguments: str = ""
    begins: list[tuple[int, int]] = []  # of each piece: in the arguments, in the output


class SourceText:
    """Collects an output as it arrives; after `read`, `mark` and `pieces` are available.

    `prefill`: the beginning of the answer that the prompt already contains.
    """

    def __init__(self, prefill: str = "") -> None:
        self.size = 0
        self._all: list[str] = []
        self._parts: list[_Part] = []
        self._texts: list[tuple[int, int]] = []  # of the parsed text: where a run begins in it, and in the output
        self._parsed = 0
        self._is_broken = False  # something else followed the last text
        self._own: list[_Own] = []
        self._latest: dict[int, int] = {}
        self._written: dict[int, str] = {}
        self._index: _ByCall | None = None
        self._marks: list[_Mark] = []
        self._troubles: list[tuple[int, int, int]] = []  # begin, end, number of the problem
        if prefill:
            self.text(prefill)

    @property
    def output(self) -> str:
        """All of it, as far as it has come."""
        if len(self._all) > 1:
            self._all = ["".join(self._all)]
        return self._all[0] if self._all else ""

    def text(self, text: str) -> None:
        """Text that was parsed here, or is content."""
        if not self._texts or self._is_broken:
            self._texts.append((self._parsed, self.size))
            self._is_broken = False
        self._parsed += len(text)
        self._add(text)

    def other(self, text: str, part: SpanPart, call: int | None = None) -> None:
        """Add a part that the server has parsed itself."""
        if text:
            self._parts.append(_Part(self.size, self.size + len(text), part, call))
            self._is_broken = True
            self._add(text)

    def call(self, index: int, id_: str | None, name: str, arguments: str) -> None:
        """A piece of a call that the server has parsed, with its own index and id for it."""
        number = self._latest.get(index)
        if number is None or (id_ is not None and self._own[number].id not in (None, id_)):
            number = self._latest[index] = len(self._own)
            self._own.append(_Own(id_))
        own = self._own[number]
        own.id = own.id or id_
        if name and name != own.name:
            own.name += name
            self.other(name, "name", number)
        if arguments:
            own.begins.append((len(own.arguments), self.size))
            own.arguments += arguments
            self.other(arguments, "arguments", number)

    def read(self, spans: Sequence[Span], calls: Sequence[TracedCall], indexes: Mapping[int, int | None]) -> None:
        """Assign the spans of the parsed text. `indexes`: index of the call as sent, by the parser's number."""
        self._note_own()
        for span in spans:
            call = None if span.call is None else indexes.get(span.call, span.call)
            for begin, end in self._places(span.begin, span.end):
                self._parts.append(_Part(begin, end, span.part, call))
        for made in calls:
            number = indexes.get(made.index, made.index)
            if number is not None:
                self._written[number] = made.arguments
                for argument, begin, end in _values(made):
                    self._marks += [_Mark(*place, number, argument) for place in self._places(begin, end)]

    def place(self, at: int) -> int:
        """A place of the parsed text as one of the whole output."""
        number = bisect_left(self._texts, (at, 0)) - 1
        return self._texts[number][1] + at - self._texts[number][0] if number >= 0 else 0

    def raw_arguments(self, call: int) -> str:
        """The arguments of a call as they were read, before any check."""
        if call in self._written:
            return self._written[call]
        return self._own[call].arguments if call < len(self._own) else ""

    def mark(self, number: int, problem: Problem, end: int, traced: TracedEvent | None) -> int:
        """Mark the place of a problem that was reported when the output was read up to `end`, by a reader if it was
        `traced`; returns that place.
        """
        if traced is not None:
            end = self.place(traced.place)
        begin, last = self._trouble(problem, end)
        if traced is not None and traced.exact:
            places = self._places(traced.begin, traced.end)
            begin, last = places[0][0], places[-1][1]
        self._troubles.append((begin, last, number))
        return begin

    def _trouble(self, problem: Problem, end: int) -> tuple[int, int]:
        if problem.call is not None:
            marks, firsts = self._by_call()
            words = set(_WORD.findall(problem.detail))
            for mark in marks.get(problem.call, ()):
                if mark.argument in words or (not mark.argument.isalnum() and mark.argument in problem.detail):
                    return mark.begin, mark.end
            for kind in ("name", "arguments"):
                if (part := firsts.get((kind, problem.call))) is not None:
                    return part.begin, part.end
        return max(0, end - 1), end

    def _by_call(self) -> "_ByCall":
        """The places of values, and the first places of names and arguments; made once all of them are known."""
        if self._index is None:
            marks: dict[int, list[_Mark]] = {}
            for mark in self._marks:
                marks.setdefault(mark.call, []).append(mark)
            firsts: dict[tuple[str, int | None], _Part] = {}
            for part in sorted(self._parts, key=lambda part: part.begin):
                firsts.setdefault((part.part, part.call), part)
            self._index = marks, firsts
        return self._index

    def pieces(self) -> list[Piece]:
        """The whole output, in order, without gaps."""
        output = self.output
        cuts = {0, len(output)}
        all_places = (self._parts, self._marks, self._troubles)
        for begin, end in (place[:2] for places in all_places for place in places):
            cuts |= {begin, end}
        cuts.update(begin for _, begin in self._texts)
        ordered = sorted(cut for cut in cuts if 0 <= cut <= len(output))
        parts, marks = _Sweep(self._parts), _Sweep(self._marks)
        found: list[Piece] = []
        troubles = sorted(self._troubles)
        waiting, open_ = 0, list[tuple[int, int, int]]()
        for begin, end in pairwise(ordered):
            part, mark = parts.at(begin), marks.at(begin)
            while waiting < len(troubles) and troubles[waiting][0] <= begin:
                open_.append(troubles[waiting])
                waiting += 1
            open_ = [trouble for trouble in open_ if begin < trouble[1]]
            told = [number for _, _, number in open_]
            made = Piece(output[begin:end], "content", problems=told)
            if part is not None:
                made.part, made.call = part.part, part.call
            if mark is not None and mark.call == made.call:
                made.argument = mark.argument
            if found and replace(found[-1], text=made.text) == made:
                found[-1].text += made.text
            else:
                found.append(made)
        return found

    def _add(self, text: str) -> None:
        self._all.append(text)
        self.size += len(text)

    def _places(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Places in the output of a part of the parsed text: several if something else interrupts it."""
        found: list[tuple[int, int]] = []
        number = max(0, bisect_right(self._texts, (begin, self.size)) - 1)
        while begin < end and number < len(self._texts):
            first, out = self._texts[number]
            after = self._texts[number + 1][0] if number + 1 < len(self._texts) else self._parsed
            high = min(end, after)
            if begin < high:
                found.append((out + begin - first, out + high - first))
            begin, number = max(begin, high), number + 1
        return found

    def _note_own(self) -> None:
        """Mark the arguments of calls that the server has parsed."""
        for number, own in enumerate(self._own):
            ends = [*(first for first, _ in own.begins[1:]), *([len(own.arguments)] if own.begins else [])]
            for argument, first, last in argument_places(own.arguments):
                for (begin, out), end in zip(own.begins, ends, strict=True):
                    low, high = max(first, begin), min(last, end)
                    if low < high:
                        self._marks.append(_Mark(out + low - begin, out + high - begin, number, argument))


class _Sweep(Generic[P]):
    """Finds the entries at given places; the places must be in ascending order."""

    def __init__(self, places: Sequence[P]) -> None:
        self._places: list[P] = sorted(places, key=lambda place: (place.begin, place.end))
        self._next = 0

    def at(self, place: int) -> P | None:
        while self._next < len(self._places) and self._places[self._next].end <= place:
            self._next += 1
        found = self._places[self._next] if self._next < len(self._places) else None
        return found if found is not None and found.begin <= place else None


def _values(call: TracedCall) -> Iterable[tuple[str, int, int]]:
    """The arguments of a call, each with places of its value in the parsed text."""
    if call.members:
        return call.members
    return [
        (argument, begin, end)
        for argument, first, last in argument_places(call.arguments)
        for begin, end in _stands(call, first, last)
    ]


def _stands(call: TracedCall, first: int, last: int) -> list[tuple[int, int]]:
    """Places in the parsed text of the characters `first` to `last` of a call's arguments."""
    found: list[tuple[int, int]] = []
    number = bisect_right(call.sources, first, key=lambda source: source.last)
    while number < len(call.sources) and (source := call.sources[number]).first < last:
        low, high = max(first, source.first), min(last, source.last)
        if low < high:
            shift = source.begin - source.first
            found.append((low + shift, high + shift) if source.exact else (source.begin, source.end))
        number += 1
    return found


def argument_places(arguments: str) -> list[tuple[str, int, int]]:
    """The top-level arguments in the JSON text of a call: name, begin and end of the value, strings without their
    quotation marks.

    Accepts incomplete text; empty if the text is not an object.
    """
    node = read_json(arguments)
    if node is None or node.kind != "object" or not arguments.startswith("{"):
        return []
    found: list[tuple[str, int, int]] = []
    at = 1
    for number, member in enumerate(node.members):
        at += len(member.lead(first=number == 0)) + len(member.key.text()) + len(member.colon)
        end = at + len(member.value.text())
        if arguments[at : at + 1] != member.value.text()[:1]:
            return found  # it was not written as it is read
        is_text = arguments.startswith(_QUOTE, at)
        found.append((member.name, at + is_text, min(len(arguments), end) - (is_text and end - at > 1)))
        at = end
    return found
