"""Calls as JSON between markers: the part that all such formats share.

The trained form, `{"name": "f", "arguments": {…}}`, streams: its arguments go out as they come. Any other object is
held to the end of its block and read as a whole by `toolwright.forms`.
"""

import re
from functools import partial
from typing import Final

import msgspec

from toolwright.events import ArgumentsDelta, CallEnded, CallStarted, Markup, Problem
from toolwright.fitting import json_problems
from toolwright.forms import Form, read_forms
from toolwright.jsonfind import json_places
from toolwright.jsonspan import JsonStops, gather_json, json_text
from toolwright.jsontext import without
from toolwright.source import Markers, Source, Steps, gather, may_come
from toolwright.toolset import Toolset

__all__ = ["MarkedJson"]

# The beginning of a call in the trained form is waited for this long.
_MAX_HEAD: Final = 400
# A block that must be read as a whole is held up to this size.
_MAX_BLOCK: Final = 4_194_304
_HEAD = re.compile(r'\{\s*"name"\s*:\s*"([^"\\]*)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)')
_HEAD_ATOMS = [r"\{", r"\s*", *'"name"', r"\s*", ":", r"\s*", '"', r'[^"\\]*', '"', r"\s*", ",", r"\s*"]
_MAY_BE_HEAD = re.compile(
    "|".join(may_come([*_HEAD_ATOMS, *key, r"\s*", ":", r"\s*"]) for key in ('"arguments"', '"parameters"'))
)
# Members of the call's object behind its arguments, which mean nothing, and its end.
_MEMBERS = re.compile(r'\s*+(?:,\s*+"[^"\\]*+"\s*+:\s*+(?:"(?:[^"\\]|\\.)*+"|[^\s,"{}\[\]]++)\s*+)*+\}')
# What may stand behind the arguments: closers, a fence, and more of both than was opened.
_CLOSERS = re.compile(r"[\s}\],;]*+(?:```)?\s*+\Z")


class MarkedJson:
    """Reads the inside of one block; `calls` counts on from what it is given.

    `refused` is the block when nothing in it could be read.
    """

    def __init__(self, source: Source, tools: Toolset, stops: JsonStops, calls: int = 0) -> None:
        self.calls = calls
        self.refused = ""
        self._source = source
        self._emit = source.emit
        self._tools = tools
        self._stops = stops
        self._markers = Markers(*stops.literals)
        self._repairs: list[Problem] = []

    def read(self) -> Steps[tuple[str, str]]:
        """Read a block from its first brace on.

        Answers the stop that ended it (`""` = the end of the output) and what was read behind it, to be read again.
        """
        head = yield from self._head()
        if head is None:
            return (yield from self._whole())
        self._emit(Markup(self._source.take(self._source.at + head.end())))
        index = self._start(head[1])
        closed, stop = yield from json_text(self._source, self._stops, partial(ArgumentsDelta, index))
        self._emit(CallEnded(index, complete=closed or bool(stop) or not self._source.cut))
        if stop:
            return stop, ""
        rest, stop = yield from gather(self._source, self._markers, _MAX_BLOCK)
        return stop, self._behind(rest, stop)

    def _head(self) -> Steps[re.Match[str] | None]:
        source = self._source
        while True:
            begin = source.ahead(_MAX_HEAD)
            if found := _HEAD.match(begin):
                return found
            if not source.more(_MAX_HEAD) or not _MAY_BE_HEAD.match(begin):
                return None
            yield

    def _behind(self, rest: str, stop: str) -> str:
        """Behind the arguments: the end of their object, more calls, or text."""
        end = _end_of_object(rest)
        self._source.markup(rest[:end])
        rest = rest[end:]
        if _CLOSERS.match(rest):
            self._source.markup(rest)
            return ""
        more = self._forms(rest.strip().strip(",;"))
        if more:
            self._calls(more, rest)
            return ""
        if self._source.cut and not stop and any(literal.startswith(rest.strip()) for literal in self._stops.literals):
            self._emit(Markup(rest))  # half of the closing tag
            return ""
        if stop:
            self._emit(Problem("arguments_trailing_text", "text behind a call", call=self.calls - 1, text=rest))
            return ""
        return rest

    def _whole(self) -> Steps[tuple[str, str]]:
        """A block in another form, read when it is whole. Tags in its strings are no ends, if its strings have one."""
        value, closed, stop = yield from gather_json(self._source, self._stops, _MAX_BLOCK)
        rest = ""
        if closed:
            rest, stop = yield from gather(self._source, self._markers, _MAX_BLOCK)
        elif not stop and (found := self._markers.search(value)):
            # A quote is missing: the block ends at the first tag after all, and the rest is read anew.
            self._told(value[: found.start()], found.group())
            return "", value[found.start() :]
        self._told(value + rest, stop)
        return stop, ""

    def _told(self, block: str, stop: str) -> None:
        forms = self._forms(block)
        if forms:
            self._calls(forms, block)
            return
        cut = self._source.cut and not stop
        detail = "a call that was cut" if cut else "a marked call that is no call in JSON"
        self._emit(Problem("incomplete_arguments" if cut else "malformed_call", detail))
        self.refused = block

    def _forms(self, block: str) -> list[Form] | None:
        """The calls of a block: one value, or several in a row; without its fence and surplus closers."""
        place = next(json_places(block, names=self._tools.names()), None)
        if place is None or place.cut or place.place not in ("whole", "fence") or place.end < len(block.rstrip()):
            return None
        each = [read_forms(node, self._tools) for node in place.nodes]
        if not all(each):
            return None
        self._repairs = json_problems(place.repairs, self.calls)
        found = [form for forms in each if forms for form in forms]
        return None if any(form.arguments and form.arguments.kind == "missing" for form in found) else found

    def _calls(self, forms: list[Form], block: str) -> None:
        for problem in self._repairs:
            self._emit(problem)
        shown: list[str] = []
        for form in forms:
            arguments = form.arguments.text() if form.arguments else ""
            shown.append(arguments)
            if not arguments and not self._tools.requires_something(form.name):
                arguments = "{}"
            for problem in form.name_problems():
                self._emit(msgspec.structs.replace(problem, call=self.calls))
            index = self._start(form.name)
            if arguments:
                self._emit(ArgumentsDelta(index, arguments))
            self._emit(CallEnded(index, complete=form.closed or not self._source.cut))
        self._source.markup(without(block, shown))

    def _start(self, name: str) -> int:
        self._emit(CallStarted(self.calls, name))
        self.calls += 1
        return self.calls - 1


def _end_of_object(rest: str) -> int:
    """Where the object ends whose arguments ended before `rest`: behind its other members, if it has any."""
    members = _MEMBERS.match(rest)
    return members.end() if members else 0
