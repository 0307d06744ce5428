"""Compiles a definition: OpenAI's restrictions first, then the engine's, in bounded time.

The engine's errors are mapped to `GrammarError` here; the place is found again if the engine gives none.
"""

import functools
import re
import threading
from concurrent.futures import Future
from typing import Final

from callwright.errors import GrammarError
from callwright.grammar.engine import OPTION_LINES, Engine, RefusedError, Syntax, refusal
from callwright.grammar.errors import refused, refused_at
from callwright.grammar.lark_lexer import Token, tokens
from callwright.grammar.lint import check_lark, check_regex

# The slowest of 11,000 public schemas takes 5 s in the engine; one of them must not block a gateway.
_WAIT_S: Final = 2.0
# An abandoned compilation cannot be stopped and runs until the engine returns: limit of those.
_SLOTS: Final = threading.BoundedSemaphore(4)
# One takes 3 MB at most, as was measured: with a thousand alternatives, the maximum.
_KEPT: Final = 32

# "at 2(6): …" or "2(6): …": line, and column in bytes.
_PLACE: Final = re.compile(r"(?:at )?(?P<line>\d+)\((?P<column>\d+)\): (?P<fault>.*)")
# The expression, carets below it, and the word of Rust's parser.
_IN_REGEX: Final = re.compile(r"parse error:\n {4}.*\n {4}(?P<blanks> *)\^.*\nerror: (?P<fault>.*)")
_IMPORT: Final = re.compile(r"Unknown common regex: (.*?); following are available: (.*)")
_INVALID: Final = "invalid regex"
_ANCHOR: Final = "lookarounds not supported"
_TOO_COMPLEX: Final = re.compile(r"(?:lexer|parser) error|too many|limit", re.IGNORECASE)

_MAX_WORDS: Final = 300
_RUST: Final = "Write it in the syntax of Rust's regex crate."
_SIMPLER: Final = "Make it smaller: fewer alternatives, lower counts, no counts in counts."


@functools.lru_cache(_KEPT)
def compiled(syntax: Syntax, definition: str) -> Engine:
    """The engine for a definition. Raises `GrammarError`, also when the engine is not there after 2 s."""
    if syntax == "lark":
        check_lark(definition)
    else:
        check_regex(definition)
    too_slow = refused_at(1, 1, "the grammar takes too long to compile", _SIMPLER)
    if not _SLOTS.acquire(timeout=_WAIT_S):
        raise too_slow
    result: Future[Engine] = Future()
    given_up = threading.Event()
    # No daemon: one that is in the engine when the program ends would end it with a segmentation fault.
    threading.Thread(target=_compile, args=(syntax, definition, result, given_up), name="grammar").start()
    try:
        return result.result(_WAIT_S)
    except TimeoutError:
        given_up.set()
        raise too_slow from None


def _compile(syntax: Syntax, definition: str, result: Future[Engine], given_up: threading.Event) -> None:
    try:
        result.set_result(Engine(syntax, definition, wanted=lambda: not given_up.is_set()))
    except RefusedError as error:
        mapped = _mapped(syntax, definition, str(error))
        mapped.__cause__ = error
        result.set_exception(mapped)
    except BaseException as error:
        result.set_exception(error)
    finally:
        _SLOTS.release()


def _mapped(syntax: Syntax, definition: str, said: str) -> GrammarError:
    """The engine's error, in our words if they help."""
    if _TOO_COMPLEX.search(said.partition("\n")[0]):
        return refused_at(1, 1, f"the grammar is too complex to run ({_first_line(said)})", _SIMPLER)
    if _INVALID in said:
        return _of_regex(syntax, definition, said)
    place = _PLACE.match(said)
    if place is None or syntax == "regex":
        return refused_at(1, 1, _first_line(said), "Give each part of it something to match, and every way an end.")
    fault, way_out = _first_line(place["fault"]), "Change the definition there."
    if imported := _IMPORT.match(place["fault"]):
        fault, way_out = f"{imported[1]!r} cannot be imported", f"There are {imported[2]}."
    line = int(place["line"]) - OPTION_LINES
    text = definition.split("\n")[line - 1 : line]
    column = len("".join(text).encode()[: int(place["column"]) - 1].decode(errors="ignore")) + 1
    return refused_at(line, column, fault, way_out)


def _of_regex(syntax: Syntax, definition: str, said: str) -> GrammarError:
    """The first expression that the engine does not take by itself, and the place in it."""
    for token in _expressions(syntax, definition):
        body, _, flags = token.text[1:].rpartition("/")
        word = said if syntax == "regex" else refusal(f"start: {token.text}")
        if found := _IN_REGEX.search(word):
            # The engine puts flags before the expression, as `(?i)`.
            column = len(found["blanks"]) - (len(flags) + 3 if flags else 0)
            at = token.at + 1 + (_as_given(body, column) if syntax == "regex" else column)
            return refused(definition, at, found["fault"], _RUST)
        if word:
            fault = "anchor that is repeated, or inside of the text" if _ANCHOR in word else _first_line(word)
            return refused(definition, token.at + 1, fault, "An expression matches the whole text without anchors.")
    return refused_at(1, 1, _first_line(said), _RUST)


def _expressions(syntax: Syntax, definition: str) -> list[Token]:
    if syntax == "regex":
        return [Token("regex", f"/{definition}/", -1)]
    return [token for token in tokens(definition) if token.kind == "regex"]


def _as_given(expression: str, column: int) -> int:
    """Offset in the original expression of a column of the engine's version, which escapes slashes and tabs."""
    width = 0
    for at, character in enumerate(expression):
        if width >= column:
            return at
        width += 2 if character in "/\t" and expression[at - 1 : at] != "\\" else 1
    return len(expression)


def _first_line(said: str) -> str:
    line = said.partition("\n")[0]
    return line if len(line) <= _MAX_WORDS else f"{line[:_MAX_WORDS]}…"
