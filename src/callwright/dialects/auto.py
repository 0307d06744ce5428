"""Reads an output of unknown format, which is detected from its markup."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import msgspec

from callwright.calls.toolset import Toolset
from callwright.conversation import FunctionTool
from callwright.dialects.base import FORMATS, dialect_names, get_dialect
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
from callwright.reading.text.foreign import likeliest, valid_calls
from callwright.reading.text.trial import doubts
from callwright.streaming.reader import Parse, StreamReader

# The name of this in place of a dialect's.
AUTO: Final = "auto"
# Marks that identify a dialect and do not open its calls.
_SURE: Final = {
    "beam": re.compile("<rfl:"),
    "cohere_command_r": re.compile("Action:\\s*```json"),
    "pythonic": re.compile(r"\A\s*\[\s*[\w.-]+\(\s*(?:\)|\w+\s*=)"),
    "functionary_v32": re.compile(r">>>[\w.-]+\n\{"),
}
# What may mean other things, too: it is read as that dialect only if all whole calls hold.
_HINTS: Final = {
    "cohere_command_r": re.compile("Action:"),
    "pythonic": re.compile(r"\[\s*[\w.-]+\("),
    "functionary_v32": re.compile(r"\A\s*[\w.-]+\n\{"),
    "llama3_json": re.compile(r'\A\s*\{\s*"(?:name|type)"'),
    "xlam": re.compile(r'\A\s*\[\s*\{\s*"name"'),
}
# In these an answer begins with a header, before any text.
_HEADED: Final = ("inkling", "muse", "beam", "harmony")
# The header of a message before its mark: `assistant to=f<|channel|>`, `f<|content_invoke_tool_json|>`.
_HEADER: Final = re.compile(r"(?<!\S)(?:assistant(?!\w))?[ \t]*(?:to=[^\s<]+[ \t]*|(?P<name>[^\s<]+))?\Z")
_MAX_HEADER: Final = 400
_PLAIN: Final = "json"
# Problems which suggest that the format is another one.
_DOUBTS: Final = frozenset({"foreign_format", "malformed_call"})
# Problems of calls that stay text.
_CALLS_IN_TEXT: Final = frozenset({"ambiguous_call", "incomplete_arguments", "malformed_call"})


class AutoReader(msgspec.Struct, frozen=True):
    """Holds an output to its end, then reads it as the dialect whose markup it holds; as plain JSON calls if none."""

    def parse(self, source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
        pieces: list[str] = []
        while True:
            pieces.append(source.take(len(source.text)))
            if source.ended:
                break
            yield
        for event in _best("".join(pieces), start, tools).events:
            source.emit(event)


class _Candidate(msgspec.Struct, frozen=True):
    """A text as one dialect reads it, with all that this dialect finds wrong. `settles`: there are calls, and all of
    them are in this format, so that no other needs to be asked. `is_hinted`: the markup may mean other things. `asks`:
    a call in it stays text, because it may only be shown or is not valid.
    """

    name: str
    events: list[Event]
    calls: int
    doubts: int
    is_hinted: bool
    settles: bool
    asks: bool


def detected_format(output: str, start: str, tools: Sequence[FunctionTool]) -> str:
    """The dialect as which such an output is read."""
    return _best(output, start, Toolset(tools)).name


def _best(text: str, start: str, tools: Toolset) -> _Candidate:
    """The text as the first dialect reads it that settles it, else as the one that makes most of it."""
    best: _Candidate | None = None
    for name, at, is_hinted in _likely(text):
        candidate = _read(text, name, at, start, tools, is_hinted=is_hinted)
        if candidate.settles:
            return candidate
        if best is None or _worth(candidate, tools) > _worth(best, tools):
            best = candidate
    assert best is not None  # the plain one is among them
    return best


def _likely(text: str) -> Iterator[tuple[str, int, bool]]:
    """The dialects as which a text may be read, the likeliest first, where its markup begins and whether that is only a
    hint: by the openings in the text in their order, then the plain one, then by hints.
    """
    given = {_PLAIN}
    seen = set[str]()
    for found in _marks().finditer(text):
        if found[0] in seen:
            continue
        seen.add(found[0])
        for way in likeliest(text, FORMATS.openings[found[0]], found.start()):
            if way.form.name in dialect_names() and way.form.name not in given:
                given.add(way.form.name)
                yield way.form.name, found.start(), False
    yield _PLAIN, 0, False
    for hints, is_hinted in ((_SURE, False), (_HINTS, True)):
        for name, hint in hints.items():
            if name not in given and (hinted := hint.search(text)):
                given.add(name)
                yield name, hinted.start(), is_hinted


@cache
def _marks() -> re.Pattern[str]:
    """The openings that mean calls of some format and nothing else."""
    sure = [mark for mark, ways in FORMATS.openings.items() if any(way.is_sure for way in ways)]
    return re.compile("|".join(map(re.escape, sorted(sure, key=len, reverse=True))))


def _read(text: str, name: str, at: int, start: str, tools: Toolset, *, is_hinted: bool) -> _Candidate:
    """A text as this dialect reads it, whose markup begins at `at`."""
    lead = text[: _begin_of_header(text, at, tools)] if name in _HEADED and start == "assistant" else ""
    events: list[Event] = []
    if said := lead.rstrip():  # such a format has a header before any text: this text is foreign to it
        events += [ContentDelta(said), Markup(lead[len(said) :])]
    source = StreamReader(events.append)
    source.push(text[len(lead) :])
    source.end()
    for _ in get_dialect(name).parse(source, start, tools):
        raise AssertionError("the text is all there")
    if said and _begins_with_content(events[2:]):
        events[1] = ContentDelta(lead[len(said) :])  # the white space between two texts
    begins = _first_characters(events)
    kinds = [event.kind for event in events if isinstance(event, Problem)]
    odd, asks = sum([kind in _DOUBTS for kind in kinds]), not _CALLS_IN_TEXT.isdisjoint(kinds)
    is_whole = any(isinstance(event, CallEnded) and event.complete for event in events)
    # Only a hint: text, or a call of an offered tool that is not valid.
    if is_hinted and is_whole and start == "assistant" and not valid_calls(events, tools):
        named = {event.name for event in events if isinstance(event, CallStarted)} & {*tools.names}
        problems = doubts(events, tools) if named else []
        return _Candidate(name, [ContentDelta(text), *problems], 0, 1, True, False, bool(problems))
    settles = bool(begins) and not (odd or is_hinted) and {*begins.values()} <= {"{", ""}
    return _Candidate(name, events, len(begins), odd, is_hinted, settles, asks)


def _begins_with_content(events: Sequence[Event]) -> bool:
    """Whether content is before any reasoning and calls."""
    said = CallStarted | ContentDelta | ReasoningDelta
    return isinstance(next((event for event in events if isinstance(event, said)), None), ContentDelta)


def _begin_of_header(text: str, at: int, tools: Toolset) -> int:
    """The position of the header that contains the mark at `at`. A name in it is that of a tool, or begins the text."""
    line = text.rfind("\n", 0, at) + 1
    token = text.find("<|", line, at)
    at = token if token >= 0 else at
    header = _HEADER.search(text, max(line, at - _MAX_HEADER), at)
    if header is None or (header["name"] and header.start() and header["name"] not in tools):
        return at
    return header.start()


def _first_characters(events: Sequence[Event]) -> dict[int, str]:
    """The first character of the arguments of each call."""
    begins: dict[int, str] = {}
    for event in events:
        if isinstance(event, CallStarted):
            begins[event.index] = ""
        elif isinstance(event, ArgumentsDelta):
            begins[event.index] = begins[event.index] or event.text.lstrip()[:1]
    return begins


def _worth(candidate: _Candidate, tools: Toolset) -> tuple[int, int, int]:
    """How well a dialect reads a text: valid calls, other calls, and the fewest signs of another format. Without any
    calls, one that names a call in text is preferred to the first dialect.
    """
    good = len(valid_calls(candidate.events, tools))
    if candidate.is_hinted:
        whole = sum(isinstance(event, CallEnded) and event.complete for event in candidate.events)
        if good < whole:
            names = {event.name for event in candidate.events if isinstance(event, CallStarted)}
            return 0, int(good > 0 and names <= {*tools.names}), -1
    return good, candidate.calls, -candidate.doubts if candidate.calls else int(candidate.asks)
