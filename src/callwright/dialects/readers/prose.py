"""Parses answers in free text: prose, code, reasoning, and what may be a call without markers.

Text streams. Where something begins that may be a call in JSON, the rest of the answer is held back, and
`callwright.free_text.recover` judges it as a whole: what follows, such as a question, may still make it text. The
parser of a format that marks its calls is a subclass with the opening tags; it reads a marked call as it comes.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, assert_never

import msgspec

from callwright.calls.json_forms import NAME_KEYS, CallKeySet
from callwright.calls.toolset import Toolset
from callwright.conversation import NamedTool
from callwright.dialects.readers.code_context import CodeContext
from callwright.dialects.readers.json_block import MarkedJson
from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Markup,
    Problem,
    ReasoningDelta,
)
from callwright.free_text.recover import RecoveredCall, Segment, TextSegment, recover
from callwright.stream_reader import Markers, Parse, StreamReader, emit_text_until, read_until
from callwright.tolerant_json.find import beside_values
from callwright.tolerant_json.markers import END_TOKENS, JSON_TAGS, MARKS
from callwright.tolerant_json.passthrough import JsonTerminators, pass_json
from callwright.tolerant_json.wrappers import unfenced

__all__ = ["Marks", "ProseReader"]

_BOM: Final = "\ufeff"
_FENCES: Final = ("```", "~~~")
_BRACES: Final = ("{", "[")
# JSON as a JSON string, or with each of its quotes escaped.
_ENCODED: Final = ('"{', '"[', '{\\"', "json\n", "json {")
# At most this much is held back as a possible call; what is longer is text.
_MAX_HELD: Final = 4_194_304
# Characters of look-ahead for the first key of an object, or the tag of a fence.
_MAX_PEEK: Final = 300
# The end of the text so far is remembered, to judge a call by the words before it: "For example: …".
_REMEMBERED: Final = 400

_EVERYTHING = Markers()
_NO_STOPS = JsonTerminators()
_FENCE_HEAD = re.compile(r"[`~]*+[ \t]*+(?P<tag>[\w+-]*+)\s*+(?=\S)")
_FIRST_KEY = re.compile(
    r"""[\s\ufeff\[{]*\{[\s\ufeff]*(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>[^'\n]*)'|[`“‘](?P<odd>[^`”’\n]*)[`”’]"""
    r"""|(?P<word>[\w$.-]+)["']?\s*[:=]>?\s*(?P<value>\S)|(?P<comment>//|/\*|\#))"""
)
_BEGINS_VALUE: Final = "\"'`“‘{["
_MAY_BE_OBJECT = re.compile(
    r"""[\s\ufeff\[{]*(?:\{[\s\ufeff]*(?:"(?:[^"\\]|\\.)*\\?|'[^'\n]*|[`“‘][^`”’\n]*|[\w$.-]+["']?\s*(?:[:=]>?\s*)?|/)?)?\Z"""
)


class Marks(msgspec.Struct, frozen=True):
    """What a format marks. `tags` open its calls; `thoughts` are pairs of tags around reasoning, of which the prompt
    may have opened the first; `ends` are stop tokens, beside those of all formats.
    """

    tags: tuple[str, ...] = ()
    thoughts: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)
    ends: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def _markers(marks: Marks, ends: tuple[str, ...], *, has_tools: bool) -> tuple[Markers, dict[str, Markers]]:
    """The markers to search for in content, and in reasoning by its closing tag. Cached: the same for each answer of a
    format.
    """
    openers = (*_BRACES, *_FENCES, *[mark for mark in MARKS if mark not in marks.tags]) if has_tools else ()
    opens, closes = [opening for opening, _ in marks.thoughts], [close for _, close in marks.thoughts]
    in_text = Markers(*marks.tags, *opens, *closes, *ends, *openers)
    return in_text, {close: Markers(*marks.tags, close, *ends, *openers) for close in closes}


class ProseReader:
    """Parses one answer. Subclasses override `_marked`, which reads what follows an opening tag. `calls` counts the
    calls.
    """

    def __init__(self, source: StreamReader, tools: Toolset, marks: Marks = Marks()) -> None:  # noqa: B008  # frozen
        self.source = source
        self.emit = source.emit
        self.markup = source.markup
        self.tools = tools
        self.calls = 0
        self._tags = marks.tags
        self._thoughts = dict(marks.thoughts)
        self._ends = tuple(dict.fromkeys((*marks.ends, *END_TOKENS)))
        self._keys = CallKeySet(tools)
        self._make: Callable[[str], Event] = ContentDelta
        self._code = CodeContext()
        self._before = ""  # the end of the text so far
        self._apart = False  # a call stands between the text so far and what comes
        self._replays = False  # held text is being parsed again
        self._rest = ""  # the part of it that is parsed after it
        self._in_text, self._in_thought = _markers(marks, self._ends, has_tools=bool(tools.ordered))

    def read(self, start: str) -> Parse[None]:
        """Read the whole answer. `start` is `reasoning` if the prompt left reasoning open."""
        yield from self._skip(_BOM)
        if start == "reasoning":
            opening, close = next(iter(self._thoughts.items()))
            yield from self._skip_blanks()
            yield from self._skip(opening)
            yield from self._think(close)
        elif len(self.tools) and (yield from self._begins_held()):
            yield from self._held("")
        while not self.source.done:
            blanks, marker = yield from emit_text_until(self.source, self._in_text, self._say)
            if marker:
                yield from self._part(blanks, marker)

    def _part(self, blanks: str, marker: str) -> Parse[None]:
        """Read what a marker behind `blanks` begins."""
        if self._code.inside(blanks):
            self.emit(self._say(blanks + marker))
        elif marker in self._tags:
            yield from self._marked(blanks, marker)
        elif marker in self._thoughts and (self._apart or self._at_line_start(blanks)):
            self.emit(Markup(blanks + marker))
            yield from self._think(self._thoughts[marker])
        elif marker in self._thoughts.values():
            self._lone_close(blanks + marker)
            yield from self._skip_blanks()
        elif marker in self._ends:
            yield from self._end_token(blanks + marker)
        elif marker in _FENCES and self._at_line_start(blanks):
            yield from self._fence(blanks, marker)
        elif marker in _BRACES:
            self.source.at -= 1
            yield from self._value(blanks)
        elif marker in MARKS:
            behind = yield from self._held_blanks()
            if self.source.text.startswith(("{", "[", "<", "`"), self.source.at):
                yield from self._held(blanks + marker + behind)
            else:  # the marker is only mentioned
                self.emit(self._say(blanks + marker + behind))
        else:
            self.emit(self._say(blanks + marker))

    def _end_token(self, token: str) -> Parse[None]:
        """A stop token is no content at the end of the answer; inside a line of text it is only mentioned."""
        behind = yield from self._held_blanks()
        mentioned = self.source.text[self.source.at : self.source.at + 1] not in ("", "<") and "\n" not in behind
        self.emit(self._say(token + behind) if mentioned else Markup(token + behind))

    def _marked(self, blanks: str, tag: str) -> Parse[None]:
        """Read what follows an opening tag; for formats that have one."""
        self.emit(self._say(blanks + tag))
        yield from ()

    # --- text ---

    def _say(self, text: str) -> Event:
        """The event for a text. Content before and behind a call is separated by a blank line."""
        if self._apart:
            if text.isspace():
                return Markup(text)
            self._apart = False
            if self._before:
                said = text.lstrip()
                self.markup(text[: len(text) - len(said)])
                text = f"\n\n{said}"
        self._code.feed(text)
        self._before = (self._before + text)[-_REMEMBERED:]
        return self._make(text)

    def _at_line_start(self, blanks: str) -> bool:
        return "\n" in blanks or self._code.at_line_start

    def _call_begins(self) -> None:
        """Note that a call begins here: text behind it stands apart, and reasoning may begin again."""
        self._apart = True

    def _skip_blanks(self) -> Parse[None]:
        self.markup((yield from self._held_blanks()))

    def _held_blanks(self) -> Parse[str]:
        """Read white space, up to something else or the end."""
        blanks = ""
        while True:
            blanks += self.source.blanks()
            if self.source.at < len(self.source.text) or self.source.ended:
                return blanks
            yield

    def _skip(self, literal: str) -> Parse[None]:
        while self.source.more(len(literal)) and literal.startswith(self.source.text[self.source.at :]):
            yield
        if self.source.text.startswith(literal, self.source.at):
            self.emit(Markup(self.source.take(self.source.at + len(literal))))

    def _comes(self, literal: str) -> Parse[bool]:
        """Whether a literal comes next."""
        source = self.source
        while not source.text.startswith(literal, source.at):
            if not source.more(len(literal)) or not literal.startswith(source.text[source.at :]):
                return False
            yield
        return True

    def _empty_call(self, opening: str, closer: str) -> None:
        """A call's `opening` with its `closer` right behind it: nothing to show."""
        self.emit(Markup(opening + self.source.take(self.source.at + len(closer))))
        self.emit(Problem("malformed_call", "a call with nothing in it"))

    def _lone_end(self, written: str) -> Parse[None]:
        """A closing tag without its opening one: the rest of a call if one came before, else a mention."""
        if not self._apart:
            self.emit(self._say(written))
            return
        self.emit(Markup(written))
        yield from self._skip_blanks()

    def _json_block(
        self,
        opening: str,
        stops: JsonTerminators,
        closers: tuple[str, ...],
        *,
        ends_itself: bool = False,
        keyed: bool = False,
    ) -> Parse[bool]:
        """Read calls in JSON behind `opening`, up to one of `closers` or another terminator; what is no call becomes
        text.

        Answers whether there was a call. For `ends_itself` and `keyed` see `MarkedJson`.
        """
        apart = self._apart
        self._call_begins()
        block = MarkedJson(self.source, self.tools, stops, self.calls, ends_itself=ends_itself, keyed=keyed)
        stop, rest = yield from block.read()
        self.calls = block.calls
        closing = stop if stop in closers else ""
        if block.refused:
            self._apart = apart
            self.emit(self._say(opening + block.refused + closing))
        else:
            self.markup(opening)
            self.markup(closing)
        if rest:
            self._replay(rest)
        if stop and not closing:
            self.source.unread(stop)
        yield from self._skip_blanks()
        return not block.refused

    # --- thoughts ---

    def _think(self, close: str) -> Parse[None]:
        """Read reasoning to its end. A call in it counts only if the reasoning is never closed and ends with it."""
        yield from self._skip_blanks()
        self._make, code, self._code = ReasoningDelta, self._code, CodeContext()
        before, self._before, self._apart = self._before, "", False
        while not self.source.done:
            blanks, marker = yield from emit_text_until(self.source, self._in_thought[close], self._say)
            if marker == close or marker in self._ends:
                self.emit(Markup(blanks + marker))
                break
            if marker and (yield from self._draft(blanks + marker, close)):
                break
        self._make, self._code, self._before = ContentDelta, code, before
        yield from self._skip_blanks()

    def _draft(self, opening: str, close: str) -> Parse[bool]:
        """Hold what may be a call inside reasoning, until the reasoning is closed or the answer ends. True if it is
        over.
        """
        marker = opening.strip()
        if marker in _BRACES:
            self.source.at -= 1
            opening = opening.removesuffix(marker)
            if (yield from self._first_key()) not in self._keys:
                self.emit(self._say(opening + self.source.take(self.source.at + 1)))
                return False
        elif marker in self._tags:
            opening += yield from self._held_blanks()
            if not (yield from self._may_begin_call(marker)):
                self.emit(self._say(opening))
                return False
        held, end = yield from read_until(self.source, Markers(close, *self._ends), _MAX_HELD)
        text = opening + held
        at = len(text) if end == close else self._last_call(text)
        thought = text[:at].rstrip()
        if thought:
            self.emit(self._say(thought))
        self.markup(text[len(thought) : at])
        if at < len(text):
            self._make, self._code, self._before = ContentDelta, CodeContext(), ""
            self._replay(text[at:])
        self.markup(end)
        return True

    def _may_begin_call(self, tag: str) -> Parse[bool]:
        """Whether the inside of a call follows this tag; for formats that can tell."""
        yield from ()
        return True

    def _last_call(self, text: str) -> int:
        """Where the calls at the end of unclosed reasoning begin; the length of the text if there are none."""
        pieces = recover(text, self.tools, before=self._before)
        at = len(text)
        for piece in reversed(pieces):
            if not isinstance(piece, RecoveredCall):
                break
            at = text.rfind(piece.text, 0, at) if piece.text else at
        return at

    def _lone_close(self, written: str) -> None:
        """A closing tag of reasoning without an opening one: all text before it was reasoning, unless a call came
        first.
        """
        self.emit(Markup(written))
        if self._before and not self.calls:
            detail = f"{written.strip()} without its opener: what stood before it was thought"
            self.emit(Problem("unopened_reasoning", detail))
            self._before = ""
            self._code = CodeContext()

    # --- what may be a call ---

    def _begins_held(self) -> Parse[bool]:
        """Whether the answer begins with JSON inside a JSON string, or with a tool's name glued to its arguments:
        `f{"a": 1}`.
        """
        beginnings = (*_ENCODED, *[f"{name}{{" for name in self.tools.names()])
        firsts = {word[0] for word in beginnings}
        while True:
            begin = self.source.ahead(_MAX_PEEK).lstrip()
            if begin.startswith(beginnings):
                return True
            if begin and begin[0] not in firsts:
                return False
            if not self.source.more(_MAX_PEEK) or not any(word.startswith(begin) for word in beginnings):
                return False
            yield

    def _fence(self, blanks: str, ticks: str) -> Parse[None]:
        """A fenced block: an object in it may be a call, anything else is text."""
        source = self.source
        while True:
            head = _FENCE_HEAD.match(source.ahead(_MAX_PEEK))
            inside = head.string[head.end() :] if head else ""
            whole = inside and not any(len(inside) < len(tag) and tag.startswith(inside) for tag in self._tags)
            if whole or not source.more(_MAX_PEEK):
                break
            yield
        if head and self._may_open_call(head["tag"], inside):
            opening = blanks + ticks + source.take(source.at + head.end())
            if inside.startswith(_BRACES):
                yield from self._value(opening)
            else:
                yield from self._held(opening)
        else:
            self.emit(self._say(blanks + ticks))

    def _may_open_call(self, tag: str, inside: str) -> bool:
        if inside.startswith(_BRACES):
            return tag.lower() in JSON_TAGS
        return not self._before and inside.startswith(self._tags)

    def _value(self, lead: str) -> Parse[None]:
        """A brace or bracket behind `lead`: the begin of a call, of data, or of text."""
        key = yield from self._first_key(in_line=not self._at_line_start(lead))
        asked_for = key is None and not self._before and isinstance(self.tools.choice, NamedTool)
        if key in self._keys or asked_for:
            yield from self._held(lead)
            return
        if lead:
            self.emit(self._say(lead))
        if key is None:
            self.emit(self._say(self.source.take(self.source.at + 1)))
        else:
            # Data, even if something inside looks like a call.
            yield from pass_json(self.source, _NO_STOPS, self._say)

    def _first_key(self, *, in_line: bool = False) -> Parse[str | None]:
        """The first key of the object that begins here, None if none does.

        `in_line`: words stand before it on its line. Then an unquoted key with an unquoted value is prose: `the set {x:
        y}`.
        """
        source = self.source
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

    def _held(self, lead: str) -> Parse[None]:
        """Hold the rest of the answer, then find the calls in it."""
        held, _ = yield from read_until(self.source, _EVERYTHING, _MAX_HELD)
        text = lead + held
        closes = [(at, tag) for tag in self._thoughts.values() if (at := beside_values(text, tag)) >= 0]
        if closes:
            at, tag = min(closes)
            said = text[:at].rstrip()
            self.emit(self._say(said))
            self._lone_close(text[len(said) : at + len(tag)])
            rest = text[at + len(tag) :]
            if self._replays and self.source.done:
                self._rest = rest  # it is parsed after this text, not inside
            else:
                self._replay(rest)
        elif (inner := self._unwrapped(text)) is not None:
            self._replay(inner)
        else:
            self._tell(recover(text, self.tools, before=self._before))

    def _unwrapped(self, text: str) -> str | None:
        """The inside of a code fence that is the whole answer and begins with an opening tag: some models wrap calls
        so.
        """
        span = unfenced(text) if self._tags and not self._before else None
        if span is None or not text.startswith(self._tags, span[0]):
            return None
        inner = text[slice(*span)]
        if "\n```" in inner or "\n~~~" in inner:
            return None
        self.emit(Markup(text[: span[0]]))
        self.markup(text[span[1] :])
        return inner

    def _tell(self, pieces: Sequence[Segment]) -> None:
        """Emit the segments of a held text."""
        for piece in pieces:
            match piece:
                case TextSegment(words, problem):
                    if len(pieces) == 1:
                        self.emit(self._say(words))
                    else:
                        self._trimmed(words)
                    if problem:
                        self.emit(problem)
                case RecoveredCall():
                    self._whole_call(piece)
                case _:
                    assert_never(piece)

    def _trimmed(self, words: str) -> None:
        """Emit the text beside calls, without the white space around it."""
        said = words.strip()
        lead = len(words) - len(words.lstrip())
        self.markup(words[:lead])
        if said:
            self.emit(self._say(said))
        self.markup(words[lead + len(said) :])

    def _whole_call(self, found: RecoveredCall) -> None:
        self._call_begins()
        index = self.calls
        self.calls += 1
        for problem in found.problems:
            self.emit(msgspec.structs.replace(problem, call=index))
        self.emit(CallStarted(index, found.name))
        self.emit(ArgumentsDelta(index, found.arguments))
        self.emit(CallEnded(index, complete=found.complete))
        self.markup(found.text)

    def _replay(self, text: str) -> None:
        """Parse held text again, as what it turned out to be, then what was left over from it."""
        outer, replays, self._replays = self.source, self._replays, True
        while text:
            self._rest = ""
            self.source = StreamReader(self.emit)
            self.source.push(text)
            self.source.end()
            self.markup(self.source.blanks())
            for _ in self.read("assistant"):
                raise AssertionError("held text is whole")
            text = self._rest
        self.source, self._replays = outer, replays
