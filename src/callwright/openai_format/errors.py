"""OpenAI's errors for invalid requests, with their wording if it is known.

Source of the wording: public threads that quote the API, November 2026.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from callwright.errors import RequestError

_AT = re.compile(r"^(?P<what>.*?)(?: - at `\$?(?P<path>.*)`)?$", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<want>[^`]*)`(?:, got `(?P<got>[^`]*)`)?(?P<rest>.*)", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`")
_BAD_VALUE = re.compile(r"Invalid (?:enum )?value '?(?P<value>.*?)'?$")
_KINDS = {
    "str": "a string",
    "NoneType": "null",
    "int": "an integer",
    "float": "a decimal",
    "bool": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


# The arrays of a request that hold strings; the others hold objects.
_OF_STRINGS = ("stop", "modalities", "include")


def from_validation(
    error: msgspec.ValidationError, given: object, supported: Mapping[str, Sequence[str]]
) -> RequestError:
    """The error that OpenAI would return for a malformed request.

    `given` is the decoded request, `supported` the values that an enumeration takes, by path with `[]` for any index.
    """
    found = _AT.match(str(error))
    path = (found["path"] or "").removeprefix(".") if found else ""
    return _from_validation(error, value_at(given, path), supported)


def _from_validation(
    error: msgspec.ValidationError, value: object, supported: Mapping[str, Sequence[str]]
) -> RequestError:
    """See `from_validation`; `value` is the one at the position of the error."""
    parts = _AT.match(str(error))
    what, path = (parts["what"], (parts["path"] or "").removeprefix(".")) if parts else (str(error), "")
    if absent := _MISSING.match(what):
        param = f"{path}.{absent['name']}" if path else absent["name"]
        return RequestError(f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter")
    if bad := _BAD_VALUE.match(what):
        known = supported.get(re.sub(r"\[\d+\]", "[]", path), ())
        hint = f" Supported values are: {quote_list(known)}." if known else ""
        return RequestError(f"Invalid value: '{bad['value']}'.{hint}", param=path or None, code="invalid_value")
    expected = _EXPECTED.match(what)
    if expected is None:
        return RequestError(f"Invalid '{path}': {what}.", param=path or None, code="invalid_value")
    if expected["got"] and not path:
        got = _KINDS.get(expected["got"], expected["got"])
        return RequestError(f"Invalid request body: expected an object, but got {got} instead.", code="invalid_type")
    if expected["got"]:
        return RequestError(
            f"Invalid type for '{path}': expected {_kinds(expected['want'], path)}, "
            f"but got {_KINDS.get(expected['got'], expected['got'])} instead.",
            param=path or None,
            code="invalid_type",
        )
    return _limit(path, expected["want"], expected["rest"].strip(), value)


def _limit(path: str, kind: str, rule: str, value: object) -> RequestError:
    """A value of the right type outside its bounds; `rule` is msgspec's: `of length <= 4`, `<= 2.0`, `matching …`."""
    if found := re.match(r"of length (<=|>=) (\d+)", rule):
        noun = "array" if kind == "array" else "string"
        length = len(value) if isinstance(value, str | list) else 0
        word, code, bound = ("long", "above_max", "maximum") if found[1] == "<=" else ("short", "below_min", "minimum")
        return RequestError(
            f"Invalid '{path}': {noun} too {word}. Expected {'an array' if noun == 'array' else 'a string'} with "
            f"{bound} length {found[2]}, but got {'an array' if noun == 'array' else 'a string'} with length {length} "
            "instead.",
            param=path,
            code=f"{noun}_{code}_length",
        )
    if found := re.match(r"matching regex '(.*)'", rule):
        return RequestError(
            f"Invalid '{path}': string does not match pattern. Expected a string that matches the pattern "
            f"'{found[1]}'.",
            param=path,
            code="invalid_value",
        )
    if found := re.match(r"(<=|>=) (\S+)", rule):
        noun = "integer" if kind == "int" else "decimal"
        word, code = ("above maximum", "above_max") if found[1] == "<=" else ("below minimum", "below_min")
        limit = found[2].removesuffix(".0")
        return RequestError(
            f"Invalid '{path}': {noun} {word} value. Expected a value {found[1]} {limit}, but got {value} instead.",
            param=path,
            code=f"{noun}_{code}_value",
        )
    return RequestError(
        f"Invalid '{path}': expected {_KINDS.get(kind, kind)} {rule}.", param=path, code="invalid_value"
    )


def _kinds(union: str, path: str) -> str:
    """`one of a string or array of objects`: only the first kind has its article."""
    names = [_KINDS.get(kind, kind) for kind in union.split(" | ") if kind != "null"]
    items = "strings" if path in _OF_STRINGS else "objects"
    names = [f"{name} of {items}" if name == "an array" else name for name in names]
    if len(names) == 1:
        return names[0]
    bare = [name.removeprefix("an ").removeprefix("a ") for name in names[1:]]
    return f"one of {' or '.join([names[0], *bare])}"


def wrong_type(param: str, expected: str, given: object) -> RequestError:
    """The error for a value of another type; `expected` in msgspec's words, several as `str | object`."""
    got = type(given).__name__
    kinds = {"list": "array", "tuple": "array", "dict": "object"}
    error = msgspec.ValidationError(f"Expected `{expected}`, got `{kinds.get(got, got)}` - at `$.{param}`")
    return from_validation(error, None, {})


def type_error(
    error: msgspec.ValidationError, param: str, given: object, supported: Mapping[str, Sequence[str]] | None = None
) -> RequestError:
    """The error of a part of the request, with its path from the request's root: `given` is the part, at `param`.
    `supported`: see `from_validation`.
    """
    what, at, path = str(error).partition(" - at `$")
    inner = path.removesuffix("`") if at else ""
    told = msgspec.ValidationError(f"{what} - at `$.{param}{inner}`")
    return _from_validation(told, value_at(given, inner), supported or {})


def missing(param: str, hint: str = "") -> RequestError:
    """The error for a field that is not there; `hint` is what may have been meant."""
    told = f"Missing required parameter: '{param}'.{hint}"
    return RequestError(told, param=param, code="missing_required_parameter")


def quote_list(values: Sequence[str]) -> str:
    """`'a', 'b', and 'c'`."""
    quoted = [f"'{value}'" for value in values]
    if len(quoted) < 3:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"


def value_at(given: Any, path: str) -> Any:
    """The value at a path like `tools[0].function.name`, or None."""
    for step in re.findall(r"[^.\[\]]+", path):
        try:
            given = given[int(step)] if isinstance(given, list) else given[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return given
