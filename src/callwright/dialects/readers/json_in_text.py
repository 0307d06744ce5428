"""Finds calls in JSON that stand in text without markers: objects, fences, JSON in a string.

Where one may begin, the rest of the answer is held, and `callwright.free_text.recover` judges it as a whole.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol, assert_never

import msgspec

from callwright.calls.json_forms import NAME_KEYS, CallKeySet
from callwright.calls.toolset import Toolset
from callwright.conversation import NamedTool
from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    Event,
    Markup,
    Problem,
    ReasoningDelta,
    TextEvent,
)
from callwright.free_text.recover import RecoveredCall, Segment, TextSegment, recover
from callwright.stream_reader import Markers, Parse, StreamReader, read_until
from callwright.tolerant_json.find import beside_values
from callwright.tolerant_json.markers import JSON_TAGS, MARKS
from callwright.tolerant_json.passthrough import JsonTerminators, pass_json
from callwright.tolerant_json.wrappers import unfenced

if TYPE_CHECKING:
    from callwright.dialects.readers.foreign_in_text import ForeignInText

__all__ = ["JsonInText", "TextLoop"]

_BRACES: Final = ("{", "[")
# JSON as a JSON string, or with each of its quotes escaped.
_ENCODED: Final = ('"{', '"[', '{\\"', "json\n", "json {")
# At most this much is held back as a possible call; what is longer is text.
_MAX_HELD: Final = 4_194_304
# Characters of look-ahead for the first key of an object, or the tag of a fence.
_MAX_PEEK: Final = 300
# So many thoughts of a kind are looked for in held text.
_MAX_THOUGHTS: Final = 16
_EVERYTHING = Markers()
_NO_STOPS = JsonTerminators()
_FENCE_HEAD = re.compile(r"[`~]*+[ \t]*+(?P<tag>[\w+-]*+)\s*+(?=\S)")
# How an object begins, with the brackets and blanks that may stand before it. Each character is taken once: where they
# could be given back, every `{` of many cost a search through all that follow.
_OPENING: Final = r"(?:[\s\ufeff\[]*+\{|(?!))++[\s\ufeff]*+"
_FIRST_KEY = re.compile(
    _OPENING + r"""(?:"(?P<double>(?:[^"\\\n]|\\.|(?!))*+)"|'(?P<single>[^'\n]*+)'|[`“‘](?P<odd>[^`”’\n]*+)[`”’]"""
    r"""|(?P<word>[\w$.-]++)["']?\s*+[:=]>?\s*(?P<value>\S)|(?P<comment>//|/\*|\#))"""
)
_BRACKETS = re.compile(r"[\[{]++")
_BEGINS_VALUE: Final = "\"'`“‘{["
_MAY_BE_OBJECT = re.compile(
    r"[\s\ufeff\[{]*+\Z|"
    + _OPENING
    + r"""(?:"(?:[^"\\\n]|\\.|(?!))*+\\?|'[^'\n]*+|[`“‘][^`”’\n]*+|[\w$.-]++["']?\s*+(?:[:=]>?\s*+)?|/)\Z"""
)


class TextLoop(Protocol):
    """What is needed of the reader of the text around."""

    source: StreamReader
    emit: Callable[[Event], object]
    markup: Callable[[str], object]
    tools: Toolset
    tags: tuple[str, ...]
    thoughts: Mapping[str, str]
    before: str
    replays: bool
    rest: str
    calls: int
    foreign: "ForeignInText"

    def say(self, text: str) -> TextEvent: ...

    def at_line_start(self, blanks: str) -> bool: ...

    def call_begins(self) -> None: ...

    def lone_close(self, written: str) -> None: ...

    def replay(self, text: str) -> None: ...

    def value(self, lead: str) -> Parse[None]: ...


@lru_cache(maxsize=64)
def _beginnings(names: tuple[str, ...]) -> tuple[tuple[str, ...], frozenset[str]]:
    """With what an answer may begin that is held, and the first characters of that."""
    beginnings = (*_ENCODED, *[f"{name}{{" for name in names])
    return beginnings, frozenset(word[0] for word in beginnings)


class JsonInText:
    """Reads what may be a call in JSON, in the text that a `TextLoop` reads."""

    def __init__(self, text: TextLoop) -> None:
        self._text = text
        self._keys = CallKeySet(text.tools)

    def begins_held(self) -> Parse[bool]:
        """Whether the answer begins with JSON inside a JSON string, or a tool's name glued to its arguments, as in
        `f{"a": 1}`.
        """
        beginnings, firsts = _beginnings(self._text.tools.names)
        while True:
            begin = self._text.source.ahead(_MAX_PEEK).lstrip()
            if begin.startswith(beginnings):
                return True
            if begin and begin[0] not in firsts:
                return False
            if not self._text.source.more(_MAX_PEEK) or not any(word.startswith(begin) for word in beginnings):
                return False
            yield

    def fence(self, blanks: str, ticks: str) -> Parse[None]:
        """A fenced block: an object in it may be a call, anything else is text."""
        source = self._text.source
        while True:
            head = _FENCE_HEAD.match(source.ahead(_MAX_PEEK))
            inside = head.string[head.end() :] if head else ""
            whole = inside and not any(len(inside) < len(tag) and tag.startswith(inside) for tag in self._text.tags)
            if whole or not source.more(_MAX_PEEK):
                break
            yield
        if head and self._may_open_call(head["tag"], inside):
            opening = blanks + ticks + source.take(source.at + head.end())
            if inside.startswith(_BRACES):
                yield from self._text.value(opening)
            else:
                yield from self.held(opening)
        else:
            self._text.emit(self._text.say(blanks + ticks))

    def _may_open_call(self, tag: str, inside: str) -> bool:
        if inside.startswith(_BRACES):
            return tag.lower() in JSON_TAGS
        return not self._text.before and inside.startswith(self._text.tags)

    def value(self, lead: str) -> Parse[None]:
        """A brace or bracket behind `lead`: the begin of a call, of data, or of text."""
        key = yield from self.first_key(in_line=not self._text.at_line_start(lead))
        asked_for = key is None and not self._text.before and isinstance(self._text.tools.choice, NamedTool)
        if key in self._keys or asked_for:
            yield from self.held(lead)
            return
        if lead:
            self._text.emit(self._text.say(lead))
        if key is None:
            source = self._text.source
            brackets = _BRACKETS.match(source.text, source.at)
            # Where no more than brackets is ahead, the next one begins nothing either.
            idle = len(brackets[0]) - _MAX_PEEK if brackets else 0
            self._text.emit(self._text.say(source.take(source.at + max(0, idle) + 1)))
        else:
            # Data, even if something inside looks like a call.
            yield from pass_json(self._text.source, _NO_STOPS, self._text.say)

    def names_call(self) -> Parse[bool]:
        """Whether the object that begins here begins with a key of a call."""
        return (yield from self.first_key()) in self._keys

    def first_key(self, *, in_line: bool = False) -> Parse[str | None]:
        """The first key of the object that begins here, None if none does.

        `in_line`: words stand before it on its line. Then an unquoted key with an unquoted value is prose: `the set {x:
        y}`.
        """
        source = self._text.source
        while True:
            begin = source.ahead(_MAX_PEEK)
            if found := _FIRST_KEY.match(begin):
                if found["comment"]:  # the key behind a comment is not known: hold the object
                    return NAME_KEYS[0]
                if in_line and found["word"] is not None and found["value"] not in _BEGINS_VALUE:
                    return None
                return found["word"] or next(key for key in found.groups() if key is not None)
            if not source.more(_MAX_PEEK) or not _MAY_BE_OBJECT.match(begin):
                return None
            yield

    def held(self, lead: str) -> Parse[None]:
        """Hold the rest of the answer, then find the calls in it."""
        held, _ = yield from read_until(self._text.source, _EVERYTHING, _MAX_HELD)
        text = self._without_thoughts(lead + held)
        closes = [(at, tag) for tag in self._text.thoughts.values() if (at := beside_values(text, tag)) >= 0]
        if closes:
            at, tag = min(closes)
            said = text[:at].rstrip()
            self._text.emit(self._text.say(said))
            self._text.lone_close(text[len(said) : at + len(tag)])
            rest = text[at + len(tag) :]
            if self._text.replays and self._text.source.done:
                self._text.rest = rest  # it is parsed after this text, not inside
            else:
                self._text.replay(rest)
        elif (inner := self._unwrapped(text)) is not None:
            self._text.replay(inner)
        else:
            self.tell(recover(text, self._text.tools, before=self._text.before))

    def _without_thoughts(self, text: str) -> str:
        """Held text without the thoughts in it, which go out; a thought stands beside values, opened and closed."""
        for opening, close in self._text.thoughts.items():
            for _ in range(_MAX_THOUGHTS):
                begin = beside_values(text, opening)
                end = beside_values(text[begin:], close) if begin >= 0 else -1
                if end < 0:
                    break
                inner = text[begin + len(opening) : begin + end]
                said = inner.strip()
                lead, _, tail = inner.partition(said) if said else (inner, "", "")
                self._text.markup(opening + lead)
                if said:
                    self._text.emit(ReasoningDelta(said))
                self._text.markup(tail + close)
                text = self._joined(text[:begin], text[begin + end + len(close) :])
        return text

    def _joined(self, before: str, behind: str) -> str:
        """What stands before and behind a thought, with the white space of one side, a line break first."""
        said, following = before.rstrip(), behind.lstrip()
        left, right = before[len(said) :], behind[: len(behind) - len(following)]
        if not said and not self._text.before:
            kept = ""
        else:
            kept = right if not left or ("\n" in right and "\n" not in left) else left
        self._text.markup((left + right).replace(kept, "", 1))
        return said + kept + following

    def _unwrapped(self, text: str) -> str | None:
        """The inside of a code fence that is the whole answer and begins with an opening tag: some models wrap calls
        so.
        """
        span = unfenced(text) if self._text.tags and not self._text.before else None
        if span is None or not text.startswith(self._text.tags, span[0]):
            return None
        inner = text[slice(*span)]
        if "\n```" in inner or "\n~~~" in inner:
            return None
        self._text.emit(Markup(text[: span[0]]))
        self._text.markup(text[span[1] :])
        return inner

    def tell(self, pieces: Sequence[Segment]) -> None:
        """Emit the segments of a held text."""
        has_calls = any(isinstance(piece, RecoveredCall) for piece in pieces)
        for piece in pieces:
            match piece:
                case TextSegment(words, problem):
                    if not has_calls:
                        self._text.emit(self._text.say(words))
                    else:
                        self._trimmed(words)
                    if problem:
                        self._text.emit(problem)
                        self._text.foreign.settle()
                case RecoveredCall():
                    self._text.foreign.settle()
                    mark = next((mark for mark in MARKS if piece.text.lstrip().startswith(mark)), "")
                    if mark and mark not in self._text.tags:
                        detail = f"a call behind {mark}, which is none of the format's own tags"
                        self._text.emit(Problem("foreign_format", detail, call=self._text.calls))
                    self._whole_call(piece)
                case _:
                    assert_never(piece)

    def _trimmed(self, words: str) -> None:
        """Emit the text beside calls, without the white space around it."""
        said = words.strip()
        lead = len(words) - len(words.lstrip())
        self._text.markup(words[:lead])
        if said:
            self._text.emit(self._text.say(said))
        self._text.markup(words[lead + len(said) :])

    def _whole_call(self, found: RecoveredCall) -> None:
        self._text.call_begins()
        index = self._text.calls
        self._text.calls += 1
        for problem in found.problems:
            self._text.emit(msgspec.structs.replace(problem, call=index))
        self._text.emit(CallStarted(index, found.name))
        self._text.emit(ArgumentsDelta(index, found.arguments))
        self._text.emit(CallEnded(index, complete=found.complete))
        self._text.markup(found.text)
