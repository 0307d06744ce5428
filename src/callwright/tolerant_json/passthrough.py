"""JSON that is passed on as it is: where a value ends, found piece by piece without reading what is in it.

Brackets are counted outside strings. Raw control characters, wrong commas and the like do not disturb that; what the
value is worth is for others to say.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeVar

from callwright.events import Event
from callwright.stream_reader import FastPath, Parse, StreamReader

__all__ = ["JsonScanner", "JsonTerminators", "collect_json", "pass_json"]

T = TypeVar("T")

_BLANKS = re.compile(r"\s*").match
# How far ahead the next quote is looked for.
_MAX_AHEAD = 2_048


class _Runs(NamedTuple):
    """Matchers for what needs no closer look, where a stop may begin with one of some characters.

    `plain` matches a whole piece of a string without quotes, half escapes and anything that may begin a stop.
    """

    in_string: Callable[[str, int], re.Match[str] | None]
    out_of_string: Callable[[str, int], re.Match[str] | None]
    plain: Callable[[str, int], re.Match[str] | None]


@cache
def _runs(firsts: str) -> _Runs:
    stops = re.escape(firsts)
    return _Runs(
        re.compile(rf'(?:[^"\\{stops}]+|\\.)*+', re.DOTALL).match,
        re.compile(rf'[^"{{}}\[\]{stops}]*').match,
        re.compile(rf'(?:[^"\\{stops}]++|\\.)++\Z', re.DOTALL).match,
    )


class JsonScanner:
    """Follows one value, which must begin with a bracket or a quote. It halts before any of the characters `firsts`,
    with which a stop may begin.
    """

    __slots__ = ("_firsts", "_in_string", "_out_of_string", "depth", "escaped", "in_string")

    def __init__(self, firsts: str = "") -> None:
        self.depth = 0
        self.in_string = False
        self.escaped = False
        self._firsts = firsts
        self._in_string, self._out_of_string, _ = _runs(firsts)

    def end(self, text: str, at: int, *, judged: int = -1) -> tuple[int, bool]:
        """Read `text` from `at`: how far, and whether the value ended there. `judged`: the bracket there begins no
        stop.
        """
        size = len(text)
        while at < size:
            if self.in_string:
                if self.escaped:
                    at, self.escaped = at + 1, False
                at = self._in_string(text, at).end()  # type: ignore[union-attr]  # matches always
                if at == size:
                    break
                mark = text[at]
                if mark == '"':
                    self.in_string = False
                    if not self.depth:
                        return at + 1, True
                elif mark == "\\":  # the pair goes on behind this text
                    self.escaped = True
                else:
                    return at, False
                at += 1
                continue
            at = self._out_of_string(text, at).end()  # type: ignore[union-attr]  # matches always
            if at == size:
                break
            mark = text[at]
            if at != judged and mark in self._firsts:
                return at, False
            if mark == '"':
                self.in_string = True
            elif mark in "{[":
                self.depth += 1
            elif mark in "}]":
                self.depth -= 1
                if self.depth <= 0:
                    return at + 1, True
            at += 1
        return at, False


class JsonTerminators:
    """What ends a value that was not closed.

    Outside strings that is any of `literals`. In a string they are text, unless the string was evidently never closed:
    the output ends with one, or one is followed by one of `then` and the next quote closes no string.
    """

    __slots__ = ("firsts", "literals", "longest", "plain", "then")

    def __init__(self, *literals: str, then: tuple[str, ...] = ()) -> None:
        self.literals = literals
        self.longest = max(map(len, (*literals, *then)), default=0)
        self.then = then
        self.firsts = "".join(sorted({literal[0] for literal in literals}))
        assert not set(self.firsts) & set('"\\'), "a stop begins with no quote"
        self.plain = _runs(self.firsts).plain

    def at(self, text: str, at: int, source: StreamReader, *, in_string: bool) -> str | None:
        """The stop at this place of `text`, `""` when there is none, None when that is not known yet."""
        for literal in self.literals:
            if text.startswith(literal, at):
                return self._seam(text, at, literal, source) if in_string else literal
        return None if not source.ended and _may_come(text, at, self.literals, self.longest) else ""

    def _seam(self, text: str, at: int, literal: str, source: StreamReader) -> str | None:
        """The same for a literal in a string."""
        ahead = text[at : at + _MAX_AHEAD]
        full = len(ahead) == _MAX_AHEAD
        behind = _BLANKS(ahead, len(literal)).end()  # type: ignore[union-attr]  # matches always
        if behind == len(ahead) and not full:
            return (literal if not source.cut else "") if source.ended else None
        if not ahead.startswith(self.then, behind):
            may_come = not (full or source.ended) and _may_come(ahead, behind, self.then, self.longest)
            return None if may_come else ""
        if closing := _behind_quote(ahead):
            return "" if closing in ",}]:" else literal
        if full:
            return ""
        return (literal if not source.cut else "") if source.ended else None


def _behind_quote(text: str) -> str:
    """What stands behind the next quote of the string in which `text` begins; `""` when there is none."""
    at = text.find('"')
    while at >= 0:
        slashes = at
        while slashes and text[slashes - 1] == "\\":
            slashes -= 1
        if (at - slashes) % 2 == 0:
            behind = _BLANKS(text, at + 1).end()  # type: ignore[union-attr]  # matches always
            return text[behind : behind + 1]
        at = text.find('"', at + 1)
    return ""


def _may_come(text: str, at: int, literals: tuple[str, ...], longest: int) -> bool:
    begin = text[at : at + longest]
    return any(len(begin) < len(literal) and literal.startswith(begin) for literal in literals)


def pass_json(source: StreamReader, stops: JsonTerminators, make: Callable[[str], Event]) -> Parse[tuple[bool, str]]:
    """Pass a value on as it is. Answers whether it was closed, and the literal that ended it if it was not."""
    emit, plain = source.emit, stops.plain

    def fast_path(text: str) -> bool:
        if plain(text, 0) is None:
            return False
        emit(make(text))
        return True

    return _json(source, stops, make, emit, fast_path)


def collect_json(source: StreamReader, stops: JsonTerminators, limit: int) -> Parse[tuple[str, bool, str]]:
    """Hold a value and answer it, with what `pass_json` answers.

    Of a value with more than `limit` characters these are answered, as not closed, and the rest is unread.
    """
    pieces: list[str] = []
    counted = size = 0
    steps = _json(source, stops, str, pieces.append)
    closed, stop, ended = False, "", False
    while not ended:
        try:
            next(steps)
        except StopIteration as end:
            closed, stop = end.value
            ended = True
        size += sum(map(len, pieces[counted:]))
        counted = len(pieces)
        if size > limit:
            source.at -= size - limit + len(stop)
            return "".join(pieces)[:limit], False, ""
        if not ended:
            yield
    return "".join(pieces), closed, stop


def _json(
    source: StreamReader,
    stops: JsonTerminators,
    make: Callable[[str], T],
    emit: Callable[[T], object],
    fast_path: FastPath | None = None,
) -> Parse[tuple[bool, str]]:
    span = JsonScanner(stops.firsts)
    plain = stops.plain
    seen = 0  # how many characters behind source.at the span has read
    judged = -1  # where begins no stop
    while True:
        text = source.text
        if span.in_string and not (seen or span.escaped or source.ended) and plain(text, source.at):
            emit(make(source.take(len(text))))
            if fast_path is not None:
                source.set_fast_path(fast_path)
            yield
            continue
        end, closed = span.end(text, source.at + seen, judged=judged)
        judged = -1
        stop: str | None = ""
        if not closed and end < len(text):
            stop = stops.at(text, end, source, in_string=span.in_string)
            if stop == "":
                counts = not span.in_string and text[end] in "{["
                judged, seen = (end, end - source.at) if counts else (-1, end + 1 - source.at)
                continue
        if end > source.at:
            emit(make(source.take(end)))
        seen = 0
        if stop:
            source.at += len(stop)
        if closed or stop or source.done:
            return closed, stop or ""
        if fast_path is not None and span.in_string and not span.escaped:
            source.set_fast_path(fast_path)
        yield
