"""Which repairs of JSON are certain: a comma, a quote, a spelling. Text that is no token of JSON is not.

Words may stand between the tokens of a value, `{"a": "x" and more, "b": 1}`. A reader that takes them for the inside of
a string with quotes in it (`x" and more, "b`) gives a value that nobody meant. So where such a repair was made, the
text is looked at once more, by the marks of JSON alone: if it is JSON without the words, they are not its own.
"""

import re
from collections.abc import Collection
from typing import Final, Literal

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
    "quote_in_key",
    "repeated_key",
    "same_key",
    "tuple",
    "unquoted_key",
    "unquoted_text",
    "white_space",
    "wrong_closer",
]

# Repairs that take what is no token for a value, a key, or nothing; and a name that was given two values.
_GUESSED: Final[dict[JsonRepair, str]] = {
    "ellipsis": "a part that was left out",
    "missing_value": "a value that was not written",
    "half_value": "half a value",
    "unquoted_text": "text that is no token of JSON",
    "quote_in_key": "a name with a quote in it",
    "early_end": "a text that may end at the first quote in it",
    "repeated_key": "a name that was given twice, with different values",
}
# Repairs that judge by quotes where a string ends.
_BY_QUOTES: Final[frozenset[JsonRepair]] = frozenset(
    ("inner_quote", "missing_quote", "bad_escape", "missing_comma", "missing_colon")
)
_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\]++|\\.|(?!))*+")|(?P<mark>[{}\[\]:,])|(?P<word>(?:[^\s"{}\[\]:,\\]|\\(?!")|(?!))++)|(?P<other>\S)',
    re.DOTALL,
).finditer
# A fence before JSON, or an object that names a tool where no value can be.
_BLOCK = re.compile(r"""```\w*\s*\n\s*[{\[]|[^\s\[:,{(]\s*\[?\{\s*"(?:name|tool|tool_name|function)"\s*:""").search
_LITERAL = re.compile(r"(?:-?\d[\d.eE+-]*+|true|false|null|True|False|None)\Z").match
_OPENS: Final = {"}": "{", "]": "["}


def doubt(repairs: Collection[JsonRepair], text: str) -> str:
    """Why a value that was read from `text` with these repairs may not be what was meant; `""` if it is certain."""
    for rule, why in _GUESSED.items():
        if rule in repairs:
            return why
    if not by_quotes(repairs):
        return ""
    if foreign_words(text):
        return "words between the tokens of JSON"
    return "a text in which another block may begin" if _BLOCK(text) else ""


def by_quotes(repairs: Collection[JsonRepair]) -> bool:
    """Whether quotes were to say where a string ends, and did not."""
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
    """The spans of the words that stand between the tokens of a JSON text; empty if it is no JSON without them, too."""
    found: list[tuple[int, int]] = []
    open_: list[str] = []
    # What may come next: "value", "key", "colon", or "more" (a comma, a closer).
    state = "value"
    for token in _TOKEN(text):
        span = token.span()
        mark = token["mark"]
        if token["string"]:
            if state == "value":
                state = "more"
            elif state == "key":
                state = "colon"
            else:
                return []
        elif token["word"]:
            if state == "value" and _LITERAL(token["word"]):
                state = "more"
            else:
                found.append(span)
        elif mark in ("{", "["):
            if state != "value":
                return []
            open_.append(mark)
            state = "key" if mark == "{" else "value"
        elif mark in _OPENS:
            if not open_ or open_.pop() != _OPENS[mark] or state == "colon" or (state == "value" and mark == "}"):
                return []
            if not open_:
                return found
            state = "more"
        elif mark == ",":
            if state == "more":
                state = "key" if open_ and open_[-1] == "{" else "value"
            elif found:  # a comma among the words
                found.append(span)
            else:
                return []
        elif mark == ":" and state == "colon":
            state = "value"
        elif token["other"] == '"' or (mark and not found):  # a quote that is never closed
            return []
        else:
            found.append(span)
    return found
