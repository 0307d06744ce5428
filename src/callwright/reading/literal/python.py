"""Parses and writes calls as Python: `[f(a='x', b=[1, True]), g()]`, between markers or as a line of the answer.

Only keyword arguments count. Between markers anything that looks like a call is one. Without markers a list must begin
with the name of a tool, and words around it may show that it is only an example.
"""

import re
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Final, NamedTuple

from msgspec import Struct

from callwright.events import ArgumentsDelta, CallEnded, Markup, Problem
from callwright.layout.calls import CallLayout
from callwright.reading.json.block import read_json_block
from callwright.reading.literal.literals import Ends, LiteralForm, LiteralReader
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.reading.text.marks import Marks, all_ends
from callwright.streaming.reader import Parse
from callwright.tolerant_json.passthrough import JsonTerminators

_MAX_HEAD: Final = 400
_MAX_BETWEEN: Final = 400
_NAME_ONLY: Final = r"(?P<name>[^\W\d][\w./-]*+)"
_NAME: Final = r"[^\W\d][\w./-]*+(?: [\w./-]++|(?!))*+"
_KEY: Final = r"""(?:[\w.$-]++|"[^"\n]*+"|'[^'\n]*+')\s*+="""
# `print(default_api.f(a=1))` is how Gemini's prompts call.
_CALL = re.compile(
    rf"(?P<head>(?P<wrapper>print\s*+\(\s*+)?(?:default_api\.)?(?P<name>{_NAME})\s*+\()\s*+(?P<named>\)|{_KEY})?"
)
_MAY_BE_CALL = re.compile(rf"""(?:{_NAME}[ ]?\s*+(?:\(\s*+(?:[\w.$-]*+|"[^"\n]*+"?|'[^'\n]*+'?)\s*+)?)?\Z""")
# Words between two calls, before the name of one, the end of the list or a marker.
_WORDS = re.compile(rf"(?P<words>[^()\[\]{{}}\"'<]*?)(?:(?<![\w./-])(?={_NAME_ONLY}\s*+\()|(?=[\]<]))")


class PythonForm(Struct, frozen=True):
    """The calls of one format, which are written according to its `layout`. `blocks` are pairs of markers around them,
    of which a closing one may be `""`, `ends` stop tokens, `thoughts` the tags around reasoning. `control`: the
    markers are tokens of their own, which users do not type.
    """

    layout: CallLayout
    blocks: tuple[tuple[str, str], ...]
    ends: tuple[str, ...] = ()
    control: bool = True
    thoughts: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)

    def reader(self, text: AnswerText) -> CallReader:
        """The reader of the calls in one answer."""
        return PythonCalls(text, self)


class _LookedFor(NamedTuple):
    """Search patterns for a format: the marks in text, and the `stops` of a call."""

    marks: Marks
    blocks: Mapping[str, str]
    block_ends: tuple[str, ...]
    stops: tuple[str, ...]
    json_stops: JsonTerminators
    values: LiteralForm


@lru_cache(maxsize=256)
def _looked_for(form: PythonForm) -> _LookedFor:
    """The same for each answer of a format."""
    blocks = dict(form.blocks)
    block_ends = tuple(filter(None, blocks.values()))
    ends = all_ends(form.ends)
    stops = (*block_ends, *blocks, *ends)
    return _LookedFor(
        marks=Marks((*blocks, *block_ends), form.thoughts, form.ends, form.control),
        blocks=blocks,
        block_ends=block_ends,
        stops=stops,
        json_stops=JsonTerminators(*stops, then=stops, ends=ends),
        values=LiteralForm(ends=Ends(block_ends, tuple(blocks), ends)),
    )


class PythonCalls(CallReader):
    """Reads calls in Python."""

    begins = ("[",)

    def __init__(self, text: AnswerText, form: PythonForm) -> None:
        self._find = find = _looked_for(form)
        super().__init__(text, find.marks)

    # --- the beginnings of calls ---

    def marked(self, blanks: str, tag: str) -> Parse[CallReader | None]:
        """Read from a marker: calls, the rest of a block, or a mention."""
        if tag in self._find.blocks:
            yield from self._block(blanks, tag)
        else:  # without its opener: the rest of a block after a call, else a mention
            yield from self.text.lone_end(blanks, tag)
        return None

    def _block(self, blanks: str, tag: str) -> Parse[None]:
        """Read from an opening marker."""
        text, source = self.text, self.text.source
        opening = blanks + tag + (yield from text.held_blanks())
        bracket = source.take(source.at + 1) if source.text.startswith("[", source.at) else ""
        inner = yield from text.held_blanks()
        if (yield from self._call_comes()):
            text.emit(Markup(opening + bracket + inner))
            yield from self._calls(bracket, self._find.blocks[tag])
        elif source.text.startswith(("{", '"'), source.at):
            source.unread(bracket + inner)
            yield from read_json_block(self.text, opening, self._find.json_stops, self._find.block_ends)
        elif bracket and (yield from text.comes("]")):
            text.empty_call(opening + bracket + inner, "]")
            yield from text.skip_blanks()
            if (end := self._find.blocks[tag]) and (yield from text.comes(end)):
                text.emit(Markup(source.take(source.at + len(end))))
        elif not bracket and (end := self._find.blocks[tag]) and (yield from text.comes(end)):
            text.empty_call(opening, end)
        elif not bracket and (yield from text.comes(tag)):
            text.emit(Markup(opening))
        else:
            source.unread(opening[len(blanks + tag) :] + bracket + inner)
            yield from text.no_call(blanks, tag)

    def bare_call(self, lead: str) -> Parse[str | None]:
        """Read the bracket of a list of calls, and the blanks after it."""
        source = self.text.source
        if not source.text.startswith("[", source.at):
            return None
        bracket = source.take(source.at + 1) + (yield from self.text.held_blanks())
        if (yield from self._call_comes(known=True)):
            return bracket
        source.unread(bracket)
        return None

    def read_bare(self, opening: str) -> Parse[None]:
        """Read a list of calls without markers, after its bracket."""
        self.text.markup(opening)
        yield from self._calls(opening.strip(), "")

    def bracket_names_call(self) -> Parse[bool]:
        """Whether a list of calls is next; nothing is read."""
        if not (yield from self.text.comes("[")):
            return False
        bracket = yield from self.bare_call("")
        self.text.source.unread(bracket or "")
        return bracket is not None

    def may_begin_call(self, tag: str) -> Parse[bool]:
        """Whether a call, or JSON, follows a marker."""
        if tag not in self._find.blocks:
            return False
        bracket = ""
        if self.text.source.text.startswith("[", self.text.source.at):
            bracket = self.text.source.take(self.text.source.at + 1) + (yield from self.text.held_blanks())
        comes = yield from self._call_comes()
        self.text.source.unread(bracket)
        return comes or self.text.source.text.startswith(("[", "{"), self.text.source.at)

    def last_call(self, text: str) -> int | None:
        """The position of the first block, which ends reasoning that is never closed."""
        begins = [at for tag in self._find.blocks if (at := text.find(tag)) >= 0]
        return min(begins, default=len(text))

    def _call_comes(self, *, known: bool = False) -> Parse[bool]:
        """Whether a name and the beginning of its arguments follow. `known`: only the name of a tool counts."""
        while True:
            ahead = self.text.source.ahead(_MAX_HEAD)
            found = _CALL.match(ahead)
            words, name = self._split(found["name"]) if found else ("", "")
            is_known = name in self.text.tools and not (known and words)
            if words and not is_known:
                return False
            if found and found["named"]:
                return is_known or not known
            if not self.text.source.more(_MAX_HEAD) or not _MAY_BE_CALL.match(ahead):
                return found is not None and is_known and not known
            yield

    def _split(self, name: str) -> tuple[str, str]:
        """The words before a tool's name, and the tool that it means. A name may hold blanks: `Sound Lamp`."""
        known = self.text.tools.resolve_name(name)
        if known in self.text.tools or " " not in name:
            return "", known
        last = name.rpartition(" ")[2]
        return name.removesuffix(last), self.text.tools.resolve_name(last)

    # --- calls ---

    def _calls(self, bracket: str, end: str) -> Parse[None]:
        """Read calls, one after the other, to the end of their block: the closer of a `bracket`, then `end`."""
        while True:
            whole = yield from self._call()
            listed = yield from self._list_ends(bracket)
            if listed or not (yield from self._next_comes(bracket)):
                break
        if bracket and not listed:
            listed = yield from self._list_ends(bracket)
        ended = False
        for marker in self._find.block_ends:
            if (yield from self.text.comes(marker)):
                self.text.emit(Markup(self.text.take(marker)))
                ended = True
        if whole and ((bracket and not listed) or (end and not ended)):
            self.text.emit(Problem("markup_repaired", "the end of the calls is missing", call=self.text.calls - 1))
        yield from self.text.skip_blanks()

    def _list_ends(self, bracket: str) -> Parse[bool]:
        """Read the text between calls; returns whether the list was closed."""
        while True:
            self.text.markup((yield from self.text.held_blanks()))
            mark = self.text.source.ahead(1)
            if not mark or mark not in ",;)]":
                return False
            self.text.emit(Markup(self.text.source.take(self.text.source.at + 1)))
            if mark == ")" or (mark == "]" and not bracket):
                self.text.emit(Problem("markup_repaired", "a closing bracket too many", call=self.text.calls - 1))
            if mark == "]":
                yield from self.text.skip_blanks()
                return True

    def _next_comes(self, bracket: str) -> Parse[bool]:
        """Whether another call follows in this block; words before it, or before the end of the block, are read."""
        if (yield from self._call_comes()):
            return True
        if not (bracket or self._find.block_ends):
            return False
        source = self.text.source
        while True:
            ahead = source.ahead(_MAX_BETWEEN)
            found = _WORDS.match(ahead)
            if found and found["name"] and self.text.tools.resolve_name(found["name"]) not in self.text.tools:
                found = None
            more = source.more(_MAX_BETWEEN)
            if not more or (found and found.end() < len(ahead)):
                break
            yield
        words = found["words"] if found else ""
        if not words.strip():
            return False
        text = source.take(source.at + len(words))
        self.text.emit(Problem("arguments_trailing_text", "text between calls", call=self.text.calls - 1, text=text))
        return (yield from self._call_comes())

    def _call(self) -> Parse[bool]:
        """Read one call, starting at its name; returns whether it is complete."""
        source = self.text.source
        head = _CALL.match(source.ahead(_MAX_HEAD))
        assert head is not None  # `_call_comes` has checked it
        words, known = self._split(head["name"])
        name = head["name"].removeprefix(words)
        index = self.text.start_call(known if name == f"{known}.call" else name)  # `f.call(…)` is Llama's own form
        if words:
            self.text.emit(Problem("arguments_trailing_text", "text before a call", call=index, text=words))
        self.text.emit(Markup(source.take(source.at + head.end("head"))))
        reader = LiteralReader(source, partial(ArgumentsDelta, index), self._find.values, index)
        whole = yield from reader.arguments(")", "=")
        if head["wrapper"] and whole:
            self.text.markup((yield from self.text.held_blanks()))
            whole = yield from self.text.comes(")")
            self.text.markup(source.take(source.at + 1) if whole else "")
        self.text.emit(CallEnded(index, complete=whole))
        return whole
