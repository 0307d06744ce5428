"""Values against JSON Schemas: compiled once per schema, kept by content, no network.

The engine is jsonschema-rs. A schema that it cannot compile (an unknown `$ref`, a broken `pattern`) checks nothing: a
tool must not become useless because its author's schema is odd.
"""

from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import msgspec

from callwright.schema.cache import kept_by_text
from callwright.schema.size import has_more_returns
from callwright.tolerant_json.codec import encode

__all__ = ["Fault", "faults", "is_valid", "unread"]

# Steps a pattern with lookaround or back-references may take on one value; more counts as no match.
_BACKTRACK_LIMIT = 20_000
# To judge a value the engine goes each way once, to say what is wrong it goes all of them: so many take 20 ms.
_MAX_RETURNS = 1_000


class Fault(msgspec.Struct, frozen=True):
    """Where a value does not fit its schema: `path` as in `$.items[0].name`, `message` for people and models."""

    path: str
    message: str


def is_valid(schema: Mapping[str, Any], value: object) -> bool:
    """Whether `value` fits."""
    validator, _ = _validator(schema)
    try:
        return validator is None or validator.is_valid(value)
    except (ValueError, UnicodeEncodeError):  # a lone surrogate, a key that is no string: no JSON value
        return False


def faults(schema: Mapping[str, Any], value: object, most: int = 5) -> list[Fault]:
    """The first `most` places where `value` does not fit; empty when it does."""
    validator, _ = _validator(schema)
    if validator is None:
        return []
    try:
        if validator.is_valid(value):
            return []
        if has_more_returns(schema, value, _MAX_RETURNS):
            return [Fault("$", "the value does not fit, and there are too many ways to read it to say where")]
        found = []
        for error in validator.iter_errors(value):
            found.append(Fault(_path(error.instance_path), error.message))
            if len(found) == most:
                break
        return found
    except (ValueError, UnicodeEncodeError) as error:
        return [Fault("$", f"not a JSON value: {error}")]


def unread(schema: Mapping[str, Any]) -> str:
    """Why a schema checks nothing; empty where it does."""
    return _validator(schema)[1]


def _path(steps: list[str | int]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _validator(schema: Mapping[str, Any]) -> tuple[jsonschema_rs.Validator | None, str]:
    """The schema compiled, or why it cannot be."""
    return _compiled(encode(schema))


@kept_by_text
def _compiled(schema: bytes) -> tuple[jsonschema_rs.Validator | None, str]:
    parsed = msgspec.json.decode(schema)
    why = ""
    # Linear patterns first; the backtracking engine, bounded, only for those that need it.
    for patterns in (jsonschema_rs.RegexOptions(), jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACK_LIMIT)):
        try:
            made = jsonschema_rs.validator_for(parsed, validate_formats=True, offline=True, pattern_options=patterns)
        except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
            why = str(getattr(error, "message", error)) or type(error).__name__
        else:
            return made, ""
    return None, why
