"""A tool's schema with the lookups that every call needs, computed once: clients resend the tool with each request.

Knows no call: `callwright.calls` reads the model's output.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from callwright.conversation import FunctionTool
from callwright.schema.keywords import properties, required
from callwright.schema.plain import tool_schema
from callwright.schema.resolve import Schema, branches, merged, root_properties, wanted_type
from callwright.schema.validate import Validator, validator_of

_EMPTY: Final[Schema] = {}
# Of a tool with more parameters the places are found out as calls need them.
_MAX_KEPT: Final = 256


class Place(Struct, frozen=True):
    """The values allowed at one place: the branches of its schema, and those that an object or an array may match."""

    choices: list[Schema]
    objects: list[Schema]
    arrays: list[Schema]
    takes_any_text: bool  # one of the branches does
    takes_only_text: bool  # all of them do


class Members(Struct, frozen=True):
    """The members of an object that may match any of some branches: their merged schema, its members, the required
    ones, and those that every branch declares.
    """

    schema: Schema
    declared: Mapping[str, Any]
    needed: frozenset[str]
    everywhere: frozenset[str]


def place_of(schema: object, root: Schema) -> Place:
    """The values allowed by `schema`, a part of `root`."""
    choices = branches(schema, root)
    kinds = [wanted_type(choice) for choice in choices]
    texts = [
        kind in ("", "string") and "enum" not in choice and "const" not in choice
        for choice, kind in zip(choices, kinds, strict=True)
    ]
    return Place(
        choices,
        [choice for choice, kind in zip(choices, kinds, strict=True) if kind in ("", "object")],
        [choice for choice, kind in zip(choices, kinds, strict=True) if kind in ("", "array")],
        any(texts),
        all(texts),
    )


def members_of(choices: Sequence[Schema]) -> Members:
    """The members of an object that may match any of these."""
    schema = merged(choices)
    declared = properties(schema)
    everywhere = frozenset(declared).intersection(*map(properties, choices))
    return Members(schema, declared, frozenset(required(schema)), everywhere)


class CompiledSchema:
    """The schema of a tool's arguments; an empty one if it has none."""

    def __init__(self, schema: Schema | None) -> None:
        self.schema = schema or _EMPTY
        self._validator: Validator | None = None

    @property
    def validator(self) -> Validator | None:
        """None if any value is valid."""
        found = self._validator
        if found is None and self.schema:
            found = validator_of(self.schema)
            if not found.is_large:
                self._validator = found
        return found

    @cached_property
    def properties(self) -> Mapping[str, Any]:
        """The members that it declares, in whatever branch."""
        return root_properties(self.schema)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all members that it declares, at whatever depth."""
        found: set[str] = set()
        open_: list[object] = [self.schema]
        while open_:
            part = open_.pop()
            found.update(key for key in properties(part) if isinstance(key, str))
            if isinstance(part, Mapping):
                open_ += part.values()
            elif isinstance(part, list | tuple):
                open_ += part
        return frozenset(found)

    @cached_property
    def objects(self) -> list[Schema]:
        """The objects that the arguments may be."""
        return place_of(self.schema, self.schema).objects or [_EMPTY]

    @cached_property
    def members(self) -> Members:
        """What these may hold."""
        return members_of(self.objects)

    @cached_property
    def places(self) -> Mapping[int, Place]:
        """The values allowed for each member, by the `id()` of its schema, which lives as long as this object."""
        declared = self.members.declared.values()
        return {id(part): place_of(part, self.schema) for part in declared} if len(declared) <= _MAX_KEPT else {}


def compiled_schema(tool: FunctionTool | None) -> CompiledSchema:
    """The schema of a tool; an empty one for none."""
    if tool is None:
        return _NOTHING
    return tool.once("schema", lambda tool: CompiledSchema(tool_schema(tool)))


_NOTHING: Final = CompiledSchema(None)
