"""Text that arrives in pieces, read by generators.

A parser is a generator over a `StreamReader`: it emits events, yields when it needs more text, and reads top to bottom
like
its format. `Parse` is its type, `Emit` what it emits with. The driver pushes a piece, then runs the generator to its
next yield.

Most pieces of a long text or argument need no closer look. Where a reader waits in such a stretch it leaves a
`FastPath`
with the source: the driver tries the next piece there and runs the generator only when the fast path will not have it.

Every character is looked at a bounded number of times. A source holds back only what may still become a marker, so its
unread rest is short; whoever holds more (a header, a body whose meaning is open) collects pieces and names its limit.
"""

import re
from collections.abc import Callable, Generator, Iterable
from functools import lru_cache
from typing import TypeAlias, TypeVar

from callwright.events import Event, Markup

__all__ = [
    "MAX_HELD_BLANKS",
    "Emit",
    "FastPath",
    "Markers",
    "Parse",
    "StreamReader",
    "emit_text_until",
    "emit_until",
    "fast_path_of",
    "may_come",
    "read_until",
    "silent_reader",
]

T = TypeVar("T")
Parse: TypeAlias = Generator[None, None, T]
Emit: TypeAlias = Callable[[Event], object]
# Reads a whole piece that needs no closer look; False, and nothing is done, for any other.
FastPath: TypeAlias = Callable[[str], bool]

# How much white space before a possible marker is held back; what is longer is text and flows.
MAX_HELD_BLANKS = 256


class Markers:
    """A set of literals to look for in a stream; without any it is never met, and all text up to the end is read."""

    __slots__ = ("_growing", "_longest", "_nested", "_prefix", "first", "grows", "search")

    def __init__(self, *literals: str) -> None:
        self.search, self.first, self._prefix, self._growing, self._nested = _searches(literals)
        self._longest = max(map(len, literals), default=1)
        self.grows = self._nested or bool(self._growing)  # whether a literal may be a piece of another one

    def is_prefix_of_longer(self, text: str, at: int, found: re.Match[str]) -> bool:
        """Whether the literal found from `at` on is a piece of a longer one that may still come."""
        if self._nested and self.partial_match_start(text, at) < found.start():
            return True
        rest = text[found.start() :]
        return any(len(long) > len(rest) and long.startswith(rest) for long in self._growing)

    def partial_match_start(self, text: str, at: int) -> int:
        """Where, from `at` on, an end of `text` begins that may still become one of the literals."""
        start = max(at, len(text) - self._longest + 1)
        if self.first(text, start) is None:
            return len(text)
        found = self._prefix(text, start)
        return found.start() if found else len(text)


_Search: TypeAlias = Callable[..., re.Match[str] | None]


@lru_cache(maxsize=4096)
def _searches(literals: tuple[str, ...]) -> tuple[_Search, _Search, _Search, tuple[str, ...], bool]:
    """What finds one of the literals, a first character of one, and a beginning of one at the end of a text; those that
    begin with another, and whether one stands in another. Readers are made for each output, with the same literals.
    """
    prefixes = {literal[:size] for literal in literals for size in range(1, len(literal))}
    search = _any_of(literals, "").search
    first = _any_of({literal[0] for literal in literals}, "").search
    prefix = _any_of(prefixes, r"\Z").search
    growing = tuple(long for long in literals if any(long[:size] in literals for size in range(1, len(long))))
    return search, first, prefix, growing, any(short in long[1:] for long in literals for short in literals)


def _any_of(literals: Iterable[str], then: str) -> re.Pattern[str]:
    """Matches any of the literals, the longest first; nothing when there is none."""
    choices = "|".join(map(re.escape, sorted(literals, key=len, reverse=True))) or "(?!)"
    return re.compile(f"(?:{choices}){then}")


class StreamReader:
    """What a parser reads from and emits to: the text pushed so far and not yet read is `text` from `at` on.

    `ended` says that no more will come, `cut` that the model was stopped by its limit and had more to say.
    """

    __slots__ = ("_fast_path", "at", "cut", "emit", "ended", "text")

    def __init__(self, emit: Emit) -> None:
        self.emit = emit
        self._fast_path: FastPath | None = None
        self.text = ""
        self.at = 0
        self.ended = False
        self.cut = False

    def push(self, text: str) -> None:
        """Add text behind what is there."""
        self._fast_path = None
        self.text = text if self.at == len(self.text) else self.text[self.at :] + text
        self.at = 0

    def set_fast_path(self, fast_path: FastPath) -> None:
        """What comes next may go through this fast path, if all that came was read. A reader says so before each
        yield.
        """
        if self.at == len(self.text):
            self._fast_path = fast_path

    def try_fast_path(self, text: str) -> bool:
        """Whether the fast path has read this piece; if not, it is to be pushed."""
        return self._fast_path is not None and self._fast_path(text)

    def end(self, *, cut: bool) -> None:
        """Nothing more will be pushed."""
        self.ended = True
        self.cut = cut

    def markup(self, text: str) -> None:
        """Emit structure, if there is any."""
        if text:
            self.emit(Markup(text))

    @property
    def done(self) -> bool:
        """Everything was read and nothing more will come."""
        return self.ended and self.at == len(self.text)

    def scan(self, markers: Markers) -> tuple[str, str]:
        """Read up to and with the next marker; answers the text before it and the marker.

        The marker is `""` when none is there yet: then the text is all that is certainly not part of one.
        """
        text, at = self.text, self.at
        if markers.first(text, at) is None:  # most pieces: nothing in them can begin a marker
            self.at = len(text)
            return text[at:], ""
        found = markers.search(text, at)
        if found is not None and (not markers.grows or self.ended or not markers.is_prefix_of_longer(text, at, found)):
            self.at = found.end()
            return text[at : found.start()], found.group()
        end = len(text) if self.ended else markers.partial_match_start(text, at)
        self.at = end
        return text[at:end], ""

    def take(self, end: int) -> str:
        """Read up to position `end` of `text`."""
        taken = self.text[self.at : end]
        self.at = end
        return taken

    def unread(self, text: str) -> None:
        """Put text back that was read last."""
        if len(text) <= self.at:
            self.at -= len(text)
            return
        self.text = text + self.text[self.at :]
        self.at = 0

    def blanks(self) -> str:
        """Read white space."""
        begin, self.at = self.at, _BLANKS(self.text, self.at).end()  # type: ignore[union-attr]  # matches always
        return self.text[begin : self.at]

    def ahead(self, size: int) -> str:
        """The next characters, at most `size`. Who decides by no more than these decides alike however the text is
        cut.
        """
        return self.text[self.at : self.at + size]

    def more(self, size: int) -> bool:
        """Whether the next `size` characters are not all here yet but may come."""
        return not self.ended and len(self.text) - self.at < size


def silent_reader(text: str | None = None) -> StreamReader:
    """A source for values alone, from which nothing is emitted. With a `text` that is all of it."""
    source = StreamReader(_ignore)
    if text is not None:
        source.text, source.ended = text, True
    return source


def _ignore(_: object) -> None:
    """Values are answered, not emitted."""


def may_come(atoms: Iterable[str]) -> str:
    """A pattern for any beginning of a text that the atoms match one behind the other, up to the end of the text."""
    pattern = ""
    for atom in reversed(list(atoms)):
        pattern = f"(?:{atom}{pattern})?"
    return rf"{pattern}\Z"


_BLANKS = re.compile(r"\s*").match
_ENDING_BLANKS = re.compile(rf"\s{{1,{MAX_HELD_BLANKS}}}\Z").search


def fast_path_of(markers: Markers, read: Callable[[str], object]) -> FastPath:
    """The fast_path of a stretch up to a marker: `read` gets the pieces in which none can begin."""
    first = markers.first

    def fast_path(text: str) -> bool:
        if not text or first(text):
            return False
        read(text)
        return True

    return fast_path


def emit_until(source: StreamReader, markers: Markers, make: Callable[[str], Event]) -> Parse[str]:
    """Pass text on as events up to the next marker and answer it; `""` when the output ended first."""
    emit = source.emit
    fast_path = fast_path_of(markers, lambda text: emit(make(text)))
    while True:
        text, marker = source.scan(markers)
        if text:
            emit(make(text))
        if marker or (source.ended and source.at == len(source.text)):
            return marker
        source.set_fast_path(fast_path)
        yield


def emit_text_until(source: StreamReader, markers: Markers, make: Callable[[str], Event]) -> Parse[tuple[str, str]]:
    """Like `emit_until`, for text that stands between other things.

    White space before a marker is not passed on but answered beside it: it is structure when the marker is. White
    space at the very end of the output is text.
    """
    held, first, emit = "", markers.first, source.emit

    def fast_path(text: str) -> bool:
        nonlocal held
        said = text.rstrip()
        if not said or len(text) - len(said) > MAX_HELD_BLANKS or first(text):
            return False
        emit(make(held + said))
        held = text[len(said) :]
        return True

    while True:
        text, marker = source.scan(markers)
        text = held + text
        if source.done and not marker:
            if text:
                emit(make(text))
            return "", ""
        # The search looks at the last characters only, so a run of blanks costs no more than any other text.
        blanks = _ENDING_BLANKS(text, max(0, len(text) - MAX_HELD_BLANKS)) if text[-1:].isspace() else None
        held = blanks.group() if blanks else ""
        if len(text) > len(held):
            emit(make(text[: len(text) - len(held)]))
        if marker:
            return held, marker
        source.set_fast_path(fast_path)
        yield


def read_until(source: StreamReader, markers: Markers, limit: int) -> Parse[tuple[str, str]]:
    """Hold text up to the next marker and answer both.

    The marker is `""` when the output ended or more than `limit` characters came before one (then the text has exactly
    `limit` characters, however the stream was cut, and the rest is unread).
    """
    pieces: list[str] = []
    size = 0
    while True:
        before = source.at
        text, marker = source.scan(markers)
        if size + len(text) > limit:
            source.at = before + limit - size
            return "".join(pieces) + text[: limit - size], ""
        pieces.append(text)
        size += len(text)
        if marker or (source.ended and source.at == len(source.text)):
            return "".join(pieces), marker
        yield
