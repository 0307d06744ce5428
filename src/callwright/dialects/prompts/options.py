"""Options of prompts that many formats share, and their names in layouts."""

import typing
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Literal

from callwright.dialects.base import RenderOptions


class ThinkingOptions(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `model` lets the model decide, `open` begins the answer inside reasoning, `off` after closed, empty
    reasoning.
    """

    thinking: Literal["model", "open", "off"] = "model"


class OpenThinkingOptions(ThinkingOptions, frozen=True, kw_only=True):
    """The same for templates that begin the answer inside reasoning by default."""

    thinking: Literal["model", "open", "off"] = "open"


@lru_cache(maxsize=256)
def option_values(options: RenderOptions) -> Mapping[str, Any]:
    """What layouts may name of options: each by its name, and each of the values that it may have."""
    values: dict[str, Any] = {}
    for name, words in _words(type(options)).items():
        value = getattr(options, name)
        values |= {word: word == value for word in words}
        values[name] = value
    return {**values, **options.slots()}


@cache
def _words(options: type[RenderOptions]) -> Mapping[str, tuple[str, ...]]:
    hints = typing.get_type_hints(options)
    return {name: _literals(hints[name]) for name in options.__struct_fields__}


def _literals(hint: Any) -> tuple[str, ...]:
    if typing.get_origin(hint) is Literal:
        return typing.get_args(hint)
    return tuple(word for inner in typing.get_args(hint) for word in _literals(inner))
