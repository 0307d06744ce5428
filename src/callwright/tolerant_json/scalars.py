"""Values without quotes: numbers in loose forms (`+1`, `.5`, `1_000`), literals of Python or JavaScript, words."""

import re
from typing import Final, Literal

from callwright.tolerant_json.codec import encode
from callwright.tolerant_json.tree import Node

is_number = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z").match
_LOOSE_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*+(?:\.[\d_]*+)?|\.\d[\d_]*+)(?:[eE][+-]?\d+)?\Z").match
_PADDED = re.compile(r"[+-]?0\d+(?:\.\d+)?\Z").match
_HALF_NUMBER = re.compile(r"(?P<whole>[+-]?\d++(?:\.\d*+)?)[eE][+-]?\Z|[+-]\Z").match
_LITERALS: Final = {
    "true": "true",
    "false": "false",
    "null": "null",
    "none": "null",
    "nil": "null",
    "undefined": "null",
}

ScalarRepair = Literal["half_value", "literal_spelling", "number_form", "unquoted_text"]


def scalar(word: str, *, at_end: bool) -> tuple[Node, ScalarRepair | None]:
    """The value of an unquoted word, and the repair that was needed, if any.

    `at_end`: the text ends after the word inside a container, so `tru` may be the first half of `true`.
    """
    if is_number(word):
        return Node("number", word, word), None
    if literal := _LITERALS.get(word.lower()):
        return Node("literal", literal, word), None if word == literal else "literal_spelling"
    if _LOOSE_NUMBER(word) and (number := _number(word)):
        return Node("number", number, word), "number_form"
    if half := _HALF_NUMBER(word):
        return Node("half", word, _number(half["whole"] or "") or "0"), "half_value"
    whole = next((literal for literal in ("true", "false", "null") if literal.startswith(word)), "") if at_end else ""
    if whole:
        return Node("half", word, whole), "literal_spelling"
    text = word
    if word[-1] in "\"'" and word[-1] not in word[:-1]:  # its opening quote is missing
        text = word[:-1]
    # `007` is no number in JSON. The schema knows whether it was meant as one.
    return Node("word", encode(text).decode(), word), "number_form" if _PADDED(word) else "unquoted_text"


def _number(word: str) -> str:
    """A loosely written number in JSON's form; `""` if it cannot be one."""
    text = word.replace("_", "").removeprefix("+")
    sign = "-" if text.startswith("-") else ""
    text = text.removeprefix("-")
    text = f"0{text}" if text.startswith(".") else text
    mantissa, mark, exponent = text.replace("E", "e").partition("e")
    mantissa = f"{mantissa}0" if mantissa.endswith(".") else mantissa
    number = sign + mantissa + mark + exponent
    return number if is_number(number) else ""
