"""The grammar of a custom tool: is a text of it, and if not, where does it go wrong.

OpenAI's tools of type `custom` take free text, which a grammar can hold to a form: Lark, or a regular expression for
the whole text. The text is the model's: nothing in it raises. That a definition is one that OpenAI would take is
checked when a `Grammar` is made.

Source: OpenAI's guide to custom tools, https://platform.openai.com/docs/guides/function-calling#custom-tools,
November 2026.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from callwright.errors import GrammarError
from callwright.grammar.compile import compiled
from callwright.grammar.engine import Engine, ExhaustedError, Syntax, TooLongError, allowed_bytes, random_text
from callwright.grammar.expected import END, escaped, expected

_SYNTAXES: Final[dict[str, Syntax]] = {"lark": "lark", "regex": "regex"}
_EXHAUSTED: Final = "something simpler: the grammar asks for too much work on this text"
# Some random walks do not end. If none of them does, the texts are too long for a walk.
_WALKS: Final = 4
_STEP: Final = 4_096


class Violation(msgspec.Struct, frozen=True):
    """The first violation of a grammar in a text.

    `position` is the index of the first wrong character, or the length of a text that ends too early; then `got` is
    empty. `line` and `column` count from 1. `expected` describes the valid continuations in words.
    """

    position: int
    line: int
    column: int
    expected: str
    got: str

    def __str__(self) -> str:
        got = escaped(self.got) if self.got else END
        return f"line {self.line}, column {self.column}: expected {self.expected}, got {got}"


class Grammar:
    """A definition in `lark` or `regex` syntax. Raises `GrammarError` if OpenAI would reject it.

    Making one compiles it, which takes 1 to 30 ms the first time, and 2 s at most. Equal ones share the work.
    """

    __slots__ = ("definition", "syntax")

    syntax: Final[Syntax]
    definition: Final[str]

    def __init__(self, syntax: str, definition: str) -> None:
        known = _SYNTAXES.get(syntax)
        if known is None:
            raise GrammarError(f"Expected 'lark' or 'regex' as the syntax of a grammar, got {syntax!r}.")
        self.syntax = known
        self.definition = definition
        compiled(known, definition)

    @property
    def _engine(self) -> Engine:
        return compiled(self.syntax, self.definition)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grammar):
            return NotImplemented
        return (self.syntax, self.definition) == (other.syntax, other.definition)

    def __hash__(self) -> int:
        return hash((self.syntax, self.definition))

    def __repr__(self) -> str:
        return f"Grammar({self.syntax!r}, {self.definition!r})"

    def __reduce__(self) -> tuple[type["Grammar"], tuple[str, str]]:
        return Grammar, (self.syntax, self.definition)

    def accepts(self, text: str) -> bool:
        """Whether the whole text is of the grammar."""
        reading = self._engine.start()
        for piece in _steps(text):
            data = _utf8(piece)
            if reading.try_consume_tokens(data) < len(data):
                break
        else:
            if reading.is_accepting():
                return True
        try:
            allowed_bytes(reading)
        except ExhaustedError:
            return self.first_error(text) is None
        return False

    def first_error(self, text: str) -> Violation | None:
        """The first violation, or None."""
        matcher = self.matcher()
        return matcher.feed(text) or matcher.finish()

    def matcher(self) -> "Matcher":
        """Validates a text in pieces."""
        return Matcher(self._engine)

    def sample(self, seed: int = 0, wanted: Callable[[], bool] = lambda: True) -> str | None:
        """A text of the grammar, the same for the same seed; None if none was found, or it is not `wanted` any more.

        Walks take milliseconds, but minutes if many counts are unbounded.
        """
        engine = self._engine
        if engine.is_long:
            return None
        long_walks = 0
        for walk in range(_WALKS):
            try:
                found = random_text(engine.start(), seed * _WALKS + walk, wanted)
            except TooLongError:
                long_walks += 1
                continue
            if found is not None:
                return found.decode()
        engine.is_long = long_walks == _WALKS or not wanted()
        return None


class Matcher:
    """Reads one text. The pieces may be cut anywhere between two characters; the answers are the same."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reading = engine.start()
        # Stored to be read again, if the engine fails because of other texts.
        self._pieces: list[str] = []
        self._renewed = False
        self._position = 0
        self._line = 1
        self._column = 1
        self._violation: Violation | None = None

    def feed(self, text: str) -> Violation | None:
        """Read more; once there is a violation, the answer is always that."""
        for piece in _steps(text):
            if self._violation is None:
                self._pieces.append(piece)
                self._read(piece)
        return self._violation

    def finish(self) -> Violation | None:
        """The text ends here."""
        if self._violation is None and not self._reading.is_accepting():
            self._stop("")
        return self._violation

    def _read(self, text: str) -> None:
        data = _utf8(text)
        taken = self._reading.try_consume_tokens(data)
        if taken == len(data):
            self._move(text)
            return
        fitting = bytes(data[:taken]).decode(errors="ignore")
        half = taken - len(fitting.encode())
        if half:
            self._reading.rollback(half)
        self._move(fitting)
        self._stop(text[len(fitting)])

    def _stop(self, got: str) -> None:
        """The text goes wrong here; or it is the engine, then it is read once more."""
        try:
            words = expected(self._reading)
        except ExhaustedError:
            if not self._renewed:
                self._read_again()
                if not got and self._violation is None:
                    self.finish()
                return
            self._engine.renew()
            words = _EXHAUSTED
        self._violation = Violation(self._position, self._line, self._column, words, got)

    def _read_again(self) -> None:
        """Read all of it with an engine that has read nothing yet, so that a failure is this text's own."""
        self._renewed = True
        self._engine.renew()
        self._reading = self._engine.start()
        self._position, self._line, self._column = 0, 1, 1
        for piece in self._pieces:
            for character in piece:  # the engine does not report the position at which it gave up
                if self._violation is None:
                    self._read(character)

    def _move(self, text: str) -> None:
        self._position += len(text)
        lines = text.count("\n")
        self._line += lines
        self._column = len(text) - text.rfind("\n") if lines else self._column + len(text)


def _steps(text: str) -> Iterator[str]:
    """A text in pieces of a few milliseconds: the engine holds the interpreter while it reads."""
    for at in range(0, len(text), _STEP):
        yield text[at : at + _STEP]


def _utf8(text: str) -> list[int]:
    """The bytes of a text. Half of a surrogate pair has bytes too, that no grammar takes."""
    return list(text.encode(errors="surrogatepass"))
