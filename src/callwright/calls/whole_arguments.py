"""Recognise complete arguments that need no repair, without parsing them step by step."""

import re
from collections.abc import Mapping
from typing import Any, Final

from callwright.schema.compiled import CompiledSchema
from callwright.tolerant_json.codec import NotJsonError, decode

# How names end in a JSON text, and what looks like it within its strings.
_NAME_ENDS: Final = re.compile(r'"\s*+:')
# The strings of a JSON text; those with a colon are names.
_STRINGS: Final = re.compile(r'"(?:[^"\\]++|\\.|(?!))*+"(\s*+:)?')
_NESTED: Final = frozenset((dict, list, float))


def is_valid_as_is(text: str, schema: CompiledSchema) -> bool:
    """Whether a text is an object that the schema takes as it is written. Not for nested objects, whose names may need
    repair, nor for numbers that are to be written as integers, nor for names that were given twice.
    """
    if not (text.startswith("{") and text.endswith("}")):
        return False
    try:
        value = decode(text)
    except NotJsonError:
        return False
    validator = schema.validator
    return (
        value.keys() <= schema.properties.keys()
        and all(map(_is_flat, value.values()))
        and _has_names_once(text, value)
        # A schema that cannot be read validates nothing, but may still repair.
        and (validator is None or (not validator.unread and validator.is_valid(value)))
    )


def _is_flat(value: object) -> bool:
    """Whether a value is a text, an integer or a literal, or a list of these."""
    if isinstance(value, list):
        return _NESTED.isdisjoint(map(type, value))
    return type(value) not in _NESTED


def _has_names_once(text: str, value: Mapping[str, Any]) -> bool:
    """Whether a flat object that was read from this text has no name twice there."""
    at_most = len(_NAME_ENDS.findall(text))
    return at_most == len(value) or len(list(filter(None, _STRINGS.findall(text)))) == len(value)
