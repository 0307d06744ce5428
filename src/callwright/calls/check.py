"""The check between a parser and its consumer: calls obey `tool_choice` and the schemas, and each violation
is reported as a named problem.

It knows the tools and the request's choice, not the format that a call was written in. Content passes through
unchanged, and arguments are streamed as soon as they are certain.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from callwright.calls.streaming_arguments import StreamingArguments
from callwright.calls.streaming_input import StreamingCustomInput
from callwright.calls.toolset import Toolset
from callwright.conversation import NamedTool
from callwright.events import (
    OF_INVALID_CALLS,
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    FinishReason,
    Markup,
    Problem,
    ReasoningDelta,
    finished,
)
from callwright.streaming.fast_path import AS_IS, Passing
from callwright.tolerant_json.codec import NotJsonError, decode

_MAX_TOLD: Final = 3


class _Open(msgspec.Struct):
    """A call that is being written.

    `arguments` repairs what streams: JSON, or for a custom tool its input. It is None for a call that passes as written
    or is withheld, whose deltas are in `texts`. `index` is the one the consumer sees, None if the call is withheld.
    """

    started: CallStarted
    arguments: StreamingArguments | StreamingCustomInput | None
    texts: list[str] = []
    marks: str = ""  # the markup after its latest arguments: the key of a value that has not begun is there
    index: int | None = None
    told: list[Problem] = []  # its problems, sent after its end: until then some of its arguments may be held back


# Events outside calls are passed on unchanged.
_PASSED: Final = frozenset((ContentDelta, ReasoningDelta, Markup))


class Check:
    """Takes the events of one turn in order, and passes on the permitted ones.

    Calls that the request forbids are withheld and reported as `call_not_allowed`: any call under
    `tool_choice="none"`, a call of another tool than the one named, a second call without `parallel_tool_calls`. A call
    of an unknown tool, or with arguments that do not fit, is passed on, followed by a problem: the client answers it
    with an error that the model learns from.

    Calls are passed on one after the other, even if the parser interleaves them.
    """

    def __init__(self, tools: Toolset) -> None:
        self._tools = tools
        self._choice = tools.choice
        self._parallel = tools.parallel
        self._calls = 0
        self._has_failed = False  # an attempted call in text is invalid, and reported
        self._unfinished = False  # a call that was passed on is incomplete
        self._open: dict[int, _Open] = {}  # by the parser's index
        self._index: dict[int, int | None] = {}  # the parser's index -> the consumer's, None if the call is withheld
        self._early: list[Problem] = []  # problems reported before the start of their call
        self._waiting: dict[int, list[Event]] = {}  # the events of calls that began while another was open

    @property
    def indexes(self) -> Mapping[int, int | None]:
        """The consumer's index of each call by the parser's, None for a call that is withheld."""
        return self._index

    def passing(self, call: int | None) -> Passing | None:
        if call is None:
            return AS_IS
        found = self._open.get(call)
        arguments = found.arguments if found is not None and found.index == call else None
        return arguments if isinstance(arguments, StreamingArguments) else None

    def push(self, events: Sequence[Event], out: list[Event]) -> None:
        """Check some events, and append the permitted ones to `out`."""
        for number, event in enumerate(events, 1):
            if type(event) is ArgumentsDelta:  # by far the most frequent event
                call = self._open.get(event.index)
                if call is None:
                    self._waiting[event.index].append(event)
                    continue
                call.marks = ""
                text = event.text
                if call.arguments is None:
                    call.texts.append(text)
                else:
                    is_last = number < len(events) and _is_ended_next(event.index, events[number:])
                    text = call.arguments.feed(text, is_last=is_last)
                if text and call.index is not None:
                    same = text is event.text and call.index == event.index
                    out.append(event if same else ArgumentsDelta(call.index, text))
            elif type(event) in _PASSED:
                if self._open and type(event) is Markup and "CDATA" not in event.text:  # that is inside a value
                    for call in self._open.values():
                        call.marks += event.text
                out.append(event)
            else:
                self._judge_event(event, out)

    def _judge_event(self, event: Event, out: list[Event]) -> None:
        if type(event) is CallStarted:
            if self._open:
                self._waiting[event.index] = [event]
            else:
                self._start(event, out)
        elif type(event) is CallEnded:
            if event.index in self._waiting:
                self._waiting[event.index].append(event)
                return
            self._end(event.index, event.complete, out)
            while self._waiting and not self._open:
                self.push(self._waiting.pop(next(iter(self._waiting))), out)
        elif type(event) is Problem and event.call is not None:
            self._judge_problem(event, event.call, out)
        else:
            self._has_failed = self._has_failed or (type(event) is Problem and event.kind in OF_INVALID_CALLS)
            out.append(event)

    def _judge_problem(self, problem: Problem, index: int, out: list[Event]) -> None:
        """A problem of the call that has this index at the parser."""
        if index in self._waiting:
            self._waiting[index].append(problem)
        elif index in self._open and self._open[index].index is not None:
            self._open[index].told.append(problem)
        elif index in self._index:
            out.append(msgspec.structs.replace(problem, call=self._index[index]))
        else:
            self._early.append(problem)

    def finish(self, reason: FinishReason, out: list[Event]) -> None:
        """End the output: append the remaining problems, then `Finished`. `reason` is `stop`, or why the model was cut
        off.
        """
        if self._early:
            self._tell_early(None, out)
        if not self._calls and self._choice not in ("auto", "none") and not self._has_failed:
            detail = f"the request asks for {self._wanted_call()} and the model made none"
            out.append(Problem("call_missing", detail))
        out.append(finished(reason, calls=bool(self._calls), unfinished=self._unfinished))

    def _start(self, started: CallStarted, out: list[Event]) -> None:
        name = self._tools.resolve_name(started.name)
        if name != started.name and name in self._tools:
            if self._tools.is_respelled(started.name, name):
                detail = f"{started.name!r} means {name!r}"
                self._early.append(Problem("tool_name_repaired", detail, call=started.index))
            started = msgspec.structs.replace(started, name=name)
        leaves = self._lets_out(started.name)
        tool = self._tools.get(started.name) if leaves else None
        call = _Open(started, None)
        if tool is not None and tool.custom is not None:
            call.started = started = msgspec.structs.replace(started, kind="custom")
            call.arguments = StreamingCustomInput(tool, self._tools)
        elif tool is not None:
            call.arguments = StreamingArguments(tool.name, self._tools)
        self._open[started.index] = call
        if not leaves:
            self._index[started.index] = None
            if self._early:
                self._tell_early(None, out)
            return
        ours = self._index[started.index] = call.index = self._calls
        self._calls += 1
        if self._early:
            self._tell_early(ours, out)
        out.append(started if ours == started.index else msgspec.structs.replace(started, index=ours))
        if tool is None:
            out.append(Problem("unknown_tool", f"no tool is called {started.name!r}", call=ours))

    def _tell_early(self, call: int | None, out: list[Event]) -> None:
        out += [msgspec.structs.replace(problem, call=call) for problem in self._early]
        self._early.clear()

    def _lets_out(self, name: str) -> bool:
        if isinstance(self._choice, NamedTool) and name != self._choice.name:
            return False
        if self._tools.allowed is not None and name in self._tools and name not in self._tools.allowed:
            return False
        return self._choice != "none" and (self._parallel or not self._calls)

    def _end(self, index: int, complete: bool, out: list[Event]) -> None:
        call = self._open.pop(index)
        ours = call.index
        name = call.started.name
        if ours is None:
            text = "".join(call.texts)
            out.append(Problem("call_not_allowed", f"call of {name!r}: {self._refusal(name)}", text=text))
            return
        problems: list[Problem] = []
        arguments = "".join(call.texts)
        if call.arguments is not None:
            rest = call.arguments.finish(cut=not complete)
            if rest:
                out.append(ArgumentsDelta(ours, rest))
            complete = complete and call.arguments.complete
            problems = call.arguments.problems
            is_checked = isinstance(call.arguments, StreamingArguments) and call.arguments.is_checked
            if is_checked and complete and not problems:
                out.append(CallEnded(ours))
                if call.told:
                    out += [msgspec.structs.replace(problem, call=ours) for problem in call.told]
                return
            arguments = call.arguments.text
        complete = complete and bool(name.strip())  # what calls no tool is no whole call
        out.append(CallEnded(ours, complete))
        if call.told or problems:
            out += [msgspec.structs.replace(problem, call=ours) for problem in (*call.told, *problems)]
        if not complete:
            self._unfinished = True
            detail = f"the arguments of {name!r} are unfinished or in doubt"
            out.append(Problem("incomplete_arguments", detail, call=ours, text=call.marks.strip()))
        elif call.started.kind == "function":
            if wrong := arguments_problem(name, arguments, self._tools, ours):
                out.append(wrong)
            elif unread := self._tools.unusable_schema(name):
                out.append(unchecked_problem(name, unread, ours))

    def _wanted_call(self) -> str:
        """The call that the request demands, in words."""
        named = (self._choice.name,) if isinstance(self._choice, NamedTool) else sorted(self._tools.allowed or ())
        return f"a call of {' or '.join(map(repr, named))}" if named else "a call"

    def _refusal(self, name: str) -> str:
        if self._choice == "none":
            return "calls are switched off"
        if isinstance(self._choice, NamedTool) and name != self._choice.name:
            return f"a call of {self._choice.name!r} was asked for"
        if self._tools.allowed is not None and name not in self._tools.allowed:
            return f"only these may be called: {', '.join(sorted(self._tools.allowed))}"
        return "one call at most was asked for"


def _is_ended_next(index: int, events: Sequence[Event]) -> bool:
    """Whether the call of this index ends next, but for markup."""
    for event in events:
        if type(event) is not Markup:
            return type(event) is CallEnded and event.index == index and event.complete
    return False


def arguments_problem(name: str, arguments: str, tools: Toolset, call: int | None = None) -> Problem | None:
    """The problem with a call's arguments (JSON text): not JSON, or not valid under the tool's schema; else None."""
    try:
        value = decode(arguments)
    except NotJsonError as error:
        return Problem("non_json_arguments", f"the arguments of {name!r} are not valid JSON: {error}", call=call)
    faults = tools.faults(name, value) if name in tools else []
    if not faults:
        return None
    told = "; ".join(f"{fault.path}: {fault.message}" for fault in faults[:_MAX_TOLD])
    return Problem("invalid_arguments", f"the arguments of {name!r} do not fit: {told}", call=call)


def unchecked_problem(name: str, unread: str, call: int | None = None) -> Problem:
    """The problem of arguments that cannot be validated: the tool's schema does not compile, because of `unread`."""
    return Problem("arguments_unchecked", f"the schema of {name!r} cannot be read: {unread}", call=call)
