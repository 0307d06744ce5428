"""A stretch of text on its way through reader and check: one pattern finds what each of them looks for, and both are
told of what has passed once something comes that the pattern does not know.

Knows no format and no schema. `Stretch` says what matters to a reader, `Passing` what does to the check.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, TypeAlias

from callwright.events import ArgumentsDelta, Event, Markup
from callwright.prompt import BREAK, EDGE_CHARS
from callwright.streaming.reader import StreamReader, Stretch

_Match: TypeAlias = Callable[[str], re.Match[str] | None]

# What is written as an escape in JSON, beside the backslash; a surrogate is no text of a whole character.
_WRITTEN: Final = r'"\x00-\x1f'
_SURROGATES: Final = r"\ud800-\udfff"
# Markers of more characters than this, all in all, are not looked for; then each of their first characters matters.
_MAX_MARKERS: Final = 600
# The groups of the patterns.
_ODD, _REST, _TAIL, _HELD = 1, 2, 3, 4


class Checked(NamedTuple):
    """What a check looks for: a text without a character of `matters`, which is the inside of a class in a pattern,
    passes as it is. `certain` is a pattern of what may stand in it nevertheless, and `tail` of what is held back at its
    end.
    """

    matters: str = ""
    certain: str = ""
    tail: str = ""


class Passing(Protocol):
    """A check of more of a text. While it `flows`, what `as_json` leaves through is only noted; `as_text` is the same
    for a text that is yet to be written as JSON.
    """

    as_json: Checked
    as_text: Checked

    @property
    def flows(self) -> bool: ...

    def pass_on(self, text: str, tail: str) -> None:
        """Note text that has passed as it is, and behind it the `tail`, which is held back."""


class _AsIs:
    as_json = as_text = Checked()
    flows: Final = True

    def pass_on(self, text: str, tail: str) -> None:
        """Nothing is to be noted."""


AS_IS: Final = _AsIs()  # all of a text passes


class Flow:
    """A stretch, and what passes its text on.

    `match` answers whether a text, which is `rest` with a delta behind it, passes. A match without groups passes as it
    is, `more` reads others. `told` notes the text of arguments that went out; the rest was read and did not.
    """

    __slots__ = (
        "_holds",
        "_partial",
        "_passing",
        "_recent",
        "_stripped",
        "_tail",
        "_texts",
        "call",
        "match",
        "rest",
        "stretch",
        "told",
    )

    def __init__(self, stretch: Stretch, passing: Passing, recent: deque[str]) -> None:
        self.stretch = stretch
        self.call = stretch.call
        self._passing = passing
        self._recent = recent  # what was said last
        self._holds = "".join([char for char in stretch.holds if char not in stretch.firsts])
        is_text = stretch.inside is not None
        self.match, self._stripped = flow_patterns(
            stretch.firsts,
            stretch.literals,
            passing.as_text if is_text else passing.as_json,
            self._holds,
            stretch.certain,
            is_json=stretch.is_json,
            is_text=is_text,
        )
        self._texts: list[str] = []
        self.told = self._texts.append
        self.rest = ""
        self._tail = self._partial = 0  # how much of the rest the check holds back, and how much of it is unread

    def begins(self) -> bool:
        """Whether the next delta may flow."""
        self.rest, self._tail, self._partial = self.stretch.held, 0, 0
        return self._passing.flows

    def say(self, text: str) -> list[Event]:
        """What to tell of a text that is not of arguments."""
        assert self.stretch.make is not None
        event = self.stretch.make(text)
        if event is None:
            return []
        if type(event) is not Markup:
            self._recent.append(event.text)
        return [event]

    def more(self, whole: str, found: re.Match[str]) -> list[Event] | None:
        """Read a text that holds more than plain characters, or has a rest; answers its events, None if it does not
        pass.
        """
        stretch, last = self.stretch, found.lastindex
        told = read = whole
        certain, tail, partial = len(whole), 0, 0
        if last != _ODD and last is not None:
            if last == _HELD:
                read = whole.rstrip(self._holds)
                passed = self._stripped(read) if len(whole) - len(read) <= stretch.most else None
                if passed is None:
                    return None
                found, told, certain = passed, read, len(read)
            begin, behind = found.span(_REST)
            if begin >= 0:
                told, certain = read[:begin], max(begin, found.end(_TAIL))
                tail = certain - begin
                partial = behind - certain if behind > certain and read[certain] != "\\" else 0
        out: list[Event] = []
        if stretch.marks is not None and "\\" in read:
            escapes = stretch.marks(read[self._tail if self.rest else 0 : certain])
            if escapes.text:
                out.append(escapes)
        self.rest, self._tail, self._partial = whole[len(told) :], tail, partial
        if not told:
            return out
        call = self.call
        if call is None:
            return out + self.say(told)
        self.told(told)
        if stretch.inside is not None and found.start(_ODD) >= 0:
            told = stretch.inside(told)
        out.append(ArgumentsDelta(call, told))
        return out

    def settle(self, source: StreamReader) -> None:
        """Tell reader and check what was read since the flow began."""
        stretch, rest, inside = self.stretch, self.rest, self.stretch.inside
        tail = rest[: self._tail]
        if self._texts or tail:
            read = "".join((*self._texts, tail))
            self._texts.clear()
            noted = stretch.note(read) if stretch.note is not None else None
            if inside is not None:
                assert noted is not None
                read, tail = noted, inside(tail)
            self._passing.pass_on(read[: len(read) - len(tail)], tail)
            self._recent.append(read[-EDGE_CHARS:])
        partial = self._partial if rest else 0
        stretch.held = rest[self._tail : len(rest) - partial]
        self.rest = ""
        if partial:
            source.push(rest[len(rest) - partial :])


@lru_cache(maxsize=1024)
def flow_patterns(
    firsts: str,
    literals: tuple[str, ...],
    check: Checked,
    holds: str = "",
    own: str = "",
    *,
    is_json: bool = False,
    is_text: bool = False,
) -> tuple[_Match, _Match]:
    """Two matchers of a text in which nothing matters but what its groups have: of any, and of one from whose end the
    characters `holds` were taken, which are not certain.

    `literals` are the markers that the reader looks for, `firsts` their first characters; `own` is what may stand in
    the text though it begins with one. `is_json`: the inside of a JSON string. `is_text`: a text that is to be written
    as JSON. Groups, in this order: something is not written as it is; the end that is not certain; of that, what the
    check holds back, before half an escape or a part of a marker; the last character is one of `holds`.
    """
    markers = _tree(literals) if sum(map(len, literals)) <= _MAX_MARKERS else _Tree()
    matters = check.matters + ('"' if is_json else _WRITTEN if is_text else "") + BREAK + r"\\"
    both = "".join([char for char in firsts if re.match(f"[{matters}]", char)])
    free = "".join([char for char in firsts if char not in both]) if markers else ""
    plain = rf"[^{re.escape(firsts)}{matters}{_SURROGATES if is_text else ''}]*+"
    no_marker = f"(?!{_begun(markers)})" if markers else f"(?![{re.escape(firsts)}])"
    tail = check.tail and (no_marker * bool(both)) + f"(?:{check.tail})"
    if own and tail:
        tail = rf'\\"|{tail}'
    half = r"\\" if is_json or own else "(?!)"
    checked = check.certain or (f"[{_WRITTEN}]" if is_text else "")
    pieces = _Pieces(plain, own, checked, no_marker * bool(both), tail or "(?!)", holds, is_text)
    whole = pieces.pattern(_part(markers), half, free and f"{no_marker}[{re.escape(free)}]", may_hold=bool(holds))
    return whole, pieces.pattern("", "(?!)", free and f"[{re.escape(free)}]", may_hold=False) if holds else whole


class _Pieces(NamedTuple):
    """Pieces of a pattern: `plain` characters, what else the reader (`own`) and the check (`checked`, if `unmarked`
    stands before it) are certain of, the `tail` that the check holds back, and the last characters that are not
    certain (`holds`).
    """

    plain: str
    own: str
    checked: str
    unmarked: str
    tail: str
    holds: str
    is_text: bool

    def pattern(self, partial: str, half: str, free: str, *, may_hold: bool) -> _Match:
        """The matcher for texts that may end in a `partial` marker, in `half` an escape or, if it `may_hold`, in one of
        the characters that are not certain; `free` are further characters that are plain.
        """
        last = f"[{re.escape(self.holds)}]"
        behind = f"(?<!{last})" if self.holds else ""
        held = f"(?:(?<={last})())?" if may_hold else "(?:(?!)())?"
        ours, checked = [one.replace(r"\Z", _any(r"\Z", partial)) for one in (self.own, self.checked)]
        choices = _any(ours, checked and f"{self.unmarked}(?:{checked})", free) or "(?!)"
        more = f"(?:{choices}{self.plain}|(?!))"
        loop = f"(?:{more}++()|(?!))?+" if self.is_text else f"(?:(?!)())?{more}*+"
        kept = f"(?:{behind}{partial}{behind})?" if partial else ""
        rest = rf"(?:(?!\Z)(({self.tail})?{kept}|{half}))?"
        return re.compile(rf"{self.plain}(?:{behind}\Z|{loop}{rest}{held}\Z)").match


def _any(*choices: str) -> str:
    """A pattern for any of these; empty where there are none."""
    found = [choice for choice in choices if choice]
    return f"(?:{'|'.join(found)})" if found else ""


class _Tree(dict[str, "_Tree"]):
    """Literals by their characters. One that has another as its begin is none."""


def _tree(literals: Iterable[str]) -> _Tree:
    root = _Tree()
    whole: tuple[str, ...] = ()
    for literal in sorted(literals, key=len):
        if not literal.startswith(whole):
            whole = (*whole, literal)
            node = root
            for char in literal:
                node = node.setdefault(char, _Tree())
    return root


def _begun(node: _Tree) -> str:
    """A pattern for a literal, or the begin of one where the text ends."""
    return _any(*[re.escape(char) + _any(r"\Z", _begun(rest)) * bool(rest) for char, rest in node.items()])


def _part(node: _Tree) -> str:
    """A pattern for the begin of a literal that the text ends with, not for a whole one."""
    return _any(*[re.escape(char) + _any(r"\Z", _part(rest)) for char, rest in node.items() if rest])
