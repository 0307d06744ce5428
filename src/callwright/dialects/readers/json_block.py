"""Calls as JSON between markers: the part that all such formats share.

The trained forms, `{"name": "f", "arguments": {…}}` and a list of such objects, stream: arguments go out as they come.
Any other object is held to the end of its block and read as a whole by `callwright.calls.json_forms`.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec

from callwright.calls.fit import json_problems
from callwright.calls.json_forms import ARGUMENT_KEYS, JsonCall, find_json_calls
from callwright.calls.toolset import Toolset
from callwright.events import ArgumentsDelta, CallEnded, CallStarted, Markup, Problem
from callwright.stream_reader import Markers, Parse, StreamReader, read_until
from callwright.tolerant_json.find import json_places
from callwright.tolerant_json.passthrough import JsonTerminators, collect_json, pass_json
from callwright.tolerant_json.reader import JsonRepair
from callwright.tolerant_json.tree import Member, Node
from callwright.tolerant_json.wrappers import without

__all__ = ["MarkedJson"]

# The beginning of a call in a trained form, and what stands between two of them, is waited for this long.
_MAX_HEAD: Final = 400
# A block that must be read as a whole is held up to this size.
_MAX_BLOCK: Final = 4_194_304

# No string in a head holds a bracket: so the first one says whether a head may still come.
_TEXT: Final = r'"[^"\\{}\[\]]*+"'
_ID: Final = rf'"(?:id|type|index|call_id|tool_call_id)"\s*+:\s*+(?:{_TEXT}|[\w.+-]+)\s*+,\s*+'
_SEPARATED: Final = r"\s*+[;,]?\s*+(?P<list>\[\s*+)?\{\s*+"
_HEAD = re.compile(
    rf'{_SEPARATED}(?:{_ID})*"(?:name|tool_name|function)"\s*+:\s*+"(?P<name>[^"\\{{}}\[\]]*+)"\s*+,\s*+(?:{_ID})*'
    r'"(?:arguments|parameters|args)"\s*+:\s*+(?=\{)'
)
_KEYED_HEAD = re.compile(rf'{_SEPARATED}"(?!(?:{"|".join(ARGUMENT_KEYS)})")(?P<name>[^"\\{{}}\[\]]*+)"\s*+:\s*+(?=\{{)')
_MAY_BE_HEAD = re.compile(r"\s*+[;,]?\s*+(?:\[\s*+)?(?:\{[^{}\[\]]*+)?\Z")
# Members of the call's object behind its arguments, which mean nothing, and its end.
_MEMBERS = re.compile(r'\s*+(?:,\s*+"[^"\\]*+"\s*+:\s*+(?:"(?:[^"\\]|\\.)*+"|[^\s,"{}\[\]]++)\s*+)*+\}')
_END_OF_OBJECT = re.compile(
    r'\s*+(?:,\s*+"[^"\\{}\[\]]*+"\s*+:\s*+(?:"(?:[^"\\{}\[\]]|\\[^{}\[\]])*+"|[^\s,"{}\[\]]++)\s*+)*+\}'
)
_MAY_END_OBJECT = re.compile(r"\s*+(?:,[^{}\[\]]*+)?\Z")
# What stands behind an item of a list, and what is more than was opened.
_NEXT_ITEM = re.compile(r"\s*+,\s*+(?=\{)|\s*+\]")
_MAY_BE_NEXT = re.compile(r"\s*+,?\s*+\Z")
_SURPLUS = re.compile(r"\s*+[}\]][\s}\]]*+")
# What may stand behind the arguments: closers, a fence, and more of both than was opened.
_CLOSERS = re.compile(r"[\s}\],;]*+(?:```)?\s*+\Z")


class MarkedJson:
    """Reads the inside of one block; `calls` counts on from what it is given.

    `ends_itself`: no marker stands behind the JSON, so its last bracket ends the block. `keyed`: the name of the tool
    is the key under which its arguments stand. `refused` is the block when nothing in it could be read.
    """

    def __init__(
        self,
        source: StreamReader,
        tools: Toolset,
        stops: JsonTerminators,
        calls: int = 0,
        *,
        ends_itself: bool = False,
        keyed: bool = False,
    ) -> None:
        self.calls = calls
        self.refused = ""
        self._source = source
        self._emit = source.emit
        self._tools = tools
        self._stops = stops
        self._markers = Markers(*stops.literals)
        self._ends_itself = ends_itself
        self._keyed = keyed
        self._repairs: list[Problem] = []

    def read(self) -> Parse[tuple[str, str]]:
        """Read a block from its first bracket on.

        Answers the stop that ended it (`""` = the end of the output) and what was read behind it, to be read again.
        """
        head = yield from self.head()
        if head is None:
            return (yield from self._whole())
        while True:
            stop = yield from self._items(head)
            if stop:
                return stop, ""
            if not self._ends_itself:
                rest, stop = yield from read_until(self._source, self._markers, _MAX_BLOCK)
                return stop, self._behind(rest, stop)
            surplus = yield from self._ahead(_SURPLUS, _MAY_BE_NEXT)
            self._source.markup(self._source.take(self._source.at + (surplus.end() if surplus else 0)))
            head = yield from self.head()
            if head is None:
                return "", ""

    def head(self) -> Parse[re.Match[str] | None]:
        """The beginning of a call in a trained form, if one comes next; nothing is read."""
        return (yield from self._ahead(_KEYED_HEAD if self._keyed else _HEAD, _MAY_BE_HEAD))

    def _ahead(self, wanted: re.Pattern[str], may_be: re.Pattern[str]) -> Parse[re.Match[str] | None]:
        """What comes next, if it is this; `may_be` matches what may still become it."""
        source = self._source
        while True:
            begin = source.ahead(_MAX_HEAD)
            if (found := wanted.match(begin)) and (found.end() < len(begin) or not source.more(_MAX_HEAD)):
                return found
            if not source.more(_MAX_HEAD) or not (found or may_be.match(begin)):
                return None
            yield

    def _items(self, head: re.Match[str]) -> Parse[str]:
        """A call in a trained form, or a list of calls that begins with one; answers the stop that ended it."""
        source = self._source
        item: re.Match[str] | None = head
        while True:
            if item:
                stop = yield from self._streamed(item)
            else:
                value, _, stop = yield from collect_json(source, self._stops, _MAX_BLOCK)
                self._told(value, stop, alone=False)
            if stop:
                return stop
            if item and (end := (yield from self._ahead(_END_OF_OBJECT, _MAY_END_OBJECT))):
                self._emit(Markup(source.take(source.at + end.end())))
            follows = (yield from self._ahead(_NEXT_ITEM, _MAY_BE_NEXT)) if head["list"] else None
            if follows is None:
                return ""
            self._emit(Markup(source.take(source.at + follows.end())))
            if follows.group().endswith("]"):
                return ""
            item = yield from self.head()

    def _streamed(self, head: re.Match[str]) -> Parse[str]:
        """One call whose arguments go out as they come; answers the stop that ended them."""
        self._emit(Markup(self._source.take(self._source.at + head.end())))
        index = self._start(head["name"])
        closed, stop = yield from pass_json(self._source, self._stops, partial(ArgumentsDelta, index))
        self._emit(CallEnded(index, complete=closed or bool(stop) or not self._source.cut))
        return stop

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

    def _whole(self) -> Parse[tuple[str, str]]:
        """A block in another form, read when it is whole. Tags in its strings are no ends, if its strings have one."""
        value, closed, stop = yield from collect_json(self._source, self._stops, _MAX_BLOCK)
        rest = ""
        if closed:
            if not self._ends_itself:
                rest, stop = yield from read_until(self._source, self._markers, _MAX_BLOCK)
        elif not stop and (found := self._markers.search(value)):
            # A quote is missing: the block ends at the first tag after all, and the rest is read anew.
            self._told(value[: found.start()], found.group())
            return "", value[found.start() :]
        self._told(value + rest, stop)
        return stop, ""

    def _told(self, block: str, stop: str, *, alone: bool = True) -> None:
        """Say the calls of a block. One that holds none is `refused`; of several calls (not `alone`) it is lost."""
        forms = self._forms(block)
        if forms:
            self._calls(forms, block)
            return
        cut = self._source.cut and not stop
        detail = "a call that was cut" if cut else "a marked call that is no call in JSON"
        text = "" if alone else block
        self._emit(Problem("incomplete_arguments" if cut else "malformed_call", detail, text=text))
        self.refused = block if alone else ""

    def _forms(self, block: str) -> list[JsonCall] | None:
        """The calls of a block: one value, or several in a row; without its fence and surplus closers."""
        place = next(json_places(block, names=self._tools.names()), None)
        if place is None or place.cut or place.place not in ("whole", "fence") or place.end < len(block.rstrip()):
            return None
        each = [self._read(node) for node in place.nodes]
        if not all(each):
            return None
        self._repairs = json_problems(place.repairs, self.calls)
        found = [form for forms in each if forms for form in forms]
        return None if any(self._is_doubtful(form, place.repairs) for form in found) else found

    def _is_doubtful(self, form: JsonCall, repairs: Mapping[JsonRepair, int]) -> bool:
        """Whether a form is a call by halves: a key without arguments, or broken JSON that only names no known tool."""
        if form.arguments is None:
            return bool(repairs) and not form.explicit and form.name not in self._tools
        return form.arguments.kind == "missing"

    def _read(self, node: Node) -> list[JsonCall] | None:
        """The calls of a value."""
        if node.kind == "array":
            each = [self._read(item.value) for item in node.items]
            return [form for forms in each for form in forms or ()] if all(each) else None
        node.members = [member for member in node.members if member.name != "tool_call_id"]
        forms = find_json_calls(node, self._tools)
        if forms is None and self._keyed and node.members:
            return [_keyed_form(member) for member in node.members]
        return forms

    def _calls(self, forms: list[JsonCall], block: str) -> None:
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


def _keyed_form(member: Member) -> JsonCall:
    """The call that a member of an object is, when its key is the name of a tool."""
    arguments = None if member.value.json == "null" else member.value
    return JsonCall(member.name, arguments, explicit=True, closed=member.value.closed)


def _end_of_object(rest: str) -> int:
    """Where the object ends whose arguments ended before `rest`: behind its other members, if it has any."""
    members = _MEMBERS.match(rest)
    return members.end() if members else 0
