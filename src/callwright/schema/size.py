"""How large schemas become in use: their references followed, the repetitions in their patterns written out.

That bounds the work of a validator; a schema of a few lines can expand to millions of parts.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from callwright.schema.keywords import DEFINITIONS
from callwright.schema.resolve import pointed_at
from callwright.settings import bounds

# Nested references: more than real schemas have, less than the validator's stack allows.
_MAX_CHAIN: Final = 100
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
# Keywords whose schemas hold for the value itself, and for the items of a list.
_COMBINED: Final = ("anyOf", "oneOf", "allOf", "not", "if", "then", "else")
_OF_ITEMS: Final = ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains")
_NAMES: Final = ("$anchor", "$dynamicAnchor", "$id", "id")
# A class by a property of Unicode is some hundred ranges.
_CLASS_SIZE: Final = 50
_ATOM: Final = re.compile(
    r"(?P<unicode>\\[pP](?:\{[^}]*\}|.))|\\.|(?P<class>\[\^?\]?(?:\\.|[^\]\\]|(?!))*+\]?)|(?P<open>\((?:\?[^)]*?[:=!>])?)"
    r"|(?P<close>\))|(?P<count>\{(?P<least>\d*+),?(?P<most>\d*+)\})|(?P<other>.)",
    re.DOTALL,
)
_LONGEST_COUNT: Final = 9
# Words in a schema that can multiply its size, and the escape that can hide them.
_LARGER: Final = ("$ref", "Ref", "pattern", "\\u")
# A part of a schema takes no less in a text: `1,`.
_PART_BYTES: Final = 2


def has_more_parts(schema: Mapping[str, Any], most: int) -> bool:
    """Whether a schema has more objects, and other values in its lists, than this, those that it refers to included
    each time; a reference within itself is not followed. So is one whose references lead through more than a hundred
    others.
    """
    places = _Places(schema)
    waiting: list[tuple[object, frozenset[str]]] = [(schema, frozenset())]
    parts = 0
    while waiting and parts <= most:
        value, inside = waiting.pop()
        if isinstance(value, list):
            inner = [(item, inside) for item in value if isinstance(item, dict | list)]
            parts += len(value) - len(inner)
            waiting += inner
        elif isinstance(value, dict):
            parts += 1
            for reference in {value[word] for word in _REFERENCES if isinstance(value.get(word), str)} - inside:
                if len(inside) >= _MAX_CHAIN:
                    return True
                waiting.append((places.find(reference), inside | {reference}))
            waiting += [
                (item, inside)
                for key, item in value.items()
                if key not in DEFINITIONS and isinstance(item, dict | list)
            ]
    return parts > most


def may_be_large(text: bytes | str) -> bool:
    """Whether JSON may contain a schema with a `schema_fault`: a fast check, which is False for most."""
    if len(text) > bounds.MAX_SCHEMA_PARTS * _PART_BYTES:
        return True
    if isinstance(text, bytes):
        return any(word.encode() in text for word in _LARGER)
    return any(word in text for word in _LARGER)


def schema_fault(schema: Mapping[str, Any]) -> str | None:
    """A description of the limit that a schema exceeds, or None."""
    if has_more_parts(schema, bounds.MAX_SCHEMA_PARTS):
        return f"expected at most {bounds.MAX_SCHEMA_PARTS} parts with all references followed, got more."
    size = sum(map(pattern_size, patterns(schema)))
    if size > bounds.MAX_PATTERN_SIZE:
        return (
            f"expected patterns of at most {bounds.MAX_PATTERN_SIZE} characters with their repetitions written out, "
            f"got {size}."
        )
    return None


def has_more_returns(schema: Mapping[str, Any], value: object, most: int) -> bool:
    """Whether a validator that tries every path repeats more than `most` visits of the same parts of value and schema.

    With recursive references through unions the paths multiply with each level of the value.
    """
    ways = _Ways(schema)
    try:
        return ways.visits(value, schema) - ways.first > most
    except RecursionError:
        return True


class _Ways:
    """The ways of a validator through a schema. `first`: how often a part of a value met a part of the schema first."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.first = 0
        self._places = _Places(schema)
        self._known: dict[tuple[int, int], int] = {}

    def visits(self, value: object, schema: object) -> int:
        """The number of visits of a part of a schema for a value, including nested ones."""
        if not isinstance(schema, dict):
            return 0
        if not isinstance(value, dict | list):
            self.first += 1
            return 1
        key = (id(value), id(schema))
        if key not in self._known:
            self.first += 1
            self._known[key] = 1  # while it is counted: a recursive reference counts once
            parts = ((value, part) for part in _beside(schema, self._places))
            self._known[key] += sum(self.visits(inner, part) for inner, part in (*parts, *_inside(value, schema)))
        return self._known[key]


def _beside(schema: Mapping[str, Any], places: "_Places") -> Iterator[object]:
    """The schemas that hold for the same value as this one."""
    for word in _REFERENCES:
        if isinstance(schema.get(word), str):
            yield places.find(schema[word])
    for word in _COMBINED:
        yield from schema[word] if isinstance(schema.get(word), list) else (schema.get(word),)
    if isinstance(schema.get("dependentSchemas"), dict):
        yield from schema["dependentSchemas"].values()


def _inside(value: object, schema: Mapping[str, Any]) -> Iterator[tuple[object, object]]:
    """The parts of a value with the schemas that may hold for them."""
    if isinstance(value, dict):
        named, patterns = (schema.get(word) for word in ("properties", "patternProperties"))
        for name, inner in value.items():
            yield inner, named.get(name) if isinstance(named, dict) else None
            yield inner, schema.get("additionalProperties")
            yield inner, schema.get("unevaluatedProperties")
            yield from ((inner, part) for part in (patterns.values() if isinstance(patterns, dict) else ()))
    elif isinstance(value, list):
        for inner in value:
            for word in _OF_ITEMS:
                parts = schema.get(word)
                yield from ((inner, part) for part in (parts if isinstance(parts, list) else (parts,)))


class _Places:
    """The targets of references in a schema: by their path, or by the name that a part declares for itself."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._found: dict[str, object] = {}
        self._named: dict[str, Mapping[str, Any]] | None = None

    def find(self, reference: str) -> object:
        if reference not in self._found:
            self._found[reference] = self._sought(reference)
        return self._found[reference]

    def _sought(self, reference: str) -> object:
        name, _, path = reference.partition("#")
        found = pointed_at(reference, self._schema) if not path or path.startswith("/") else None
        if found is not None:
            return found
        if self._named is None:
            self._named = dict(_names(self._schema))
        if not path.startswith("/"):
            return self._named.get(path or name.rpartition("/")[2])
        # Within a part that has an id of its own, paths begin there.
        parts = (pointed_at(f"#{path}", part) for part in self._named.values())
        return next((part for part in parts if part is not None), None)


def _names(schema: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for part in _parts(schema):
        for word in _NAMES:
            if isinstance(part.get(word), str):
                yield part[word].rstrip("#/").rpartition("/")[2], part


def _parts(schema: object) -> Iterator[dict[str, Any]]:
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            yield value
            waiting += value.values()


def most_properties(schema: Mapping[str, Any]) -> int:
    """The number of properties that a schema declares without its definitions, or that of its largest definition."""
    defined = [schema[word].values() for word in DEFINITIONS if isinstance(schema.get(word), Mapping)]
    root = {key: value for key, value in schema.items() if key not in DEFINITIONS}
    return max(map(_declared, (root, *(part for each in defined for part in each))))


def _declared(schema: object) -> int:
    named = (part.get("properties") for part in _parts(schema))
    return sum(len(properties) for properties in named if isinstance(properties, Mapping))


def patterns(schema: object) -> Iterator[str]:
    """All regular expressions in a schema."""
    for part in _parts(schema):
        if isinstance(part.get("pattern"), str):
            yield part["pattern"]
        if isinstance(part.get("patternProperties"), dict):
            yield from part["patternProperties"]


def pattern_size(pattern: str) -> int:
    """About how many characters a regular expression has to match when every counted repetition is written out."""
    sizes = [0]  # of the groups that are open
    latest = 0  # of the atom that a quantifier would repeat
    for found in _ATOM.finditer(pattern):
        match found.lastgroup:
            case "open":
                sizes.append(0)
                latest = 0
                continue
            case "close":
                latest = sizes.pop() if len(sizes) > 1 else 1
            case "count" | "least" | "most":
                times = int((found["most"] or found["least"] or "1")[:_LONGEST_COUNT])
                sizes[-1] += latest * max(0, times - 1)
                latest *= times
                continue
            case "unicode" | "class" if r"\p" in found[0].lower():
                latest = _CLASS_SIZE
            case _:
                latest = 1
        sizes[-1] += latest
    return sum(sizes)
