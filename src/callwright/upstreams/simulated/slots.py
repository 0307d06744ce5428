"""The places for values in a schema: its leaves, with what is known of each."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from callwright.schema import validate
from callwright.schema.resolve import Schema, branches, resolve, wanted
from callwright.upstreams.simulated.words import meanings, name_words, words

__all__ = ["MAX_VALUES", "Layout", "Path", "Shape", "Slot"]

Path: TypeAlias = tuple[str | int, ...]
# A slot, the members of an object, or the item of a list of objects.
Shape: TypeAlias = "Slot | dict[str, Shape] | list[Shape]"

MAX_VALUES: Final = 1_000  # a schema may demand more than anybody wants to read
_MAX_DEPTH: Final = 8


class Slot(Struct, frozen=True, eq=False):
    """A place for a value. `kinds` are the types that it takes, of a list (`several`) those of an item. `names` are the
    words of its name, `told` what its description and the objects around it mean. It may stay empty if `optional`;
    `open`: the schema says of no property that it is needed, so this one may be.
    """

    path: Path
    schema: Schema
    kinds: frozenset[str]
    names: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()
    optional: bool = False
    open: bool = False
    several: bool = False


class Layout:
    """The slots of a schema, in its order, and its shape. `said`, what a request means, tells which object it is where
    a schema leaves the choice.
    """

    def __init__(self, root: Schema, said: frozenset[str]) -> None:
        self.root = root
        self.slots: list[Slot] = []
        self._said = said
        self._definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
        self._left = MAX_VALUES
        self.shape = self._of(root, Slot((), root, frozenset()), ())

    def one(self, schema: object) -> Schema:
        """A schema with its references followed, and with one branch of it where all are objects or lists."""
        part = _together(resolve(schema, self.root), self.root)
        choices = [one for one in branches(part, self.root) if wanted(one) != "null"]
        if len(choices) < 2 and not (part.get("anyOf") or part.get("oneOf")):
            return part
        if not choices or any(wanted(one) not in ("object", "array") for one in choices):
            return part
        return max(choices, key=lambda one: len(meanings(words(str(one))) & self._said))

    def kinds(self, part: Schema) -> frozenset[str]:
        """The types that a schema takes; a text where it takes any."""
        members = part.get("enum") or ([part["const"]] if "const" in part else [])
        if members and "type" not in part:
            return frozenset({"string"})
        if "type" in part or "properties" in part:
            own = part.get("type", "object")
            return frozenset(own if isinstance(own, list) else {own})
        return frozenset({wanted(one) for one in branches(part, self.root)} - {""} or {"string"})

    def item(self, part: Schema) -> Schema:
        """The schema of what a list holds."""
        first = part.get("prefixItems") or [{}]
        return self.one(part.get("items", first[0]))

    def closed(self, schema: Schema) -> Schema:
        """A part of the schema that can stand alone."""
        return {**self._definitions, **schema}

    def fits(self, schema: Schema, value: object) -> bool:
        """Whether a value fits a part of the schema."""
        return validate.is_valid(self.closed(schema), value)

    def _of(self, schema: object, place: Slot, around: tuple[int, ...]) -> Shape:
        """The shape of a part, whose slots are noted. `around`: the schemas that it stands in; what leads back to one
        of them ends there.
        """
        part = self.one(schema)
        self._left -= 1
        given = schema if isinstance(schema, Mapping) else {}
        endless = len(place.path) > _MAX_DEPTH or id(part) in around or self._left < 0
        kinds = self.kinds(part)
        nullable = "null" in self.kinds(resolve(given, self.root)) and kinds != {"null"}
        described = str(given.get("description") or part.get("description") or "")
        names = frozenset(word.lower() for key in place.path[-1:] for word in name_words(str(key)))
        place = Slot(
            path=place.path,
            schema=part,
            kinds=kinds,
            names=names or place.names,
            told=place.told | meanings(words(described)),
            optional=place.optional or nullable or part.get("default") is not None,
            open=place.open,
        )
        if not endless and "object" in kinds and isinstance(part.get("properties"), Mapping):
            return self._members(part, place, (*around, id(part)))
        if "array" in kinds:
            items = self.item(part)
            if not endless and isinstance(items.get("properties"), Mapping):
                inner = Slot((*place.path, 0), items, kinds, place.names, place.told, place.optional, place.open)
                return [self._of(items, inner, (*around, id(part)))]
            kinds = self.kinds(items)
            place = Slot(place.path, items, kinds, place.names, place.told, place.optional, place.open, several=True)
        if not endless:
            self.slots.append(place)
        return place

    def _members(self, part: Schema, place: Slot, around: tuple[int, ...]) -> dict[str, Shape]:
        required = part.get("required") or ()
        shape: dict[str, Shape] = {}
        for key, schema in part["properties"].items():
            optional = place.optional or key not in required
            member = Slot(
                (*place.path, key),
                {},
                frozenset(),
                told=place.told | meanings(name_words(key)),
                optional=optional,
                open=optional and "required" not in part and (not place.path or place.open),
            )
            shape[key] = self._of(schema, member, around)
        return shape


def _together(part: Schema, root: Schema) -> Schema:
    """A schema with those that must hold beside it in it."""
    parts = part.get("allOf")
    if not isinstance(parts, list):
        return part
    every = [*(resolve(one, root) for one in parts), {key: value for key, value in part.items() if key != "allOf"}]
    merged: dict[str, Any] = {key: value for one in every for key, value in one.items()}
    properties = {key: value for one in every for key, value in (one.get("properties") or {}).items()}
    if properties:
        merged |= {"properties": properties, "required": [key for one in every for key in one.get("required") or ()]}
    return merged
