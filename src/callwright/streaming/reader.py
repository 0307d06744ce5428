"""Text that streams in, read by generators: the base of every dialect's parser.

A parser is a generator over a `StreamReader`. It emits events, yields when it needs more text, and so reads top to
bottom like its format. The driver (`callwright.reading.parser`) pushes a delta, then runs the generator to its next
yield. Nothing here depends on a format.

Text that is a partial match of a marker (`<tool_` at the end of a delta) is held back, nothing else. So the unread text
stays short, and every character is looked at a bounded number of times. A parser that holds more, a header or a body
whose meaning is open, collects it and sets its own limit.

Most deltas of a long text or argument contain nothing significant. A parser that waits inside such a stretch sets a
`Stretch`. The driver reads the next deltas by that, and runs the generator only for one in which something may matter.
"""

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

from callwright.events import Event, Markup, TextEvent

T = TypeVar("T")
Parse: TypeAlias = Generator[None, None, T]
Emit: TypeAlias = Callable[[Event], object]

# How many characters of white space before a possible marker are held back. More than that is text and is emitted.
MAX_HELD_BLANKS = 256
# The characters for which `str.isspace` is true.
BLANKS: Final = "".join(filter(str.isspace, map(chr, range(0x3001))))


class Markers:
    """A set of literals to search for in a stream. The empty set never matches, so all text up to the end is read."""

    __slots__ = ("_growing", "_longest", "_nested", "_prefixes", "first", "firsts", "grows", "literals", "search")

    def __init__(self, *literals: str) -> None:
        self.literals = literals
        self.search, self.first, self.firsts, self._prefixes, self._growing, self._nested = _searches(literals)
        self._longest = max(map(len, literals), default=1)
        self.grows = self._nested or bool(self._growing)  # whether a literal may be part of a longer one

    def is_prefix_of_longer(self, text: str, at: int, found: re.Match[str]) -> bool:
        """Whether the literal that was found may be a prefix or a part of a longer one, whose rest has not arrived.

        With `<|end` and `<|end_of_turn|>`, a `<|end` at the end of a delta may still become the second.
        """
        if len(text) - found.start() >= self._longest:
            return False
        if self._nested and self.partial_match_start(text, at) < found.start():
            return True
        return text[found.start() :] in self._growing

    def partial_match_start(self, text: str, at: int) -> int:
        """The start of a partial match at the end of `text`, not before `at`; the text's length without one."""
        start = max(at, len(text) - self._longest + 1)
        if self.first(text, start) is None:
            return len(text)
        for prefix in self._prefixes.get(text[-1:], ()):
            if text.endswith(prefix, start):
                return len(text) - len(prefix)
        return len(text)


_Search: TypeAlias = Callable[..., re.Match[str] | None]


# Proper prefixes of the literals, the longest first, by their last character.
_Prefixes: TypeAlias = Mapping[str, Sequence[str]]


@lru_cache(maxsize=4096)
def _searches(literals: tuple[str, ...]) -> tuple[_Search, _Search, str, _Prefixes, frozenset[str], bool]:
    """The compiled searches of a `Markers`: for a whole literal, for a first character; then these characters, the
    partial matches possible at the end of a text, those that begin with a whole literal, and whether one literal is
    inside another.

    Cached, because each output's parser is created with the same literals.
    """
    prefixes = {literal[:size] for literal in literals for size in range(1, len(literal))}
    search = _any_of(literals).search
    firsts = {literal[0] for literal in literals}
    by_end: dict[str, list[str]] = {}
    for prefix in sorted(prefixes, key=len, reverse=True):
        by_end.setdefault(prefix[-1], []).append(prefix)
    growing = frozenset(prefix for prefix in prefixes if prefix.startswith(literals))
    return (
        search,
        _any_of(firsts).search,
        "".join(firsts),
        by_end,
        growing,
        any(short in long[1:] for long in literals for short in literals),
    )


def _any_of(literals: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of the literals, longest first. It matches nothing if there are no literals."""
    return re.compile("|".join(map(re.escape, sorted(literals, key=len, reverse=True))) or "(?!)")


class Stretch(Struct):
    """A stretch of text in which a parser waits, so that its generator need not run for a delta in which nothing
    matters: see `callwright.streaming.fast_path`.

    Nothing matters in a delta that, together with the `held` text (read, but not certain yet), has no character of
    `firsts`, or none that begins one of `literals` or may. Of such a text the characters of `holds` that end it, at
    most `most`, are held back. `is_json`: the text is the inside of a JSON string, in which quotes matter, and whole
    escapes do not. `certain` is a pattern of text that is allowed even though it begins with one of `firsts`.

    `make` reads text that is not part of arguments; it returns the event to send, or None. Arguments are those of call
    `call`: they are sent first; `note` then notes the text read, many deltas together, and returns its JSON. For text
    that is not JSON, `inside` returns its JSON, and `marks` the markup of the escapes in it.
    """

    firsts: str
    literals: tuple[str, ...]
    make: Callable[[str], TextEvent | None] | None = None
    holds: str = ""
    most: int = 0
    call: int | None = None
    is_json: bool = False
    certain: str = ""
    held: str = ""
    inside: Callable[[str], str] | None = None
    marks: Callable[[str], Markup] | None = None
    note: Callable[[str], str | None] | None = None


class StreamReader:
    """The input of a parser, and its output for events. The unread text is `text[at:]`.

    `ended`: no more text will arrive. Readers do not know why the output ended: whether the model stopped, was stopped
    or hit a limit, anything still open is incomplete.
    """

    __slots__ = ("at", "emit", "ended", "pushed", "stretch", "text")

    def __init__(self, emit: Emit) -> None:
        self.emit = emit
        self.stretch: Stretch | None = None  # in which the parser waits for the next delta
        self.pushed = 0  # characters, all in all
        self.text = ""
        self.at = 0
        self.ended = False

    def push(self, text: str) -> None:
        """Append a delta to the unread text."""
        self.stretch = None
        self.pushed += len(text)
        self.text = text if self.at == len(self.text) else self.text[self.at :] + text
        self.at = 0

    def wait_in(self, stretch: Stretch) -> None:
        """Assign the next delta to this stretch, if all text so far is read. Must be repeated before each yield."""
        if self.at == len(self.text):
            self.stretch = stretch

    def end(self) -> None:
        """Nothing more will be pushed."""
        self.ended, self.stretch = True, None

    def markup(self, text: str) -> None:
        """Emit markers of the format, which are not content, if there are any."""
        if text:
            self.emit(Markup(text))

    @property
    def place(self) -> int:
        """The position of the unread text. Of two positions in text that was unread at one time, the later is the
        greater.
        """
        return self.pushed - len(self.text) + self.at

    @property
    def done(self) -> bool:
        """Whether all text is read and no more will come."""
        return self.ended and self.at == len(self.text)

    def scan(self, markers: Markers) -> tuple[str, str]:
        """Read up to and past the next marker; returns the text before it, and the marker.

        The marker is `""` if none has arrived yet. Then the text certainly belongs to no marker; a partial match at the
        end stays unread.
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
        """Put back text that was just read."""
        if len(text) <= self.at:
            self.at -= len(text)
            return
        self.text = text + self.text[self.at :]
        self.at = 0

    def blanks(self) -> str:
        """Read the white space that is there."""
        begin, self.at = self.at, _BLANKS(self.text, self.at).end()  # type: ignore[union-attr]  # matches always
        return self.text[begin : self.at]

    def ahead(self, size: int) -> str:
        """Look at the next characters, at most `size`, without reading them.

        A decision made from these alone, once `more(size)` is false, does not depend on how the stream was cut into
        deltas.
        """
        return self.text[self.at : self.at + size]

    def more(self, size: int) -> bool:
        """Whether fewer than `size` unread characters are there and more may come."""
        return not self.ended and len(self.text) - self.at < size


def silent_reader(text: str | None = None) -> StreamReader:
    """A `StreamReader` for values alone: nothing is emitted. With `text`, that is the whole input."""
    source = StreamReader(_ignore)
    if text is not None:
        source.text, source.ended = text, True
    return source


def _ignore(_: object) -> None:
    """The parsers of values return them, so their events go nowhere."""


def finished(steps: Parse[T]) -> T:
    """Drive a parse whose text is all there, and return its result."""
    try:
        next(steps)
    except StopIteration as end:
        answer: T = end.value
        return answer
    raise AssertionError("the text is all there")


def may_come(atoms: Iterable[str]) -> str:
    """A pattern for a text that is a partial match of a sequence, whose elements are the patterns `atoms`."""
    pattern = ""
    for atom in reversed(list(atoms)):
        pattern = f"(?:{atom}{pattern})?"
    return rf"{pattern}\Z"


_BLANKS = re.compile(r"\s*").match
_ENDING_BLANKS = re.compile(rf"\s{{1,{MAX_HELD_BLANKS}}}\Z").search


def ending_blanks(text: str) -> str:
    """The white space at the end of a text, of which no more than `MAX_HELD_BLANKS` characters."""
    # The search looks at the last characters only, so that long white space costs no more than other text.
    blanks = _ENDING_BLANKS(text, max(0, len(text) - MAX_HELD_BLANKS)) if text[-1:].isspace() else None
    return blanks.group() if blanks else ""


def emit_until(source: StreamReader, markers: Markers, make: Callable[[str], TextEvent]) -> Parse[str]:
    """Emit text as events up to the next marker; returns the marker, `""` if the output ended first."""
    emit = source.emit
    stretch = Stretch(markers.firsts, markers.literals, make)
    while True:
        text, marker = source.scan(markers)
        if text:
            emit(make(text))
        if marker or (source.ended and source.at == len(source.text)):
            return marker
        source.wait_in(stretch)
        yield


def emit_text_until(source: StreamReader, markers: Markers, make: Callable[[str], TextEvent]) -> Parse[tuple[str, str]]:
    r"""Like `emit_until`, for content between calls or blocks.

    Returns `(white space, marker)`. White space before a marker is held back, because it belongs to the format if the
    marker follows: `Hi.\n\n<tool_call>` has the content `Hi.`. At the end of the output it is content.
    """
    emit = source.emit
    stretch = Stretch(markers.firsts, markers.literals, make, holds=BLANKS, most=MAX_HELD_BLANKS)
    while True:
        text, marker = source.scan(markers)
        text = stretch.held + text
        if not marker and source.done:
            if text:
                emit(make(text))
            return "", ""
        held = stretch.held = ending_blanks(text)
        if len(text) > len(held):
            emit(make(text[: len(text) - len(held)]))
        if marker:
            return held, marker
        source.wait_in(stretch)
        yield


def read_blanks(source: StreamReader) -> Parse[str]:
    """Read white space, up to something else or the end."""
    pieces: list[str] = []
    while True:
        begin, source.at = source.at, _BLANKS(source.text, source.at).end()  # type: ignore[union-attr]  # matches always
        pieces.append(source.text[begin : source.at])
        if source.at < len(source.text) or source.ended:
            return "".join(pieces)
        yield


def comes_next(source: StreamReader, *literals: str) -> Parse[bool]:
    """Whether one of these literals is next; nothing is read."""
    longest = max(map(len, literals), default=0)
    while not (ahead := source.ahead(longest)).startswith(literals):
        if not source.more(longest) or not any(literal.startswith(ahead) for literal in literals):
            return False
        yield
    return True


def read_until(source: StreamReader, markers: Markers, limit: int) -> Parse[tuple[str, str]]:
    """Hold text up to the next marker, without emitting it; returns `(text, marker)`.

    The marker is `""` if the output ended, or after more than `limit` characters without one. Then the text has exactly
    `limit` characters, however the stream was cut into deltas, and the rest is unread.
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
