"""Parses calls as JSON between markers, `<tool_call>{"name": "f", "arguments": {…}}</tool_call>`, for all such formats.

The forms that models are trained on, one such object or a list of them, stream: the arguments are passed through as
they come. Any other object is held to the end of its block, and read by `callwright.calls.json_forms`. The markers are
the caller's.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from callwright.calls.fit import json_problems, repair_and_validate
from callwright.calls.json_forms import ARGUMENT_KEYS, IGNORED_KEYS, NAME_KEYS, JsonCall, find_json_calls, is_record
from callwright.calls.toolset import Toolset
from callwright.events import ArgumentsDelta, CallEnded, CallStarted, Markup, Problem
from callwright.reading.text.answer_text import AnswerText
from callwright.schema.keywords import properties
from callwright.streaming.reader import Markers, Parse, StreamReader, read_until
from callwright.tolerant_json.certain import without_words
from callwright.tolerant_json.codec import encode
from callwright.tolerant_json.find import json_places
from callwright.tolerant_json.passthrough import JsonEnd, JsonTerminators, collect_json, member_follows, pass_json
from callwright.tolerant_json.reader import JsonRepair, read_json
from callwright.tolerant_json.tree import Member, Node, given_once
from callwright.tolerant_json.wrappers import without

# Characters of lookahead for the head of a call, up to its arguments, or for the text between two calls.
_MAX_HEAD: Final = 400
# Characters of lookahead to the end of an object that may be the record of a call.
_MAX_RECORD: Final = 256
_DECODER: Final = json.JSONDecoder(strict=False)
# A block that is held is this long at most.
_MAX_BLOCK: Final = 4_194_304

# A member without meaning next to a call: `"id": "call_1"`.
_ID_MEMBER: Final = r'"(?:id|type|index|call_id|tool_call_id)"\s*+:\s*+(?:"[\w.:-]*+"|[\w.+-]+)'
_ID: Final = rf"{_ID_MEMBER}\s*+,\s*+"
_SEPARATED: Final = r"\s*+[;,]?\s*+(?P<list>\[\s*+)?\{\s*+"
_HEAD = re.compile(
    rf'{_SEPARATED}(?:{_ID})*"(?:name|tool_name|function)"\s*+:\s*+"(?P<name>[^"\\{{}}\[\]]*+)"\s*+,\s*+(?:{_ID})*'
    r'"(?:arguments|parameters|args)"\s*+:\s*+(?=\{)'
)
_KEYED_HEAD = re.compile(rf'{_SEPARATED}"(?!(?:{"|".join(ARGUMENT_KEYS)})")(?P<name>[^"\\{{}}\[\]]*+)"\s*+:\s*+(?=\{{)')
_MAY_BE_HEAD = re.compile(r"\s*+[;,]?\s*+(?:\[\s*+)?(?:\{[^{}\[\]]*+)?\Z")
# After the arguments the call's object ends, or continues with a member: `, "id": "1"}`.
_END_OR_MEMBER = re.compile(r'\s*+(?:(?P<end>\})|,\s*+"(?:[^"\\]|\\.|(?!))*+"\s*+:)')
_MAY_BE_END = re.compile(r'\s*+(?:,\s*+(?:"(?:[^"\\]|\\.|(?!))*+\\?(?:"\s*+)?)?)?\Z')
_PLAIN_MEMBERS = re.compile(rf"\s*+(?:,\s*+{_ID_MEMBER}\s*+|(?!))*+\}}?\Z")
# Insignificant text around the arguments of a call in JSON: keys and identifiers, no words.
_AROUND = re.compile(
    rf'(?:[\s{{}}\[\],:;`]++|"(?:{"|".join(NAME_KEYS)})"\s*+:\s*+"(?:[^"\\]|\\.|(?!))*+"'
    r'|"(?:[\w.:-]|\\.|(?!))*+"(?=\s*+[:,}\]])|-?[\d.]++(?![\w.])|(?:null|true|false|json)\b|None\b|(?!))*+\Z'
).match
# The text after an item of a list; then closers that nothing opened.
_NEXT_ITEM = re.compile(r"\s*+,\s*+(?=\{)|\s*+,?\s*+\]")
_MAY_BE_NEXT = re.compile(r"\s*+,?\s*+\Z")
_SURPLUS = re.compile(r"\s*+[}\]][\s}\]]*+")
# Insignificant text that may follow the arguments: closers and a fence, including surplus ones.
_STRINGS = re.compile(r'"(?:[^"\\]|\\.|(?!))*+"')
_CLOSERS = re.compile(r"[\s}\],;]*+(?:```)?\s*+\Z")
_NO_MARKS = re.compile(r"[\s`]+")


class MarkedJson:
    """Reads the inside of one block of calls.

    `calls` is the number of calls so far, and counts on. `ends_itself`: the format has no closing marker, so the last
    bracket ends the block. `keyed`: the tool's name is the key of its arguments, `{"f": {…}}`. `refused` is the text of
    the block if nothing in it could be read; `cut`: the output ended in the arguments of a call.
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
        self.cut = False
        self._source = source
        self._emit = source.emit
        self._tools = tools
        self._stops = stops
        self._markers = Markers(*stops.literals)
        self._ends_itself = ends_itself
        self._keyed = keyed
        self._repairs: list[Problem] = []
        self._doubt = ""  # why the calls of a held block are uncertain
        self._list_open = False  # the end of a list of calls was not read
        self._mended: set[str] = set()  # the bracket problems already reported for this block

    def read(self) -> Parse[tuple[str, str]]:
        """Read a block, from its first bracket.

        Returns the terminator that ended it (`""` at the end of the output), and the text after the block, to be parsed
        again.
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
            self._closers(self._source.take(self._source.at + (surplus.end() if surplus else 0)))
            head = yield from self.head()
            if head is None:
                return "", ""

    def head(self) -> Parse[re.Match[str] | None]:
        """The head of a call in a trained form, if one is next; it stays unread."""
        return (yield from self._ahead(_KEYED_HEAD if self._keyed else _HEAD, _MAY_BE_HEAD))

    def is_record_ahead(self, head: re.Match[str]) -> Parse[bool]:
        """Whether the object with this `head` is the record of a call that was made: its result is next to it.

        An object longer than the lookahead is none, so that its arguments stream.
        """
        source, begin = self._source, head.group().index("{")
        while True:
            ahead = source.ahead(_MAX_RECORD)
            try:
                value, _ = _DECODER.raw_decode(ahead, begin)
            except ValueError:
                if not source.more(_MAX_RECORD):
                    return False
                yield
            else:
                tool = self._tools.get(self._tools.resolve_name(head["name"]))
                return is_record(value, properties(tool.parameters) if tool else ())

    def _ahead(self, wanted: re.Pattern[str], may_be: re.Pattern[str]) -> Parse[re.Match[str] | None]:
        """Match the unread text, without reading it. `may_be` matches a partial match, for which to wait."""
        source = self._source
        while True:
            begin = source.ahead(_MAX_HEAD)
            if (found := wanted.match(begin)) and (found.end() < len(begin) or not source.more(_MAX_HEAD)):
                return found
            if not source.more(_MAX_HEAD) or not (found or may_be.match(begin)):
                return None
            yield

    def _items(self, head: re.Match[str]) -> Parse[str]:
        """Read a call in a trained form, or a list that begins with one; returns the terminator that ended it."""
        source = self._source
        item: re.Match[str] | None = head
        while True:
            if item:
                stop = yield from self._streamed(item)
            else:
                value, end = yield from collect_json(source, self._stops, _MAX_BLOCK)
                stop = end.stop
                self._emit_block(value, end, cut=not (end.closed or stop), alone=False)
            if stop:
                return stop
            follows = (yield from self._ahead(_NEXT_ITEM, _MAY_BE_NEXT)) if head["list"] else None
            if follows is None:
                self._list_open = bool(head["list"])
                return ""
            self._emit(Markup(source.take(source.at + follows.end())))
            if follows.group().endswith("]"):
                if "," in follows.group():
                    self._mend("a comma too many")
                return ""
            item = yield from self.head()

    def _streamed(self, head: re.Match[str]) -> Parse[str]:
        """Read one call whose arguments stream, to the end of its object; returns the terminator that ended it."""
        self._emit(Markup(self._source.take(self._source.at + head.end())))
        index = self._start(head["name"])
        written: list[str] = []

        def arguments(text: str) -> ArgumentsDelta:
            written.append(text)
            return ArgumentsDelta(index, text)

        closed, stop, is_sure = yield from pass_json(self._source, self._stops, arguments, index, written.append)
        if not closed:
            self.cut = not stop
            self._emit(CallEnded(index, complete=is_sure))
            return stop
        follows = yield from self._ahead(_END_OR_MEMBER, _MAY_BE_END)
        members, closed = "", bool(follows)
        if not follows and (yield from member_follows(self._source)):
            is_sure = False
        if follows and follows["end"]:
            self._emit(Markup(self._source.take(self._source.at + follows.end())))
        elif follows:
            members, end = yield from collect_json(self._source, self._stops, _MAX_BLOCK, depth=1)
            closed, stop, is_sure = end.closed, end.stop, end.is_sure or not end.stop
        if not closed:
            self._mend("a closing bracket is missing")
        self._end_call(index, head["name"], "".join(written) if members else "", members, is_sure=is_sure)
        return stop

    def _end_call(self, index: int, name: str, arguments: str, members: str, *, is_sure: bool) -> None:
        """Emit the end of a call with more `members` in its object after the arguments; `is_sure` if these end."""
        if not members or _PLAIN_MEMBERS.match(members):
            self._source.markup(members)
            self._emit(CallEnded(index, complete=is_sure))
            return
        behind = read_json("{" + members.lstrip()[1:]) or read_json("{" + members.lstrip()[1:] + "}")
        given = behind.members if behind else ()
        if self._keyed and given and all(self._is_call(member, name) for member in given):
            self._emit(CallEnded(index))
            self._calls([_keyed_form(member) for member in given], members)
            return
        self._end_with(index, name, arguments, members, given, is_sure=is_sure)

    def _end_with(
        self, index: int, name: str, arguments: str, members: str, given: Sequence[Member], *, is_sure: bool
    ) -> None:
        """Emit the end of a call with `given` after its arguments, written as `members`; `given` is empty if they are
        malformed.
        """
        again = [_part_of_call(member, name if self._keyed else "") for member in given]
        first = read_json(f'{{"name":{encode(name).decode()},"arguments":{arguments}}}')
        _, others = given_once([*(first.members if first else ()), *filter(None, again)])
        is_twice = bool(others) or (any(again) and not first)
        tool = self._tools.get(name)
        own = properties(tool.parameters) if tool else {}
        beside = [member.name for member, part in zip(given, again, strict=True) if not part]
        if is_twice or not given:
            detail = "the name or the arguments may be given twice, with different values"
            self._emit(Problem("argument_repeated", detail, call=index, text=members))
        elif any(again) and IGNORED_KEYS.issuperset(beside):
            self._emit(Problem("argument_dropped", "given twice, with the same value", call=index, text=members))
        else:
            self._trailing(members)
        doubtful = is_twice or not given or not is_sure or any(key in own for key in beside) or is_record(beside, own)
        self._emit(CallEnded(index, complete=not doubtful))

    def _is_call(self, member: Member, before: str) -> bool:
        """Whether a member after that of a call is another call, and not a parameter of the one `before`."""
        tool = self._tools.get(before)
        is_parameter = member.name in properties(tool.parameters if tool else None)
        is_tool = self._tools.resolve_name(member.name) in self._tools
        return member.name != before and member.value.kind == "object" and (is_tool or not is_parameter)

    def _mend(self, detail: str) -> None:
        """Report a bracket problem of this block, once."""
        if not self.cut and detail not in self._mended:
            self._mended.add(detail)
            self._emit(Problem("json_repaired", detail, call=self.calls - 1))

    def _closers(self, written: str) -> None:
        """Report the brackets after the last call of a block: a list ends once, and nothing else does."""
        self._source.markup(written)
        marks = _NO_MARKS.sub("", written)
        if self._list_open and "]" not in marks:
            self._mend("a closing bracket is missing")
        elif self._list_open:
            marks = marks.replace("]", "", 1)
        if marks:
            self._mend("closing brackets or commas too many")
        self._list_open = False

    def _trailing(self, text: str) -> None:
        self._emit(Problem("arguments_trailing_text", "text beside the arguments", call=self.calls - 1, text=text))

    def _behind(self, rest: str, stop: str) -> str:
        """Judge the text after the arguments: the end of the call's object, more calls, or other text, which is
        returned.
        """
        if _CLOSERS.match(rest):
            self._closers(rest)
            return ""
        self._closers("")
        more = self._forms(rest.strip().strip(",;"))
        if more:
            self._calls(more, rest)
            return ""
        if self._source.done and not stop and any(literal.startswith(rest.strip()) for literal in self._stops.literals):
            self._emit(Markup(rest))  # a partial closing tag, cut off
            return ""
        if stop:
            self._trailing(rest)
            return ""
        return rest

    def _whole(self) -> Parse[tuple[str, str]]:
        """Read a block in another form, held to its end. Markers inside its strings do not end it, if its quotes are
        right.
        """
        value, end = yield from collect_json(self._source, self._stops, _MAX_BLOCK)
        rest, closed, stop = "", end.closed, end.stop
        if closed:
            if not self._ends_itself:
                rest, stop = yield from read_until(self._source, self._markers, _MAX_BLOCK)
        elif not stop and (found := self._markers.search(value)):
            # A quote is missing: the block ends at the first tag after all, and the rest is read anew.
            self._emit_block(value[: found.start()], end)
            return "", value[found.start() :]
        self._emit_block(value + rest, end, cut=not (stop or (closed and self._ends_itself)))
        return stop, ""

    def _emit_block(self, block: str, end: JsonEnd, *, cut: bool = False, alone: bool = True) -> None:
        """Emit the calls of a block, which ended so. A block with none is `refused`, or if it is one of several (not
        `alone`) a problem.
        """
        forms = self._forms(block)
        if forms and not self._doubt and not cut and not end.is_sure:
            self._doubt = "a quote before its end is missing, or one too many"
        if forms:
            self._calls(forms, block)
            bare = "" if self._repairs or self._doubt else _STRINGS.sub("", block)
            if sum(map(bare.count, "}]")) > sum(map(bare.count, "{[")):
                self._mend("closing brackets or commas too many")
            return
        self.cut = cut = cut and self._source.ended
        detail = "a call that was cut" if cut else "a marked call that is not a call in JSON"
        text = "" if alone else block
        self._emit(Problem("incomplete_arguments" if cut else "malformed_call", detail, text=text))
        self.refused = block if alone else ""

    def _forms(self, block: str) -> list[JsonCall] | None:
        """The calls in a block of one or more JSON values, without its fence and surplus closers; None if anything is
        not a call.
        """
        self._doubt = ""
        place = next(json_places(block, names=self._tools.names), None)
        if place and place.doubt:
            self._doubt = place.doubt
            bare, words = without_words(block)
            if words:
                place = next(json_places(bare, names=self._tools.names), None)
        if place is None or place.cut or place.place not in ("whole", "fence"):
            return None
        if block[place.end :].strip() and not self._doubt:
            return None
        each = [self._read(node) for node in place.nodes]
        if not all(each):
            return None
        self._repairs = json_problems(place.repairs, self.calls, odd=place.odd)
        found = [form for forms in each if forms for form in forms]
        return None if any(self._is_doubtful(form, place.repairs) for form in found) else found

    def _is_doubtful(self, form: JsonCall, repairs: Mapping[JsonRepair, int]) -> bool:
        """Whether a form is only half a call: a key without a value, or broken JSON that names an unknown tool."""
        if form.arguments is None:
            return bool(repairs) and not form.explicit and form.name not in self._tools
        return form.arguments.kind == "missing"

    def _read(self, node: Node) -> list[JsonCall] | None:
        """The calls in a value."""
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
        first = self.calls
        for form in forms:
            arguments = form.arguments.text() if form.arguments else ""
            shown.append(arguments)
            if not arguments and form.closed and not self._tools.requires_something(form.name):
                arguments = "{}"
            for problem in form.name_problems():
                self._emit(msgspec.structs.replace(problem, call=self.calls))
            index = self._start(form.name)
            if arguments:
                self._emit(ArgumentsDelta(index, arguments))
            self._emit(CallEnded(index, complete=form.closed and not self._doubt and self._is_declared(form)))
            if self._doubt:
                self._emit(Problem("malformed_call", f"not certain: {self._doubt}", call=index))
        around = without(block, shown)
        is_all_there = len(around) == len(block) - sum(map(len, shown)) and not any(form.flat for form in forms)
        if self._doubt or (is_all_there and not _AROUND(around)):
            self._emit(Problem("arguments_trailing_text", "text beside the arguments", call=first, text=around))
        else:
            self._source.markup(around)

    def _is_declared(self, form: JsonCall) -> bool:
        """Whether the parameters next to the name are all the tool's, be it under other names."""
        tool = self._tools.get(form.name)
        own = properties(tool.parameters) if tool else {}
        if not form.flat or tool is None or form.arguments is None:
            return True
        made = repair_and_validate(form.arguments, form.name, self._tools).node
        return {member.name for member in made.members} <= own.keys()

    def _start(self, name: str) -> int:
        self._emit(CallStarted(self.calls, name))
        self.calls += 1
        return self.calls - 1


def _keyed_form(member: Member) -> JsonCall:
    """The call that a member `"f": {…}` represents."""
    arguments = None if member.value.json == "null" else member.value
    return JsonCall(member.name, arguments, explicit=True, closed=member.value.closed)


def _part_of_call(member: Member, name: str) -> Member | None:
    """A member as the name or the arguments of a call, whichever key it has; None if it is neither.

    `name`: the key of the arguments if that is the tool's name.
    """
    if member.name in ARGUMENT_KEYS or member.name == name:
        return msgspec.structs.replace(member, name="arguments")
    is_name = member.name in NAME_KEYS and member.value.kind in ("string", "word")
    return msgspec.structs.replace(member, name="name") if is_name else None


def read_json_block(
    text: AnswerText,
    opening: str,
    stops: JsonTerminators,
    closers: tuple[str, ...],
    ends_itself: bool = False,
    keyed: bool = False,
) -> Parse[MarkedJson]:
    """Read calls in JSON after `opening`, up to one of `closers` or another terminator; anything else becomes text.

    Returns the block. For `ends_itself` and `keyed` see `MarkedJson`.
    """
    apart = text.apart
    text.call_begins()
    block = MarkedJson(text.source, text.tools, stops, text.calls, ends_itself=ends_itself, keyed=keyed)
    stop, rest = yield from block.read()
    text.calls = block.calls
    closing = stop if stop in closers else next((closer for closer in closers if rest.startswith(closer)), "")
    rest = rest if stop else rest.removeprefix(closing)
    if block.refused:
        text.apart = apart
        text.emit(text.say(opening + block.refused + closing))
    else:
        text.markup(opening)
        text.markup(closing)
        if closers and not (closing or ends_itself or block.cut):
            text.emit(Problem("markup_repaired", f"{closers[0]} is missing", call=text.calls - 1))
    text.source.unread(rest if closing else rest + stop)
    if not block.refused:
        yield from text.skip_blanks()
    return block
