"""The retry policy: a model that made an invalid call is told what was wrong and asked again, within a budget.

A valid answer is never touched and costs one request. A call that is required (`tool_choice`) or guaranteed (`strict`)
and stays invalid is never sent. What was sent cannot be taken back, so calls are held back where one of these applies,
and where nothing streams anyway. Knows no server and no clock.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from callwright.calls.custom_tools import input_arguments
from callwright.calls.json_forms import find_json_calls
from callwright.calls.toolset import Toolset
from callwright.conversation import Call, CallOutput, Conversation, Item, Message, NamedTool, TextPart
from callwright.events import (
    AnnotationsDelta,
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    FinishReason,
    Problem,
    ProblemKind,
    ReasoningDelta,
    RefusalDelta,
)
from callwright.tolerant_json.find import json_places

__all__ = ["RetryAttempt", "RetryPolicy", "ToolChoiceNotMet"]

# The problems that are worth a retry.
_WRONG: Final = frozenset(
    (
        "call_missing",
        "incomplete_arguments",
        "invalid_arguments",
        "invalid_input",
        "malformed_call",
        "non_json_arguments",
        "unknown_tool",
    )
)

# Those of a text that may have been a call, where no call is required.
_WRONG_IN_TEXT: Final = frozenset(("invalid_arguments", "malformed_call"))
_NOT_RUN: Final = "Error: this call was not run."
# What an answer says to the user, and all that it says.
_CONTENT: Final = (ContentDelta, RefusalDelta, AnnotationsDelta)
_SAID: Final = (*_CONTENT, ReasoningDelta)


class ToolChoiceNotMet(Exception):  # noqa: N818  # the caller makes an error of its own of it
    """The call that the request requires was not made; the message says why."""


class AttemptedCall(msgspec.Struct):
    """A call that was made: its events, and what is wrong with it."""

    started: CallStarted
    events: list[Event]
    arguments: list[str]
    complete: bool = True
    wrong: list[Problem] = []

    @property
    def written(self) -> str:
        """Its arguments as JSON text; the input of a custom tool as the arguments of a function."""
        text = "".join(self.arguments)
        return input_arguments(text) if self.started.kind == "custom" else text or "{}"


class RetryAttempt(msgspec.Struct):
    """One answer of the model. `held` are its events that have not gone out, in order, without `Finished`."""

    held: list[Event] = []
    content: list[ContentDelta | RefusalDelta | AnnotationsDelta] = []
    reasoning: list[ReasoningDelta] = []
    calls: dict[int, AttemptedCall] = {}
    problems: list[Problem] = []
    reason: FinishReason = "stop"

    def add(self, event: Event) -> None:
        """Note an event."""
        match event:
            case CallStarted(index):
                self.calls[index] = AttemptedCall(event, [event], [])
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
            case ContentDelta() | RefusalDelta() | AnnotationsDelta():
                self.content.append(event)
            case ReasoningDelta():
                self.reasoning.append(event)

    @property
    def held_text(self) -> list[Event]:
        """Content and reasoning that have not gone out."""
        return [event for event in self.held if isinstance(event, _SAID)]

    @property
    def has_spoken(self) -> bool:
        """Whether some of its content has gone out."""
        return sum(isinstance(event, _CONTENT) for event in self.held) < len(self.content)

    @property
    def has_refused(self) -> bool:
        """Whether the model has refused to answer."""
        return any(isinstance(event, RefusalDelta) for event in self.content)

    @property
    def said(self) -> str:
        """Its whole content."""
        return "".join(event.text for event in self.content if isinstance(event, ContentDelta))

    @property
    def doubts(self) -> list[Problem]:
        """The problems worth a retry that belong to no call."""
        return [problem for problem in self.problems if problem.kind in _WRONG]

    @property
    def good(self) -> list[AttemptedCall]:
        """The complete calls without such problems."""
        return [call for call in self.calls.values() if call.complete and not call.wrong]

    @property
    def bad(self) -> list[AttemptedCall]:
        """All other calls."""
        return [call for call in self.calls.values() if not call.complete or call.wrong]


class RetryPolicy:
    """Takes the events of each attempt, and says whether to ask the model again, and with what.

    `retries`: how many retries at most. `streamed`: content is sent as it comes. `holds`: whether anything is held back
    at all; if not, the caller can pass events on by itself.
    """

    def __init__(self, conversation: Conversation, *, retries: int, streamed: bool) -> None:
        tools = conversation.tools if conversation.tool_choice != "none" else ()
        self._guaranteed = {tool.name for tool in tools if tool.must_be_valid}
        self._demands = conversation.tool_choice != "auto" and bool(tools)
        self.holds = bool(tools) and (not streamed or self._demands or bool(self._guaranteed))
        self._conversation = conversation
        self._retries = retries
        self._streamed = streamed
        self._attempt = RetryAttempt()
        self._earlier: list[RetryAttempt] = []
        self._kept: list[AttemptedCall] = []
        self._retried: list[Problem] = []
        self.again_for: ProblemKind | None = None  # the first problem of the attempt before, which caused this one
        self._told: list[str] = []

    def push(self, batch: Sequence[Event]) -> Sequence[Event]:
        """Take events of the current attempt; answers those that may go out now, all of them if nothing `holds`."""
        return [event for event in batch if self._goes_out(event)]

    def _goes_out(self, event: Event) -> bool:
        """Whether an event may go out now; else it is held back."""
        flows = self._streamed and not (self._earlier or self._attempt.calls)
        self._attempt.add(event)
        if flows and isinstance(event, _SAID):
            return True
        if not isinstance(event, Finished):
            self._attempt.held.append(event)
        return False

    def next_attempt(self, *, in_time: bool) -> list[Item] | None:
        """The attempt is over. The items that tell the model what was wrong, for the next attempt; None if there is
        none.

        `in_time`: there is time for a retry. None is made either when the model repeats the same mistake.
        """
        attempt = self._attempt
        if not self.holds or attempt.reason in ("length", "content_filter") or attempt.has_refused:
            return None
        wrong = self._wrong(attempt)
        told = [problem.detail for problem in wrong]
        if not wrong:
            return None
        if len(self._earlier) >= self._retries or not in_time or told == self._told:
            return None
        self._told, self.again_for = told, wrong[0].kind
        self._earlier.append(attempt)
        self._keep(attempt.good)
        self._retried.append(Problem("call_retried", "; ".join(told)))
        self._attempt = RetryAttempt()
        return self._told_items(attempt, wrong)

    def fall_back(self) -> bool:
        """The upstream failed in the current attempt. Whether there is an earlier answer to fall back on."""
        if not self._earlier:
            return False
        self._attempt = self._earlier.pop()
        return True

    def finish(self) -> list[Event]:
        """The events that are left to send. Raises `ToolChoiceNotMet` if no required call came about and no text was
        sent.
        """
        if not self.holds:
            return []
        if self._earlier and not (self._demands or self._attempt.calls or self._earlier[0].calls):
            self._attempt = self._earlier[0]  # a text that was no call after all
            self._earlier = []
        attempt = self._attempt
        cut = attempt.reason in ("length", "content_filter")
        unmet = [call for call in attempt.bad if self._demands or call.started.name in self._guaranteed]
        self._keep([call for call in attempt.calls.values() if call not in unmet])
        problems = [*self._retried, *attempt.problems]
        problems += [msgspec.structs.replace(problem, call=None) for call in unmet for problem in call.wrong]
        sent = (self._earlier or [attempt])[0].has_spoken or attempt.has_refused
        if not cut and (unmet or self._demands) and not self._kept and not sent:
            why = "; ".join(problem.detail for problem in problems if problem.kind in _WRONG)
            times = f" in {len(self._earlier) + 1} attempts" if self._earlier else ""
            raise ToolChoiceNotMet(f"The model made no call that holds{times}: {why}")
        ended = any(call.complete for call in self._kept)
        reason: FinishReason = attempt.reason if cut else "tool_calls" if ended else "stop"
        if not self._earlier and len(self._kept) == len(attempt.calls):
            return [*_with_own_ids(attempt.held), Finished(reason)]
        return [*self._text(), *_numbered(self._kept), *problems, Finished(reason)]

    def _wrong(self, attempt: RetryAttempt) -> list[Problem]:
        """The problems to tell the model. Without a requirement, text that may have been a call of an unknown tool is
        an answer.
        """
        found = [problem for call in attempt.bad for problem in call.wrong]
        if not self._conversation.parallel_tool_calls and (attempt.good or self._kept):
            return []  # the one call that is allowed is there
        doubts = attempt.doubts
        if not self._demands:
            doubts = [problem for problem in doubts if problem.kind in _WRONG_IN_TEXT]
        return found + doubts

    def _keep(self, calls: Iterable[AttemptedCall]) -> None:
        """Keep calls for the end, each once: the model may repeat a call that it was told is accepted."""
        for call in calls:
            made = (call.started.name, "".join(call.arguments))
            first = not self._kept or self._conversation.parallel_tool_calls
            repeated = any(call is old for old in self._kept) or (
                self._earlier and any(made == (old.started.name, "".join(old.arguments)) for old in self._kept)
            )
            if first and not repeated:
                self._kept.append(call)

    def _text(self) -> list[Event]:
        """Reasoning and content still to send: of the last attempt if it is the answer, else of the first that said
        something.
        """
        attempts = [*self._earlier, self._attempt]
        if not self._kept:
            attempts.reverse()
        reasoning = next((attempt.reasoning for attempt in attempts if attempt.reasoning), [])
        spoke = [attempt for attempt in attempts if attempt.content and not (attempt.doubts and self._kept)]
        content = spoke[0].content if spoke else []
        if not self._streamed:
            return [*reasoning, *content]
        first = (self._earlier or [self._attempt])[0]
        if first.reasoning:
            reasoning = []
        if content is first.content:
            return [*reasoning, *first.held_text]
        apart = [ContentDelta("\n\n")] if first.has_spoken and not (self._kept or self._demands) else []
        return [*reasoning, *(apart + content if apart or not first.has_spoken else [])]

    def _told_items(self, attempt: RetryAttempt, wrong: Sequence[Problem]) -> list[Item]:
        """The attempt, with its problems as the outputs of its calls: the model reads what was wrong where it expects
        it.
        """
        items: list[Item] = []
        outputs: list[Item] = []
        number_of = len(self._earlier)
        said = attempt.said
        written = said + "".join(problem.text for problem in attempt.doubts)
        in_text = self._calls_in(written) if attempt.doubts and not attempt.calls else []
        if said and not in_text:
            items.append(Message("assistant", (TextPart(said),)))
        for number, call in enumerate(attempt.calls.values()):
            id_ = f"call_{number_of}_{number}"
            items.append(Call(call.started.name, call.written, id_))
            told = "This call is accepted and will be run. Do not repeat it."
            if call in attempt.bad:
                told = f"{_NOT_RUN} {self._explained(call.wrong)} Make it again, corrected."
            outputs.append(CallOutput(id_, (TextPart(told),)))
        for number, (name, arguments) in enumerate(in_text):
            id_ = f"call_{number_of}_{number}"
            items.append(Call(name, arguments, id_))
            outputs.append(
                CallOutput(id_, (TextPart(f"{_NOT_RUN} {self._explained(attempt.doubts)} {self._demand()}"),))
            )
        if attempt.doubts and not in_text:
            told = f"Error: no call was run. {self._explained(attempt.doubts)} {self._demand()}"
            outputs.append(Message("user", (TextPart(told),)))
        return items + outputs

    def _calls_in(self, text: str) -> list[tuple[str, str]]:
        """The calls in a text, as name and arguments, as they were written."""
        tools = Toolset(self._conversation.tools)
        nodes = [node for place in json_places(text, names=tools.names()) for node in place.nodes]
        forms = [form for node in nodes for form in find_json_calls(node, tools) or ()]
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


def _with_own_ids(events: Iterable[Event]) -> list[Event]:
    """The events without ids that an earlier call already has."""
    out: list[Event] = []
    ids: set[str] = set()
    for event in events:
        if isinstance(event, CallStarted) and event.id is not None:
            event = msgspec.structs.replace(event, id=None) if event.id in ids else event
            ids.add(event.id or "")
        out.append(event)
    return out


def _numbered(calls: Iterable[AttemptedCall]) -> list[Event]:
    """The events of calls from several attempts, with new indexes."""
    events: list[Event] = []
    for number, call in enumerate(calls):
        for event in call.events:
            match event:
                case Problem():
                    events.append(msgspec.structs.replace(event, call=number))
                case CallStarted() | ArgumentsDelta() | CallEnded():
                    events.append(msgspec.structs.replace(event, index=number))
    return _with_own_ids(events)
