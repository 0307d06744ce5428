"""What stands in an `Annotated` beside the type: a description and bounds, by whatever library they were written.

`msgspec.Meta`, pydantic's `Field`, annotated-types and plain strings are read by what they have, without importing any
of them.
"""

import typing
from collections.abc import Iterator
from typing import Annotated, Any, Final

from msgspec import Struct

__all__ = ["Notes", "read_notes"]

_BOUNDS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS: Final = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_NUMBERS: Final = ("integer", "number")


class Notes(Struct, frozen=True):
    """A description, bounds by their name in Python (`ge`, `max_length`, …), and everything that stood there."""

    description: str = ""
    bounds: dict[str, Any] = {}
    all: tuple[Any, ...] = ()

    def applied(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema with them; in a union each branch gets the bounds that it can have."""
        made = self._bounded(schema) if self.bounds else dict(schema)
        if self.description:
            made["description"] = self.description
        return made

    def _bounded(self, schema: dict[str, Any]) -> dict[str, Any]:
        if "anyOf" in schema:
            return {**schema, "anyOf": [self._bounded(branch) for branch in schema["anyOf"]]}
        kind = schema.get("type")
        made = dict(schema)
        for name, bound in self.bounds.items():
            if name in _BOUNDS and kind in _NUMBERS:
                made[_BOUNDS[name]] = bound
            elif name == "pattern" and kind == "string":
                made["pattern"] = bound
            elif name in ("min_length", "max_length") and kind in _LENGTHS:
                made[_LENGTHS[kind][name == "max_length"]] = bound
        return made


def read_notes(annotation: Any) -> tuple[Any, Notes]:
    """The annotation without its outer `Annotated`, and what was beside it."""
    metadata: tuple[Any, ...] = ()
    while typing.get_origin(annotation) is Annotated:
        annotation, *more = typing.get_args(annotation)
        metadata = (*more, *metadata)
    if not metadata:
        return annotation, Notes()
    description = ""
    bounds: dict[str, Any] = {}
    for note in _spread(metadata):
        text = note if isinstance(note, str) else _of(note, "description") or _of(note, "documentation")
        if isinstance(text, str) and text:
            description = text
        for name in (*_BOUNDS, "min_length", "max_length"):
            bound = _of(note, name)
            if isinstance(bound, int | float) and not isinstance(bound, bool):
                bounds[name] = bound
        pattern = _of(note, "pattern")
        pattern = getattr(pattern, "pattern", pattern)  # a compiled one
        if isinstance(pattern, str):
            bounds["pattern"] = pattern
    return annotation, Notes(description, bounds, metadata)


def _spread(notes: tuple[Any, ...]) -> Iterator[Any]:
    """The notes; pydantic's `Field` keeps its bounds in notes of its own."""
    for note in notes:
        yield note
        inner = _of(note, "metadata")
        if isinstance(inner, list | tuple):
            yield from inner


def _of(note: Any, name: str) -> Any:
    return None if isinstance(note, str | type) else getattr(note, name, None)
