"""Answers that a server has parsed itself (mode native), as events: content, reasoning, and tool call deltas.

Some servers interleave the deltas of parallel calls, and many send no end of a call. So a call ends when the next one
begins and its own arguments are complete JSON, or when the answer ends. Some join the arguments of several calls of one
tool: `{"city": "Rome"}{"city": "Oslo"}` are two calls.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from callwright.calls.toolset import Toolset
from callwright.conversation import Call
from callwright.dialects.base import FORMATS
from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    FinishReason,
    Problem,
    ReasoningDelta,
)
from callwright.reading.parser import Filter
from callwright.settings import bounds
from callwright.streaming.fast_path import Passing
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.tolerant_json.passthrough import JsonScanner
from callwright.turn.candidates import candidate_spans
from callwright.upstreams.base import ToolCallDelta, Upstream
from callwright.upstreams.chat_answers import OddForms

# Indexes of native calls, far above those of calls that a parser finds in the text of the same answer.
_FIRST = 1 << 20
# Placeholder arguments: some servers send these first, then the real ones.
_NOTHINGS = frozenset(("{}", '""', "null", "[]"))
# An object may end and another begin here.
_JOINT: Final = re.compile(r"\}\s*\{").search


class _Call(Struct):
    """A call as far as it has come."""

    index: int
    name: str = ""
    id: str | None = None
    waiting: list[str] = []  # argument deltas that are held back
    said: list[str] = []  # all argument deltas
    held: str = ""  # of these, a possible placeholder
    settled: bool = False  # no later piece repeats earlier ones
    is_tagged: bool = False  # they begin with a tag, so that they are held to the end
    started: bool = False
    previous: "_Call | None" = None  # the call whose arguments these followed
    _span: JsonScanner | None = None
    _scanned: int = 0  # how many of these it has seen
    _is_whole: bool = False

    @property
    def tool(self) -> str:
        """Its name, or that of the call that it followed."""
        call = self
        while not call.name and call.previous is not None:
            call = call.previous
        return call.name

    @property
    def whole(self) -> bool:
        """Whether its arguments are a complete JSON value. Computed on demand, not with each delta."""
        while not self._is_whole and self._scanned < len(self.said):
            rest = "".join(self.said[self._scanned :])
            self._scanned = len(self.said)
            if self._span is None:
                if _is_object(rest):
                    self._is_whole = True
                    break
                self._span = JsonScanner()
            _, self._is_whole = self._span.end(rest, 0)
        return self._is_whole

    def end_in(self, arguments: str) -> int:
        """Where in the next piece of arguments their object is over and another begins; -1 if nowhere."""
        if self.held:
            return -1
        end = 0
        if not self.whole:
            if not _JOINT(arguments) or (self.said and not self.settled and arguments.startswith("".join(self.said))):
                return -1
            self._span = self._span or JsonScanner()
            end, self._is_whole = self._span.end(arguments, 0)
            self._scanned += 1
        return end if self._is_whole and arguments[end:].lstrip().startswith("{") else -1

    def news(self, arguments: str) -> str:
        """The new part of a piece of arguments, if it can be sent.

        Used until it is settled that each piece is new: some servers repeat all arguments so far in each piece, some
        send a placeholder before the real ones. Placeholders are held, and so are arguments in tags.
        """
        if self.held:
            if (said := arguments.strip()) in _NOTHINGS or not said:
                return ""
            held, self.held = self.held, ""
            if said.startswith("{"):
                return self.replace(arguments)
            self.settled = True
            self.said.append(arguments)
            return held + arguments
        if self.is_tagged or (not self.said and arguments.lstrip().startswith("<")):
            self.is_tagged = True
            self.said.append(arguments)
            return ""
        so_far = "".join(self.said)
        if not so_far.strip():
            self.said.append(arguments)
            self.held = arguments if arguments.strip() in _NOTHINGS else ""
            return "" if self.held else arguments
        if so_far.startswith("{") and arguments.startswith(so_far):
            arguments = arguments[len(so_far) :]
        else:
            self.settled = True
        if arguments:
            self.said.append(arguments)
        return arguments

    def replace(self, arguments: str) -> str:
        """Put these in place of all arguments so far; answers them."""
        self.said, self._span, self._scanned, self._is_whole = [arguments], None, 0, False
        return arguments


class NativeCalls:
    """Passes the deltas of a `server` to a filter as events, calls one after the other as in OpenAI's API."""

    def __init__(self, filter_: Filter, tools: Toolset, server: Upstream) -> None:
        self._filter = filter_
        self._tools = tools
        self._server = server
        self._odd: OddForms | None = None  # most answers have none
        self._ids: set[str] = set()  # of calls that were sent
        self._calls: dict[int, _Call] = {}  # by their own index: those that are not over, in order
        self._latest: dict[int, _Call] = {}  # by the server's index
        self._all: list[_Call] = []

    @property
    def has_calls(self) -> bool:
        """Whether the server has sent any call."""
        return bool(self._all)

    def has_made(self, name: str, arguments: str) -> bool:
        """Whether the server has sent this call: same name, equal arguments."""
        return any(call.name == name and _same("".join(call.said), arguments) for call in self._all)

    def text(self, text: str, logprobs: Mapping[str, Any] | None = None) -> list[Event]:
        """A delta of the content."""
        return self._pushed([ContentDelta(text, logprobs)] if text or logprobs else [])

    def reasoning(self, text: str) -> list[Event]:
        """A delta of the reasoning."""
        return self._pushed([ReasoningDelta(text)] if text else [])

    def call(self, delta: ToolCallDelta) -> list[Event]:
        """A delta of a call."""
        call = self._latest.get(delta.index)
        if call is None or call.index not in self._calls or (delta.name and _is_another(call, delta)):
            if call is not None and _says_nothing(call, delta):
                return []
            call = _Call(_FIRST + len(self._all))
            self._latest[delta.index] = self._calls[call.index] = call
            self._all.append(call)
        arguments = delta.arguments
        end = -1
        if "{" in arguments and (call.said or _JOINT(arguments)):
            end = self._end_in(call, arguments)
        if end < 0:
            return self._add(call, delta, arguments)
        events = self._add(call, delta, arguments[:end])
        while end >= 0:
            arguments = arguments[end:].lstrip()
            call = _Call(_FIRST + len(self._all), previous=call)
            self._latest[delta.index] = self._calls[call.index] = call
            self._all.append(call)
            end = self._end_in(call, arguments)
            events += self._add(call, ToolCallDelta(delta.index), arguments[:end] if end >= 0 else arguments)
        return events

    def _end_in(self, call: _Call, arguments: str) -> int:
        return call.end_in(arguments) if len(self._all) < bounds.MAX_ANSWER_CALLS else -1

    def _add(self, call: _Call, delta: ToolCallDelta, arguments: str) -> list[Event]:
        """A piece of a call's arguments, with the name and id of a delta."""
        if arguments and call.settled:
            call.said.append(arguments)
        elif arguments:
            arguments = self._news_behind(call, arguments) if call.held else call.news(arguments)
        if call.started and len(self._calls) == 1:  # by far the most frequent
            out: list[Event] = []
            if arguments:
                self._filter.push((ArgumentsDelta(call.index, arguments),), out)
            return out
        call.id = call.id or delta.id
        if delta.name and not call.started and not delta.name.isspace():
            call.name = self._joined(call.name, delta.name) if call.name else delta.name
        if arguments:
            call.waiting.append(arguments)
        return self._pushed(self._ready())

    def _news_behind(self, call: _Call, arguments: str) -> str:
        """The new part of a delta, for a call with held arguments."""
        held = call.held
        news = call.news(arguments)
        if not call.held and call.said[0] is news:
            self._tell("arguments that say nothing, before the arguments", held)
        return news

    def _joined(self, name: str, piece: str) -> str:
        """A name joined with another piece of it.

        Some servers split names, others repeat the whole name, or all of it so far.
        """
        together = name + piece
        if together in self._tools or self._may_go_on(together):
            return together
        if name in self._tools or piece == name:
            return name
        return piece if piece.startswith(name) else together

    def _may_go_on(self, name: str) -> bool:
        """Whether a tool's name begins like that and is longer."""
        return bool([known for known in self._tools.names if len(known) > len(name) and known.startswith(name)])

    def _has_name(self, call: _Call) -> bool:
        """Whether the name is all of it: no tool has a longer one, or arguments have come."""
        return bool(call.name) and (bool(call.said) or (call.name in self._tools and not self._may_go_on(call.name)))

    def end(self, *, cut: bool = False) -> list[Event]:
        """The answer is over; `cut`: not by the model's own will."""
        events: list[Event] = []
        for call in self._calls.values():
            if not call.name and (call.previous is None or not self._name_joined(call)):
                events.append(_nameless(call))
                continue
            events += self._out(call, is_over=True)
            # An object without its closing brace is incomplete, even if the server reports a normal end; so are empty
            # arguments of a tool that requires some. For other tools many servers send empty arguments.
            said = "".join(call.said).lstrip()
            begun = said.startswith("{") or (not said and self._requires_something(call))
            complete = (call.whole and not (cut and call.is_tagged)) or not (cut or begun)
            if complete and not said and self._tools.accepts_nothing(self._tools.resolve_name(call.name)):
                if self._tools.words_behind(call.name):  # which may be the arguments
                    complete = False
                else:
                    events.append(ArgumentsDelta(call.index, "{}"))
            events.append(CallEnded(call.index, complete=complete))
        self._calls.clear()
        return self._pushed(events)

    def _ready(self) -> list[Event]:
        """The events to send now: the deltas of the first open call, and of the next once the first is complete."""
        events: list[Event] = []
        for number, call in list(self._calls.items()):
            over = len(self._calls) > 1 and call.whole and not (call.held and self._requires_something(call))
            if call.previous is not None and call.whole and not call.name:
                over = not self._name_joined(call) or over
            if not call.name and over:
                events.append(_nameless(call))
                del self._calls[number]
                continue
            if over or self._has_name(call):
                events += self._out(call, is_over=over)
            if not over:
                break
            events.append(CallEnded(call.index))
            del self._calls[number]
        return events

    def _name_joined(self, call: _Call) -> bool:
        """Name a call whose arguments followed those of the previous one; False if they are no other call of that tool,
        but the same again, unfinished, or anything else.
        """
        assert call.previous is not None
        tool, said = call.previous.tool, "".join(call.said)
        is_other = _is_object(said) and not _same(said, "".join(call.previous.said))
        if is_other and not self._tools.faults(self._tools.resolve_name(tool), decode(said)):
            call.name = tool
            self._tell("the arguments of several calls as those of one, read as several, of", tool)
        return bool(call.name)

    def _requires_something(self, call: _Call) -> bool:
        return self._tools.requires_something(self._tools.resolve_name(call.name))

    def _tell(self, what: str, value: object) -> None:
        self._odd = self._odd or OddForms(self._server.name)
        self._odd.tell(what, value)

    def _out(self, call: _Call, *, is_over: bool) -> list[Event]:
        """The start of a call, if not yet sent, and its held arguments. Placeholders are sent only if it `is_over`."""
        events: list[Event] = []
        if not call.started:
            call.started = True
            id_ = call.id if call.id not in self._ids else None
            if id_ is not None:
                self._ids.add(id_)
            elif call.id is not None:
                self._tell("the id of one call for another, which gets a new one", call.id)
            events.append(CallStarted(call.index, call.name, id=id_))
        if call.is_tagged:
            return events + self._tagged_arguments(call) if is_over else events
        for text in call.waiting:
            events.append(ArgumentsDelta(call.index, text))
        call.waiting.clear()
        if is_over and call.held:
            events.append(ArgumentsDelta(call.index, call.held))
        return events

    def _tagged_arguments(self, call: _Call) -> list[Event]:
        """The arguments that some servers pass on in the tags in which the model wrote them."""
        written = "".join(call.said)
        found = FORMATS.tagged_arguments(written, self._tools.resolve_name(call.name), self._tools)
        if found is None:
            return [ArgumentsDelta(call.index, written)]
        arguments, form = found
        problem = Problem("foreign_format", f"arguments as {form} writes them", call.index, written)
        return [ArgumentsDelta(call.index, call.replace(arguments)), problem]

    def _pushed(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        self._filter.push(events, out)
        return out


class PrintedCalls:
    """A filter before another one, for calls found in the text of a server that parses calls itself.

    Some servers send a call and leave it in the text, too. It was made once, so the one in the text is dropped. For
    that a call in the text is held to its end, if the server has sent any. `is_leak`: calls do not belong in this text,
    so each gets a problem.
    """

    def __init__(self, filter_: Filter, native: NativeCalls, *, is_leak: bool) -> None:
        self._filter = filter_
        self._native = native
        self._is_leak = is_leak
        self._held: dict[int, list[Event]] = {}
        self._live: set[int] = set()

    def passing(self, call: int | None) -> Passing | None:
        return self._filter.passing(call) if call is None or call in self._live else None

    def push(self, events: Iterable[Event], out: list[Event]) -> None:
        """Forward all events except repetitions."""
        kept: list[Event] = []
        for event in events:
            match event:
                case CallStarted(index) | ArgumentsDelta(index) | CallEnded(index) | Problem(call=int(index)):
                    if index in self._live or not (self._held.get(index) or self._native.has_calls):
                        self._live.add(index)
                        kept.append(event)
                        if isinstance(event, CallEnded):
                            kept += self._leak_problems(index)
                        continue
                    self._held.setdefault(index, []).append(event)
                    if isinstance(event, CallEnded):
                        kept += self._judge_call(self._held.pop(index))
                case Problem("ambiguous_call", candidate=Call(name, arguments)) if self._native.has_made(
                    name, arguments
                ):
                    _take_out(event.candidate, kept)
                    kept.append(_repeated(name, arguments))
                case _:
                    kept.append(event)
        self._filter.push(kept, out)

    def finish(self, reason: FinishReason, out: list[Event]) -> None:
        self._filter.finish(reason, out)

    def _judge_call(self, events: list[Event]) -> list[Event]:
        started = next(event for event in events if isinstance(event, CallStarted))
        index, name = started.index, started.name
        arguments = "".join(event.text for event in events if isinstance(event, ArgumentsDelta))
        if self._native.has_made(name, arguments):
            return [_repeated(name, arguments)]
        return events + self._leak_problems(index)

    def _leak_problems(self, index: int) -> list[Event]:
        return [Problem("call_in_text", "the server left the call in the answer", call=index)] if self._is_leak else []


def _repeated(name: str, arguments: str) -> Problem:
    return Problem("call_repeated", f"the text contains a call of {name!r}, too", text=arguments)


def _take_out(call: Call | None, events: list[Event]) -> None:
    """Take a call out of the last text among the events, which holds it."""
    at = next((at for at in reversed(range(len(events))) if isinstance(events[at], ContentDelta)), None)
    if at is None or call is None:
        return
    said = events[at]
    assert isinstance(said, ContentDelta)
    ((begin, end),) = candidate_spans(said.text, [call])
    events[at] = ContentDelta(f"{said.text[:begin].rstrip()}{said.text[end:]}")


def _nameless(call: _Call) -> Problem:
    """A call without a name cannot be run: it is reported as a problem."""
    if call.previous is not None:
        return Problem("arguments_trailing_text", f"text after the arguments of {call.tool!r}", text="".join(call.said))
    return Problem("malformed_call", "the server sent a call without a name", text="".join(call.said))


def _is_another(call: _Call, delta: ToolCallDelta) -> bool:
    """Whether a delta under a call's index begins another call: a name and arguments, after complete arguments."""
    is_named = bool(delta.name and delta.name.strip() and delta.arguments.strip())
    return is_named and (delta.id is None or delta.id != call.id) and call.whole


def _says_nothing(call: _Call, delta: ToolCallDelta) -> bool:
    """Whether a delta under the index of a call that is over is an empty piece of it, which may repeat the name. Where
    calls have ids, another call's would have come as one.
    """
    return not delta.arguments.strip() and (not delta.name or (delta.name == call.name and call.id is not None))


def _is_object(text: str) -> bool:
    """Whether a text is a JSON object: most are by the time of this check, and this is faster than a scan."""
    try:
        return isinstance(decode(text), dict)
    except NotJsonError:
        return False


def _same(one: str, other: str) -> bool:
    try:
        return bool(decode(one or "{}") == decode(other or "{}"))
    except NotJsonError:
        return one == other
