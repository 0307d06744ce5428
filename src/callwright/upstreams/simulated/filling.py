"""Values by a schema: each span of a request goes to the property that it suits best, the rest is made up.

The worth of a span for a property depends on its form, on the names next to it and on the word that leads to it. The
worthiest pairs are taken first, then the order of the properties and of the request decides.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from callwright.schema import validate
from callwright.schema.resolve import Schema, branches, merged, resolve, wanted
from callwright.upstreams.simulated.sampled import sampled_value
from callwright.upstreams.simulated.spans import TODAY, Span, spans
from callwright.upstreams.simulated.words import SECONDS, STOP_WORDS, meaning, meanings, name_words, synonyms

Path: TypeAlias = tuple[str | int, ...]
# A slot, the members of an object, or the item of a list of objects.
Shape: TypeAlias = "Slot | Members | list[Shape]"

_MAX_CALLS: Final = 8
_MAX_ITEMS: Final = 16
_MAX_SLOTS: Final = 200
_MAX_DEPTH: Final = 12
_NAMED: Final = 6  # a word next to the span names the property
_LED: Final = 4  # the word that leads to the span leads to such a property; or the span has the form of the property
_NAMED_LIKE_TOOL: Final = 3  # the word next to the span names the property, or only the tool
_STRANGE: Final = -4
_SURE: Final = 2  # the number of certain values that is no accident


# The word before a value or the form of the value, and the names of properties for such values.
_WANTED: Final = {
    key: frozenset({*names.split()}.union(map(meaning, names.split())))
    for line in """
    from: source origin departure depart start begin base sender old from
    to into: to target dest destination arrival recipient end until output new language
    in: city room location place country region area timezone language to target
    at: time location place | for: duration query topic city location ticker name | of: city location name
    on: date day when topic | until: end to | with: person contact new | about regarding: subject topic query
    by: author artist user replace due deadline new | near: place location
    saying says say that: text body content | named called titled: name title label
    : text body content query title name
    email: email to recipient address cc bcc person contact | url: url link page address
    date: date day when deadline due start end departure birthday | time: time when at alarm start end
    datetime: datetime when time date start end deadline due at | path: path source destination
    expression: expression formula equation calculation expr | number: id number zip code amount
    code: id code number order ticker flight sku uuid | phone: phone number to recipient
    name: name city location place country ticker person timezone language artist title sign company
    quoted: text string query title name body content command old new
    """.replace("|", "\n").splitlines()
    for keys, _, names in [line.partition(": ")]
    for key in keys.split() or [":"]
}
# The worth of a span for a text with a name that asks for no form.
_PLAIN: Final = {"quoted": 3, "name": 2, "code": 1, "phrase": 1, "path": -1}
# Names of properties for whole sentences, and of switches.
_FREE: Final = meanings(
    "text body content query question prompt input subject title note description comment summary todo item label "
    "reminder topic phrase sentence command instruction term".split()
)
_SWITCHES: Final = frozenset("on off state power enabled active enable".split())
_TOKEN = re.compile(r"[^\W\d_]+|\d+|[^\w\s]")
_NOT = re.compile(r"\b(?:not|no|without|don'?t|never)\b(?:\W+\w+){0,2}\W*\Z", re.IGNORECASE)
_BY_FORMAT: Final = {
    "date": TODAY.isoformat(),
    "date-time": f"{TODAY}T12:00:00Z",
    "time": "12:00:00Z",
    "email": "someone@example.com",
    "uri": "https://example.com/",
}


class Slot(Struct, frozen=True, eq=False):
    """A place for a value. `kinds`: its types, of a list (`several`, its length at `least`) those of an item. `names`:
    the words of its name and their meanings.
    """

    path: Path
    schema: Schema
    kinds: frozenset[str]
    names: frozenset[str]
    optional: bool
    nullable: bool = False
    several: bool = False
    least: int = 0

    @property
    def is_free(self) -> bool:
        """Whether it takes whole sentences."""
        return not self.names.isdisjoint(_FREE)


class Members(Struct):
    """The members of an object."""

    of: dict[str, Shape]
    required: list[str]
    nullable: bool


class Match(Struct, frozen=True):
    """A slot with a span that fills it, and the value."""

    slot: Slot
    span: Span
    value: Any
    worth: int


def arguments_of(schema: Schema, asked: str, known: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    """The arguments of each call for a request: several if it lists values and the tool takes one. `known`: the
    meanings of the words that only name the tool. They fit the schema if any value was found that does.
    """
    return _Filling({**schema, "type": "object"}, asked, known).values()[:_MAX_CALLS]


def is_all_named(schema: Schema, asked: str) -> bool:
    """Whether a request certainly names all that a schema requires."""
    filling = _Filling({**schema, "type": "object"}, asked)
    needed = [match.worth >= _LED for match in filling.matches if not match.slot.optional]
    return len(needed) == sum(not slot.optional for slot in filling.slots) and sum(needed) >= _SURE


def value_of(schema: Schema, asked: str) -> Any:
    """A value that fits the schema, with what a request names."""
    return _Filling(schema, asked).values()[0]


class _Filling:
    """One schema filled from one request."""

    def __init__(self, schema: Schema, asked: str, known: frozenset[str] = frozenset()) -> None:
        self._root = schema
        self._definitions = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
        self._asked = asked
        self._known = known
        self.slots: list[Slot] = []
        self._shape = self._shape_of(schema, Slot((), schema, frozenset(), frozenset(), optional=False), ())
        chosen = {slot: [*self._members(slot)] for slot in self.slots}
        cues = {word for slot in self.slots if "string" in slot.kinds for word in slot.names}
        self._spans = spans(asked, known, cues, [span for found in chosen.values() for span in found])
        self._for = {slot: [*self._spans, *found] for slot, found in chosen.items()}
        self.matches = self._matched(self.slots)
        self._repeat()

    def values(self) -> list[Any]:
        """The value, once for each of the spans in a list if the schema takes one."""
        named = {match.slot.path: match.value for match in self.matches}
        for match in self.matches:
            listed = [span for span in self._spans if span.group == match.span.group >= 0]
            used = any(span.overlaps(other.span) for span in listed for other in self.matches if other is not match)
            others = [self._value_in(match.slot, span) for span in listed]
            if not (used or match.slot.several or len(listed) < 2 or None in others):
                return [self._built({**named, match.slot.path: other}) for other in others]
        return [self._built(named)]

    # --- the slots ---

    def _one(self, schema: object) -> Schema:
        """A schema without references, `null` and choices between objects."""
        choices = [one for one in branches(schema, self._root) if wanted(one) != "null"]
        if len(choices) == 1 or all(wanted(one) == "object" for one in choices):
            return merged(choices)
        return resolve(schema, self._root)

    def _shape_of(self, schema: object, place: Slot, inside: tuple[int, ...]) -> Shape:
        """The shape of a schema, with its slots noted. `inside`: the schemas around it; it ends if one returns."""
        target = id(resolve(schema, self._root))
        part = self._one(schema)
        kinds = frozenset(wanted(one) or "string" for one in branches(schema, self._root))
        names = [word.lower() for word in name_words(str(place.path[-1]))] if place.path else []
        place = replace(
            place,
            schema={**self._definitions, **part},
            kinds=kinds - {"null"} or kinds,
            names=frozenset({*names}.union(map(meaning, names))),
            optional=place.optional or ("null" in kinds and len(kinds) > 1) or part.get("default") is not None,
            nullable="null" in kinds,
        )
        if target in inside or len(inside) > _MAX_DEPTH or len(self.slots) > _MAX_SLOTS:
            return place
        inside = (*inside, target)
        if "object" in kinds and isinstance(part.get("properties"), Mapping):
            required = part.get("required") or []
            properties = {**part["properties"], **{key: {} for key in required if key not in part["properties"]}}
            of = {
                key: self._shape_of(
                    inner,
                    replace(place, path=(*place.path, key), optional=place.optional or key not in required),
                    inside,
                )
                for key, inner in properties.items()
            }
            return Members(of, required, place.nullable)
        if "array" in kinds:
            items = self._one(part.get("items", (part.get("prefixItems") or [{}])[0]))
            if isinstance(items.get("properties"), Mapping):
                return [self._shape_of(items, replace(place, path=(*place.path, 0)), inside)]
            item_kinds = frozenset(wanted(one) or "string" for one in branches(items, self._root))
            least = min(int(part.get("minItems", 0)), _MAX_ITEMS)
            items = {**self._definitions, **items}
            place = replace(place, schema=items, kinds=item_kinds, several=True, least=least)
        self.slots.append(place)
        return place

    def _members(self, slot: Slot) -> Iterator[Span]:
        """The words that choose a value of an enumeration; or for yes or no the name of the slot."""
        values = {
            str(member): str(member) for one in branches(slot.schema, self._root) for member in one.get("enum", ())
        }
        tokens = [*_TOKEN.finditer(self._asked)]
        said = [meaning(token[0]) for token in tokens]
        if "boolean" in slot.kinds:
            named = [name for name in slot.names - STOP_WORDS if meaning(name) not in self._known]
            is_named = all(meaning(name) in said for name in named)  # `replace_all` is more than to replace
            values = dict.fromkeys(named, "true") if is_named else {}
            values |= {"on": "true", "off": "false"} if slot.names & _SWITCHES else {}
        for member, value in values.items():
            run = [meaning(word) for word in name_words(member) or [member]]
            for at in range(len(tokens) - len(run) + 1):
                if said[at : at + len(run)] == run:
                    start, end = tokens[at].start(), tokens[at + len(run) - 1].end()
                    denied = "boolean" in slot.kinds and _NOT.search(self._asked[:start])
                    before = tuple(token[0].lower() for token in tokens[max(0, at - 2) : at])
                    cue = before[-1] if before and before[-1] in _WANTED else ""
                    after = tokens[at + len(run)][0] if at + len(run) < len(tokens) else ""
                    yield Span(start, end, "member", ("false" if denied else value,), cue, before, after)

    # --- which span for which slot ---

    def _matched(self, slots: list[Slot], used: tuple[Span, ...] = ()) -> list[Match]:
        """The slots that the request fills, in their order; of a list with all its values."""
        pairs = []
        for number, slot in enumerate(slots):
            for place, span in enumerate(self._for[slot]):
                worth = self._worth(slot, span)
                if worth < (_LED if slot.optional else 0) or any(span.overlaps(other) for other in used):
                    continue
                if (value := self._value_in(slot, span)) is not None:
                    rank = worth - 2 * (slot.optional and span.kind != "member")
                    pairs.append((-rank, number, place, Match(slot, span, value, worth)))
        taken: list[Match] = []
        for *_, match in sorted(pairs, key=lambda pair: pair[:3]):
            mine = [other.span for other in taken if other.slot is match.slot]
            listed = match.slot.several and mine and mine[0].group == match.span.group >= 0
            if (listed or not mine) and not any(match.span.overlaps(other.span) for other in taken):
                taken.append(match)
        taken.sort(key=lambda match: match.span.start)
        found: list[Match] = []
        for slot in slots:
            if of_slot := [match for match in taken if match.slot is slot]:
                values = [match.value for match in of_slot]
                found.append(replace(of_slot[0], value=values) if slot.several else of_slot[0])
        return found

    def _repeat(self) -> None:
        """Match a list of objects again for each further item."""
        for first in {slot.path[: slot.path.index(0)]: slot for slot in self.slots if 0 in slot.path}:
            at = len(first)
            slots = [slot for slot in self.slots if slot.path[: at + 1] == (*first, 0)]
            filled = {match.slot for match in self.matches if match.slot in slots}
            for number in range(1, _MAX_ITEMS):
                more = self._matched(slots, tuple(match.span for match in self.matches))
                if {match.slot for match in more} != filled:
                    break
                self.matches += [
                    replace(match, slot=replace(match.slot, path=(*first, number, *match.slot.path[at + 1 :])))
                    for match in more
                ]

    def _worth(self, slot: Slot, span: Span) -> int:
        near = {meaning(word) for word in (*span.before, span.unit) if word and word not in STOP_WORDS} & slot.names
        wants = {key for key in (span.cue, span.kind) if not _WANTED.get(key, frozenset()).isdisjoint(slot.names)}
        worth = _NAMED_LIKE_TOOL if near else 0
        if span.cue in slot.names or near - self._known:
            worth = _NAMED
        elif span.cue in wants:
            worth = _LED
        if span.kind == "member":
            return worth + _LED
        if "string" not in slot.kinds:
            return worth + 2 + _LED * (meaning(span.unit) in SECONDS and bool(slot.names & SECONDS.keys()))
        if span.kind == "tail":
            return worth + (2 if slot.is_free else -2)
        if span.kind == "phrase":
            listed = span.group >= 0 and (slot.several or not slot.is_free)
            return worth + 1 + (bool(span.cue) and not slot.is_free) + listed
        plain = _PLAIN.get(span.kind, _STRANGE)
        if span.kind in wants or "format" in slot.schema:
            plain = _LED + max(0, plain)
        return worth + plain - (span.kind == "name" and slot.is_free)

    # --- values ---

    def _value_in(self, slot: Slot, span: Span) -> Any:
        """The first form of a span that fits the slot; None if none does."""
        more = synonyms(span.forms[0]) if "string" in slot.kinds and " " not in span.forms[0] else ()
        values = (_converted(form, slot, span) for form in (*span.forms, *more))
        return next((one for one in values if one is not None and validate.is_valid(slot.schema, one)), None)

    def _built(self, named: Mapping[Path, Any]) -> Any:
        """The whole value, with these at their places."""
        made = self._value(self._shape, (), named)
        return made if validate.is_valid(self._root, made) else sampled_value(self._root, made)

    def _value(self, shape: Shape, path: Path, named: Mapping[Path, Any]) -> Any:
        inside = {at[len(path)] for at in named if at[: len(path)] == path and len(at) > len(path)}
        if isinstance(shape, Slot):
            return named[path] if path in named else self._offered(shape)
        if isinstance(shape, list):
            return [self._value(shape[0], (*path, number), named) for number in range(len(inside))]
        if shape.nullable and not inside:
            return None
        return {
            key: self._value(inner, (*path, key), named)
            for key, inner in shape.of.items()
            if key in inside or key in shape.required
        }

    def _offered(self, slot: Slot) -> Any:
        """A value for a slot that the request does not name."""
        choices = [one for one in branches(slot.schema, self._root) if wanted(one) != "null"]
        part = choices[0] if choices else {}
        offered = [slot.schema.get("const"), slot.schema.get("default")]
        offered += [] if slot.nullable else [part.get("const"), *part.get("examples", ()), *part.get("enum", ())]
        if found := [one for one in offered if one is not None]:
            return found[0]
        if slot.nullable or not choices:
            return None
        if slot.several:
            return [self._offered(replace(slot, several=False))] * slot.least
        if "string" in slot.kinds:
            value: Any = self._text(slot)
        else:
            value = {"boolean": False, "object": {}, "array": []}.get(min(slot.kinds), max(1, part.get("minimum", 1)))
        return value if validate.is_valid(slot.schema, value) else sampled_value(slot.schema, value)

    def _text(self, slot: Slot) -> str:
        """The subject of the request, or a value by the format."""
        said = next((span.forms[0] for span in self._spans if span.kind in ("quoted", "tail")), "")
        if not said and slot.is_free:
            said = " ".join(word for word in self._asked.rstrip("?.! ").split() if word.lower() not in STOP_WORDS)
        return _BY_FORMAT.get(str(slot.schema.get("format"))) or said or str(slot.path[-1] if slot.path else "answer")


def _converted(form: str, slot: Slot, span: Span) -> Any:
    """A form of a span as a value of the slot's type; None if it has no such value."""
    if span.kind == "member":
        if "boolean" in slot.kinds:
            return form == "true"
        return next((member for member in slot.schema.get("enum", ()) if str(member) == form), form)
    if "string" in slot.kinds:
        return form
    if not slot.kinds & {"integer", "number"} or span.kind not in ("number", "code"):
        return None
    try:
        number = float(form)
    except ValueError:
        return None
    unit = next((SECONDS[meaning(name)] for name in slot.names if meaning(name) in SECONDS), 0)
    if unit and meaning(span.unit) in SECONDS:
        number = number * SECONDS[meaning(span.unit)] / unit
    if number == int(number):
        return int(number)
    return number if "number" in slot.kinds else round(number)
