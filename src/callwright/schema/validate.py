"""Values against JSON Schemas: compiled once per schema, cached by content, no network.

The engine is jsonschema-rs. A schema that it cannot compile (an unknown `$ref`, a broken `pattern`) checks nothing: a
tool must not become useless because its author's schema is odd. Nor does one that expands beyond its bounds: the
engine would never finish.
"""

from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs
import msgspec

from callwright.memo.by_text import kept_by_text
from callwright.memo.latest import Latest
from callwright.schema.size import has_more_returns, may_be_large, pattern_size, patterns, schema_fault
from callwright.tolerant_json.codec import encode

# Steps a pattern with lookaround or back-references may take on one value; more counts as no match.
_BACKTRACK_LIMIT = 20_000
# The memory of a compiled pattern, by its size with repetitions written out: `.` and `\p{L}` take most. Validators of
# more than `_SMALL` bytes share the room of `_LARGE`, and one counts as half of it at most.
_BYTES_OF_PATTERN: Final = 1_600
_SMALL: Final = 262_144
_LARGE: Final[Latest[bytes, "Validator"]] = Latest(134_217_728)
_LARGEST: Final = 67_108_864
# To validate a value the engine takes each path once, to list its errors all of them: this number takes 20 ms.
_MAX_RETURNS = 1_000


class Fault(msgspec.Struct, frozen=True):
    """A violation of a schema: `path` as in `$.items[0].name`, `message` for people and models."""

    path: str
    message: str


class Validator(msgspec.Struct, frozen=True):
    """A compiled schema. `unread`: why it could not be compiled, in which case every value is valid; else empty.
    `is_large`: its patterns need too much memory to be cached with anything else.
    """

    schema: Mapping[str, Any]
    engine: jsonschema_rs.Validator | None
    unread: str
    is_large: bool = False

    def is_valid(self, value: object) -> bool:
        """Whether `value` fits."""
        try:
            return self.engine is None or self.engine.is_valid(value)
        except (ValueError, UnicodeEncodeError):  # a lone surrogate, a key that is no string: no JSON value
            return False

    def faults(self, value: object, most: int = 5) -> list[Fault]:
        """The first `most` places where `value` does not fit; empty when it does."""
        if self.engine is None:
            return []
        try:
            if self.engine.is_valid(value):
                return []
            if has_more_returns(self.schema, value, _MAX_RETURNS):
                return [Fault("$", "the value does not fit, and there are too many ways to read it to say where")]
            found = []
            for error in self.engine.iter_errors(value):
                found.append(Fault(_path(error.instance_path), error.message))
                if len(found) == most:
                    break
            return found
        except (ValueError, UnicodeEncodeError) as error:
            return [Fault("$", f"not a JSON value: {error}")]


def validator_of(schema: Mapping[str, Any]) -> Validator:
    """The compiled schema; the latest are cached. Callers that need one often should hold on to it."""
    text = encode(schema)
    size = _BYTES_OF_PATTERN * sum(map(pattern_size, patterns(schema))) if b"attern" in text else 0
    if size <= _SMALL:
        return _compiled(text)
    found = _LARGE.young.get(text)
    if found is None:
        found = _LARGE.old.get(text) or msgspec.structs.replace(_make_validator(text), is_large=True)
        _LARGE.keep(text, found, min(size, _LARGEST))
    return found


def is_valid(schema: Mapping[str, Any], value: object) -> bool:
    """Whether `value` fits."""
    return validator_of(schema).is_valid(value)


def _path(steps: list[str | int]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _make_validator(text: bytes) -> Validator:
    schema = msgspec.json.decode(text)
    if may_be_large(text) and (fault := schema_fault(schema)):
        return Validator(schema, None, fault.removesuffix("."))
    why = ""
    # Linear patterns first; the backtracking engine, bounded, only for those that need it.
    for kind in (jsonschema_rs.RegexOptions(), jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACK_LIMIT)):
        try:
            made = jsonschema_rs.validator_for(schema, validate_formats=True, offline=True, pattern_options=kind)
        except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
            why = str(getattr(error, "message", error)) or type(error).__name__
        else:
            return Validator(schema, made, "")
    return Validator(schema, None, why)


_compiled: Final = kept_by_text(_make_validator)
