"""Parses calls as `call:f{key:value,…}` between markers: Gemma's notation, in which only strings are
quoted.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from callwright.events import CallEnded, Markup, Problem
from callwright.layout.calls import CallLayout
from callwright.layout.literal import DelimitedArguments
from callwright.reading.arguments_writer import ArgumentsWriter
from callwright.reading.json.block import read_json_block
from callwright.reading.literal.literals import Ends, LiteralForm, LiteralReader
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.reading.text.marks import Marks, all_ends
from callwright.streaming.reader import Markers, Parse, read_until
from callwright.tolerant_json.passthrough import JsonTerminators

_CALL: Final = "call:"
_MAX_HEAD: Final = 300
_MAX_CLOSERS: Final = 64
_MAX_RESULT: Final = 4_194_304
_HEAD = re.compile(r"\s*+:?\s*+(?P<call>call:)?\s*+(?P<name>[\w./:-]++)\s*+(?P<bracket>[{(])")
_MAY_BE_HEAD = re.compile(r"\s*+:?\s*+(?:c(?:a(?:l(?:l(?::\s*+)?)?)?)?|(?:call:)?\s*+[\w./:-]++\s*+)?\Z")
# Words between an opening marker and its call.
_WORDS = re.compile(r"[^{}()<\n]*?(?<![\w./:-])(?=:?(?:call:)?(?P<name>[\w./:-]++) *+[{(])")
_MAY_BE_WORDS = re.compile(r"[^{}()<\n]*+\Z")
_BRACKETS: Final = {"{": "}", "(": ")"}
# A member after a premature end of the arguments.
_MEMBER = re.compile(r"""\s*+,?+\s*+["'<|]*+[\w$-]++["'|>]*+\s*+[:=]""").match


class Notation(Struct, frozen=True):
    """The markers of one model: around a call, the quote around strings, around a tool's result. `ends` are stop
    tokens, `thoughts` the tags around reasoning, `channel` the text after the first of these.
    """

    call: str
    call_end: str
    quote: str
    results: tuple[str, str]
    ends: tuple[str, ...] = ()
    thoughts: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)
    channel: str = ""

    def reader(self, text: AnswerText) -> CallReader:
        """The reader of the calls in one answer."""
        return NotationCalls(text, self)

    @property
    def layout(self) -> CallLayout:
        """How calls are written."""
        arguments = DelimitedArguments(self.quote)
        return CallLayout(begin=f"{self.call}{_CALL}${{name}}{{", arguments=arguments, end=f"}}{self.call_end}")


class _LookedFor(NamedTuple):
    """Search patterns for a format: the marks in text, and the `stops` of a call."""

    marks: Marks
    stops: tuple[str, ...]
    call_ends: Ends
    behind: Markers
    json_stops: JsonTerminators


@lru_cache(maxsize=256)
def _looked_for(form: Notation) -> _LookedFor:
    """The same for each answer of a format."""
    inline = [opening for opening, _ in form.thoughts if opening.startswith("<|")]
    ends = all_ends(form.ends)
    stops = (form.call_end, form.call, *ends)
    json_stops = tuple(stop for stop in stops if stop.startswith("<"))
    return _LookedFor(
        marks=Marks(
            (form.call, form.call_end, form.quote, _CALL, *inline), form.thoughts, form.ends, channel=form.channel
        ),
        stops=stops,
        call_ends=Ends((form.call_end,), (form.call,), ends),
        behind=Markers(*stops),
        json_stops=JsonTerminators(*json_stops, then=json_stops, ends=ends),
    )


class NotationCalls(CallReader):
    """Reads calls in the notation. One at the beginning of a line may lack its opening marker."""

    def __init__(self, text: AnswerText, form: Notation) -> None:
        self._find = find = _looked_for(form)
        super().__init__(text, find.marks)
        self._form = form
        self._lost = False  # the end of a text was uncertain: nothing after it is certain

    def stop_token(self, token: str) -> Parse[bool]:
        """Drop an imagined tool result, which the model may write after a call."""
        text, (begin, end) = self.text, self._form.results
        if token.strip() != begin or not text.apart:
            return False
        result, closed = yield from read_until(text.source, Markers(end), _MAX_RESULT)
        if result:
            text.emit(Problem("imagined_message", "the result of a call, made up", text=token + result + closed))
        else:
            text.emit(Markup(token + closed))
        yield from text.skip_blanks()
        return True

    def marked(self, blanks: str, tag: str) -> Parse[CallReader | None]:
        """Read from a marker: a call, the rest of one, or a mention."""
        form, text = self._form, self.text
        if tag == form.call_end and text.apart:  # without its opener, the rest of a call
            yield from text.lone_end(blanks, tag)
        elif tag in (form.call_end, form.quote):
            yield from text.stray(blanks, tag)
        elif tag == _CALL:
            if text.at_line_start(blanks) and (yield from self._names_call(known=True)):
                yield from self._call(blanks + tag, "")
            else:
                text.emit(text.say(blanks + tag))
        elif (yield from self._names_call()):
            yield from self._call(blanks + tag, form.call_end)
        else:
            inner = yield from text.held_blanks()
            if text.source.text.startswith(("{", "["), text.source.at):
                yield from read_json_block(self.text, blanks + tag + inner, self._find.json_stops, (form.call_end,))
            elif (yield from text.comes(form.call_end)):
                text.empty_call(blanks + tag + inner, form.call_end)
            elif (yield from text.comes(tag)):
                text.emit(Markup(blanks + tag + inner))
            elif words := (yield from self._words()):
                text.emit(Problem("arguments_trailing_text", "text before a call", call=text.calls, text=words))
                yield from self._call(blanks + tag + inner, form.call_end)
            else:
                if (yield from text.comes(_CALL)):
                    text.emit(Problem("malformed_call", "a marked call without a name and arguments"))
                text.source.unread(inner)
                yield from text.stray(blanks, tag)
        return None

    def may_begin_call(self, tag: str) -> Parse[bool]:
        """Whether the name of a call follows a marker."""
        if tag not in (self._form.call, _CALL):
            return False
        return (yield from self._names_call(known=tag == _CALL))

    def last_call(self, text: str) -> int | None:
        """The position of the first call, which ends reasoning that is never closed."""
        at = text.find(self._form.call)
        at = at if at >= 0 else text.find(_CALL)
        return at if at >= 0 else None

    def _names_call(self, *, known: bool = False) -> Parse[bool]:
        """Whether a name and an opening bracket come next. `known`: only the name of a tool counts."""
        while True:
            ahead = self.text.source.ahead(_MAX_HEAD)
            if found := _HEAD.match(ahead):
                is_known = self.text.tools.resolve_name(found["name"]) in self.text.tools
                return is_known or not (known or (found["bracket"] == "(" and not found["call"]))
            if not self.text.source.more(_MAX_HEAD) or not _MAY_BE_HEAD.match(ahead):
                return False
            yield

    def _words(self) -> Parse[str]:
        """Read the words before the call of a known tool; `""` without such a call."""
        source = self.text.source
        while True:
            ahead = source.ahead(_MAX_HEAD)
            if found := _WORDS.match(ahead):
                is_known = self.text.tools.resolve_name(found["name"]) in self.text.tools
                return source.take(source.at + found.end()) if is_known else ""
            if not source.more(_MAX_HEAD) or not _MAY_BE_WORDS.match(ahead):
                return ""
            yield

    def _call(self, opening: str, closing: str) -> Parse[None]:
        """Read a call, from its name on; `closing` must follow it."""
        source = self.text.source
        head = _HEAD.match(source.ahead(_MAX_HEAD))
        assert head is not None  # `_names_call` has checked it
        index = self.text.start_call(head["name"])
        self.text.emit(Markup(opening + source.take(source.at + head.end())))
        writer = ArgumentsWriter(self.text.emit, index, head["name"], self.text.tools)
        names = self.text.tools.names_in(self.text.tools.resolve_name(head["name"]))
        reader = LiteralReader(
            source,
            writer.of_json,
            LiteralForm((self._form.quote,), self._find.call_ends, names),
            call=index,
            bare=lambda key: "any" if writer.is_untyped(writer.schema(key)) else "text" if writer.is_text(key) else "",
        )
        whole = yield from reader.arguments(_BRACKETS[head["bracket"]], ":=")
        if whole and (yield from self._opens_again()):
            self.text.emit(Problem("markup_repaired", "more arguments may follow those that were read", call=index))
            whole = False
        behind = yield from self._after(closing if whole else "")
        whole = whole and not _MEMBER(behind)
        if whole and (yield from self.text.comes(self._form.quote)):
            self.text.emit(Problem("markup_repaired", "nobody knows where a text ended", call=index))
            self._lost = True
        self.text.emit(CallEnded(index, complete=whole and not self._lost))
        self._lost = self._lost or reader.lost

    def _opens_again(self) -> Parse[bool]:
        """Whether an opening bracket follows arguments that were closed."""
        while True:
            behind = self.text.source.ahead(_MAX_CLOSERS).lstrip()
            if behind or not self.text.source.more(_MAX_CLOSERS):
                return behind[:1] in _BRACKETS
            yield

    def _after(self, closing: str) -> Parse[str]:
        """Read the text after a call: its closing marker, once or twice, and extra closers or other text before it,
        which is returned.
        """
        yield from self.text.skip_blanks()
        trailing = ""
        source, end = self.text.source, self._form.call_end
        index = self.text.calls - 1
        while True:
            ahead = source.ahead(_MAX_CLOSERS)
            begin = ahead.lstrip(" \n})]")
            if begin.startswith(end):
                if begin != ahead.lstrip():
                    self.text.emit(Problem("markup_repaired", "a closing bracket too many", call=index))
                self.text.emit(Markup(source.take(source.at + ahead.index(end) + len(end))))
                closing = ""
                yield from self.text.skip_blanks()
            elif not source.more(_MAX_CLOSERS) or not end.startswith(begin):
                goes_on = not closing or (yield from self._names_call(known=True))
                if goes_on or not (text := (yield from self._trailing(index))):
                    break
                trailing, closing = text, ""
            else:
                yield
        if closing:
            self.text.emit(Problem("markup_repaired", f"{closing} is missing", call=index))
        return trailing

    def _trailing(self, index: int) -> Parse[str]:
        """The text before the closing marker of a call, read with the marker; `""` without a marker."""
        source, end = self.text.source, self._form.call_end
        text, stop = yield from read_until(source, self._find.behind, _MAX_RESULT)
        if stop != end:
            source.unread(text + stop)
            return ""
        self.text.emit(Problem("arguments_trailing_text", "text after the arguments", call=index, text=text))
        self.text.emit(Markup(stop))
        yield from self.text.skip_blanks()
        return text
