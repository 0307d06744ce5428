"""A Lark definition as tokens. Refuses extensions, and characters that begin no token.

The tokens are those of the engine, llguidance, whose Lark is a dialect: double quotes only, `//` and `#` for comments,
`-` in names. The order of tokens is not checked here. The engine's extensions exist nowhere else, and one of them could
close the call: OpenAI's guide names none, so they are refused.

Source: llguidance 1.9.1, parser/src/lark/lexer.rs and docs/syntax.md; OpenAI's guide to custom tools, November 2026.
"""

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from callwright.errors import GrammarError
from callwright.grammar.errors import refused
from callwright.grammar.regex_lint import regex_fault

Kind: TypeAlias = Literal["rule", "terminal", "string", "regex", "number", "directive", "mark", "newline", "end"]


class Token(NamedTuple):
    """`text` as it is written at the offset `at`."""

    kind: Kind
    text: str
    at: int


# If two kinds match at one place, the longer one is first: the engine reads as far as it can.
_TOKEN: Final = re.compile(
    r"""
    (?P<skipped>[ \t]+|(?://|\#)[^\n]*)
    |(?P<newline>(?:\r?\n)+[ \t]*)
    |(?P<rule>!?[_?]?[a-z][_a-z0-9-]*)
    |(?P<terminal>_?[A-Z][_A-Z0-9-]*)
    |(?P<string>"(?:[^"\\\x00-\x1f\x7f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})|(?!))*+"i?)
    |(?P<regex>/(?:[^/\\]|\\[^\n]|(?!))++/[imslux]*)
    |(?P<number>[+-]?[0-9]+(?:\.(?!\.)[0-9]*)?(?:[eE][+-]?[0-9]+)?)
    |(?P<directive>%(?:ignore|import))
    |(?P<extension>%[a-z]+|<[^<>\s]+>|@[\w-]+|&|::)
    |(?P<mark>->|\.\.|[:.,|()\[\]{}~+*?=])
    """,
    re.VERBOSE,
)
_STRING_BEGIN: Final = re.compile(r'"(?:[^"\\\x00-\x1f\x7f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})|(?!))*+')

_DECLARING: Final = {
    "%declare": "Define the terminal, or leave it out.",
    "%override": "Write the rule once, as it shall be.",
    "%extend": "Write all alternatives into the rule itself.",
}


def tokens(definition: str) -> Iterator[Token]:
    """All tokens without comments and blanks; the last one is `end`. Raises `GrammarError`."""
    at = 0
    while at < len(definition):
        found = _TOKEN.match(definition, at)
        if found is None:
            raise _of_character(definition, at)
        if found["extension"]:
            raise _of_extension(definition, at, found[0])
        if found["regex"]:
            _check_regex(definition, at, found[0])
        if not found["skipped"]:
            kind: Kind = found.lastgroup  # type: ignore[assignment]  # the groups are named like the kinds
            yield Token(kind, found[0], at)
        at = found.end()
    yield Token("end", "", at)


def _check_regex(definition: str, at: int, text: str) -> None:
    body, _, flags = text[1:].rpartition("/")
    if fault := regex_fault(body, flags):
        raise refused(definition, at + 1 + fault.at, fault.fault, fault.way_out)


def _of_extension(definition: str, at: int, text: str) -> GrammarError:
    if text in _DECLARING:
        return refused(definition, at, f"{text} is not supported", _DECLARING[text])
    if text.startswith("<"):
        way_out = f'A custom tool\'s input is text; write "{text}" in quotes for these characters.'
        return refused(definition, at, f"special token {text} is not supported", way_out)
    if text.startswith("@"):
        return refused(definition, at, f"{text}, another grammar, is not supported", "Write its rules into this one.")
    if text == "&":
        return refused(definition, at, "'&' between terminals is not supported", "Write one terminal for both.")
    if text == "::":
        return refused(definition, at, "parameters of rules are not supported", "Write a rule for each value.")
    way_out = "Of the directives, a grammar may use %import common and %ignore."
    return refused(definition, at, f"{text} is not supported", way_out)


def _of_character(definition: str, at: int) -> GrammarError:
    """The error for a character that begins no token."""
    mark = definition[at]
    if mark == '"':
        begin = _STRING_BEGIN.match(definition, at)
        assert begin is not None  # the quote is enough for a match
        at = begin.end()
        if definition.startswith("\\", at):
            fault = f"unknown escape {definition[at : at + 2]!r} in a string"
            return refused(definition, at, fault, "Strings are written as in JSON: write \\\\ for one backslash.")
        if at == len(definition) or definition[at] in "\r\n":
            return refused(definition, begin.start(), "string without its closing quote", 'Close it with ".')
        fault = f"raw control character {definition[at]!r} in a string"
        return refused(definition, at, fault, "Write it as an escape: \\t, or \\u and four digits.")
    if mark == "/":
        return refused(definition, at, "regular expression without its closing slash", "Close it with /.")
    if mark == "'":
        return refused(definition, at, "single quote", 'Write strings in double quotes: "…".')
    if mark == "\\":
        return refused(definition, at, "unexpected '\\'", "A rule continues on the next line if that begins with |.")
    way_out = "Expected a name, a string, a regular expression, or one of | ( ) [ ] ? * + ~ { } -> at this place."
    return refused(definition, at, f"unexpected {mark!r}", way_out)
