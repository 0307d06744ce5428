"""Passes a stretch of text through reader and check: one pattern finds everything either of them looks for, and both
are informed of the passed text once the pattern does not match.

Independent of format and schema. `Stretch` defines what matters to a reader, `Passing` what matters to the check.
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

# The characters that JSON escapes, besides the backslash; a lone surrogate is not a character.
_WRITTEN: Final = r'"\x00-\x1f'
_SURROGATES: Final = r"\ud800-\udfff"
# Markers of more characters than this, all in all, are not looked for; then each of their first characters matters.
_MAX_MARKERS: Final = 600
# The groups of the patterns.
_ODD, _REST, _TAIL, _HELD = 1, 2, 3, 4


class Checked(NamedTuple):
    """Search terms of a check: a text without a character of `matters`, the inside of a character class, passes
    unchanged. `certain` is a pattern of exceptions, and `tail` one of the text that is held back at its end.
    """

    matters: str = ""
    certain: str = ""
    tail: str = ""


class Passing(Protocol):
    """A check of more of a text. While it `flows`, text that passes `as_json` is only noted; `as_text` is the same for
    a text that is yet to be written as JSON.
    """

    as_json: Checked
    as_text: Checked

    @property
    def flows(self) -> bool: ...

    def pass_on(self, text: str, tail: str) -> None:
        """Note text that has passed unchanged, and the `tail` after it, which is held back."""


class _AsIs:
    as_json = as_text = Checked()
    flows: Final = True

    def pass_on(self, text: str, tail: str) -> None:
        """Nothing is to be noted."""


AS_IS: Final = _AsIs()  # all of a text passes


class Flow:
    """A stretch, and the check that passes its text.

    `match` tests whether a text, `rest` followed by a delta, passes. A match without groups passes unchanged, `more`
    reads others. `told` notes the text of arguments that was sent; the rest was read but not sent.
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
        self._recent = recent  # the tail of the output
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
        # the characters of the rest that the check holds back, and those that are unread
        self._tail = self._partial = 0

    def begins(self) -> bool:
        """Whether the next delta may flow."""
        self.rest, self._tail, self._partial = self.stretch.held, 0, 0
        return self._passing.flows

    def say(self, text: str) -> list[Event]:
        """The events for a text that is not part of arguments."""
        assert self.stretch.make is not None
        event = self.stretch.make(text)
        if event is None:
            return []
        if type(event) is not Markup:
            self._recent.append(event.text)
        return [event]

    def more(self, whole: str, found: re.Match[str]) -> list[Event] | None:
        """Read a text that contains more than plain characters, or has a rest; returns its events, None if it does not
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
        """Inform reader and check of the text read since the flow began."""
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
    """Two matchers of a text in which nothing matters except its groups: of any text, and of one from whose end the
    uncertain characters `holds` were removed.

    `literals` are the markers that the reader looks for, `firsts` their first characters; `own` is a pattern of allowed
    text that begins with one. `is_json`: the inside of a JSON string. `is_text`: a text that is to be written as JSON.
    Groups, in this order: something is not written unchanged; the end that is not certain; of that, the part that the
    check holds back, before half an escape or a part of a marker; the last character is one of `holds`.
    """
    markers = _tree(literals) if sum(map(len, literals)) <= _MAX_MARKERS else _Tree()
    matters = check.matters + ('"' if is_json else _WRITTEN if is_text else "") + BREAK + r"\\"
    both = "".join([char for char in firsts if re.match(f"[{matters}]", char)])
    free = "".join([char for char in firsts if char not in both]) if markers else ""
    plain = rf"[^{re.escape(firsts)}{matters}{_SURROGATES if is_text else ''}]*+"
    no_marker = f"(?!{_prefix_pattern(markers)})" if markers else f"(?![{re.escape(firsts)}])"
    tail = check.tail and (no_marker * bool(both)) + f"(?:{check.tail})"
    if own and tail:
        tail = rf'\\"|{tail}'
    half = r"\\" if is_json or own else "(?!)"
    checked = check.certain or (f"[{_WRITTEN}]" if is_text else "")
    pieces = _Pieces(plain, own, checked, no_marker * bool(both), tail or "(?!)", holds, is_text)
    whole = pieces.pattern(_part(markers), half, free and f"{no_marker}[{re.escape(free)}]", may_hold=bool(holds))
    return whole, pieces.pattern("", "(?!)", free and f"[{re.escape(free)}]", may_hold=False) if holds else whole


class _Pieces(NamedTuple):
    """Pieces of a pattern: `plain` characters, the other text that the reader (`own`) and the check (`checked`, if
    preceded by `unmarked`) are certain of, the `tail` that the check holds back, and the last characters that are
    not certain (`holds`).
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
    """A pattern for any of these; empty without any."""
    found = [choice for choice in choices if choice]
    return f"(?:{'|'.join(found)})" if found else ""


class _Tree(dict[str, "_Tree"]):
    """Trie of literals by character. Literals that begin with another one are omitted."""


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


def _prefix_pattern(node: _Tree) -> str:
    """A pattern for a literal, or the beginning of one at the end of the text."""
    return _any(*[re.escape(char) + _any(r"\Z", _prefix_pattern(rest)) * bool(rest) for char, rest in node.items()])


def _part(node: _Tree) -> str:
    """A pattern for a proper prefix of a literal at the end of the text."""
    return _any(*[re.escape(char) + _any(r"\Z", _part(rest)) for char, rest in node.items() if rest])
