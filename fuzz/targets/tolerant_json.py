"""Texts that a model meant as JSON: strict JSON keeps its value, whatever is answered is JSON, a text that comes in
pieces reads as the whole one, and nothing raises but `NotJsonError`.
"""

import json
from typing import Any

import callwright
from callwright import NotJsonError
from fuzz import values
from fuzz.words import JSON_ATOMS, TEXT_ATOMS, spliced
from tests.support.choices import Choices
from tests.support.properties import strict_json
from tests.support.tolerant import read

__all__ = ["run"]

ATOMS = (*JSON_ATOMS * 2, *TEXT_ATOMS, "yes", "nil", '<|"|>', "(1, 2)", "{'a': 1}", "b'x'", 'r"x"', "1.", ".5", "+1")


def run(draw: Choices) -> None:
    """See the module."""
    schema = values.arguments(draw) if draw.once_in(3) else None
    text = draw.text(ATOMS, 16) if draw.once_in(2) else values.written(draw, values.value(draw))
    if not draw.once_in(6):
        text = spliced(draw, text, ATOMS)
    try:
        got = callwright.loads(text, schema)
    except NotJsonError:
        got = None
    json.loads(json.dumps(got, allow_nan=False))
    if schema is None:
        _assert_strict_stays(text, got)
    text = "[" + text  # a value is read behind its gap
    assert _shape(read(text)) == _shape(read(draw.cuts(text))) == _shape(read([text]))


def _shape(found: Any) -> Any:
    return found.text, found.repairs, found.cut, found.rest


def _assert_strict_stays(text: str, got: Any) -> None:
    try:
        strict = strict_json(text)
    except (ValueError, AssertionError, RecursionError):
        return
    if isinstance(strict, str) and strict.lstrip()[:1] in ("{", "["):
        return  # what such a text holds may be meant
    if "\\u" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        return  # halves of pairs are no JSON to a strict reader
    if "Infinity" in json.dumps(strict):
        return  # no number that there is
    assert json.dumps(got) == json.dumps(strict), f"{text!r} is {strict!r}, read as {got!r}"
