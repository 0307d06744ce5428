"""Spans of a request that may be values: numbers, quoted texts, addresses, dates, names, and phrases."""

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from callwright.upstreams.simulated.words import NUMBER_WORDS, STOP_WORDS, meaning, meanings, words

TODAY: Final = date(2026, 1, 15)  # no clock: the same request gets the same answer on any day

_AHEAD: Final = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}
_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_DAYS: Final = "monday tuesday wednesday thursday friday saturday sunday".split()
_MONTH: Final = rf"(?:{'|'.join(_MONTHS)})[a-z]*\.?"
_DAY: Final = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE: Final = (
    rf"(?i:(?:\d{{4}}-\d{{2}}-\d{{2}}|(?:{_MONTH} {_DAY}|{_DAY} (?:of )?{_MONTH})\b(?:,? \d{{4}})?|{'|'.join(_AHEAD)}|"
    rf"(?:next |this )?(?:{'|'.join(_DAYS)}))\b)"
)
_TIME: Final = r"(?i:\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]\.?m\b\.?)?|\d{1,2} ?[ap]\.?m\b\.?|noon\b|midnight\b)"
_CAPITAL: Final = r"[A-ZÀ-ÖØ-Þ](?:[\w'’-]*\w)?"
_NUMBER: Final = r"\d+(?:,\d{3})*(?:\.\d+)?"
_OPERATORS: Final = {"plus": "+", "minus": "-", "times": "*", "multiplied by": "*", "divided by": "/"}
_EXPRESSION: Final = re.compile(
    rf"\(*-?{_NUMBER}\)*(?:\s*(?:[-+*/^×÷]|\*\*|{'|'.join(_OPERATORS)})\s*\(*-?{_NUMBER}\)*)+(?!\w)", re.IGNORECASE
)
QUOTED: Final = re.compile(r"[\"“`]([^\"”`]{1,400})[\"”`]|(?<!\w)'([^']{1,400})'(?!\w)")
# The kinds of spans by their form, the most certain first.
_KINDS: Final = [
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("quoted", QUOTED.pattern),
        ("url", r"\bhttps?://[^\s<>\"]*[\w/]"),
        ("email", r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"),
        ("datetime", rf"\b{_DATE},? ?(?:at |on )?{_TIME}|\b{_TIME},? ?(?:on )?{_DATE}"),
        ("date", rf"\b{_DATE}"),
        ("time", rf"\b{_TIME}"),
        ("path", r"(?<![\w/])(?:~|\.{1,2})?/[\w.~-]+(?:/[\w.~-]*)*"),
        ("path", r"(?<![\w.])(?:[\w-]+/)*(?:[\w-]{2,}\.[A-Za-z]\w{0,4}|[\w-]\.[A-Za-z]\w{1,4})\b"),
        ("number", rf"(?<![\w.,#-])-?{_NUMBER}(?=(?:°?[A-Za-z]{{1,3}}|[%°€])?(?![\w-]))(?!\.\d)"),
        ("number", rf"(?i:\b(?:{'|'.join(NUMBER_WORDS)})\b)"),
        ("code", r"(?<![\w])#?(?=[\w-]*\d)(?=[\w-]*[A-Za-z]|#)[\w-]{2,}|#\d+"),
        ("name", rf"(?<!\w){_CAPITAL}(?:/[A-Z][\w-]+)+"),
        # Rio de Janeiro; San Francisco, CA
        ("name", rf"(?<!\w){_CAPITAL}(?: (?:(?:of|de|la|del|van|von) )?{_CAPITAL})*(?:, [A-Z]{{2}}\b(?! ?[A-Z]))?"),
    )
]
_MAX_DIGITS: Final = 15
_CUES: Final = frozenset(
    "to from in at for of on with by about into as between until till via near saying says say that named called "
    "titled entitled labelled regarding :".split()
)
_ARTICLES: Final = frozenset("a an the my me our your please".split())
_EDGES: Final = _ARTICLES.union([""], "and or now right is are it be do".split())  # add nothing at an end of a phrase
_CUT = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|:|[.?!;](?=\s|$)|\n")
_ENDS: Final = frozenset(".?!;\n")
_START = re.compile(r"(?:\A|[.?!:;]\s+|\n\s*)\Z")
_LISTED = re.compile(r"\s*(?:,|,?\s*\b(?:and|or)\b|&)(?:\s+(?:in|for|to|of|at))?\s*\Z", re.IGNORECASE)
_PIECES = re.compile(r"\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or|&)\s+", re.IGNORECASE)
_UNIT = re.compile(r"[ -]?(°[CF]|[^\W\d_]+|[%°€])")


class Span(Struct, frozen=True):
    """A place in a request. `kind`: its form; `phrase` are words up to the next cue or span, `tail` those up to the
    end of the sentence. `forms` are the texts with its meaning, its own first. `cue` is the word that leads to it,
    `before` are the words since the span before. Spans with one `group` are a list (`Paris and Rome`).
    """

    start: int
    end: int
    kind: str
    forms: tuple[Any, ...]
    cue: str = ""
    before: tuple[str, ...] = ()
    unit: str = ""
    group: int = -1

    def overlaps(self, other: "Span") -> bool:
        """Whether they share a place."""
        return self.start < other.end and other.start < self.end


def spans(
    asked: str, known: Collection[str] = (), cues: Collection[str] = (), members: Collection[Span] = ()
) -> list[Span]:
    """All spans of a request. `known`: the meanings of the words that only name the tool. `cues`: words that lead to a
    value, in addition to those of the language. `members`: the spans that choose a value of an enumeration.
    """
    atoms = _group_spans(asked, _atoms(asked, known))
    expressions = [Span(*match.span(), "expression", (_signs(match[0]),)) for match in _EXPRESSION.finditer(asked)]
    cuts = sorted([*atoms, *members], key=lambda span: span.start)
    return [*atoms, *expressions, *_phrases(asked, cuts, known, _CUES.union(cues))]


# --- spans with a form ---


def _atoms(asked: str, known: Collection[str]) -> list[Span]:
    found: list[Span] = []
    for kind, pattern in _KINDS:
        for match in pattern.finditer(asked):
            forms = _forms(kind, match) if kind != "name" else _name(asked, match, known)
            span = Span(match.end() - len(forms[0]) if kind == "name" else match.start(), match.end(), kind, forms)
            if forms[0] and not any(span.overlaps(other) for other in found):
                found.append(span)
    return sorted(found, key=lambda span: span.start)


def _forms(kind: str, match: re.Match[str]) -> tuple[str, ...]:
    """The forms of a span, its own first; empty if it is not of this kind."""
    text, low = match[0], match[0].lower()
    match kind:
        case "quoted":
            return (match[1] or match[2],)
        case "datetime":
            clock = next(found[0] for found in re.finditer(_TIME, text) if not re.match(_DATE, text[found.start() :]))
            day, time = _day(low.replace(clock.lower(), "").strip(" ,")), _clock(clock.lower())
            return (text, f"{day}T{time}:00", f"{day}T{time}:00Z") if day and time else ("",)
        case "date":
            return (text, day) if (day := _day(low)) else ("",)
        case "time":
            return (text, time, f"{time}:00", f"{time}:00Z") if (time := _clock(low)) else ("",)
        case "number":
            number = str(NUMBER_WORDS.index(low)) if low in NUMBER_WORDS else text.replace(",", "")
            return (number if len(number) <= _MAX_DIGITS else "",)
    return text, text.removeprefix("#")


def _name(asked: str, match: re.Match[str], known: Collection[str]) -> tuple[str]:
    """A name without a word in capitals only because a sentence starts with it."""
    text = match[0]
    first, _, rest = text.partition(" ")
    if _START.search(asked[: match.start()]):
        alone = not rest and not (first.isupper() and len(first) > 1)
        if alone or first.lower() in STOP_WORDS or meaning(first) in known:
            text = rest
    return ("" if text.lower() in STOP_WORDS or meanings(words(text)) <= {*known} else text,)


def _day(text: str) -> str:
    """A day in ISO form; empty if there is no such day."""
    words = re.sub(r"(?<=\d)(?:st|nd|rd|th)|[,.]|\b(?:of|at|on|next|this)\b", "", text).split()
    if words[-1] in _AHEAD:
        return (TODAY + timedelta(_AHEAD[words[-1]])).isoformat()
    if words[-1] in _DAYS:
        return (TODAY + timedelta((_DAYS.index(words[-1]) - TODAY.weekday() - 1) % 7 + 1)).isoformat()
    words = [word if word[0].isdigit() else word[:3] for word in words]
    for form in ("%Y-%m-%d", "%d %b %Y", "%b %d %Y"):
        with suppress(ValueError):
            written = " ".join(words if len(words) != 2 else [*words, str(TODAY.year)])
            return datetime.strptime(written, form).date().isoformat()
    return ""


def _clock(text: str) -> str:
    """A time as `15:00`; empty if there is no such time."""
    text = {"noon": "12:00", "midnight": "00:00"}.get(text, text)
    hour, minute, *_ = (*(int(number) for number in re.findall(r"\d+", text)), 0)
    if half := re.search(r"[ap]", text):
        hour = hour % 12 + 12 * (half[0] == "p")
    return f"{hour:02}:{minute:02}" if hour < 24 and minute < 60 else ""


def _signs(text: str) -> str:
    """An expression with signs in place of words."""
    return re.sub("[a-z]+(?: by)?", lambda word: _OPERATORS[word[0].lower()], text, flags=re.IGNORECASE)


def _group_spans(asked: str, atoms: list[Span]) -> list[Span]:
    """The spans with the words before them, their units, and their groups: spans of one kind with a comma or an "and"
    between them. Two names with only a comma are one: a city and its country.
    """
    runs: list[list[Span]] = []
    end = 0
    for atom in atoms:
        before = tuple(word.lower() for word in words(re.split(r"[.?!;]\s|\n", asked[end : atom.start])[-1]))
        cue = next((word for word in reversed(before) if word in _CUES), "")
        unit = ""
        if atom.kind == "number":
            sign, word = re.search(r"[$€£¥]\Z", asked[: atom.start]), _UNIT.match(asked, atom.end)
            unit = sign[0] if sign else word[1] if word else ""
        if runs and runs[-1][-1].kind == atom.kind and _LISTED.match(asked[end : atom.start]):
            first = runs[-1][0]
            runs[-1].append(replace(atom, cue=first.cue, before=first.before, unit=unit))
        else:
            runs.append([replace(atom, cue=cue, before=before, unit=unit)])
        end = atom.end
    found: list[Span] = []
    for number, run in enumerate(runs):
        first, last = run[0], run[-1]
        if len(run) == 2 and first.kind == "name" and asked[first.end : last.start].strip() == ",":
            found.append(replace(first, end=last.end, forms=(asked[first.start : last.end], *first.forms)))
        else:
            found += [replace(span, group=number if len(run) > 1 else -1) for span in run]
    return found


# --- the phrases between them ---


def _phrases(asked: str, atoms: list[Span], known: Collection[str], cues: Collection[str]) -> Iterator[Span]:
    """The phrases of each sentence, from cue or span to the next, and from each of them its tail to the end."""
    cuts = [
        (*cut.span(), cut[0].lower())
        for cut in _CUT.finditer(asked)
        if not any(atom.start <= cut.start() < atom.end for atom in atoms)
        and (cut[0] in _ENDS or cut[0].lower() in cues)
    ]
    cuts = sorted([*cuts, *((atom.start, atom.end, "") for atom in atoms), (len(asked), len(asked), ".")])
    sentence = start = end = 0
    cue = ""
    tails: list[Span] = []
    for at, after, word in cuts:
        first, last = _trimmed(asked, start, at, cue, known)
        if not meanings(words(asked[first:last])) <= {*known}:
            before = tuple(word.lower() for word in words(asked[sentence:first]))[-2:]
            tails.append(Span(first, last, "phrase", (asked[first:last],), cue, before))
            yield tails[-1]
            pieces = [piece for piece in _PIECES.split(asked[first:last]) if piece]
            for piece in pieces if len(pieces) > 1 else ():
                at_piece = asked.index(piece, first)
                end = at_piece + len(piece)
                yield replace(tails[-1], start=at_piece, end=end, forms=(piece,), group=len(atoms) + first)
            end = last
        start, cue = after, word
        if not word:
            end = after
        elif word in _ENDS:
            for tail in tails:
                last = at if tail.cue == ":" else end
                yield replace(tail, end=last, kind="tail", forms=(asked[tail.start : last].rstrip(" ,"),))
            tails, cue, sentence = [], "", after


def _trimmed(asked: str, start: int, stop: int, cue: str, known: Collection[str]) -> tuple[int, int]:
    """The place without words at its start and its end that add nothing."""
    found = [(match[0].strip(",.?!\"'").lower(), *match.span()) for match in re.finditer(r"\S+", asked[start:stop])]
    empty = (_ARTICLES if cue else STOP_WORDS) | {"", "and"}
    while found and (found[0][0] in empty or meaning(found[0][0]) in known):
        del found[0]
    while found and (found[-1][0] in _EDGES or meaning(found[-1][0]) in known):
        del found[-1]
    if not found:
        return start, start
    return start + found[0][1], start + len(asked[start : start + found[-1][2]].rstrip(",?!"))
