"""Parses calls in marked JSON from a declaration of the markers and of the name's position.

Between the markers is an object with name and arguments, a list of these, or the arguments alone after a header that
names the tool. One reader reads all such formats by their `CallMarks`; arguments stream. A marker in a sentence, in
code or in closed reasoning is text: the model writes about it.
"""

import re
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from msgspec import Struct

from callwright.events import ArgumentsDelta, CallEnded, Markup, Problem
from callwright.layout.calls import CallLayout
from callwright.reading.json.block import MarkedJson, read_json_block
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.reading.text.marks import Marks, all_ends
from callwright.streaming.reader import Markers, Parse, read_blanks, read_until
from callwright.tolerant_json.passthrough import JsonTerminators, member_follows, pass_json

_MAX_HEADER: Final = 400
_MAX_BETWEEN: Final = 400
_MAX_VALUE: Final = 4_194_304
_BEGINS_JSON: Final = ("{", "[", "`")
_MAX_FENCE: Final = 64
_FENCE = re.compile(r"```\w*+\s*+(?=[{\[])").match
_MAY_BE_FENCE = re.compile(r"`{0,2}\Z|```\w*+\s*+\Z").match
# A tag that may be written about.
_WORD_TAG = re.compile(r"<\w+>").fullmatch
# The shape of control tokens in tokenizers.
_TOKEN = re.compile(r"<[|｜][^\s<>]+[|｜]>|\[/?[A-Z_]+\]")
# A number or boolean in place of arguments, and a token before the arguments.
_SCALAR = re.compile(r"(?:-?\d[\d.eE+-]*+|true|false)\s*+\Z").match
_ENDS_HEADER = re.compile(rf"(?:{_TOKEN.pattern})\s*+\Z").search
# The marker before JSON in a layout, and the one after it.
_BEFORE_JSON = re.compile(r"[^\[{`$]*")
_BEHIND_JSON = re.compile(r"[^\]}`]*\Z")
# Closers that nothing opened, and the end of a fence.
_SURPLUS = re.compile(r"[\s}\],;]*+(?:```)?\s*+").match


class CallMarks(Struct, frozen=True, kw_only=True):
    """The markers of one format, which is written according to its `layout`.

    Any of `opens` begins a call or a block of calls, any of `closes` ends it; without `closes` the last bracket does.
    `around` are markers without meaning of their own, of sections or of the content. `ends` are stop tokens.

    `header` matches the text between an opening marker and the arguments; its last group is the tool's name, its group
    `id`, if it has one, the id that the model gave the call. Without a header the name is in the JSON: under `name`, or
    (`keyed`) as the key of the arguments. `bare`: an answer may begin with its calls, without a marker.

    `special`: the markers are control tokens, which users do not type. Then a call in unclosed reasoning ends the
    reasoning. `thoughts` are the tags around reasoning. If these are control tokens, too (`<|inner|>`, but not
    `<think>`), unclosed reasoning may begin inside a line. `end_thoughts` are markers that no thought can contain.
    """

    layout: CallLayout
    opens: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()
    around: tuple[str, ...] = ()
    header: re.Pattern[str] | None = None
    keyed: bool = False
    bare: bool = False
    special: bool = True
    thoughts: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)
    ends: tuple[str, ...] = ()
    end_thoughts: tuple[str, ...] = ()

    @classmethod
    def of(cls, layout: CallLayout, *, opens: tuple[str, ...] = (), **more: Any) -> "CallMarks":
        """The markers before and after the JSON in a layout; `opens` are additional openers."""
        begin = _BEFORE_JSON.match(layout.open + layout.begin)
        end = _BEHIND_JSON.search(layout.end + layout.close)
        assert begin is not None  # they match always
        assert end is not None
        closes = tuple(filter(None, (end.group().strip(),)))
        return cls(layout=layout, opens=(begin.group().strip(), *opens), closes=closes, **more)

    def reader(self, text: AnswerText) -> CallReader:
        """The reader of the calls in one answer."""
        return MarkedCalls(text, self)


class _LookedFor(NamedTuple):
    """Search patterns for a format: the marks in text, the control tokens with which a call is written, the terminators
    of a call in JSON, in other text and after a header, the text that may follow a call, and how calls begin.
    """

    marks: Marks
    tokens: tuple[str, ...]
    stops: JsonTerminators
    markers: Markers
    header_ends: Markers
    after: tuple[str, ...]
    calls_begin: re.Pattern[str]


@lru_cache(maxsize=256)
def _looked_for(form: CallMarks, also: tuple[str, ...]) -> _LookedFor:
    """The same for each answer of a format."""
    layout = form.layout
    sections = [tag for tag in form.around if "tool_call" in tag.lower()]  # others may be of the content
    written = " ".join((layout.open, layout.begin, layout.end, layout.close, *sections))
    tokens = tuple(dict.fromkeys(_TOKEN.findall(written))) if form.special else ()
    inline = [opening for opening, _ in form.thoughts if form.special and not _WORD_TAG(opening)]
    tags = tuple(dict.fromkeys((*form.opens, *form.closes, *form.around, *also, *inline, *tokens)))
    ends = all_ends(form.ends)
    words = not form.special and not form.closes  # the openers are words that may be in any text
    stops = tuple(dict.fromkeys((*form.closes, *(() if words else form.opens), *form.around, *ends)))
    return _LookedFor(
        marks=Marks(tags, form.thoughts, form.ends, form.special, end_thoughts=form.end_thoughts),
        tokens=tokens,
        stops=JsonTerminators(
            *stops,
            then=stops,
            ends=tuple(end for end in ends if end not in form.closes),
            begins=tuple(stop for stop in stops if stop not in form.closes),
        ),
        markers=Markers(*stops),
        header_ends=Markers("{", *stops),
        after=(*form.opens, *form.around, *[opening for opening, _ in form.thoughts], *ends),
        calls_begin=_begin_of_calls(form.around, form.opens),
    )


class MarkedCalls(CallReader):
    """Reads marked calls.

    `also`: other literals that matter in the text; a dialect's subclass handles them in `marked`.
    """

    def __init__(self, text: AnswerText, form: CallMarks, also: tuple[str, ...] = ()) -> None:
        self._find = find = _looked_for(form, also)
        super().__init__(text, find.marks)
        self._form = form
        self._fenced = False  # the call is in a code fence
        self._sections: tuple[str, ...] = ()  # the ends of sections that were begun, the innermost first
        self._opened = False  # an opener at the beginning of a line was not followed by JSON, and became text
        self._ids: frozenset[str | None] = frozenset()  # of the calls so far, as the model gave them

    def end(self) -> None:
        """Name the ends of sections that are missing."""
        if self._sections and self.text.calls:
            missing = " and ".join(self._sections)
            self.text.emit(Problem("markup_repaired", f"missing at the end: {missing}", call=self.text.calls - 1))

    def marked(self, blanks: str, tag: str) -> Parse[CallReader | None]:
        """Read from a marker."""
        form, text = self._form, self.text
        if tag in form.opens:
            yield from self._opener(blanks, tag)
        elif tag in form.closes:
            # Without its opener: one too many after a call, else a mention.
            if text.apart:
                yield from text.lone_end(blanks, tag)
            elif form.special and not self._opened:
                yield from text.stray(blanks, tag)
            else:
                text.emit(text.say(blanks + tag))
            if self._opened:
                yield from self._after_text_block()
        elif tag in self._find.tokens and not (tag in form.around and (yield from self._goes_on(tag))):
            yield from text.stray(blanks, tag)
        elif tag in form.around:
            self._in_section(tag)
            structure = form.special or text.apart or text.at_line_start(blanks)
            text.emit(Markup(blanks + tag) if structure else text.say(blanks + tag))
            if structure and (text.apart or not form.special):
                yield from text.skip_blanks()
        return None

    def _in_section(self, tag: str) -> None:
        """Note the token of a section, which is to be closed."""
        layout = self._form.layout
        self._sections = tuple(token for token in self._sections if token != tag)
        for begin, end in ((layout.begin, layout.end), (layout.open, layout.close)):
            if tag in begin:
                inner = tuple(token for token in _TOKEN.findall(end) if token in self._form.around)
                self._sections = inner + self._sections

    def _goes_on(self, tag: str) -> Parse[bool]:
        """Whether a section token follows a call; or opens it, before a call or at the end of the output."""
        text, layout = self.text, self._form.layout
        if text.apart or tag in layout.end + layout.close:
            return text.apart
        inner = yield from read_blanks(text.source)
        follows = yield from self._next_of(*self._form.opens, *self._form.around)
        rest = text.source.text[text.source.at :]
        text.source.unread(inner)
        is_cut = text.source.ended and any(mark.startswith(rest) for mark in (*self._form.opens, *self._form.around))
        is_cut = is_cut and (rest != "" or tag in layout.open + layout.begin)
        return bool(follows) or is_cut

    def _opener(self, blanks: str, tag: str) -> Parse[None]:
        """Read on after an opening marker: a call, another opener, nothing, or the marker was only mentioned."""
        text = self.text
        starts_line = text.at_line_start(blanks)
        inner = yield from read_blanks(text.source)
        follows = yield from self._next_of(*self._form.opens, *self._form.closes)
        fence = yield from self._fence_begin()
        opening = blanks + tag + inner + fence
        is_json = text.source.text.startswith(_BEGINS_JSON, text.source.at)
        if follows in self._form.opens:
            text.emit(Markup(opening))
            text.emit(Problem("markup_repaired", f"{follows} is repeated"))
        elif follows:
            text.emit(Markup(opening + text.take(follows)))
            text.emit(Problem("malformed_call", "a call with nothing in it"))
        elif self._form.header and not is_json:
            yield from self._headed(blanks, tag, inner + fence)
        elif not is_json and (words := (yield from self._words())):
            self.text.emit(_words_before(words, self.text.calls))
            yield from self._block(opening)
        elif not is_json:
            self._opened = starts_line and bool(self._form.closes)
            yield from self._no_call(blanks, tag, inner + fence)
        else:
            self._fenced = bool(fence)
            yield from self._block(opening)

    def _words(self) -> Parse[str]:
        """Read the words between an opening token and the JSON of a call of an offered tool; `""`, and nothing is read,
        if no such call follows.
        """
        source = self.text.source
        words, marker = (
            (yield from read_until(source, self._find.header_ends, _MAX_HEADER)) if self._find.tokens else ("", "")
        )
        source.unread(marker)
        if marker == "{" and self._is_tool((yield from self._name_in_json())):
            return words
        source.unread(words)
        return ""

    def _fence_begin(self) -> Parse[str]:
        """Read an opening code fence before JSON, which some models put around their calls."""
        source = self.text.source
        while True:
            ahead = source.ahead(_MAX_FENCE)
            if found := _FENCE(ahead):
                return source.take(source.at + found.end())
            if not _MAY_BE_FENCE(ahead) or not source.more(_MAX_FENCE):
                return ""
            yield

    def _next_of(self, *literals: str) -> Parse[str]:
        """Which of the literals is next, or `""`."""
        longest = max(map(len, literals), default=0)
        while True:
            begin = self.text.source.ahead(longest)
            for literal in literals:
                if begin.startswith(literal):
                    return literal
            if not self.text.source.more(longest) or not any(literal.startswith(begin) for literal in literals):
                return ""
            yield

    # --- the name in the JSON ---

    def _block(self, opening: str) -> Parse[None]:
        """Read one block of calls, from its first bracket on."""
        form = self._form
        ends_itself = bool(form.header) or not form.closes
        block = yield from read_json_block(self.text, opening, self._find.stops, form.closes, ends_itself, form.keyed)
        if ends_itself and not block.refused:
            yield from self._close(misses=not block.cut)

    def _after_text_block(self) -> Parse[None]:
        """After the closing marker of a block that became text: if its line ends here, it was meant as a call."""
        self._opened = False
        blanks = yield from read_blanks(self.text.source)
        if "\n" in blanks or self.text.source.done or self.text.source.text.startswith("<", self.text.source.at):
            self.text.emit(Problem("malformed_call", "a marked call that is not a call in JSON"))
        self.text.source.unread(blanks)

    # --- the name before the JSON ---

    def _no_call(self, blanks: str, tag: str, inner: str) -> Parse[None]:
        """An opening marker without a call: a word that was mentioned, or a stray token."""
        text = self.text
        found = _TOKEN.findall(tag)
        if found and set(found) <= {*self._find.tokens}:
            text.source.unread(inner)
            yield from text.stray(blanks, tag)
        else:
            text.emit(text.say(blanks + tag + inner))

    def _headed(self, blanks: str, tag: str, inner: str) -> Parse[None]:
        """Read a header, the arguments and the closing marker; text if there is no header."""
        header, marker = yield from read_until(self.text.source, self._find.header_ends, _MAX_HEADER)
        found = self._form.header.match(header) if self._form.header else None
        name = found.group(found.lastindex or 0).strip() if found else ""
        rest = header[found.end() :] if found else ""
        kind = _kind_of_rest(found, rest, marker, names_tool=self._is_tool(name))
        if (
            found is None
            or (kind == "junk" and marker not in self._form.closes)
            or not (marker or self.text.source.done)
        ):
            self.text.source.unread(header + marker)
            yield from self._no_call(blanks, tag, inner)
            return
        opening = blanks + tag + inner
        if kind == "words":
            self.text.emit(_words_before(rest, self.text.calls))
            rest = ""
        self.text.source.unread(rest + marker)
        if not (rest or marker):
            self._sections = ()
            self.text.emit(self.text.say(opening + header))
            self.text.emit(Problem("incomplete_arguments", "a call that was cut"))
            return
        self._fenced = "```" in found.group()
        id_ = found.groupdict().get("id")
        if not self._is_tool(name) and self._is_tool((yield from self._name_in_json())):
            self.text.emit(Problem("markup_repaired", "the name of the tool is beside its arguments", self.text.calls))
            yield from self._block(opening + found.group())
        else:
            yield from self._headed_call(name, opening + found.group(), id_=id_)

    def _is_tool(self, name: str) -> bool:
        return self.text.tools.resolve_name(name) in self.text.tools

    def _name_in_json(self) -> Parse[str]:
        """The name in the object of a call that is next, or `""`; nothing is read."""
        head = yield from MarkedJson(self.text.source, self.text.tools, self._find.stops).head()
        return head["name"] if head else ""

    def _headed_call(self, name: str, opening: str, *, marked: bool = True, id_: str | None = None) -> Parse[None]:
        """Read the arguments of a call of this tool, and its closing marker. Not `marked`: no marker opens or closes
        it.
        """
        index = self.text.start_call(name, None if id_ in self._ids else id_)
        self._ids |= {id_}
        self.text.markup(opening)
        yield from self.text.skip_blanks()
        arguments = partial(ArgumentsDelta, index)
        if self.text.source.text.startswith(("{", "[", '"'), self.text.source.at):
            closed, stop, is_sure = yield from pass_json(self.text.source, self._find.stops, arguments, index)
        else:
            text, stop = yield from read_until(self.text.source, self._find.markers, _MAX_VALUE)
            ends_call = stop in self._form.closes or (not self._form.closes and stop not in self._find.stops.ends)
            closed, is_sure = False, bool(stop) and (bool(text.strip()) or ends_call)
            if text.strip():
                value, fence, behind = text.partition("```") if self._fenced else (text, "", "")
                self.text.emit(arguments(value))
                self.text.markup(fence + behind)
            else:
                self.text.markup(text)
                if is_sure and not self.text.tools.requires_something(name):
                    self.text.emit(arguments("{}"))
        # Other words next to the name leave it unknown which tool was meant.
        is_name = " " not in name or self._is_tool(name)
        is_whole = not (yield from member_follows(self.text.source)) if closed else is_sure
        self.text.emit(CallEnded(index, complete=is_name and is_whole))
        if not is_name:
            self.text.emit(Problem("malformed_call", "words beside the name of a tool", call=index))
        if not (closed or stop):
            self._sections = ()  # the call was cut, and all that is around it
        self.text.source.unread(stop)
        yield from self._close(misses=marked and (closed or bool(stop)))

    def _close(self, *, misses: bool = True) -> Parse[None]:
        """Read the closing marker, and extra closers before it. `misses`: report it if it is missing."""
        source, closes = self.text.source, self._form.closes
        while True:
            ahead = source.ahead(_MAX_BETWEEN)
            end = _SURPLUS(ahead).end()  # type: ignore[union-attr]  # matches always
            if self._fenced and "```" in ahead[:end]:
                self._fenced = False
                self._surplus(ahead[: ahead.index("```")])
                self.text.markup(source.take(source.at + ahead.index("```") + 3))
                continue
            behind = ahead[end:]
            close = next((close for close in closes if behind.startswith(close)), "")
            if close or behind.startswith(self._find.after) or (not behind and source.ended):
                self._surplus(ahead[:end])
                self.text.markup(source.take(source.at + end + len(close)))
                if misses and not close:
                    self._closer_is_missing()
                break
            may_come = any(literal.startswith(behind) for literal in ("```", *closes, *self._find.after))
            if may_come and source.ended:
                self._surplus(ahead[:end])
                self.text.markup(source.take(len(source.text)))  # partial, cut off
            if not may_come or not source.more(_MAX_BETWEEN):
                yield from self._trailing(misses=misses)
                break
            yield
        yield from self.text.skip_blanks()

    def _trailing(self, *, misses: bool) -> Parse[None]:
        """Report other text up to the closing marker as a problem; it is content if another marker or none follows."""
        closes = self._form.closes
        if not closes:
            return
        text, stop = yield from read_until(self.text.source, self._find.markers, _MAX_VALUE)
        if stop in closes:
            self.text.emit(Problem("arguments_trailing_text", "text after the arguments", self.text.calls - 1, text))
            self.text.markup(stop)
        else:
            self.text.source.unread(text + stop)
            if misses:
                self._closer_is_missing()

    def _closer_is_missing(self) -> None:
        if self._form.closes:
            self.text.emit(Problem("markup_repaired", f"{self._form.closes[0]} is missing", call=self.text.calls - 1))

    def _surplus(self, written: str) -> None:
        """Report brackets and commas after a call that nothing opened."""
        if written.strip(" \t\r\n\f\v`"):
            detail = "closing brackets or commas too many"
            self.text.emit(Problem("json_repaired", detail, call=self.text.calls - 1))

    # --- calls without a marker ---

    def bare_call(self, lead: str) -> Parse[str | None]:
        """In some formats an answer may begin with calls that have no marker; nothing is read."""
        text = self.text
        if not self._form.bare or lead.strip() or text.before.strip():
            return None
        block = MarkedJson(text.source, text.tools, self._find.stops)
        head = yield from block.head()
        if not head or not self._is_tool(head["name"]):
            return None
        return None if (yield from block.is_record_ahead(head)) else ""

    def read_bare(self, opening: str) -> Parse[None]:
        """Read calls without a marker, one after the other."""
        yield from read_json_block(self.text, opening, self._find.stops, (), ends_itself=True)
        yield from self._close(misses=False)

    # --- calls in thoughts ---

    def may_begin_call(self, tag: str) -> Parse[bool]:
        """Whether JSON follows a marker, or a header may."""
        if tag in self._form.around:
            return bool((yield from self._next_of(*self._form.opens, *self._form.around)))
        is_json = self.text.source.text.startswith(("{", "["), self.text.source.at)
        return tag in self._form.opens and (is_json or self._form.header is not None)

    def last_call(self, text: str) -> int | None:
        """The position of the calls in `text`: with control tokens the first call, else the run of whole calls at the
        end.
        """
        form = self._form
        if form.special:
            first = self._find.calls_begin.search(text)
            return first.start() if first else len(text)
        at, end = len(text), len(text.rstrip())
        while found := _last(text, form.opens, end):
            begin, opening = found
            block = text[begin + len(opening) : end].strip()
            inner = block
            for close in form.closes:
                inner = inner.removesuffix(close)
            whole = block.startswith(("{", "[")) and block.endswith((*form.closes, "}", "]"))
            if not whole or any(close in inner for close in form.closes):
                break
            at, end = begin, len(text[:begin].rstrip())
        return at if at < len(text) else None


def _words_before(words: str, call: int) -> Problem:
    return Problem("arguments_trailing_text", "text before the arguments", call, words)


def _kind_of_rest(found: re.Match[str] | None, rest: str, marker: str, *, names_tool: bool) -> str:
    """The kind of the text between a header and the next marker: a value or none, words before an object, or junk."""
    has_token = found is not None and _ENDS_HEADER(found.group()) is not None
    if rest[:1] in ("", "[", '"') or (has_token and _SCALAR(rest)):
        return "value"
    return "words" if has_token and names_tool and marker == "{" else "junk"


def _begin_of_calls(around: tuple[str, ...], opens: tuple[str, ...]) -> re.Pattern[str]:
    """Finds an opening marker, with the markers of `around` directly before it."""
    before, begin = ("|".join(map(re.escape, literals)) or "(?!)" for literals in (around, opens))
    return re.compile(rf"(?:(?:{before})\s*+|(?!))*+(?:{begin})")


def _last(text: str, literals: tuple[str, ...], end: int) -> tuple[int, str] | None:
    """The position of the last literal before `end`, and which one it is."""
    at, literal = max(((text.rfind(literal, 0, end), literal) for literal in literals), default=(-1, ""))
    return (at, literal) if at >= 0 else None
