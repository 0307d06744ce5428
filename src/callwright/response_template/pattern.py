"""Regular expressions of templates, run by RE2, in time linear in the text for every expression.

RE2 searches texts, not streams. While more input may arrive, a sentinel (`END`) is appended. Every element of the
expression accepts the sentinel in place of its own match, and everything after it then matches empty. RE2's own choice
between alternatives then shows the certainty of a match: one that reaches the sentinel may still become another match,
or none; any other match is final.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from callwright.response_template.expression import (
    END,
    Behind,
    PatternError,
    Token,
    Tokens,
    beginning,
    depths,
    end_of_group,
    is_blanks,
    literal,
    literals,
    re2_of,
    tokens_of,
)
from callwright.settings.extras import missing_package

_MAX_WRITTEN: Final = 4_000
# Counted repetitions multiply, and the size of RE2's program decides the cost of a character. `\w` is 1,500 steps.
_MAX_STEPS: Final = 20_000
_SURROGATES: Final = re.compile("[\ud800-\udfff]")  # not valid text for RE2


class Match(NamedTuple):
    """The span of a match, and the spans of its named groups.

    `open`: the text ends in it, so that it may become another match, or none.
    """

    start: int
    end: int
    groups: Mapping[str, tuple[int, int]]
    open: bool


class Around(NamedTuple):
    """The patterns before and after a value. `trims`: white space at the end of the value is not part of it."""

    before: "Pattern"
    behind: "Pattern"
    trims: bool


class Pattern:
    """A compiled expression.

    `names` are its named groups. `literals` are all texts that it matches, apart from white space around them; None if
    it is not such a list. `begins` is the text with which each match begins, apart from white space before it, as far
    as it is known. `around`: if its group `value` is any text, matched lazily, the patterns on both its sides.
    """

    __slots__ = ("_compiled", "_groups", "_kinds", "around", "begins", "literals", "names", "tokens", "written")

    def __init__(self, written: str, tokens: Tokens) -> None:
        self.written = written
        self.tokens = tokens
        # RE2's captures, in order: named groups, and unnamed ones for lookaheads.
        self._groups = tuple(token.name for token in tokens if token.name or token.kind == "(?=")
        self.names = tuple(filter(None, self._groups))
        self.literals = literals(tokens)
        self.begins = beginning(tokens)
        self.around = _around(written, tokens)
        self._kinds = {token.kind for token in tokens}
        self._compiled: dict[tuple[Behind, bool], Any] = {}
        self._engine("more", first=True)  # the largest: if it can be, all can

    @property
    def may_be_empty(self) -> bool:
        """Whether it matches anywhere."""
        return self.find("", "other", here=True) is not None

    def find(self, text: str, behind: Behind, *, first: bool = False, here: bool = False) -> Match | None:
        """The first match in a text, or the one that begins `here`. `first`: the text is the beginning of the input.

        It is the match that Python's `re.search` finds: the leftmost, and of those the one the expression prefers.
        """
        engine = self._engine(behind, first=first)
        whole = text + END if behind == "more" else text
        # For bytes, RE2 returns positions in bytes, which is faster, and for ASCII the same.
        searched = whole.encode() if whole.isascii() else _SURROGATES.sub("\ufffd", whole)
        found = engine.match(searched) if here else engine.search(searched)
        if found is None:
            return None
        start, end = found.span()
        if end > len(text):
            return Match(start, end, {}, open=True)
        groups: dict[str, tuple[int, int]] = {}
        for number, name in enumerate(self._groups, 1):
            span = found.span(number)
            if name and span[0] >= 0:
                groups[name] = span
            elif not name:
                end = span[0] if span[0] >= 0 else end
        return Match(start, end, groups, open=False)

    @property
    def steps(self) -> int:
        """How large it is."""
        return int(self._engine("more", first=True).programsize)

    def _engine(self, behind: Behind, *, first: bool) -> Any:
        """The compiled RE2 program, shared by equivalent arguments."""
        first = first and "^" in self._kinds
        behind = "nothing" if behind == "other" and "$" not in self._kinds else behind
        found = self._compiled.get((behind, first))
        if found is None:
            written = "".join(re2_of(self.tokens, behind, first=first))
            found = self._compiled[behind, first] = _compiled(written)
        return found


def _compiled(written: str) -> Any:
    try:
        import re2
    except ModuleNotFoundError as error:
        raise missing_package("google-re2", "response_template") from error
    options = re2.Options()
    options.dot_nl, options.log_errors = True, False
    try:
        return re2.compile(written, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise PatternError(f"too large, or nothing that RE2 can read ({error})") from error


def compile_literals(texts: Iterable[str]) -> Pattern:
    """Matches one of these texts, the longest first."""
    known = sorted(dict.fromkeys(texts), key=len, reverse=True)
    choices = [tuple(literal(char, char) for char in text) for text in known]
    return Pattern("|".join(known), _joined(choices))


def either(patterns: Iterable[Pattern]) -> Pattern:
    """A pattern that matches if any of the given ones does. It has no groups."""
    plain = [
        tuple(Token("(", token.written) if token.kind in ("(", "(?=") else token for token in pattern.tokens)
        for pattern in patterns
    ]
    return Pattern("", _joined([(Token("(", "(?:"), *tokens, Token(")", ")")) for tokens in plain]))


def compile_pattern(written: str) -> Pattern:
    """Compile an expression. Raises `PatternError`."""
    if len(written) > _MAX_WRITTEN:
        raise PatternError(f"too large: it has more than {_MAX_WRITTEN:,} characters")
    tokens = tuple(tokens_of(written))
    try:
        re.compile(written, re.DOTALL)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"no regular expression: {error}") from error
    _check(tokens)
    pattern = Pattern(written, tokens)
    if pattern.steps > _MAX_STEPS:
        raise PatternError(f"too large: it has more than {_MAX_STEPS:,} steps, repetitions multiplied out")
    return pattern


def _joined(choices: Sequence[Tokens]) -> Tokens:
    joined = [token for choice in choices for token in (Token("|", "|"), *choice)]
    return tuple(joined[1:])


def _check(tokens: Tokens) -> None:
    """Refuse expressions that RE2 would read differently from Python: a lookahead is allowed only at the end of a
    match, and a repeated group must not be empty.
    """
    for at, depth in depths(tokens):
        if tokens[at].kind not in ("(", "(?="):
            continue
        end = end_of_group(tokens, at)
        behind = tokens[end + 1] if end + 1 < len(tokens) else None
        if tokens[at].kind == "(?=" and (depth or (behind and behind.kind != "|")):
            raise PatternError("a lookahead is read at the end of an expression only")
        if behind and behind.kind == "repeat" and not behind.written.startswith("?"):
            group = Pattern("", (Token("(", "(?:"), *tokens[at + 1 : end + 1]))
            if group.find("", "nothing", first=True, here=True):
                raise PatternError("a repetition of what may be empty: repeat it once")


def _around(written: str, tokens: Tokens) -> Around | None:
    for at, depth in depths(tokens):
        if depth == 0 and tokens[at].kind == "|":
            return None
    for at, depth in depths(tokens):
        if depth == 0 and tokens[at].name == "value":
            end = end_of_group(tokens, at)
            value, behind = tokens[at + 1 : end], tokens[end + 1 :]
            if [token.re2 for token in value] != [".", "*?"] or (behind and behind[0].kind == "repeat"):
                return None
            trims = is_blanks(behind)
            return Around(Pattern(written, tokens[:at]), Pattern(written, behind[2 * trims :]), trims)
    return None
