"""What happens when a call does not hold: the model is told what was wrong and asked again, within a budget.

A legal answer is never touched: it costs one request. A call that is demanded (`tool_choice`) or promised (`strict`)
and does not hold is never sent. What was sent cannot be taken back, so calls are held where one of these may come to
pass, and where nothing streams anyway.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from toolwright.conversation import Call, CallOutput, Conversation, Item, Message, NamedTool, TextPart
from toolwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    FinishReason,
    Problem,
    ReasoningDelta,
)
from toolwright.forms import read_forms
from toolwright.jsonfind import json_places
from toolwright.toolset import Toolset

__all__ = ["Attempt", "Guarantee", "Unmet"]

# What makes it worth asking again.
_WRONG: Final = frozenset(
    (
        "call_missing",
        "incomplete_arguments",
        "invalid_arguments",
        "malformed_call",
        "non_json_arguments",
        "unknown_tool",
    )
)

_NOT_RUN: Final = "Error: this call was not run."


class Unmet(Exception):  # noqa: N818  # the caller makes an error of its own of it
    """What the request demands did not come about; the message says what and why."""


class _Made(msgspec.Struct):
    """A call that was made: its events, and what is wrong with it."""

    started: CallStarted
    events: list[Event]
    arguments: list[str]
    complete: bool = True
    wrong: list[Problem] = []


class Attempt(msgspec.Struct):
    """One answer of the model, as far as it is held."""

    text: list[Event] = []
    said: list[str] = []
    calls: dict[int, _Made] = {}
    problems: list[Problem] = []
    reason: FinishReason = "stop"

    def add(self, event: Event) -> None:
        """Hold an event."""
        match event:
            case CallStarted(index):
                self.calls[index] = _Made(event, [event], [])
            case ArgumentsDelta(index, text):
                self.calls[index].events.append(event)
                self.calls[index].arguments.append(text)
            case CallEnded(index, complete):
                self.calls[index].events.append(event)
                self.calls[index].complete = complete
            case Problem(kind, _, int(index)) if index in self.calls:
                self.calls[index].events.append(event)
                if kind in _WRONG:
                    self.calls[index].wrong.append(event)
            case Problem():
                self.problems.append(event)
            case Finished(reason):
                self.reason = reason
            case ContentDelta(text) | ReasoningDelta(text):
                self.text.append(event)
                if isinstance(event, ContentDelta):
                    self.said.append(text)

    @property
    def doubts(self) -> list[Problem]:
        """What is wrong that belongs to no call."""
        return [problem for problem in self.problems if problem.kind in _WRONG]

    @property
    def good(self) -> list[_Made]:
        """The calls with which nothing is wrong."""
        return [call for call in self.calls.values() if call.complete and not call.wrong]

    @property
    def bad(self) -> list[_Made]:
        """The others."""
        return [call for call in self.calls.values() if not call.complete or call.wrong]


class Guarantee:
    """Takes the events of one or more attempts and says when the model should be asked again, and with what.

    `retries`: how often at most. `streamed`: text is sent as it comes.
    """

    def __init__(self, conversation: Conversation, *, retries: int, streamed: bool) -> None:
        strict = any(tool.strict for tool in conversation.tools)
        self._demands = conversation.tool_choice not in ("auto", "none") and bool(conversation.tools)
        self._strict = {tool.name for tool in conversation.tools if tool.strict}
        self._conversation = conversation
        self._retries = retries
        self._streamed = streamed
        self.holds = bool(conversation.tools) and (not streamed or self._demands or strict)
        self._attempt = Attempt()
        self._number = 0
        self._kept: list[_Made] = []
        self._text: list[Event] = []
        self._retried: list[Problem] = []
        self._told: list[str] = []
        self._sent_text = False

    def push(self, event: Event) -> list[Event]:
        """An event of the attempt that runs; answers what may go out now."""
        if not self.holds:
            return [event]
        flows = self._streamed and not self._number and isinstance(event, ContentDelta | ReasoningDelta)
        self._sent_text = self._sent_text or flows
        self._attempt.add(event)
        return [event] if flows else []

    def again(self, *, in_time: bool) -> list[Item] | None:
        """The attempt is over. What the model is told before it is asked again; None when it is not.

        `in_time`: the time for another attempt is there.
        """
        attempt = self._attempt
        wrong = [problem for call in attempt.bad for problem in call.wrong] + attempt.doubts
        told = [problem.detail for problem in wrong]
        is_over = not wrong or attempt.reason in ("length", "content_filter")
        if not self.holds or is_over or self._number >= self._retries or not in_time or told == self._told:
            return None
        self._told = told
        self._number += 1
        self._kept += attempt.good
        if not self._text and not any(problem.kind != "call_missing" for problem in attempt.doubts):
            self._text = attempt.text
        self._retried.append(Problem("call_retried", "; ".join(told)))
        self._attempt = Attempt()
        return self._told_items(attempt, wrong)

    def finish(self) -> list[Event]:
        """What goes out at the end. Raises `Unmet` where nothing was said and a demand was not met."""
        if not self.holds:
            return []
        attempt = self._attempt
        cut = attempt.reason in ("length", "content_filter")
        unmet = [call for call in attempt.bad if self._demands or call.started.name in self._strict]
        calls = self._kept + [call for call in attempt.calls.values() if call not in unmet]
        text = self._text or attempt.text
        problems = [*self._retried, *attempt.problems]
        problems += [msgspec.structs.replace(problem, call=None) for call in unmet for problem in call.wrong]
        if not cut and (unmet or self._demands) and not calls:
            why = "; ".join(problem.detail for problem in problems if problem.kind in _WRONG)
            if not self._sent_text:
                times = f" in {self._number + 1} attempts" if self._number else ""
                raise Unmet(f"The model made no call that holds{times}: {why}")
        events: list[Event] = [] if self._sent_text else list(text)
        for number, call in enumerate(calls):
            events += [msgspec.structs.replace(event, **_numbered(event, number)) for event in call.events]
        ended = [call for call in calls if call.complete]
        reason: FinishReason = attempt.reason if cut else "tool_calls" if ended else "stop"
        return [*events, *problems, Finished(reason)]

    def _told_items(self, attempt: Attempt, wrong: Sequence[Problem]) -> list[Item]:
        """The attempt, and its problems as results of its calls: the model reads what was wrong where it expects it."""
        items: list[Item] = []
        outputs: list[Item] = []
        said = "".join(attempt.said)
        written = said + "".join(problem.text for problem in attempt.doubts)
        in_text = self._calls_in(written) if attempt.doubts and not attempt.calls else []
        if said and not in_text:
            items.append(Message("assistant", (TextPart(said),)))
        for number, call in enumerate(attempt.calls.values()):
            id_ = call.started.id or f"call_{self._number}_{number}"
            items.append(Call(call.started.name, "".join(call.arguments) or "{}", id_))
            told = "This call is accepted and will be run. Do not repeat it."
            if call in attempt.bad:
                told = f"{_NOT_RUN} {self._explained(call.wrong)} Make it again, corrected."
            outputs.append(CallOutput(id_, (TextPart(told),)))
        for number, (name, arguments) in enumerate(in_text):
            id_ = f"call_{self._number}_{number}"
            items.append(Call(name, arguments, id_))
            outputs.append(
                CallOutput(id_, (TextPart(f"{_NOT_RUN} {self._explained(attempt.doubts)} {self._demand()}"),))
            )
        if attempt.doubts and not in_text:
            told = f"Error: no call was run. {self._explained(attempt.doubts)} {self._demand()}"
            outputs.append(Message("user", (TextPart(told),)))
        return items + outputs

    def _calls_in(self, text: str) -> list[tuple[str, str]]:
        """The calls that stand in a text, as they were written: name and arguments."""
        tools = Toolset(self._conversation.tools)
        nodes = [node for place in json_places(text, names=tools.names()) for node in place.nodes]
        forms = [form for node in nodes for form in read_forms(node, tools) or ()]
        return [(form.name, form.arguments.text() if form.arguments else "{}") for form in forms if form.explicit]

    def _explained(self, wrong: Sequence[Problem]) -> str:
        details = "; ".join(problem.detail for problem in wrong)
        names = ", ".join(tool.name for tool in self._conversation.tools)
        known = f" The tools are: {names}." if any(problem.kind == "unknown_tool" for problem in wrong) else ""
        return f"{details[:1].upper()}{details[1:]}.{known}"

    def _demand(self) -> str:
        choice = self._conversation.tool_choice
        if isinstance(choice, NamedTool):
            return f"Call the tool {choice.name} now."
        allowed = self._conversation.allowed_tools
        one = f"one of the tools {', '.join(allowed)}" if allowed else "one of the tools"
        return f"Call {one} now." if choice == "required" else "Make the call again, corrected."


def _numbered(event: Event, number: int) -> dict[str, int]:
    return {"call": number} if isinstance(event, Problem) else {"index": number}
