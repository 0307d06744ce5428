"""Validates the arguments of agents, hooks and tools when they are created, not in a later run.

Errors name the argument and the expected type. This module imports no agent.
"""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from callwright.errors import RequestError
from callwright.tolerant_json.codec import NotJsonError, encode


def check_text(place: str, given: object, *, may_be_none: bool = False) -> None:
    """Raise `RequestError` unless `given` is a string. `place` names the argument: `Agent(name=…)`."""
    if not isinstance(given, str) and not (may_be_none and given is None):
        raise wrong(place, "a text", given)


def check_flag(place: str, given: object, *, may_be_none: bool = False) -> None:
    if not isinstance(given, bool) and not (may_be_none and given is None):
        raise wrong(place, "True or False", given)


def check_function(place: str, given: object, what: str, arguments: int, *, may_take_none: bool = False) -> None:
    """Raise `RequestError` unless `given` is callable with `arguments` arguments (or 0 if `may_take_none`).

    `what` describes it: "a function of the call".
    """
    if not callable(given):
        raise wrong(place, what, given)
    try:
        signature = inspect.signature(given)
    except (TypeError, ValueError) as error:
        if not may_take_none:  # with `may_take_none` the caller reads the signature
            return
        why = "one whose parameters cannot be read. Write a function of your own around it"
        raise RequestError(f"{place}: expected {what}, got {why}.", param=_param(place)) from error
    try:
        signature.bind(*[None] * (0 if may_take_none and not signature.parameters else arguments))
    except TypeError as error:
        got = f"{getattr(given, '__name__', type(given).__name__)}{signature}, which cannot be called so: {error}"
        raise RequestError(f"{place}: expected {what}, got {got}.", param=_param(place)) from error


def check_listed(place: str, given: Any, what: str, kind: type | None = None) -> Any:
    """Return `given`. Raises `RequestError` unless it is a list (with items of `kind`)."""
    name = _param(place)
    if not isinstance(given, Iterable) or isinstance(given, str):
        got = type(given).__name__
        raise RequestError(f"{place}: expected a list of {what}, got {got}. Write {name}=[…].", param=name)
    for number, one in enumerate(given if kind is not None else ()):
        if kind is not None and not isinstance(one, kind):
            got = type(one).__name__
            raise RequestError(f"{place}: expected {what}, got {got}.", param=f"{name}[{number}]")
    return given


def check_json(place: str, given: object) -> None:
    """Raise `RequestError` unless `given` is a mapping of names to JSON values."""
    if not isinstance(given, Mapping):
        raise wrong(place, "names and values, such as {'temperature': 0.2}", given)
    for name, value in given.items():
        if not isinstance(name, str):
            raise RequestError(f"{place}: expected names, got {name!r:.80}.", param=_param(place))
        try:
            encode(value)
        except (TypeError, NotJsonError, RecursionError, OverflowError) as error:
            why = f"{place}: {name!r} is {type(value).__name__}, which has no form in JSON: {error}."
            raise RequestError(why, param=f"{_param(place)}.{name}") from error


def wrong(place: str, expected: str, given: object) -> RequestError:
    """The error for an argument of the wrong type."""
    return RequestError(f"{place}: expected {expected}, got {in_words(given)}.", param=_param(place))


def in_words(given: object) -> str:
    """The type of an argument, and its value if that is informative."""
    if given is None or isinstance(given, type):
        return repr(given)
    kind = type(given).__name__
    return f"{kind}: {given!r:.80}" if isinstance(given, bool | int | float | str | bytes | list | dict) else kind


def _param(place: str) -> str:
    return place.partition("(")[2].partition("=")[0]
