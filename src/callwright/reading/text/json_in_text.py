"""Finds calls in JSON in text without markers: objects, fences, JSON in a string.

From a possible beginning of one, the rest of the answer is held, and `callwright.free_text.recover` judges it as a
whole.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, assert_never

import msgspec

from callwright.calls.json_forms import NAME_KEYS, CallKeySet
from callwright.conversation import NamedTool
from callwright.events import ArgumentsDelta, CallEnded, Markup, Problem, ReasoningDelta
from callwright.free_text.recover import RecoveredCall, Segment, TextSegment, recover, shown_problems
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.streaming.reader import Markers, Parse, read_until
from callwright.tolerant_json.find import GLUES, beside_values
from callwright.tolerant_json.markers import MARKS, is_json_tag
from callwright.tolerant_json.passthrough import JsonTerminators, pass_json
from callwright.tolerant_json.wrappers import unfenced

_BRACES: Final = ("{", "[")
# JSON as a JSON string, or with each of its quotes escaped, also for HTML.
_ENCODED: Final = ('"{', '"[', '{\\"', "{&quot;", "[{&quot;", "json\n", "json {")
# The most text held back as a possible call; longer candidates are text.
_MAX_HELD: Final = 4_194_304
# Characters of look-ahead for the first key of an object, or the tag of a fence.
_MAX_PEEK: Final = 300
# The most thoughts of a kind that are looked for in held text.
_MAX_THOUGHTS: Final = 16
_EVERYTHING = Markers()
_NO_STOPS = JsonTerminators()
_FENCE_HEAD = re.compile(r"[`~]*+[ \t]*+(?P<tag>[\w+-]*+)\s*+(?=\S)")
# The beginning of an object, with the brackets and blanks that may precede it. Each character is taken once: with
# backtracking, every `{` of many would cost a search through all that follow.
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


@lru_cache(maxsize=64)
def _beginnings(names: tuple[str, ...]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The beginnings of answers that are held, and their first characters."""
    beginnings = (*_ENCODED, *[f"{name}{glue}{{" for name in names for glue in GLUES])
    return beginnings, frozenset(word[0] for word in beginnings)


class JsonInText:
    """Reads possible calls in JSON in the text of an answer. Text that must be read again is returned."""

    def __init__(self, text: AnswerText) -> None:
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

    def fence(self, blanks: str, ticks: str, tags: tuple[str, ...]) -> Parse[str]:
        """The beginning of a fenced block, which is read if its object, or one of `tags`, may open a call; `""` if it
        is text.
        """
        source = self._text.source
        while True:
            head = _FENCE_HEAD.match(source.ahead(_MAX_PEEK))
            inside = head.string[head.end() :] if head else ""
            whole = inside and not any(len(inside) < len(tag) and tag.startswith(inside) for tag in tags)
            if whole or not source.more(_MAX_PEEK):
                break
            yield
        if head and self._may_open_call(head["tag"], inside, tags):
            return blanks + ticks + source.take(source.at + head.end())
        self._text.emit(self._text.say(blanks + ticks))
        return ""

    def _may_open_call(self, tag: str, inside: str, tags: tuple[str, ...]) -> bool:
        if inside.startswith(tags) and not self._text.before:
            return True
        return inside.startswith(_BRACES) and is_json_tag(tag)

    def value(self, lead: str, calls: CallReader) -> Parse[str]:
        """Read from a brace or bracket after `lead`: a call, data, or text."""
        key = yield from self.first_key(in_line=not self._text.at_line_start(lead))
        asked_for = key is None and not self._text.before and isinstance(self._text.tools.choice, NamedTool)
        if key in self._keys or asked_for:
            return (yield from self.read_held(lead, calls))
        if lead:
            self._text.emit(self._text.say(lead))
        if key is None:
            source = self._text.source
            brackets = _BRACKETS.match(source.text, source.at)
            # If nothing but brackets is ahead, the next one begins nothing either.
            idle = len(brackets[0]) - _MAX_PEEK if brackets else 0
            self._text.emit(self._text.say(source.take(source.at + max(0, idle) + 1)))
        else:
            # Data, even if something inside looks like a call.
            yield from pass_json(self._text.source, _NO_STOPS, self._text.say)
        return ""

    def names_call(self) -> Parse[bool]:
        """Whether the object that begins here begins with a key of a call."""
        return (yield from self.first_key()) in self._keys

    def first_key(self, *, in_line: bool = False) -> Parse[str | None]:
        """The first key of the object that begins here, None if none does.

        `in_line`: words precede it on its line. Then an unquoted key with an unquoted value is prose: `the set {x: y}`.
        """
        source = self._text.source
        while True:
            begin = source.ahead(_MAX_PEEK)
            if found := _FIRST_KEY.match(begin):
                if found["comment"]:  # the key after a comment is not known: hold the object
                    return NAME_KEYS[0]
                if in_line and found["word"] is not None and found["value"] not in _BEGINS_VALUE:
                    return None
                return found["word"] or next(key for key in found.groups() if key is not None)
            if not source.more(_MAX_PEEK) or not _MAY_BE_OBJECT.match(begin):
                return None
            yield

    def read_held(self, lead: str, calls: CallReader) -> Parse[str]:
        """Hold the rest of the answer, then find the calls in it, up to those that `calls` reads."""
        text, marks = self._text, calls.marks
        rest, _ = yield from read_until(text.source, _EVERYTHING, _MAX_HELD)
        held = self._without_thoughts(lead + rest, marks.thoughts)
        closes = [
            (at, tag) for _, tag in marks.thoughts if tag not in marks.tags and (at := beside_values(held, tag)) >= 0
        ]
        if closes:
            at, tag = min(closes)
            said = held[:at].rstrip()
            text.emit(text.say(said))
            text.lone_close(held[len(said) : at + len(tag)])
            return held[at + len(tag) :]
        if (inner := self._unwrapped(held, marks.tags)) is not None:
            return inner
        if marks.control and (calls.last_call(held) or len(held)) < len(held):
            begin = min((at for tag in marks.tags if (at := beside_values(held, tag)) >= 0), default=0)
            if begin:
                return self._shown_before(held, begin)
        self._tell(recover(held, text.tools, before=text.before), marks.tags)
        return ""

    def _shown_before(self, held: str, begin: int) -> str:
        """Emit held text before a call in control tokens; JSON before that may be an example. Returns the rest."""
        text = self._text
        said = held[:begin].rstrip()
        problems = shown_problems(said, text.tools, before=text.before)
        text.emit(text.say(said))
        for problem in problems:
            text.emit(problem)
            text.settle()
        text.leave_gap(held[len(said) : begin])
        text.markup(held[len(said) : begin])
        return held[begin:]

    def _without_thoughts(self, held: str, thoughts: tuple[tuple[str, str], ...]) -> str:
        """Held text without its thoughts, which are emitted; a thought is outside of values, opened and closed."""
        for opening, close in thoughts:
            for _ in range(_MAX_THOUGHTS):
                begin = beside_values(held, opening)
                end = beside_values(held[begin:], close) if begin >= 0 else -1
                if end < 0:
                    break
                inner = held[begin + len(opening) : begin + end]
                said = inner.strip()
                lead, _, tail = inner.partition(said) if said else (inner, "", "")
                self._text.markup(opening + lead)
                if said:
                    self._text.emit(ReasoningDelta(said))
                self._text.markup(tail + close)
                held = self._joined(held[:begin], held[begin + end + len(close) :])
        return held

    def _joined(self, before: str, behind: str) -> str:
        """Join the texts before and after a thought, with the white space of one side, preferably a line break."""
        said, following = before.rstrip(), behind.lstrip()
        left, right = before[len(said) :], behind[: len(behind) - len(following)]
        if not said and not self._text.before:
            kept = ""
        else:
            kept = right if not left or ("\n" in right and "\n" not in left) else left
        self._text.markup((left + right).replace(kept, "", 1))
        return said + kept + following

    def _unwrapped(self, text: str, tags: tuple[str, ...]) -> str | None:
        """The inside of a code fence that is the whole answer and begins with an opening tag: some models wrap calls
        so.
        """
        span = unfenced(text) if tags and not self._text.before else None
        if span is None or not text.startswith(tags, span[0]):
            return None
        inner = text[slice(*span)]
        if "\n```" in inner or "\n~~~" in inner:
            return None
        self._text.emit(Markup(text[: span[0]]))
        self._text.markup(text[span[1] :])
        return inner

    def _tell(self, pieces: Sequence[Segment], tags: tuple[str, ...]) -> None:
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
                        self._text.settle()
                case RecoveredCall():
                    self._text.settle()
                    mark = next((mark for mark in MARKS if piece.text.lstrip().startswith(mark)), "")
                    if mark and mark not in tags:
                        detail = f"a call after {mark}, which is not a tag of the format"
                        self._text.emit(Problem("foreign_format", detail, call=self._text.calls))
                    self._whole_call(piece)
                case _:
                    assert_never(piece)

    def _trimmed(self, words: str) -> None:
        """Emit the text around calls, without the white space around it."""
        said = words.strip()
        lead = len(words) - len(words.lstrip())
        self._text.markup(words[:lead])
        if said:
            self._text.emit(self._text.say(said))
        self._text.markup(words[lead + len(said) :])

    def _whole_call(self, found: RecoveredCall) -> None:
        for problem in found.problems:
            self._text.emit(msgspec.structs.replace(problem, call=self._text.calls))
        index = self._text.start_call(found.name)
        self._text.emit(ArgumentsDelta(index, found.arguments))
        self._text.emit(CallEnded(index, complete=found.complete))
        self._text.markup(found.text)
