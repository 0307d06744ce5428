"""Which span of a request fills which slot of a schema.

Each pair has a worth: by type, by what the span looks like, by the names around it and by the word that leads to it.
The worthiest pairs are taken first; among equals the order of the properties and that of the request decide. What
does not fit the slot's own schema never enters.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from callwright.schema.resolve import branches
from callwright.upstreams.simulated.slots import Layout, Slot
from callwright.upstreams.simulated.spans import Span
from callwright.upstreams.simulated.words import SECONDS, STOP_WORDS, meaning, name_words, synonyms

__all__ = ["Match", "is_free", "matched", "members", "value_in"]

_NAMED: Final = 6  # the property is named by a word before the span or behind it
_NAMED_LIKE_TOOL: Final = 3  # but that word may only have named the tool
_LED: Final = 4  # the word that leads to the span leads to such a property
_LOOKS_LIKE: Final = 4  # the property is named like what the span looks like
_WORTH_SAYING: Final = 4  # what an optional property must be worth to be filled
_LESS_FOR_OPTIONAL: Final = 2
_AWAY: Final = 3  # the word that leads to the span leads to the property's opposite


def _table(rows: str) -> Mapping[str, frozenset[str]]:
    lines = [line.split() for line in rows.strip().splitlines()]
    return {key: frozenset(meaning(name) for name in names) | {*names} for key, *names in lines}


# The words before a value, and the names of properties to which they lead.
_LEADS: Final = _table(
    """
    from from source origin departure depart start begin base sender old
    to to target dest destination arrival recipient end until output new language
    into to target dest destination output language
    in in city room location place country region area timezone language to target
    at at time location place
    for for duration query topic city location ticker name
    of of city location name
    on on date day when topic
    until until end to
    with with person contact new
    about about subject topic query
    regarding subject topic
    by by author artist user replace due deadline new
    near near location place
    saying text body content
    says text body content
    say text body content
    that text body content
    named name title label
    called name title label
    titled name title label
    : text body content query title name
    """
)
_OPPOSITE: Final = {"from": "to", "to": "from", "into": "from", "until": "from"}
# What a span looks like, and the names of properties that want it.
_LOOKS: Final = _table(
    """
    email email to recipient address cc bcc person contact
    url url link page address
    uuid uuid id
    date date day when deadline due start end departure birthday
    time time when at alarm start end
    datetime datetime when time date start end deadline due at
    path path source destination
    expression expression formula equation calculation expr
    number id number zip code amount
    code id code number order ticker flight sku
    name name city location place country ticker person timezone language artist title sign company
    unit unit from source base currency
    phone phone number to recipient
    quoted text string query title name body content command old new
    """
)
# What a span is worth to a text whose name says nothing of its looks.
_PLAIN: Final = {"quoted": 3, "name": 2, "code": 1, "phrase": 1, "unit": -1, "uuid": -1, "path": -1}
_STRANGE: Final = -4
# Names of what takes whole sentences, and of what is on or off.
_FREE: Final = frozenset(
    meaning(name)
    for name in "text body content query question prompt input subject title note description comment summary todo "
    "item label reminder topic phrase sentence command instruction term".split()
)
_SWITCHES: Final = frozenset("on off state power enabled active enable".split())
_TOKEN = re.compile(r"[^\W\d_]+|\d+|[^\w\s]")
_NOT = re.compile(r"\b(?:not|no|without|don'?t|never)\b(?:\W+\w+){0,2}\W*\Z", re.IGNORECASE)
_ISO = re.compile(r"[Yy]{4}|HH|ISO")


class Match(Struct, frozen=True):
    """A slot with a span that fills it, the value, and what the pair is worth. Of a list it is the first span."""

    slot: Slot
    span: Span
    value: Any
    worth: int

    @property
    def sure(self) -> bool:
        """Whether something said that the span is for this slot, beside its type."""
        return self.worth >= _WORTH_SAYING


def is_free(slot: Slot) -> bool:
    """Whether a slot takes whole sentences."""
    return any(meaning(name) in _FREE for name in slot.names)


def matched(
    layout: Layout,
    slots: Sequence[Slot],
    spans: Mapping[Slot, Sequence[Span]],
    known: frozenset[str],
    used: Sequence[Span] = (),
) -> list[Match]:
    """The slots that a request fills, in their order. `spans` are those that may fill a slot, without what is `used`;
    `known` the meanings of the words with which the tool is called.
    """
    pairs = []
    for number, slot in enumerate(slots):
        least = 1 if slot.open else _WORTH_SAYING if slot.optional else 0
        for place, span in enumerate(spans[slot]):
            worth = _worth(layout, slot, span, known)
            free = worth >= least and not any(span.overlaps(other) for other in used)
            if free and (value := value_in(layout, slot, span)) is not None:
                rank = worth - _LESS_FOR_OPTIONAL * (slot.optional and span.kind != "member")
                pairs.append(((-rank, number, place), Match(slot, span, value, worth)))
    taken: list[Match] = []
    for _, match in sorted(pairs, key=lambda pair: pair[0]):
        mine = [other.span for other in taken if other.slot is match.slot]
        listed = match.slot.several and mine and mine[0].group == match.span.group >= 0
        if (listed or not mine) and not any(match.span.overlaps(other.span) for other in taken):
            taken.append(match)
    return [_together(of) for slot in slots if (of := [match for match in taken if match.slot is slot])]


def _together(matches: list[Match]) -> Match:
    """The matches of one slot as one."""
    first, *_ = matches = sorted(matches, key=lambda match: match.span.start)
    if not first.slot.several:
        return first
    return Match(first.slot, first.span, [match.value for match in matches], first.worth)


# --- words that choose ---


def members(layout: Layout, slot: Slot, asked: str, known: frozenset[str]) -> Iterator[Span]:
    """The words that mean one of the values that a slot may have; or the slot itself, where that is yes or no and the
    word is not `known` as one with which the tool is called.
    """
    tokens = [*_TOKEN.finditer(asked)]
    said = [meaning(token.group()) for token in tokens]
    values = {
        str(member): str(member) for one in branches(slot.schema, layout.root) for member in one.get("enum") or ()
    }
    if "boolean" in slot.kinds:
        named = {name for name in slot.names - STOP_WORDS if meaning(name) not in known}
        is_named = all(meaning(name) in said for name in named)  # `replace_all` is more than to replace
        values = dict.fromkeys(named, "true") if is_named else {}
        values |= {"on": "true", "off": "false"} if slot.names & _SWITCHES else {}
    for member, value in values.items():
        run = [meaning(word) for word in name_words(member) or [member]]
        for at in range(len(tokens) - len(run) + 1):
            if said[at : at + len(run)] == run:
                start, end = tokens[at].start(), tokens[at + len(run) - 1].end()
                denied = "boolean" in slot.kinds and _NOT.search(asked[:start])
                before = tuple(token.group().lower() for token in tokens[max(0, at - 2) : at])
                cue = before[-1] if before and before[-1] in _LEADS else ""
                behind = tokens[at + len(run)].group() if at + len(run) < len(tokens) else ""
                yield Span(start, end, "member", ("false" if denied else value,), cue, before, behind)


# --- worth ---


def _worth(layout: Layout, slot: Slot, span: Span, known: frozenset[str]) -> int:
    """What a span is worth to a slot, before its value is looked at."""
    names = slot.names.union(meaning(name) for name in slot.names)
    worth = _worth_of_words(slot, span, names, known)
    if span.kind == "member":
        return worth + _LOOKS_LIKE
    if "string" not in slot.kinds:
        return worth + 2 + (_LED if meaning(span.unit) in SECONDS and names & SECONDS.keys() else 0)
    if span.kind == "tail":
        return worth + (2 if is_free(slot) else -2)
    if span.kind == "phrase":
        listed = span.group >= 0 and (slot.several or not is_free(slot))
        return worth + _PLAIN["phrase"] + (bool(span.cue) and not is_free(slot)) + listed
    looks = _LOOKS.get(span.kind, frozenset())
    plain = _PLAIN.get(span.kind, 0)
    if looks & names or any(one.get("format") for one in branches(slot.schema, layout.root)):
        worth += _LOOKS_LIKE
        plain = max(0, plain)
    elif looks & slot.told:
        worth += 2
    elif span.kind not in _PLAIN:
        worth += _STRANGE
    if span.kind not in _PLAIN and is_free(slot):
        worth += _STRANGE
    return worth + plain - (span.kind == "name" and is_free(slot))


def _worth_of_words(slot: Slot, span: Span, names: frozenset[str], known: frozenset[str]) -> int:
    """What the words around a span say of a slot."""
    around = {meaning(word) for word in (*span.before, span.unit) if word and word not in STOP_WORDS}
    opposite = _LEADS[_OPPOSITE[span.cue]] if span.cue in _OPPOSITE else frozenset()
    away = _AWAY if opposite & names and not _LEADS[span.cue] & names else 0
    if span.cue in slot.names or around & names - known:
        return _NAMED - away
    if _LEADS.get(span.cue, frozenset()) & names:
        return _LED
    if around & names:
        return _NAMED_LIKE_TOOL - away
    return (1 if around & slot.told else 0) - away


# --- values ---


def value_in(layout: Layout, slot: Slot, span: Span) -> Any:
    """The first of the ways to write a span that fits the slot's schema; None where none does."""
    for way in _ways(slot, span):
        value = _converted(way, slot, span)
        if value is not None and layout.fits(slot.schema, value):
            return value
    return None


def _ways(slot: Slot, span: Span) -> Sequence[str]:
    if span.kind in ("date", "time", "datetime") and _ISO.search(str(slot.schema.get("description", ""))):
        return (*span.ways[1:], span.text)
    return (*span.ways, *synonyms(span.text)) if "string" in slot.kinds and " " not in span.text else span.ways


def _converted(way: str, slot: Slot, span: Span) -> Any:
    """A way to write a span as a value of the slot's type; None where it is none."""
    if span.kind == "member" and "boolean" in slot.kinds:
        return way == "true"
    if span.kind == "member":
        return next((member for member in slot.schema.get("enum") or () if str(member) == way), way)
    if "string" in slot.kinds:
        return way
    if not slot.kinds & {"integer", "number"} or span.kind not in ("number", "code"):
        return None
    try:
        number = float(way)
    except ValueError:
        return None
    unit = next((SECONDS[meaning(name)] for name in slot.names if meaning(name) in SECONDS), 0)
    if unit and meaning(span.unit) in SECONDS:
        number = number * SECONDS[meaning(span.unit)] / unit
    if number == int(number):
        return int(number)
    return number if "number" in slot.kinds else round(number)
