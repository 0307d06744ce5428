"""Calls as JSON between markers: the part that all such formats share.

The trained form, `{"name": "f", "arguments": {…}}`, streams: its arguments go out as they come. Any other object is
held to the end of its block and read as a whole by `toolwright.forms`.
"""

import re
from functools import partial
from typing import Final

from toolwright.events import ArgumentsDelta, CallEnded, CallStarted, Markup, Problem
from toolwright.forms import Form, read_forms
from toolwright.source import JsonStops, Source, Steps, gather, json_text
from toolwright.toolset import Toolset

__all__ = ["MarkedJson"]

# The beginning of a call in the trained form is waited for this long.
_MAX_HEAD: Final = 400
# A block that must be read as a whole is held up to this size.
_MAX_BLOCK: Final = 4_194_304
_HEAD = re.compile(r'\{\s*"name"\s*:\s*"([^"\\]*)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)')
# What may stand behind the arguments: closers, a fence, and more of both than was opened.
_CLOSERS = re.compile(r"[\s}\],;]*(?:```)?\s*\Z")


class MarkedJson:
    """Reads the inside of blocks and counts the calls."""

    def __init__(self, source: Source, tools: Toolset, stops: JsonStops) -> None:
        self.calls = 0
        self._source = source
        self.emit = source.emit
        self.markup = source.markup
        self._tools = tools
        self._stops = stops

    def read(self) -> Steps[tuple[str, str]]:
        """Read a block from its first brace on.

        Answers the stop that ended it (`""` = the end of the output) and text that was behind the calls without one.
        """
        head = yield from self._head()
        if head is None:
            return (yield from self._whole())
        self.emit(Markup(self._source.take(head.end())))
        index = self._start()
        self.emit(CallStarted(index, self._tools.resolve(head[1])))
        closed, stop = yield from json_text(self._source, self._stops, partial(ArgumentsDelta, index))
        self.emit(CallEnded(index, complete=closed or bool(stop) or not self._source.cut))
        if stop:
            return stop, ""
        rest, stop = yield from gather(self._source, self._stops.outside, _MAX_BLOCK)
        return stop, self._behind(rest, stop)

    def _head(self) -> Steps[re.Match[str] | None]:
        source = self._source
        while True:
            if found := _HEAD.match(source.text, source.at):
                return found
            short = len(source.text) - source.at < _MAX_HEAD
            if source.ended or not short or self._stops.outside.search(source.text, source.at):
                return None
            yield

    def _behind(self, rest: str, stop: str) -> str:
        """Behind the first object: its closer, more calls, or text."""
        closer = rest.find("}")
        if closer >= 0 and not rest[:closer].strip():
            self.emit(Markup(rest[: closer + 1]))
            rest = rest[closer + 1 :]
        if _CLOSERS.match(rest):
            if rest:
                self.emit(Markup(rest))
            return ""
        more = self._forms(rest.strip().strip(",;"))
        if more:
            self._calls(more, rest)
            return ""
        if stop:
            self.emit(Problem("arguments_trailing_text", "text behind a call", call=self.calls - 1, text=rest))
            return ""
        return rest

    def _whole(self) -> Steps[tuple[str, str]]:
        block, stop = yield from gather(self._source, self._stops.outside, _MAX_BLOCK)
        forms = self._forms(block)
        if forms:
            self._calls(forms, block)
        else:
            cut = self._source.cut and not stop
            detail = "a call that was cut" if cut else "a marked call that is no call in JSON"
            self.emit(Problem("incomplete_arguments" if cut else "malformed_call", detail, text=block))
        return stop, ""

    def _forms(self, block: str) -> list[Form] | None:
        """The calls of a block: one value, or several in a row; without its fence and surplus closers."""
        block = block.strip()
        fenced = re.fullmatch(r"```\w*\s*(.*?)\s*(?:```)?", block, re.DOTALL)
        text = fenced[1] if fenced else block
        forms = read_forms(text, self._tools)
        if forms is None and (values := _values(text)):
            each = [read_forms(value, self._tools) for value in values]
            forms = [form for forms in each if forms for form in forms] if all(each) else None
        return forms

    def _calls(self, forms: list[Form], block: str) -> None:
        frame = block
        for form in forms:
            arguments = form.arguments
            if not arguments and not self._tools.requires_something(form.name):
                arguments = "{}"
            frame = frame.replace(form.arguments, "", 1)
            index = self._start()
            if form.decoded:
                self.emit(Problem("arguments_decoded", "the arguments were a JSON string", call=index))
            self.emit(CallStarted(index, form.name))
            if arguments:
                self.emit(ArgumentsDelta(index, arguments))
            self.emit(CallEnded(index))
        self.emit(Markup(frame))

    def _start(self) -> int:
        self.calls += 1
        return self.calls - 1


def _values(text: str) -> list[str]:
    """The JSON values of a text that holds several, with nothing but white space, commas and closers between."""
    from toolwright.source import JsonSpan

    values: list[str] = []
    at = 0
    while at < len(text):
        if text[at] not in "{[":
            if text[at] not in " \t\r\n,;}]":
                return []
            at += 1
            continue
        end, closed = JsonSpan().end(text, at)
        if not closed:
            return []
        values.append(text[at:end])
        at = end
    return values
