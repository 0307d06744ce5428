"""What a request names: numbers, quoted texts, addresses, dates, names, and the phrases between them.

Each span knows where it stands, which word leads to it (`to Rome`), what stands around it (`5 minutes`), and in which
ways its value can be written. Spans may overlap; who uses one uses up the place.
"""

import re
from collections.abc import Collection, Iterator
from datetime import date, timedelta
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from callwright.upstreams.simulated.words import NUMBER_WORDS, STOP_WORDS, meaning, meanings, words

__all__ = ["TODAY", "Span", "quoted", "spans"]

TODAY: Final = date(2026, 1, 15)  # no clock: the same request gets the same answer, on any day

_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_DAYS: Final = "monday tuesday wednesday thursday friday saturday sunday".split()
_MONTH: Final = rf"(?P<month>(?:{'|'.join(_MONTHS)})[a-z]*)\.?"
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:,? (?P<year>\d{4}))?"
_NAME_WORD: Final = r"[A-ZÀ-ÖØ-Þ](?:[\w'’-]*\w)?"
_NUMBER: Final = r"\d+(?:,\d{3})*(?:\.\d+)?"
_OPERAND: Final = rf"\(*-?{_NUMBER}\)*"
_OPERATORS: Final = {"plus": "+", "minus": "-", "times": "*", "multiplied by": "*", "divided by": "/", "x": "*"}
_OPERATOR: Final = rf"\s*(?:[-+*/^×÷]|\*\*|\b(?:{'|'.join(_OPERATORS)})\b)\s*"
_MAX_DIGITS: Final = 15

_CONNECTED: Final = rf" (?:(?:of|de|la|del|van|von) )?{_NAME_WORD}"  # Rio de Janeiro
_STATE: Final = r"(?:, [A-Z]{2}\b(?! ?[A-Z]))?"  # San Francisco, CA
_MINUTE: Final = r":(?P<minute>\d{2})(?::\d{2})?"
_HALF: Final = r" ?(?P<half>[ap])\.?m\b\.?"
_UNIT: Final = r"(?P<unit>(?:°?[A-Za-z]{1,3}|[%°€])(?![\w-]))?"
# By looks, the surest first.
_PATTERNS: Final = [
    (kind, re.compile(pattern, re.IGNORECASE if kind in ("uuid", "date", "time", "word", "expression") else 0))
    for kind, pattern in (
        ("quoted", r"[\"“`](?P<text>[^\"”`]{1,400})[\"”`]|(?<!\w)'(?P<text_>[^']{1,400})'(?!\w)"),
        ("url", r"\bhttps?://[^\s<>\"]*[\w/]"),
        ("email", r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"),
        ("uuid", r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"),
        ("datetime", r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?"),
        ("date", r"\b(?P<iso>\d{4}-\d{2}-\d{2})\b"),
        ("date", rf"\b{_MONTH} {_DAY}\b{_YEAR}"),
        ("date", rf"\b{_DAY} (?:of )?{_MONTH}\b{_YEAR}"),
        ("date", rf"\b(?P<word>today|tonight|tomorrow|yesterday|(?:next |this )?(?:{'|'.join(_DAYS)}))\b"),
        ("time", rf"\b(?P<hour>\d{{1,2}}){_MINUTE}(?:{_HALF})?"),
        ("time", rf"\b(?P<hour>\d{{1,2}}){_HALF}|\b(?P<word>noon|midnight)\b"),
        ("phone", r"(?<![\w.])(?:\+\d[\d ()-]{6,}\d|\d{3}[ -]\d{3}[ -]\d{4})\b"),
        ("path", r"(?<![\w/])(?:~|\.{1,2})?/[\w.~-]+(?:/[\w.~-]*)*|\b[A-Za-z]:\\[^\s\"]+"),
        ("path", r"(?<![\w.])(?:[\w-]+/)*(?:[\w-]{2,}\.[A-Za-z]\w{0,4}|[\w-]\.[A-Za-z]\w{1,4})\b"),
        ("expression", rf"(?<![\w.]){_OPERAND}(?:{_OPERATOR}{_OPERAND})+(?!\w)"),
        ("number", rf"(?<![\w.,#-])-?{_NUMBER}{_UNIT}(?!\w)(?!\.\d)"),
        ("word", rf"\b(?:{'|'.join(NUMBER_WORDS)})\b"),
        ("code", r"(?<![\w])#?(?=[\w-]*\d)(?=[\w-]*[A-Za-z]|#)[\w-]{2,}|#\d+"),
        ("name", rf"(?<!\w){_NAME_WORD}(?:/[A-Z][\w-]+)+"),
        ("name", rf"(?<!\w){_NAME_WORD}(?:{_CONNECTED})*{_STATE}"),
    )
]
_CUES: Final = frozenset(
    "to from in at for of on with by about into as between until till via near saying says say that named called "
    "titled entitled labelled regarding".split()
)
_ARTICLES: Final = frozenset("a an the my me our your please".split())
_LAST: Final = _ARTICLES.union("please now right and or is are it be do".split())  # add nothing at an end
# A verb at the begin: what is to be done, not with what.
_VERB = re.compile(rf"\s*[^\W\d_]+(?=\s+(?:{'|'.join((*sorted(_ARTICLES), *sorted(_CUES)))})\b)")
_CUE_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|[,:]")
_SENTENCE_END = re.compile(r"[.?!;](?=\s|$)|\n")
_LISTING = re.compile(r"\s*(?:,|,?\s*\b(?:and|or)\b|&)(?:\s+(?:in|for|to|of|at))?\s*\Z", re.IGNORECASE)
_LIST_END = re.compile(r"\b(?:and|or)\b|&", re.IGNORECASE)
_PIECES = re.compile(r"\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or|&)\s+", re.IGNORECASE)
_FIRST_WORD = re.compile(r"(?:\A|[.?!:;]\s+|\n\s*)\Z")


class Span(Struct, frozen=True):
    """A place in a request. `kind`: what it is by its looks; `phrase` are words up to the next turn of the sentence,
    `tail` those up to its end. `ways` are the texts that mean it, the said one first. `cue` is the word that leads to
    it, `before` are the words between the span before and this one, `unit` is the word behind a number. Spans of one
    `group` are listed together (`Paris and Rome`).
    """

    start: int
    end: int
    kind: str
    ways: tuple[str, ...]
    cue: str = ""
    before: tuple[str, ...] = ()
    unit: str = ""
    group: int = -1

    @property
    def text(self) -> str:
        """As it was said."""
        return self.ways[0]

    def overlaps(self, other: "Span") -> bool:
        """Whether they share a place."""
        return self.start < other.end and other.start < self.end


def quoted(asked: str) -> list[Span]:
    """The texts in quotation marks."""
    kind, pattern = _PATTERNS[0]
    return [span for found in pattern.finditer(asked) if (span := _atom(kind, found))]


def spans(
    asked: str, known: Collection[str] = (), cues: Collection[str] = (), members: Collection[Span] = ()
) -> list[Span]:
    """All that a request names, in order. `known` are the meanings of the words with which the tool is called: they
    only say that it is wanted. `cues` are words that lead to a value, beside those of the language. `members` are
    spans already found: the words that choose one of the values that a property may have.
    """
    atoms = _listed(asked, _led(asked, [*_atoms(asked, known)]))
    phrases = _phrases(asked, sorted([*atoms, *members], key=lambda span: span.start), known, cues)
    return [*atoms, *_units(asked, atoms), *_moments(asked, atoms), *phrases]


# --- what is known by its looks ---


def _atoms(asked: str, known: Collection[str]) -> Iterator[Span]:
    found: list[Span] = []
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(asked):
            span = _named(match, asked, known) if kind == "name" else _atom(kind, match)
            hidden = any(span.overlaps(other) and other.kind != "expression" for other in found) if span else True
            if span and not hidden:
                found.append(span)
    yield from sorted(found, key=lambda span: (span.start, span.kind != "expression"))


def _atom(kind: str, match: re.Match[str]) -> Span | None:
    parts = match.groupdict()
    text = match.group()
    unit = ""
    ways: tuple[str, ...] = (text,)
    match kind:
        case "quoted":
            ways = (parts["text"] or parts["text_"],)
        case "datetime":
            ways = (text, f"{text[:16]}:00Z")
        case "word":
            kind, ways = "number", (str(NUMBER_WORDS[text.lower()]),)
        case "date":
            ways = (text, day) if (day := _date(parts)) else ()
        case "time":
            ways = (text, clock, f"{clock}:00", f"{clock}:00Z") if (clock := _clock(parts)) else ()
        case "expression":
            signs = re.sub(
                _OPERATOR, lambda sign: f" {_OPERATORS.get(sign[0].strip().lower(), sign[0].strip())} ", text
            )
            ways = (signs if re.search(r"[a-z]", text) else text,)
        case "number":
            unit = parts.get("unit") or ""
            number = text.removesuffix(unit).replace(",", "")
            ways = (number,) if len(number) <= _MAX_DIGITS else ()
        case "code":
            ways = (text, text.removeprefix("#"))
    return Span(match.start(), match.end() - len(unit), kind, ways, unit=unit) if ways else None


def _named(match: re.Match[str], asked: str, known: Collection[str]) -> Span | None:
    """A name: capitalised words, without one that is so only because the sentence begins with it."""
    text, start = match.group(), match.start()
    if _FIRST_WORD.search(asked[:start]):
        first, _, rest = text.partition(" ")
        alone = not rest and not (first.isupper() and len(first) > 1)
        if alone or first.lower() in STOP_WORDS or meaning(first) in known:
            start += len(first) + 1
            text = rest
    if not text or text.lower() in STOP_WORDS or meanings(words(text)) <= {*known}:
        return None
    return Span(start, match.end(), "name", (text,))


def _date(parts: dict[str, str | None]) -> str:
    """The day in ISO form; empty where there is none such."""
    if iso := parts.get("iso"):
        return iso
    if word := (parts.get("word") or "").lower():
        name = word.split()[-1]
        ahead = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}.get(name)
        if ahead is None:
            ahead = (_DAYS.index(name) - TODAY.weekday() - 1) % 7 + 1
        return (TODAY + timedelta(ahead)).isoformat()
    month = parts.get("month") or ""
    day = parts.get("day") or ""
    try:
        return date(int(parts.get("year") or TODAY.year), _MONTHS.index(month[:3].lower()) + 1, int(day)).isoformat()
    except ValueError:
        return ""


def _clock(parts: dict[str, str | None]) -> str:
    """The time as `15:00`; empty where there is none such."""
    if word := parts.get("word"):
        return "12:00" if word.lower() == "noon" else "00:00"
    hour, minute = int(parts["hour"] or 0), int(parts.get("minute") or 0)
    if half := (parts.get("half") or "").lower():
        hour = hour % 12 + (12 if half == "p" else 0)
    return f"{hour:02}:{minute:02}" if hour < 24 and minute < 60 else ""


# --- what stands around them ---


def _led(asked: str, atoms: list[Span]) -> list[Span]:
    """The spans with the words that lead to them, and numbers with their units."""
    led: list[Span] = []
    end = 0
    for atom in atoms:
        gap = re.split(_SENTENCE_END, asked[end : atom.start])[-1]
        before = tuple(word.lower() for word in words(gap))
        cue = next((word for word in reversed(before) if word in _CUES), "")
        unit = atom.unit
        if atom.kind == "number" and not unit:
            behind = re.match(r"[ -]?([^\W\d_]+)", asked[atom.end :])
            before_it = re.search(r"[$€£¥]\Z", asked[: atom.start])
            unit = before_it.group() if before_it else behind[1] if behind else ""
        led.append(replace(atom, cue=cue, before=before, unit=unit))
        end = atom.end if atom.kind != "expression" else end
    return led


def _listed(asked: str, atoms: list[Span]) -> list[Span]:
    """The spans with their groups: alike, and with nothing but a comma or an "and" between them. Two names with only a
    comma are one: a place and where it lies.
    """
    found: list[Span] = []
    plain = [atom for atom in atoms if atom.kind != "expression"]
    runs: list[list[Span]] = []
    for atom in plain:
        last = runs[-1][-1] if runs else None
        alike = (last is not None and {last.kind, atom.kind} <= {"name", "code"}) or (last and last.kind == atom.kind)
        if last and alike and _LISTING.match(asked[last.end : atom.start]):
            runs[-1].append(atom)
        else:
            runs.append([atom])
    for number, run in enumerate(runs):
        first = run[0]
        if len(run) == 2 and first.kind == "name" and not _LIST_END.search(asked[first.end : run[1].start]):
            found.append(replace(first, end=run[1].end, ways=(asked[first.start : run[1].end], *first.ways)))
        elif len(run) > 1:
            found += [replace(span, cue=first.cue, before=first.before, group=number) for span in run]
        else:
            found.append(first)
    return sorted([*found, *(atom for atom in atoms if atom.kind == "expression")], key=lambda span: span.start)


def _units(asked: str, atoms: list[Span]) -> Iterator[Span]:
    """The units of numbers, as values of their own: `10 km`."""
    for atom in atoms:
        if atom.kind == "number" and atom.unit and atom.unit.lower() not in STOP_WORDS | _CUES:
            start = asked.find(atom.unit, max(0, atom.start - 1))  # `$5` or `5 km`
            yield Span(start, start + len(atom.unit), "unit", (atom.unit,), before=atom.before)


def _moments(asked: str, atoms: list[Span]) -> Iterator[Span]:
    """A date and a time beside each other are also one moment."""
    for first, second in pairwise(atoms):
        between = asked[first.end : second.start]
        if {first.kind, second.kind} == {"date", "time"} and re.fullmatch(r",?\s*(?:at|on)?\s*", between):
            day, clock = (first, second) if first.kind == "date" else (second, first)
            said = asked[first.start : second.end]
            moment = f"{day.ways[-1]}T{clock.ways[1]}:00"
            yield replace(first, end=second.end, kind="datetime", ways=(said, moment, f"{moment}Z"))


# --- what lies between them ---


def _phrases(asked: str, atoms: list[Span], known: Collection[str], cues: Collection[str]) -> Iterator[Span]:
    """Words behind a cue, or at the begin of a sentence: `phrase` up to the next cue or name, `tail` to the end."""
    begin = 0
    for end in (*(match.start() for match in _SENTENCE_END.finditer(asked)), len(asked)):
        if not any(atom.kind != "expression" and atom.start < end < atom.end for atom in atoms):
            yield from _sentence(asked, begin, end, atoms, known, cues)
            begin = end + 1


def _sentence(
    asked: str, begin: int, end: int, atoms: list[Span], known: Collection[str], names: Collection[str]
) -> Iterator[Span]:
    inside = [atom for atom in atoms if begin <= atom.start < end and atom.kind != "expression"]
    verb = _VERB.match(asked, begin, end)
    begin = verb.end() if verb else begin
    # Where a phrase ends, where the next begins, and the word that leads to it.
    cuts: list[tuple[int, int, str]] = [(begin, begin, "")]
    for match in _CUE_WORD.finditer(asked, begin, end):
        word = match.group().lower()
        leads = word in _CUES or word == ":" or (word in names and re.match(r"\s*[\w\"':]", asked[match.end() : end]))
        if leads and not any(atom.start <= match.start() < atom.end for atom in inside):
            cuts.append((match.start(), match.end(), word))
    cuts += [(atom.start, atom.end, "") for atom in inside]
    cuts.sort()
    parts: list[tuple[int, int, str]] = []
    for (_, start, cue), (stop, _, _) in zip(cuts, [*cuts[1:], (end, end, "")], strict=True):
        first, last = _trimmed(asked, start, stop, _ARTICLES if cue else STOP_WORDS, () if cue else known)
        if first < last and not meanings(words(asked[first:last])) <= {*known}:
            parts.append((first, last, cue))
    final = max([part[1] for part in parts] + [atom.end for atom in inside], default=begin)
    for number, (first, last, cue) in enumerate(parts):
        before = tuple(word.lower() for word in words(asked[begin:first]))[-2:]
        pieces = [piece for piece in re.split(_PIECES, asked[first:last]) if piece]
        if len(pieces) > 1:
            at = first
            for piece in pieces:
                at = asked.index(piece, at)
                yield Span(at, at + len(piece), "phrase", (piece,), cue, before, group=1_000 + first)
        yield Span(first, last, "phrase", (asked[first:last],), cue, before)
        final = end if cue == ":" else final
        if cue or number == 0:
            yield Span(first, final, "tail", (asked[first:final].rstrip(" ,"),), cue, before)


def _trimmed(asked: str, start: int, stop: int, empty: Collection[str], known: Collection[str]) -> tuple[int, int]:
    """The place without words at its begin and its end that add nothing."""
    found = list(re.finditer(r"\S+", asked[start:stop]))
    said = [match.group().strip(",.?!\"'").lower() for match in found]
    while said and (said[0] in empty or said[0] in ("", "and") or meaning(said[0]) in known):
        del found[0], said[0]
    while said and (said[-1] in _LAST or said[-1] in ("", "and") or meaning(said[-1]) in known):
        del found[-1], said[-1]
    if not found:
        return start, start
    return start + found[0].start(), start + found[-1].start() + len(found[-1].group().rstrip(",?!"))
