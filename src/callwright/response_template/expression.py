r"""An expression of a template as tokens: parsed with Python's syntax, written in RE2's.

`\w`, `\d` and `\s` have their meaning in Python, line feeds match `.`, and `^` and `$` are the beginning and the end of
the whole text, as transformers compiles its expressions. Unsupported by RE2 (backreferences, looking around): refused
by name.
"""

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

# The continuation of a text: nothing, perhaps more, or something that cannot be part of a match.
Behind: TypeAlias = Literal["nothing", "more", "other"]

# The sentinel after a text that may be continued.
END: Final = "\0"
_NEVER: Final = r"[^\x00-\x{10ffff}]"

_TOKEN = re.compile(
    r"(?P<escape>\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|0[0-7]{0,2}|.))"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\]|(?!))*+\])"
    r"|(?P<open>\((?:\?(?::|=|P<(?P<name>[^\W\d]\w*)>|(?P<other>[^)]{0,3})))?)"
    r"|(?P<repeat>(?:[*+?]|\{(?:\d+(?:,\d*)?|,\d*)\})(?P<mode>[?+]?))"
    r"|(?P<mark>[)|^$.])"
    r"|(?P<literal>.)",
    re.DOTALL,
)
_IN_SET = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|0[0-7]{0,2}|.)|.", re.DOTALL)
_DOUBLED = re.compile(r"--|&&|~~|\|\|")
_SPACES: Final = r"\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_NO_SPACES: Final = (
    r"\x00-\x08\x0e-\x1b\x21-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}"
    r"\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff}"
)
# Their equivalents inside a character class.
_KINDS: Final = {"s": _SPACES, "S": _NO_SPACES, "d": r"\p{Nd}", "D": r"\P{Nd}", "w": r"\p{L}\p{N}_"}
_NAMED: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_REFUSED: Final = {
    "!": "a negative lookahead",
    "<=": "a lookbehind",
    "<!": "a negative lookbehind",
    ">": "an atomic group",
    "P=": "a backreference",
    "(": "a condition",
    "#": "a comment",
}


class PatternError(ValueError):
    """The expression cannot be used; the message names the unsupported part."""


class Token(NamedTuple):
    """A piece of an expression: as written, and in RE2's syntax if that is the same in every context.

    `char` is one character, `literal` itself if it can be no other. The groups are `(`, with or without a `name`, and
    the lookahead `(?=`.
    """

    kind: Literal["char", "(", "(?=", ")", "|", "repeat", "^", "$"]
    written: str
    re2: str = ""
    literal: str = ""
    name: str = ""

    @property
    def is_ascii(self) -> bool:
        """Whether it is a character of ASCII."""
        return bool(self.literal) and self.literal.isascii()


Tokens: TypeAlias = tuple[Token, ...]


# --- reading an expression ---


def tokens_of(written: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(written):
        text, at = found.group(), found.start()
        match found.lastgroup:
            case "escape":
                yield _escape(text, at)
            case "set":
                yield Token("char", text, _set(text, at))
            case "open" if found["other"] is not None:
                kind = next((name for mark, name in _REFUSED.items() if found["other"].startswith(mark)), "flags")
                raise PatternError(f"{kind} at {at} cannot be read in linear time; leave it out")
            case "open":
                yield Token("(?=" if text == "(?=" else "(", text, name=found["name"] or "")
            case "repeat" if found["mode"] == "+":
                raise PatternError(f"the possessive {text} at {at} cannot be read; leave out its last +")
            case "repeat":
                yield Token("repeat", text, "{0" + text[1:] if text.startswith("{,") else text)
            case "mark" if text == ".":
                yield Token("char", text, text)
            case "mark":
                yield Token(text, text)  # type: ignore[arg-type]  # each of the marks is a kind
            case _:
                yield literal(text, text)


def literal(char: str, written: str) -> Token:
    return Token("char", re.escape(char) if char == written else written, _escape_char(char), char)


def _escape_char(char: str) -> str:
    return char if char.isalnum() and char.isascii() else f"\\x{{{ord(char):x}}}"


def _escape(text: str, at: int) -> Token:
    kind = text[1]
    if kind in _KINDS:
        return Token("char", text, f"[{_KINDS[kind]}]")
    if kind == "W":
        return Token("char", text, f"[^{_KINDS['w']}]")
    if kind in "AZz":
        return Token("^" if kind == "A" else "$", text)
    char = _escaped(text)
    if char is None:
        what = "a backreference" if kind.isdigit() else f"\\{kind}"
        raise PatternError(f"{what} at {at} cannot be read in linear time; leave it out")
    return literal(char, text)


def _escaped(text: str) -> str | None:
    """The character that an escape denotes, or None."""
    kind = text[1]
    if kind == "0":
        return chr(int(text[1:], 8))
    if len(text) > 2:
        return chr(int(text[2:], 16))
    return _NAMED.get(kind) or (None if kind.isascii() and kind.isalnum() else kind)


def _set(text: str, at: int) -> str:
    r"""A set of characters; `[` and doubled signs are refused, because Python plans to give them a meaning."""
    inner = text[2:-1] if text.startswith("[^") else text[1:-1]
    items = _IN_SET.findall(inner)
    if "[" in items or _DOUBLED.search(inner):
        raise PatternError(f"the set at {at} is not understood: write [ - & | ~ in it with a backslash")
    out = ""
    for item in items:
        if item == "-":
            out += item
        elif len(item) == 1:
            out += _escape_char(item)
        elif item[1] in _KINDS:
            out += _KINDS[item[1]]
        else:
            char = "\b" if item == r"\b" else _escaped(item)
            if char is None:
                raise PatternError(f"{item} in the set at {at} cannot be read; leave it out")
            out += _escape_char(char)
    if items == [r"\s", r"\S"] or items == [r"\S", r"\s"]:
        return "."
    return f"[^{out}]" if text.startswith("[^") else f"[{out}]"


# --- writing it for RE2 ---


def re2_of(tokens: Tokens, behind: Behind, *, first: bool) -> Iterator[str]:
    end = {"nothing": r"\z", "more": r"(?:\x00\z|\z)", "other": _NEVER}[behind]
    for token in tokens:
        match token.kind:
            case "char":
                yield rf"(?:{token.re2}|\x00\z|\z)" if behind == "more" else token.re2
            case "(":
                yield f"(?P<{token.name}>" if token.name else "(?:"
            case "(?=":
                yield "("
            case "^":
                yield r"\A" if first else _NEVER
            case "$":
                yield end
            case "repeat":
                yield token.re2
            case _:
                yield token.kind


# --- properties of an expression ---


def depths(tokens: Tokens) -> Iterator[tuple[int, int]]:
    """The position of each token and its depth of nested groups."""
    depth = 0
    for at, token in enumerate(tokens):
        depth -= token.kind == ")"
        yield at, depth
        depth += token.kind in ("(", "(?=")


def end_of_group(tokens: Tokens, begin: int) -> int:
    """The end of the group that begins there."""
    return next(begin + at for at, depth in depths(tokens[begin:]) if at and not depth)


def alternatives(tokens: Tokens) -> list[Tokens]:
    """The alternatives of an expression, or of the group without a name that it is."""
    while tokens and tokens[0].kind == "(" and not tokens[0].name and end_of_group(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    places = [at for at, depth in depths(tokens) if not depth and tokens[at].kind == "|"]
    return [tokens[begin + 1 : end] for begin, end in zip([-1, *places], [*places, len(tokens)], strict=True)]


def is_blanks(tokens: Tokens) -> bool:
    """Whether they begin with white space, repeated."""
    return len(tokens) > 1 and tokens[1].kind == "repeat" and tokens[0].written in (r"\s", r"\n", "\\\n")


def literals(tokens: Tokens) -> tuple[str, ...] | None:
    found: list[str] = []
    for choice in alternatives(tokens):
        (tokens,) = inner if len(inner := alternatives(choice)) == 1 else (choice,)
        if [token.kind for token in tokens] == ["$"]:
            continue
        while is_blanks(tokens):
            tokens = tokens[2:]
        while is_blanks(tokens[-2:]):
            tokens = tokens[:-2]
        text = "".join(token.literal for token in tokens)
        if not text or len(text) < len(tokens):
            return None
        found.append(text)
    return tuple(found) or None


def beginning(tokens: Tokens) -> str:
    choices = alternatives(tokens)
    tokens = choices[0] if len(choices) == 1 else ()
    while is_blanks(tokens):
        tokens = tokens[2:]
    begins = ""
    for at, token in enumerate(tokens):
        if not token.literal or (tokens[at + 1 :][:1] and tokens[at + 1].kind == "repeat"):
            break
        begins += token.literal
    return begins
