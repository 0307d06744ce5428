"""Values by a schema: each span of a request fills the property that it suits best; the rest is made up.

The worth of a span for a property depends on its form, on the names next to it and on the word that leads to it. The
worthiest pairs are taken first, then the order of the properties and of the request decides.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from callwright.schema import validate
from callwright.schema.keywords import properties, required
from callwright.schema.resolve import Schema, branches, merged, resolve, wanted_type
from callwright.upstreams.simulated.sampled import fitting_value
from callwright.upstreams.simulated.spans import TODAY, Span, spans
from callwright.upstreams.simulated.words import SECONDS, STOP_WORDS, meaning, meanings, name_words, synonyms

Path: TypeAlias = tuple[str, ...]

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
    for key, names in {
        "from": "source origin departure start begin base sender old from",
        "to": "target dest destination arrival recipient end until output new language",
        "in": "city room location place country region timezone language to target",
        "for": "duration query topic city location name",
        "by": "author artist replace due deadline new",
        "that": "text body content message",
        "saying": "text body content message",
        "called": "name title label",
        "email": "email to recipient address contact",
        "url": "url link page",
        "date": "date day when deadline due start end begins",
        "time": "time when at start end begins",
        "datetime": "datetime when time date start end begins",
        "expression": "expression formula equation calculation",
        "number": "id number amount",
        "path": "path source destination",
        "code": "id code number order order_id flight",
        "name": "name city location place country person people title company sign",
    }.items()
}
# The worth of a span for a text with a name that asks for no form.
_PLAIN: Final = {"quoted": 3, "name": 2, "code": 1, "phrase": 1, "path": -1}
# Names of properties for whole sentences.
_FREE: Final = meanings(
    "text body content query question prompt input subject title note description summary task item label reminder "
    "topic command instruction".split()
)
_TOKEN: Final = re.compile(r"[^\W\d_]+|\d+|[^\w\s]")
_NOT: Final = re.compile(r"\b(?:not|no|without|don'?t|never)\b(?:\W+\w+){0,2}\W*\Z", re.IGNORECASE)
_BY_FORMAT: Final = {
    "date": TODAY.isoformat(),
    "date-time": f"{TODAY}T12:00:00Z",
    "time": "12:00:00Z",
    "email": "someone@example.com",
    "uri": "https://example.com/",
}


class Slot(Struct, frozen=True, eq=False):
    """A place for a value. `kinds`: its types, of a list (`several`) those of an item. `names`: the words of its name
    and their meanings. `is_free`: it takes whole sentences.
    """

    path: Path
    schema: Schema
    kinds: frozenset[str]
    names: frozenset[str]
    optional: bool
    several: bool
    is_free: bool


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
    """A value that fits the schema, with the values that a request names."""
    return _Filling(schema, asked).values()[0]


class _Filling:
    """One schema filled from one request."""

    def __init__(self, schema: Schema, asked: str, known: frozenset[str] = frozenset()) -> None:
        self._root = schema
        self._definitions = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
        self._asked = asked
        self._known = known
        self.slots = [*islice(self._slots_of(schema, (), optional=False), _MAX_SLOTS)]
        chosen = {slot: [*self._members(slot)] for slot in self.slots}
        cues = {word for slot in self.slots if "string" in slot.kinds for word in slot.names}
        self._spans = spans(asked, known, cues, [span for found in chosen.values() for span in found])
        self.matches = self._matched({slot: [*self._spans, *found] for slot, found in chosen.items()})

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

    def _one(self, schema: object) -> tuple[Schema, frozenset[str]]:
        """A schema without references, `null` and choices between objects; and its types."""
        each = branches(schema, self._root)
        choices = [one for one in each if wanted_type(one) != "null"]
        is_one = len(choices) == 1 or all(wanted_type(one) == "object" for one in choices)
        part = merged(choices) if is_one else resolve(schema, self._root)
        return {**self._definitions, **part}, frozenset(wanted_type(one) or "string" for one in each)

    def _slots_of(self, schema: object, path: Path, *, optional: bool) -> Iterator[Slot]:
        """The slots of a schema; one that contains itself ends by its depth."""
        part, kinds = self._one(schema)
        if len(path) > _MAX_DEPTH:
            return
        optional = optional or ("null" in kinds and len(kinds) > 1) or part.get("default") is not None
        if "object" in kinds and (members := _members_of(part)):
            for key, inner in members.items():
                yield from self._slots_of(inner, (*path, key), optional=optional or key not in required(part))
            return
        several = "array" in kinds
        if several:
            part, kinds = self._one(part.get("items", {}))
        words = [word.lower() for word in name_words(path[-1])] if path else []
        names = frozenset({*words, *map(meaning, words)})
        yield Slot(path, part, kinds - {"null"} or kinds, names, optional, several, not names.isdisjoint(_FREE))

    def _members(self, slot: Slot) -> Iterator[Span]:
        """The words that choose a value of an enumeration; or for yes or no the name of the slot."""
        values = {str(member): member for one in branches(slot.schema, self._root) for member in one.get("enum", ())}
        tokens = [*_TOKEN.finditer(self._asked)]
        said = [meaning(token[0]) for token in tokens]
        if "boolean" in slot.kinds:
            named = [name for name in slot.names - STOP_WORDS if meaning(name) not in self._known]
            is_named = all(meaning(name) in said for name in named)  # `replace_all` is more than to replace
            values = dict.fromkeys(named if is_named else (), True)
            values |= {"on": True, "off": False} if "on" in slot.names else {}
        for member, value in values.items():
            run = [meaning(word) for word in name_words(member) or [member]]
            for at in range(len(tokens) - len(run) + 1):
                if said[at : at + len(run)] == run:
                    start, end = tokens[at].start(), tokens[at + len(run) - 1].end()
                    before = tuple(token[0].lower() for token in tokens[max(0, at - 2) : at])
                    cue = before[-1] if before and before[-1] in _WANTED else ""
                    denied = "boolean" in slot.kinds and _NOT.search(self._asked[:start])
                    after = tokens[at + len(run)][0] if at + len(run) < len(tokens) else ""
                    yield Span(start, end, "member", (False if denied else value,), cue, before, after)

    # --- which span for which slot ---

    def _matched(self, candidates: Mapping[Slot, Sequence[Span]]) -> list[Match]:
        """The slots that the request fills, in their order; of a list with all its values."""
        ranked: list[tuple[int, Match]] = []
        for slot, each in candidates.items():
            for span in each:
                worth = self._worth(slot, span)
                value = self._value_in(slot, span) if worth >= (_LED if slot.optional else 0) else None
                if value is not None:
                    rank = worth - 2 * (slot.optional and span.kind != "member")
                    ranked.append((-rank, Match(slot, span, value, worth)))
        taken: list[Match] = []
        for _, match in sorted(ranked, key=itemgetter(0)):
            mine = [other.span for other in taken if other.slot is match.slot]
            listed = match.slot.several and mine and mine[0].group == match.span.group >= 0
            if (listed or not mine) and not any(match.span.overlaps(other.span) for other in taken):
                taken.append(match)
        taken.sort(key=lambda match: match.span.start)
        of_slot = [(slot, [match for match in taken if match.slot is slot]) for slot in candidates]
        return [
            replace(found[0], value=[match.value for match in found]) if slot.several else found[0]
            for slot, found in of_slot
            if found
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
            return worth + 2 + _LED * (meaning(span.unit) in SECONDS and not slot.names.isdisjoint(SECONDS))
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
        forms = span.forms
        if span.kind != "member" and "string" not in slot.kinds:
            forms = _numbers(slot, span)
        elif span.kind != "member" and " " not in forms[0]:
            forms = (*forms, *synonyms(forms[0]))
        return next((form for form in forms if validate.is_valid(slot.schema, form)), None)

    def _built(self, named: Mapping[Path, Any]) -> Any:
        """The whole value, with these at their places."""
        return fitting_value(self._root, self._value(self._root, (), named))

    def _value(self, schema: object, path: Path, named: Mapping[Path, Any]) -> Any:
        if path in named:
            return named[path]
        part, kinds = self._one(schema)
        inside = {at[len(path)] for at in named if at[: len(path)] == path}
        if len(path) > _MAX_DEPTH or ("null" in kinds and not inside):
            return part.get("default")
        if "object" in kinds and (members := _members_of(part)):
            needed = inside.union(required(part))
            return {key: self._value(inner, (*path, key), named) for key, inner in members.items() if key in needed}
        return fitting_value(part, self._offered(part, kinds, path))

    def _offered(self, part: Schema, kinds: frozenset[str], path: Path) -> Any:
        """A value that the request does not name."""
        first = next(iter(branches(part, self._root)), {})
        offered = (part.get("const"), part.get("default"), *first.get("examples", ()), *first.get("enum", ()))
        if found := [one for one in offered if one is not None]:
            return found[0]
        if "array" in kinds:
            inner, inner_kinds = self._one(part.get("items", {}))
            least = min(int(part.get("minItems", 0)), _MAX_ITEMS)
            return [self._offered(inner, inner_kinds, path)] * least
        if "string" in kinds:
            return self._text(part, path)
        return {"boolean": False, "object": {}}.get(min(kinds), max(1, first.get("minimum", 1)))

    def _text(self, part: Schema, path: Path) -> str:
        """The subject of the request, or a value by the format."""
        said = next((span.forms[0] for span in self._spans if span.kind in ("quoted", "tail")), "")
        if not said and path and not _FREE.isdisjoint(meanings(name_words(path[-1]))):
            said = " ".join(word for word in self._asked.rstrip("?.! ").split() if word.lower() not in STOP_WORDS)
        return _BY_FORMAT.get(str(part.get("format"))) or said or (path[-1] if path else "answer")


def _members_of(part: Schema) -> dict[str, Any]:
    """The schemas of an object's members, those that are only required included."""
    declared = properties(part)
    return {key: declared.get(key, {}) for key in (*declared, *required(part))}


def _numbers(slot: Slot, span: Span) -> tuple[float, ...]:
    """The number of a span in the unit of a slot; empty if there is no number, or the slot takes no numbers."""
    if not slot.kinds & {"integer", "number"} or span.kind not in ("number", "code"):
        return ()
    try:
        number = float(span.forms[-1])
    except ValueError:
        return ()
    unit = next((SECONDS[meaning(name)] for name in slot.names if meaning(name) in SECONDS), 0)
    if unit and meaning(span.unit) in SECONDS:
        number = number * SECONDS[meaning(span.unit)] / unit
    return (number if "number" in slot.kinds and number != int(number) else round(number),)
