"""llguidance as a checker of texts: its vocabulary is the 256 bytes, so that it accepts any text.

A grammar is given as Lark or as a regular expression, and is used unchanged: OpenAI's restrictions are not known here.
Nothing here knows characters or lines, either.

All readings of one grammar share its lexer's states. That makes them fast, and is the reason why a reading can fail
because of other texts: the lexer has a limit for all of them, and stays broken once it is reached.
"""

import functools
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:  # it is loaded with the first grammar: 5 MB, and few ever have one
    from llguidance import LLMatcher, LLTokenizer


Syntax: TypeAlias = Literal["lark", "regex"]

_END: Final = 256
# Without this option the engine computes all forced text in advance, and for `/x+/ /x+/` that never ends.
_OPTIONS: Final = '%llguidance {"no_forcing": true}\n'
# Lines that the engine counts before those of the definition.
OPTION_LINES: Final = 1
# Ten times the default, which some sound expressions use up on a text of 1,000 characters: 0.15 s, 20 MB.
_LEXER_FUEL: Final = 10_000_000
# About 60 MB; the default is 250,000.
_LEXER_STATES: Final = 100_000
# The engine's word for a reading that nothing can follow, though the text is not complete.
_DEAD_END: Final = "NoExtension"

# A grammar that is too complex fails within 40 to 310 bytes.
_TRIAL_BYTES: Final = 320
# But the first steps use the engine's own limits, and in a way that releases the GIL.
_FIRST_BYTES: Final = 16
# Forced text must end before this many bytes; 0.2 s.
_FORCED_BYTES: Final = 20_000

# A random text ends at the first chance after the soft limit in bytes, and is abandoned at the hard limit.
_SOFT_BYTES: Final = 160
_HARD_BYTES: Final = 1_500
_STOP: Final = 0.7
_CLOSE: Final = 0.15
_TRIES: Final = 4
_CLOSING: Final = frozenset(b"\"'`}])>;,.\n")
_PRINTABLE: Final = frozenset(range(32, 127))


class RefusedError(Exception):
    """The engine's word on a grammar that it cannot read, or cannot run."""


class ExhaustedError(Exception):
    """The grammar asks for more work on a text than the engine does."""


class TooLongError(Exception):
    """A random text did not come to its end."""


class _Bytes:
    """The vocabulary: a token for each byte, then the end."""

    def __init__(self) -> None:
        self.tokens = [bytes([byte]) for byte in range(256)] + [b"<eos>"]
        self.special_token_ids = [_END]
        self.eos_token_id = _END
        self.bos_token_id = None

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


@functools.cache
def _vocabulary() -> "LLTokenizer":
    from llguidance import LLTokenizer, TokenizerWrapper

    return LLTokenizer(TokenizerWrapper(_Bytes()), slices=[])


class Engine:
    """One grammar. Raises `RefusedError` when it cannot be read, or not be run, or is not `wanted` any more.

    `is_long`: its random texts are too long, or take too long, as was found out.
    """

    def __init__(self, syntax: Syntax, definition: str, wanted: Callable[[], bool] = lambda: True) -> None:
        if syntax == "regex":
            from llguidance import regex_to_lark

            expression = regex_to_lark(definition, use_ascii="")
            definition = f"start: /{expression}/" if expression else 'start: ""'
        self._definition = definition
        self.is_long = False
        _try_out(_built(definition), wanted)
        self.renew()
        _run(self.start(), wanted)

    def start(self) -> "LLMatcher":
        """A reading at the begin of a text."""
        return self._base.deep_copy()

    def renew(self) -> None:
        """Begin anew, without what earlier readings have worked out."""
        self._base = _built(self._definition, fuel=_LEXER_FUEL, states=_LEXER_STATES)


def refusal(definition: str) -> str:
    """Why the engine cannot read a Lark definition; empty when it can."""
    try:
        _built(definition)
    except RefusedError as error:
        return str(error)
    return ""


def _built(definition: str, fuel: int | None = None, states: int | None = None) -> "LLMatcher":
    """A reading within these limits, or the engine's own."""
    from llguidance import LLMatcher, LLParserLimits

    limits = LLParserLimits(
        verbose_errors=False, initial_lexer_fuel=fuel, step_lexer_fuel=fuel, max_lexer_states=states
    )
    built = LLMatcher(_vocabulary(), _OPTIONS + definition, log_level=0, limits=limits)
    if built.is_error():
        raise RefusedError(built.get_error())
    return built


def allowed_bytes(reading: "LLMatcher") -> list[int]:
    """The bytes that may come next; a reading that nothing can follow cannot be used any more.

    Raises `ExhaustedError`, also when an earlier reading has broken the lexer.
    """
    bias = reading.compute_logit_bias()
    if reading.is_error() and not reading.get_error().startswith(_DEAD_END):
        raise ExhaustedError(reading.get_error())
    return [byte for byte in range(256) if bias[byte]]


def _try_out(reading: "LLMatcher", wanted: Callable[[], bool]) -> None:
    """Take the first steps of a grammar with the engine's own limits.

    Forced text must end: `/x+/ /x+/` never does, because the first of them takes all.
    """
    chooser = Random(0)
    last, forced, size = -1, True, 0
    while size < (_FORCED_BYTES if forced else _FIRST_BYTES):
        ended = reading.is_accepting()
        allowed = _allowed_or_refused(reading, wanted)
        forced = forced and not ended and len(allowed) < 2
        if not allowed:
            if forced:
                raise RefusedError("no text can ever be complete")
            return
        last = last if last in allowed else chooser.choice(_plain(allowed))
        if not reading.try_consume_tokens([last]):
            raise RefusedError(reading.get_error())
        size += 1
    if forced:
        raise RefusedError(f"no text of up to {_FORCED_BYTES:,} characters is complete")


def _run(reading: "LLMatcher", wanted: Callable[[], bool]) -> None:
    """Read on for a while, as monotonous a text as the grammar takes.

    That is the hardest for counts in counts, such as `(a{1,1000}){1,1000}`, which can be built but not be run.
    """
    chooser = Random(0)
    last = -1
    for _ in range(_TRIAL_BYTES):
        if last >= 0 and reading.try_consume_tokens([last]):
            continue
        allowed = _allowed_or_refused(reading, wanted)
        if not allowed:
            return
        last = chooser.choice(_plain(allowed))
        reading.try_consume_tokens([last])


def _allowed_or_refused(reading: "LLMatcher", wanted: Callable[[], bool]) -> list[int]:
    if not wanted():
        raise RefusedError("given up")
    try:
        return allowed_bytes(reading)
    except ExhaustedError as error:
        raise RefusedError(str(error)) from error


def random_text(reading: "LLMatcher", seed: int, wanted: Callable[[], bool] = lambda: True) -> bytes | None:
    """A text of the grammar, mostly short and mostly printable; None if the walk reached a dead end.

    Raises `TooLongError` if it did not end, or is not `wanted` any more.
    """
    chooser = Random(seed)
    text = bytearray()
    while len(text) < _HARD_BYTES:
        late = len(text) > _SOFT_BYTES
        if reading.is_accepting() and (late or reading.is_stopped() or chooser.random() < _STOP):
            return bytes(text)
        try:
            byte = _chosen(reading, chooser, wanted, late=late)
        except ExhaustedError:
            return None
        if byte is None or not reading.try_consume_tokens([byte]):
            return None
        text.append(byte)
    raise TooLongError


def _chosen(reading: "LLMatcher", chooser: Random, wanted: Callable[[], bool], *, late: bool) -> int | None:
    allowed = _allowed_in_time(reading, wanted)
    if not allowed:
        return None
    closing = [byte for byte in allowed if byte in _CLOSING]
    if late and len(allowed) > 1 and chooser.random() < _STOP:
        tried = {*closing, *chooser.choices(allowed, k=_TRIES)}
        ways = {byte: _ways_after(reading, byte, wanted) for byte in sorted(tried)}
        fewest = min(ways.values())
        return chooser.choice([byte for byte in ways if ways[byte] == fewest])
    if closing and chooser.random() < _CLOSE:
        return chooser.choice(closing)
    return chooser.choice(_plain(allowed))


def _allowed_in_time(reading: "LLMatcher", wanted: Callable[[], bool]) -> list[int]:
    """The bytes that may come next. To find them takes up to 0.7 s, and a walk may ask for them 10,000 times."""
    if not wanted():
        raise TooLongError
    return allowed_bytes(reading)


def _ways_after(reading: "LLMatcher", byte: int, wanted: Callable[[], bool]) -> int:
    """The number of bytes that can follow this one: few, if it ends an unbounded repetition."""
    ahead = reading.deep_copy()
    if not ahead.try_consume_tokens([byte]):
        return _END
    return -1 if ahead.is_accepting() else len(_allowed_in_time(ahead, wanted)) or _END


def _plain(allowed: list[int]) -> list[int]:
    return [byte for byte in allowed if byte in _PRINTABLE] or allowed
