"""Arguments that are written like a program's: `city="Paris", days=[1, True]` as Python, or as Gemma's notation
`city:<|"|>Paris<|"|>,days:[1]`, in which strings are between delimiters and keys are sorted.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from callwright.conversation import Call
from callwright.layout.calls import arguments_object
from callwright.prompt import PromptBuilder

_IS_IDENTIFIER: Final = re.compile(r"[\w.$-]+\Z").match


def python_literal(value: Any) -> str:
    """A value as Python, with strings in double quotes."""
    match value:
        case bool() | None:
            return str(value)
        case Mapping():
            shown = (f"{json.dumps(key, ensure_ascii=False)}: {python_literal(inner)}" for key, inner in value.items())
            return f"{{{', '.join(shown)}}}"
        case list() | tuple():
            return f"[{', '.join(map(python_literal, value))}]"
    return json.dumps(value, ensure_ascii=False)


def with_python_booleans(value: Any) -> str:
    """A value as some templates show it: true and false as Python, lists and objects as JSON.

    They show null as Python, too, and some show lists and objects so. That cannot always be read back: `None` is a text
    where text is allowed, and so may a list be whose texts have quotes in them.
    """
    return str(value) if isinstance(value, bool) else json.dumps(value, ensure_ascii=False)


class PythonArguments(Struct, frozen=True):
    """Named arguments of a Python call, without its brackets. `literal` writes a value."""

    literal: Callable[[Any], str] = python_literal

    def put(self, out: PromptBuilder, call: Call, controls: tuple[str, ...]) -> None:
        members = arguments_object(call).items()
        out.text(", ".join(f"{_key(key)}={self.literal(value)}" for key, value in members))


def _key(key: str) -> str:
    return key if _IS_IDENTIFIER(key) else json.dumps(key, ensure_ascii=False)


class DelimitedArguments(Struct, frozen=True):
    """Members without their braces, keys sorted, strings between two of `quote`, which is a control token."""

    quote: str

    def put(self, out: PromptBuilder, call: Call, controls: tuple[str, ...]) -> None:
        _put_all(out, self.quote, ((f"{key}:", member) for key, member in _sorted(arguments_object(call)).items()))


def put_value(out: PromptBuilder, quote: str, value: Any) -> None:
    """Append a value in Gemma's notation."""
    match value:
        case str():
            out.control(quote).text(value).control(quote)
        case bool():
            out.text("true" if value else "false")
        case None:
            out.text("null")
        case Mapping():
            out.text("{")
            _put_all(out, quote, ((f"{key}:", member) for key, member in value.items()))
            out.text("}")
        case list() | tuple():
            out.text("[")
            _put_all(out, quote, (("", item) for item in value))
            out.text("]")
        case _:
            out.text(repr(value))


def _put_all(out: PromptBuilder, quote: str, values: Iterable[tuple[str, Any]]) -> None:
    for number, (lead, value) in enumerate(values):
        out.text("," if number else "").text(lead)
        put_value(out, quote, value)


def _sorted(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _sorted(value[key]) for key in sorted(value, key=str.lower)}
        case list() | tuple():
            return [_sorted(item) for item in value]
    return value
