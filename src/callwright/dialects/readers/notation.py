"""Parses calls as `call:f{key:value,…}` between markers: Gemma's notation, in which only strings are
quoted.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from callwright.calls.toolset import Toolset
from callwright.dialects.call_layout import CallLayout
from callwright.dialects.prompts.literal_arguments import DelimitedArguments
from callwright.dialects.readers.arguments_writer import ArgumentsWriter
from callwright.dialects.readers.literals import Ends, LiteralForm, LiteralReader
from callwright.dialects.readers.marked_block import read_json_block
from callwright.dialects.readers.marks import Marks, all_ends
from callwright.dialects.readers.prose import ProseReader
from callwright.events import CallEnded, CallStarted, Markup, Problem
from callwright.stream_reader import Markers, Parse, StreamReader, read_until
from callwright.tolerant_json.passthrough import JsonTerminators

__all__ = ["Notation", "NotationReader"]

_CALL: Final = "call:"
_MAX_HEAD: Final = 300
_MAX_CLOSERS: Final = 64
_MAX_RESULT: Final = 4_194_304
_HEAD = re.compile(r"\s*+:?\s*+(?P<call>call:)?\s*+(?P<name>[\w./-]++)\s*+(?P<bracket>[{(])")
_MAY_BE_HEAD = re.compile(r"\s*+:?\s*+(?:c(?:a(?:l(?:l(?::\s*+)?)?)?)?|(?:call:)?\s*+[\w./-]++\s*+)?\Z")
# Words between an opening marker and its call.
_WORDS = re.compile(r"[^{}()<\n]*?(?<![\w./:-])(?=:?(?:call:)?(?P<name>[\w./-]++) *+[{(])")
_MAY_BE_WORDS = re.compile(r"[^{}()<\n]*+\Z")
_BRACKETS: Final = {"{": "}", "(": ")"}
# A member behind the end of the arguments, which came too early then.
_MEMBER = re.compile(r"""\s*+,?+\s*+["'<|]*+[\w$-]++["'|>]*+\s*+[:=]""").match


class Notation(Struct, frozen=True):
    """The markers of one model: around a call, the quote around strings, around a tool's result. `ends` are stop
    tokens, `thoughts` the tags around reasoning.
    """

    call: str
    call_end: str
    quote: str
    results: tuple[str, str]
    ends: tuple[str, ...] = ()
    thoughts: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)

    def parse(self, source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
        """See `CallFormat`."""
        return NotationReader(source, tools, self).read(start)

    @property
    def layout(self) -> CallLayout:
        """How calls are written."""
        arguments = DelimitedArguments(self.quote)
        return CallLayout(begin=f"{self.call}{_CALL}${{name}}{{", arguments=arguments, end=f"}}{self.call_end}")


class _LookedFor(NamedTuple):
    """What a reader of a format looks for: in text, and what `stops` a call."""

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
        marks=Marks((form.call, form.call_end, form.quote, _CALL, *inline), form.thoughts, form.ends),
        stops=stops,
        call_ends=Ends((form.call_end,), (form.call,), ends),
        behind=Markers(*stops),
        json_stops=JsonTerminators(*json_stops, then=json_stops, ends=ends),
    )


class NotationReader(ProseReader):
    """Parses prose with calls in the notation. A call at the begin of a line may lack its opening marker."""

    def __init__(self, source: StreamReader, tools: Toolset, form: Notation) -> None:
        looked_for = _looked_for(form)
        super().__init__(source, tools, looked_for.marks)
        self._form = form
        self._lost = False  # a text has ended where nobody knows whether it did: nothing behind it is certain
        self._stops = looked_for.stops
        self._call_ends = looked_for.call_ends
        self._behind = looked_for.behind
        self._json_stops = looked_for.json_stops

    def _end_token(self, token: str) -> Parse[None]:
        """See `ProseReader`. Behind a call the model may go on with a tool result that it made up, which is dropped."""
        begin, end = self._form.results
        if token.strip() != begin or not self._apart:
            yield from super()._end_token(token)
            return
        result, closed = yield from read_until(self.source, Markers(end), _MAX_RESULT)
        if result:
            self.emit(Problem("imagined_message", "the result of a call, made up", text=token + result + closed))
        else:
            self.emit(Markup(token + closed))
        yield from self.skip_blanks()

    def _marked(self, blanks: str, tag: str) -> Parse[None]:
        form = self._form
        if tag == form.call_end:  # without its opener: the rest of a call when one came before, else a mention
            yield from self.lone_end(blanks, tag)
        elif tag == form.quote:
            yield from self.stray(blanks, tag)
        elif tag == _CALL:
            if self.at_line_start(blanks) and (yield from self._names_call(known=True)):
                yield from self._call(blanks + tag, "")
            else:
                self.emit(self.say(blanks + tag))
        elif (yield from self._names_call()):
            yield from self._call(blanks + tag, form.call_end)
        else:
            inner = yield from self.held_blanks()
            if self.source.text.startswith(("{", "["), self.source.at):
                yield from read_json_block(self, blanks + tag + inner, self._json_stops, (form.call_end,))
            elif (yield from self.comes(form.call_end)):
                self.empty_call(blanks + tag + inner, form.call_end)
            elif (yield from self.comes(tag)):
                self.emit(Markup(blanks + tag + inner))
            elif words := (yield from self._words()):
                self.emit(Problem("arguments_trailing_text", "text before a call", call=self.calls, text=words))
                yield from self._call(blanks + tag + inner, form.call_end)
            else:
                if (yield from self.comes(_CALL)):
                    self.emit(Problem("malformed_call", "a marked call without a name and arguments"))
                self.source.unread(inner)
                yield from self.no_call(blanks, tag)

    def no_call(self, blanks: str, tag: str) -> Parse[None]:
        """See `ProseReader`: the markers of a call are tokens, whatever they look like."""
        yield from self.stray(blanks, tag)

    def _may_begin_call(self, tag: str) -> Parse[bool]:
        """See `ProseReader`."""
        if tag not in (self._form.call, _CALL):
            return False
        return (yield from self._names_call(known=tag == _CALL))

    def _last_call(self, text: str) -> int:
        """See `ProseReader`; a call in reasoning that is never closed ends it."""
        at = text.find(self._form.call)
        return at if at >= 0 else super()._last_call(text) if _CALL not in text else text.find(_CALL)

    def _names_call(self, *, known: bool = False) -> Parse[bool]:
        """Whether a name and an opening bracket come next. `known`: only the name of a tool counts."""
        while True:
            ahead = self.source.ahead(_MAX_HEAD)
            if found := _HEAD.match(ahead):
                is_known = self.tools.resolve_name(found["name"]) in self.tools
                return is_known or not (known or (found["bracket"] == "(" and not found["call"]))
            if not self.source.more(_MAX_HEAD) or not _MAY_BE_HEAD.match(ahead):
                return False
            yield

    def _words(self) -> Parse[str]:
        """Read the words before the call of a known tool; `""` if there is none."""
        source = self.source
        while True:
            ahead = source.ahead(_MAX_HEAD)
            if found := _WORDS.match(ahead):
                is_known = self.tools.resolve_name(found["name"]) in self.tools
                return source.take(source.at + found.end()) if is_known else ""
            if not source.more(_MAX_HEAD) or not _MAY_BE_WORDS.match(ahead):
                return ""
            yield

    def _call(self, opening: str, closing: str) -> Parse[None]:
        """Read a call, from its name on; `closing` must follow it."""
        source = self.source
        head = _HEAD.match(source.ahead(_MAX_HEAD))
        assert head is not None  # `_names_call` has checked it
        self.call_begins()
        index = self.calls
        self.calls += 1
        self.emit(CallStarted(index, head["name"]))
        self.emit(Markup(opening + source.take(source.at + head.end())))
        writer = ArgumentsWriter(self.emit, index, head["name"], self.tools)
        names = self.tools.names_in(self.tools.resolve_name(head["name"]))
        reader = LiteralReader(
            source,
            writer.of_json,
            LiteralForm((self._form.quote,), self._call_ends, names),
            call=index,
            bare=lambda key: "any" if writer.is_untyped(writer.schema(key)) else "text" if writer.is_text(key) else "",
        )
        whole = yield from reader.arguments(_BRACKETS[head["bracket"]], ":=")
        if whole and (yield from self._opens_again()):
            self.emit(Problem("markup_repaired", "arguments may stand behind those that were read", call=index))
            whole = False
        behind = yield from self._after(closing if whole else "")
        whole = whole and not _MEMBER(behind)
        if whole and (yield from self.comes(self._form.quote)):
            self.emit(Problem("markup_repaired", "nobody knows where a text ended", call=index))
            self._lost = True
        self.emit(CallEnded(index, complete=whole and not self._lost))
        self._lost = self._lost or reader.lost

    def _opens_again(self) -> Parse[bool]:
        """Whether an opening bracket follows arguments that were closed."""
        while True:
            behind = self.source.ahead(_MAX_CLOSERS).lstrip()
            if behind or not self.source.more(_MAX_CLOSERS):
                return behind[:1] in _BRACKETS
            yield

    def _after(self, closing: str) -> Parse[str]:
        """Read what follows a call: its closing marker, once or twice, and spare closers or other text before it, which
        is answered.
        """
        yield from self.skip_blanks()
        trailing = ""
        source, end = self.source, self._form.call_end
        index = self.calls - 1
        while True:
            ahead = source.ahead(_MAX_CLOSERS)
            begin = ahead.lstrip(" \n})]")
            if begin.startswith(end):
                if begin != ahead.lstrip():
                    self.emit(Problem("markup_repaired", "a closing bracket too many", call=index))
                self.emit(Markup(source.take(source.at + ahead.index(end) + len(end))))
                closing = ""
                yield from self.skip_blanks()
            elif not source.more(_MAX_CLOSERS) or not end.startswith(begin):
                goes_on = not closing or (yield from self._names_call(known=True))
                if goes_on or not (text := (yield from self._trailing(index))):
                    break
                trailing, closing = text, ""
            else:
                yield
        if closing:
            self.emit(Problem("markup_repaired", f"{closing} is missing", call=index))
        return trailing

    def _trailing(self, index: int) -> Parse[str]:
        """The text behind which the closing marker of a call comes, read with it; `""` if none comes."""
        source, end = self.source, self._form.call_end
        text, stop = yield from read_until(source, self._behind, _MAX_RESULT)
        if stop != end:
            source.unread(text + stop)
            return ""
        self.emit(Problem("arguments_trailing_text", "text behind the arguments", call=index, text=text))
        self.emit(Markup(stop))
        yield from self.skip_blanks()
        return text
