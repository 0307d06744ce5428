"""The arguments of a call, out of a schema and what a request names. Where a request names nothing, there stands what
the schema itself offers, or anything that fits.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from callwright.schema import validate
from callwright.schema.resolve import Schema, branches, wanted
from callwright.upstreams.simulated.matching import Match, is_free, matched, members, value_in
from callwright.upstreams.simulated.sampled import sampled_value
from callwright.upstreams.simulated.slots import MAX_VALUES, Layout, Path, Shape, Slot
from callwright.upstreams.simulated.spans import TODAY, spans
from callwright.upstreams.simulated.words import STOP_WORDS, meanings, words

__all__ = ["arguments_of", "is_all_named", "value_of"]

_MAX_CHARS: Final = 10_000
_MAX_CALLS: Final = 8
_MAX_ITEMS: Final = 16
_SURE: Final = 2  # so many values that are surely meant can be no accident
_EXAMPLE = re.compile(r"\be\.?g\.?,?:?\s+(?:[\"'`]([^\"'`]+)[\"'`]|([A-Z][\w-]*(?: [A-Z][\w-]*)*(?:, [A-Z]{2}\b)?))")
_BY_FORMAT: Final = {
    "date": TODAY.isoformat(),
    "date-time": f"{TODAY}T12:00:00Z",
    "time": "12:00:00Z",
    "email": "someone@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def arguments_of(schema: Schema, asked: str, known: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    """The arguments of each call that a request asks for: several, where it lists what a tool takes one of. `known`:
    the meanings of the words with which the tool is called. They fit the schema, if anything was found that does.
    """
    return _Filling({**schema, "type": "object"}, asked, known).values()[:_MAX_CALLS]


def is_all_named(schema: Schema, asked: str) -> bool:
    """Whether a request names all that a schema needs, and surely so: then it can be filled without a guess."""
    filled = _Filling({**schema, "type": "object"}, asked, frozenset())
    needed = [slot for slot in filled.slots if not slot.optional]
    sure = [match.sure for match in filled.matches() if not match.slot.optional]
    return len(needed) == len(sure) and sum(sure) >= _SURE


def value_of(schema: Schema, asked: str) -> Any:
    """A value that fits the schema, with what a text names."""
    return _Filling(schema, asked, frozenset()).values()[0]


class _Filling:
    """One schema being filled from one request."""

    def __init__(self, schema: Schema, asked: str, known: frozenset[str]) -> None:
        self._layout = Layout(schema, meanings(words(asked)))
        self._asked = asked
        self._known = known
        self.slots = self._layout.slots
        chosen = {slot: [*members(self._layout, slot, asked, known)] for slot in self.slots}
        cues = {word for slot in self.slots if "string" in slot.kinds for word in slot.names}
        self._spans = spans(asked, known, cues, [span for found in chosen.values() for span in found])
        self._for = {slot: [*self._spans, *found] for slot, found in chosen.items()}
        self._values: Mapping[Path, Any] = {}
        self._left = MAX_VALUES
        self._all = False

    def values(self) -> list[Any]:
        """What the schema is filled with, once for each of the things that are listed where it takes one."""
        chosen = self.matches()
        values = {match.slot.path: match.value for match in chosen}
        for match in chosen:
            if others := self._listed(match, chosen):
                return [self._built({**values, match.slot.path: other}) for other in others]
        return [self._built(values)]

    def matches(self) -> list[Match]:
        """The slots that the request fills; of a list of objects those of each item."""
        slots = self.slots
        found = matched(self._layout, slots, self._for, self._known)
        for first in {slot.path[: slot.path.index(0) + 1]: slot for slot in slots if 0 in slot.path}:
            slots_of_one = [slot for slot in slots if slot.path[: len(first)] == first]
            for number in range(1, _MAX_ITEMS):
                used = [match.span for match in found]
                more = matched(self._layout, slots_of_one, self._for, self._known, used)
                if {match.slot for match in more} != {match.slot for match in found if match.slot in slots_of_one}:
                    break
                at = len(first) - 1
                for match in more:
                    path = (*first[:at], number, *match.slot.path[at + 1 :])
                    found.append(replace(match, slot=replace(match.slot, path=path)))
        return found

    def _listed(self, match: Match, chosen: list[Match]) -> list[Any]:
        """The values of all that are listed with a span, if they are for the same slot, which takes one."""
        listed = [span for span in self._spans if span.group == match.span.group >= 0]
        used = any(span.overlaps(other.span) for span in listed for other in chosen if other is not match)
        if used or match.slot.several or len(listed) < 2:
            return []
        values = [value_in(self._layout, match.slot, span) for span in listed]
        return [] if None in values else values

    def _built(self, values: Mapping[Path, Any]) -> Any:
        """The whole value, with these at their places: without what may be left out, or else with all."""
        self._values = values
        root = self._layout.root
        made = []
        for self._all in (False, True):
            self._left = MAX_VALUES
            made.append(self._value(root, self._layout.shape, (), needed=True))
            if validate.is_valid(root, made[-1]):
                return made[-1]
        return sampled_value(root, made[0])

    def _value(self, schema: object, shape: Shape, path: Path, *, needed: bool) -> Any:
        part = self._layout.one(schema)
        match shape:
            case Slot():
                if path in self._values:
                    value = self._values[path]
                    return self._lengthened(part, value) if shape.several else value
                return self._offered(shape, schema, part)
            case [item]:
                if not self._is_named(item) and not (needed and part.get("minItems")):
                    return []
                named = len({at[len(path)] for at in self._values if at[: len(path)] == path})
                least = min(max(1, named, int(part.get("minItems", 1))), max(1, self._left))
                return [self._value(self._layout.item(part), item, (*path, at), needed=True) for at in range(least)]
        assert isinstance(shape, dict)
        if not needed and not self._is_named(shape) and "null" in self._layout.kinds(_mapping(schema)):
            return None
        required = part.get("required") or ()
        found = {
            key: self._value(part["properties"][key], inner, (*path, key), needed=key in required)
            for key, inner in shape.items()
            if key in required or self._all or self._is_named(inner)
        }
        return found | {key: self._text({}, key) for key in required if key not in found}

    def _is_named(self, shape: Shape) -> bool:
        """Whether the request names anything for it."""
        if isinstance(shape, Slot):
            return shape.path in self._values
        return any(self._is_named(inner) for inner in (shape if isinstance(shape, list) else shape.values()))

    def _lengthened(self, part: Schema, values: list[Any]) -> list[Any]:
        """A list with as many items as there have to be, and no more than there may be."""
        least = min(int(part.get("minItems", 1)), self._left)
        most = max(least, int(part.get("maxItems", len(values))))
        return [values[number % len(values)] for number in range(max(least, len(values)))][:most]

    # --- what the request does not name ---

    def _offered(self, slot: Slot, schema: object, part: Schema) -> Any:
        for given in (part, _mapping(schema)):
            for key in ("const", "default"):
                if given.get(key) is not None:
                    return given[key]
        if slot.optional and "null" in self._layout.kinds(_mapping(schema)):
            return None
        value = self._invented(slot, part)
        return value if self._layout.fits(part, value) else sampled_value(self._layout.closed(part), value)

    def _invented(self, slot: Slot, part: Schema, depth: int = 0) -> Any:
        self._left -= 1
        choices = branches(part, self._layout.root)
        if {wanted(one) for one in choices} == {"null"}:
            return None
        for one in choices:
            given = [*(one.get("examples") or ()), *(one.get("enum") or ())]
            if given or "const" in one:
                return given[0] if given else one["const"]
        one = next((one for one in choices if wanted(one) != "null"), part)
        match wanted(one):
            case "boolean":
                return False
            case "integer" | "number" as kind:
                return _number(one, whole=kind == "integer")
            case "array":
                least = min(int(one.get("minItems", 0)), max(0, self._left))
                items = self._layout.item(one)
                return [] if depth > 2 else [self._invented(slot, items, depth + 1) for _ in range(least)]
            case "object":
                return {key: self._text({}, key) for key in one.get("required") or ()}
        return self._text(one, str(slot.path[-1]) if slot.path else "answer", free=is_free(slot))

    def _text(self, part: Schema, key: str, *, free: bool = True) -> str:
        """A text: an example of the description, or what the request is about."""
        if part.get("format") in _BY_FORMAT:
            return _BY_FORMAT[part["format"]]
        example = _EXAMPLE.search(str(part.get("description", "")))
        if example and not free:
            text = example[1] or example[2]
        else:
            said = [span.text for span in self._spans if span.kind in ("quoted", "tail")]
            text = said[0] if said else self._rest() if free else ""
        text = (text or key).ljust(min(int(part.get("minLength", 0)), _MAX_CHARS), "x")
        return text[: int(part.get("maxLength", len(text)))]

    def _rest(self) -> str:
        """The words of the request without those that only ask."""
        said = [word for word in self._asked.rstrip("?.! ").split() if word.lower() not in STOP_WORDS]
        return " ".join(said)


def _mapping(schema: object) -> Schema:
    return schema if isinstance(schema, Mapping) else {}


def _number(part: Schema, *, whole: bool) -> int | float:
    number: int | float = part.get("minimum", 1)
    if "exclusiveMinimum" in part:
        number = max(number, part["exclusiveMinimum"] + 1)
    number = min(number, part.get("maximum", number))
    step = part.get("multipleOf")
    if step and number % step:
        number += step - number % step
    return int(number) if whole else number
