"""JSON that is streamed through unchanged: finds the end of a value, delta by delta, without parsing it.

It counts brackets outside strings, so raw control characters or wrong commas do not disturb it. It does not
validate the value.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeVar

from callwright.events import TextEvent
from callwright.streaming.reader import Parse, StreamReader, Stretch

T = TypeVar("T")

_BLANKS = re.compile(r"\s*").match
# Lookahead after a terminator for the next quote, in characters.
_MAX_AHEAD = 2_048
# Lookahead after a value, in characters, and the patterns of a member there.
_MAX_GAP = 64
_MEMBER = re.compile(r"""\s*+:|\s*+,\s*+"|[\s,]*+["'][^"'\n]*+["']\s*+:|\s*+,[\s,]*+[\w$-]++\s*+:""").match
_MAY_BE_MEMBER = re.compile(r"""[\s,]*+(?:["'][^"'\n]*+["']?+|(?<=[\s,])[\w$-]*+)?\s*+\Z""").match


class _Runs(NamedTuple):
    """Compiled matchers that skip text in which nothing can happen, for one set of characters a terminator may begin
    with.

    `in_string` and `out_of_string` match up to the next character that matters; strings that end, in which none does,
    are passed over.
    """

    in_string: Callable[[str, int], re.Match[str] | None]
    out_of_string: Callable[[str, int], re.Match[str] | None]


@cache
def _runs(firsts: str) -> _Runs:
    stops = re.escape(firsts)
    said = rf'[^"\\{stops}]*+(?:\\.[^"\\{stops}]*+|(?!))*+'
    between = rf'[^"{{}}\[\]{stops}]*+'
    return _Runs(
        re.compile(said, re.DOTALL).match,
        re.compile(rf'{between}(?:"{said}"{between}|(?!))*+', re.DOTALL).match,
    )


class JsonScanner:
    """Finds the end of one JSON value by counting brackets; the state lasts from delta to delta.

    The value must begin with a bracket or a quote. The scanner halts before any character of `firsts`, the first
    characters of the terminators, so that the caller can check for a terminator there.
    """

    __slots__ = ("_firsts", "_in_string", "_out_of_string", "depth", "escaped", "in_string")

    def __init__(self, firsts: str = "") -> None:
        self.depth = 0
        self.in_string = False
        self.escaped = False
        self._firsts = firsts
        self._in_string, self._out_of_string = _runs(firsts)

    def end(self, text: str, at: int, *, judged: int = -1) -> tuple[int, bool]:
        """Scan `text` from `at`; answers the position it got to, and whether the value ended there.

        `judged`: the character at this position is known to begin no terminator: do not halt at it again.
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
                elif mark == "\\":  # an escape that is cut by the end of the delta
                    self.escaped = True
                else:
                    return at, False
                at += 1
                continue
            if self.depth:  # else the value begins here
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


class JsonEnd(NamedTuple):
    """How a value ended: whether it was `closed`, or by which literal it was stopped (`""`: neither, the output ended).
    `is_sure`: by its own closer, or by a literal outside its strings. A literal inside a string shows that a quote
    before it is missing or superfluous.
    """

    closed: bool
    stop: str
    is_sure: bool


class JsonTerminators:
    """The literals that end a value the model never closed, as `</tool_call>` does in `{"a": 1</tool_call>`.

    Outside strings any of `literals` ends the value. Inside a string a literal is text, unless the string was evidently
    never closed: the output ends with the literal, or one of `then` (what the format writes next) follows it and the
    next quote does not close a string.

    Those of `ends` are stop tokens, at which the output was cut: the rest of the value is not known. Those of `begins`
    open the next call: the value before one may be cut, too.
    """

    __slots__ = ("begins", "ends", "firsts", "literals", "longest", "then")

    def __init__(
        self,
        *literals: str,
        then: tuple[str, ...] = (),
        ends: tuple[str, ...] = (),
        begins: tuple[str, ...] = (),
    ) -> None:
        self.literals = literals
        self.ends = ends
        self.begins = begins
        self.longest = max(map(len, (*literals, *then)), default=0)
        self.then = then
        self.firsts = "".join(sorted({literal[0] for literal in literals}))
        assert not set(self.firsts) & set('"\\'), "a stop begins with no quote"

    def at(self, text: str, at: int, source: StreamReader, *, in_string: bool) -> str | None:
        """The terminator at position `at`; `""` if there is no terminator; None if more text is needed."""
        for literal in self.literals:
            if text.startswith(literal, at):
                return self._seam(text, at, literal, source) if in_string else literal
        return None if not source.ended and _may_come(text, at, self.literals, self.longest) else ""

    def _seam(self, text: str, at: int, literal: str, source: StreamReader) -> str | None:
        r"""Like `at`, for a literal inside a string: did the model forget to close the string, or does it write about
        the marker?

        The text after it decides. With `then=("<tool_call>",)`, in `"x</tool_call>\n<tool_call>{"name"` the next quote
        opens a string, so the first one was never closed. In `"x</tool_call>\n<tool_call>", "b": 1` it closes one: all
        of it was text.
        """
        ahead = text[at : at + _MAX_AHEAD]
        full = len(ahead) == _MAX_AHEAD
        behind = _BLANKS(ahead, len(literal)).end()  # type: ignore[union-attr]  # matches always
        if behind == len(ahead) and not full:
            return "" if source.ended else None
        if not ahead.startswith(self.then, behind):
            may_come = not (full or source.ended) and _may_come(ahead, behind, self.then, self.longest)
            return None if may_come else ""
        if closing := _behind_quote(ahead):
            return "" if closing in ",}]:" else literal
        if full:
            return ""
        return "" if source.ended else None


def _behind_quote(text: str) -> str:
    """The first character after the next unescaped quote, white space skipped; `""` if not found."""
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
    """Whether the text from `at` on is a partial match of a literal that may still be completed."""
    begin = text[at : at + longest]
    return any(len(begin) < len(literal) and literal.startswith(begin) for literal in literals)


def pass_json(
    source: StreamReader,
    stops: JsonTerminators,
    make: Callable[[str], TextEvent],
    call: int | None = None,
    note: Callable[[str], None] | None = None,
) -> Parse[JsonEnd]:
    """Emit a JSON value unchanged as it streams, each piece wrapped by `make`; see `Stretch` for that and `note`."""
    stretch = Stretch(stops.firsts, stops.literals, make, call=call, is_json=True, note=note)
    return _json(source, stops, JsonScanner(stops.firsts), make, source.emit, stretch)


def member_follows(source: StreamReader) -> Parse[bool]:
    """Whether the text after a closed value shows that the value ended too early or began too late: another member,
    even without its comma or its quotes, or the colon after a key. Consumes nothing.
    """
    while True:
        ahead = source.ahead(_MAX_GAP)
        if _MEMBER(ahead):
            return True
        if not _MAY_BE_MEMBER(ahead) or not source.more(_MAX_GAP):
            return False
        yield


def collect_json(
    source: StreamReader, stops: JsonTerminators, limit: int, *, depth: int = 0
) -> Parse[tuple[str, JsonEnd]]:
    """Like `pass_json`, but holds the value, and answers it, too.

    `depth`: the number of brackets of the value that are open already.
    At most `limit` characters are held. A longer value is truncated there and returned as not closed; the rest is left
    unread.
    """
    pieces: list[str] = []
    counted = size = 0
    span = JsonScanner(stops.firsts)
    span.depth = depth
    steps = _json(source, stops, span, str, pieces.append)
    end: JsonEnd | None = None
    while end is None:
        try:
            next(steps)
        except StopIteration as over:
            end = over.value
        size += sum(map(len, pieces[counted:]))
        counted = len(pieces)
        if size > limit:
            source.at -= size - limit + (len(end.stop) if end else 0)
            return "".join(pieces)[:limit], JsonEnd(closed=False, stop="", is_sure=False)
        if end is None:
            yield
    return "".join(pieces), end


def _goes_on(text: str) -> bool:
    """Whether the value may continue after this text: a number or word may be longer, and a comma, a colon or an
    opening bracket announces more.
    """
    return text.rstrip()[-1:] not in ('"', "}", "]")


def _end(stops: JsonTerminators, span: JsonScanner, last: str, *, closed: bool, stop: str | None) -> JsonEnd:
    """The end of a value; `last` was read of it most recently."""
    is_sure = bool(stop) and not span.in_string and stop not in stops.ends
    return JsonEnd(closed, stop or "", closed or (is_sure and not (stop in stops.begins and _goes_on(last))))


def _json(
    source: StreamReader,
    stops: JsonTerminators,
    span: JsonScanner,
    make: Callable[[str], T],
    emit: Callable[[T], object],
    stretch: Stretch | None = None,
) -> Parse[JsonEnd]:
    """The loop of both: scan a piece, emit it, ask for more."""
    seen = 0  # the number of characters after source.at that the scanner has read
    judged = -1  # a position that was found to begin no terminator
    last = ""  # the previous piece
    while True:
        text = source.text
        end, closed = span.end(text, source.at + seen, judged=judged)
        judged = -1
        stop: str | None = ""
        if not closed and end < len(text):
            stop = stops.at(text, end, source, in_string=span.in_string)
            if stop == "":
                counts = not span.in_string and text[end] in "{["
                judged, seen = (end, end - source.at) if counts else (-1, end + 1 - source.at)
                continue
        half = "\\" if stretch is not None and span.escaped and not source.ended else ""
        if end > source.at:
            piece, source.at = text[source.at : end - len(half)], end
            if piece:
                last = piece if not piece.isspace() else last
                emit(make(piece))
        seen = 0
        if stop:
            source.at += len(stop)
        if closed or stop or (source.ended and source.done):
            return _end(stops, span, last, closed=closed, stop=stop)
        if stretch is None or not span.in_string:
            yield
            continue
        stretch.held, span.escaped = half, False
        source.wait_in(stretch)
        yield
        source.text, source.at = stretch.held + source.text[source.at :], 0
