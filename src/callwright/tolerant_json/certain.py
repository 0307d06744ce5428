"""Which repairs of JSON are certain: a comma, a quote, a spelling. Text that is no token of JSON is not.

Words may occur between the tokens of a value, `{"a": "x" and more, "b": 1}`. A reader that takes them
for the inside of a string with quotes in it (`x" and more, "b`) gives an unintended value. So after such a repair the
text is scanned again, by the tokens of JSON alone: if it is JSON without the words, they do not belong to it.
"""

import re
from collections.abc import Collection
from typing import Final, Literal, TypeAlias

JsonRepair = Literal[
    "bad_escape",
    "bad_quotes",
    "comment",
    "control_character",
    "early_end",
    "ellipsis",
    "extra_comma",
    "half_value",
    "inner_quote",
    "literal_spelling",
    "missing_closer",
    "missing_colon",
    "missing_comma",
    "missing_quote",
    "missing_value",
    "number_form",
    "odd_quotes",
    "quote_in_key",
    "repeated_key",
    "same_key",
    "tuple",
    "unquoted_key",
    "unquoted_text",
    "white_space",
    "wrong_closer",
]

# Repairs that read text other than a token as a value, a key, or nothing; and a name with two values.
_GUESSED: Final[dict[JsonRepair, str]] = {
    "ellipsis": "a part that was left out",
    "missing_value": "a value that was not written",
    "half_value": "half a value",
    "unquoted_text": "text that is not a token of JSON",
    "odd_quotes": "a text with a quote too many, or one too few",
    "quote_in_key": "a name with a quote in it",
    "early_end": "a text that may end at the first quote in it",
    "repeated_key": "a name that was given twice, with different values",
}
# Repairs that depend on quotes to find the end of a string.
_BY_QUOTES: Final[frozenset[JsonRepair]] = frozenset(
    ("inner_quote", "missing_quote", "bad_escape", "missing_comma", "missing_colon")
)
_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\]++|\\.|(?!))*+")|(?P<mark>[{}\[\]:,])|(?P<word>(?:[^\s"{}\[\]:,\\]|\\(?!")|(?!))++)|(?P<other>\S)',
    re.DOTALL,
).finditer
# A fence before JSON, or an object that names a tool where no value can be.
_BLOCK = re.compile(
    r"""```\w*+(?=[^\S\n]*+\n)\s*+[{\[]|[^\s\[:,{(]\s*\[?\{\s*"(?:name|tool|tool_name|function)"\s*:"""
).search
_LITERAL = re.compile(r"(?:-?\d[\d.eE+-]*+|true|false|null|True|False|None)\Z").match
_OPENS: Final = {"}": "{", "]": "["}
_CONTAINERS: Final = frozenset("{[")
# What may come next: a value, a key, a colon, or more: a comma or a closer.
_State: TypeAlias = Literal["value", "key", "colon", "more"]
_NEXT: Final[dict[tuple[_State, str], _State]] = {
    ("value", "string"): "more",
    ("value", "literal"): "more",
    ("value", "{"): "key",
    ("value", "["): "value",
    ("key", "string"): "colon",
    ("colon", ":"): "value",
}
# If these do not fit, the text is not JSON: a string, a container, a quote that is never closed. A mark that does not
# fit is allowed between words only.
_NO_WORDS: Final = frozenset(("string", "{", "[", '"'))
_MARKS: Final = frozenset(",:")


def doubt(repairs: Collection[JsonRepair], text: str) -> str:
    """Why a value that was read from `text` with these repairs is doubtful; `""` if it is certain."""
    for rule, why in _GUESSED.items():
        if rule in repairs:
            return why
    if not by_quotes(repairs):
        return ""
    if foreign_words(text):
        return "words between the tokens of JSON"
    return "a text in which another block may begin" if _BLOCK(text) else ""


def by_quotes(repairs: Collection[JsonRepair]) -> bool:
    """Whether a repair depended on quotes to find the end of a string."""
    return not _BY_QUOTES.isdisjoint(repairs)


def without_words(text: str) -> tuple[str, str]:
    """A text without the words between its tokens, and these words."""
    kept: list[str] = []
    words: list[str] = []
    at = 0
    for begin, end in foreign_words(text):
        kept.append(text[at:begin])
        words.append(text[begin:end])
        at = end
    return "".join([*kept, text[at:]]), " ".join(words)


def foreign_words(text: str) -> list[tuple[int, int]]:
    """The spans of the words between the tokens of a JSON text; empty if it is not JSON even without them."""
    found: list[tuple[int, int]] = []
    open_: list[str] = []
    state: _State = "value"
    for token in _TOKEN(text):
        kind = _kind(token)
        if kind in _OPENS:
            if not open_ or open_.pop() != _OPENS[kind] or state == "colon" or (state == "value" and kind == "}"):
                return []
            if not open_:
                return found
            state = "more"
        elif kind == "," and state == "more":
            state = "key" if open_[-1:] == ["{"] else "value"
        elif (state, kind) in _NEXT:
            state = _NEXT[state, kind]
            if kind in _CONTAINERS:
                open_.append(kind)
        elif kind in _NO_WORDS or (kind in _MARKS and not found):
            return []
        else:  # a word, or a mark among words
            found.append(token.span())
    return found


def _kind(token: re.Match[str]) -> str:
    """The mark, or the kind of any other token."""
    if token["string"]:
        return "string"
    if token["word"]:
        return "literal" if _LITERAL(token["word"]) else "word"
    return token.group()
