"""Asks the model, once a turn, whether a text that may be a call is meant as one or only shows it.

Events after the candidate are held until the reply. Exactly RUN makes it a call, with the bytes that the model wrote;
after any other reply, a failure or a timeout it stays text. The question follows the model's own answer, so that the
server finds the prompt in its cache, and the reply is parsed as text: it cannot contain a call.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from callwright.calls.aliases import ParameterAliases
from callwright.calls.check import Check
from callwright.calls.toolset import Toolset
from callwright.constraints.constraint import AnswerForm, Constraint
from callwright.conversation import Call, Conversation, Message, TextPart
from callwright.dialects.base import get_dialect
from callwright.errors import RequestError, UpstreamError
from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    Problem,
    ReasoningDelta,
    RefusalDelta,
    Usage,
)
from callwright.reading.parser import OutputParser, PassThrough
from callwright.turn.attempt import CUT
from callwright.turn.candidates import candidate_spans
from callwright.turn.model import Model
from callwright.turn.observe import AmbiguousOutcome, Observation
from callwright.turn.place import placed
from callwright.turn.plan import build_generation_request
from callwright.upstreams.base import (
    Deltas,
    FinishDelta,
    GenerationRequest,
    TextDelta,
    ToolCallDelta,
    UnparsedCallDelta,
)

_QUESTION: Final = "Nothing was run. Should this be run now, or was it only shown? {call} Answer RUN or SHOWN."
_RUN: Final = "RUN"
_SHOWN: Final = "SHOWN"
# What of a request is about its own answer, and not about this one.
_OF_THE_ANSWER: Final = frozenset(("response_format", "logprobs", "top_logprobs", "stop"))


# Nothing of these is asked about, or needed for a question.
SILENT: Final = frozenset((ReasoningDelta, ArgumentsDelta))


class AmbiguousCalls:
    """Holds the events of a turn from its first ambiguous candidate on, until the model has replied.

    While nothing is `held`, events that are all `SILENT` need not be pushed.
    """

    def __init__(self, conversation: Conversation, hints: ParameterAliases) -> None:
        self._conversation = conversation
        self._hints = hints
        self.held: list[Event] = []
        self._said: list[str] = []
        self._has_called = False

    def push(self, events: Sequence[Event]) -> Sequence[Event]:
        """The events that can be sent now."""
        at: int | None = None
        for number, event in enumerate(events):
            if type(event) is ContentDelta:
                self._said.append(event.text)
            elif type(event) is CallStarted:
                self._has_called = True
            elif at is None and type(event) is Problem and event.candidate is not None:
                at = number
        if self.held:
            self.held += events
            return []
        if at is None:
            return events
        while at and isinstance(events[at - 1], ContentDelta | Problem):
            at -= 1
        self.held += events[at:]
        return events[:at]

    @property
    def text(self) -> str:
        """The text of the whole answer."""
        return "".join(self._said)

    @property
    def candidates(self) -> list[Call]:
        """The calls to ask about, in order; none if there is a certain call, or the answer was cut.

        At most one if only one call is allowed.
        """
        is_cut = any(isinstance(event, Finished) and event.reason in CUT for event in self.held)
        return [] if self._has_called or is_cut else [call for _, call in self._candidates(self.held)]

    def _candidates(self, held: Sequence[Event]) -> list[tuple[Problem, Call]]:
        """The problems with their candidates."""
        found = [
            (event, event.candidate)
            for event in held
            if isinstance(event, Problem) and event.kind == "ambiguous_call" and event.candidate is not None
        ]
        if (allowed := self._conversation.allowed_tools) is not None:
            found = [(event, call) for event, call in found if call.name in allowed]
        return found if self._conversation.parallel_tool_calls else found[:1]

    def release(self, *, run: bool) -> list[Event]:
        """The held events: as text, or, with `run`, with the candidates replaced by calls."""
        held, self.held = self.held, []
        asked = self._candidates(held) if run else []
        if not asked:
            return held
        text = "".join(event.text for event in held if isinstance(event, ContentDelta))
        tools = self._conversation
        check = Check(
            Toolset(
                tools.tools,
                tools.tool_choice,
                parallel=tools.parallel_tool_calls,
                allowed=tools.allowed_tools,
                hints=self._hints,
            )
        )
        out: list[Event] = [event for event in held if isinstance(event, ReasoningDelta)]
        at = 0
        has_said = bool(self.text.removesuffix(text).strip())
        spans = candidate_spans(text, [call for _, call in asked])
        for number, ((problem, call), (begin, end)) in enumerate(zip(asked, spans, strict=True)):
            out += _text_events(text[at:begin], behind=at > 0, apart=has_said)
            has_said = has_said or bool(text[at:begin].strip())
            began: tuple[Event, ...] = (CallStarted(number, call.name), ArgumentsDelta(number, call.arguments))
            told = replace(problem, call=number, text=text[begin:end])
            check.push((*began, told, CallEnded(number)), out)
            at = end
        out += _text_events(text[at:], behind=True, apart=has_said)
        settled = [problem for problem, _ in asked]
        for event in held:
            if isinstance(event, Finished):
                out.append(replace(event, reason="tool_calls") if event.reason == "stop" else event)
            elif not isinstance(event, ContentDelta | ReasoningDelta) and not any(event is one for one in settled):
                out.append(event)
        return out


def _text_events(text: str, *, behind: bool, apart: bool) -> list[Event]:
    """A text around calls; empty if it is only blanks.

    `behind`: it follows a call; `apart`: separate it from text before that.
    """
    words = text.strip() if behind else text.rstrip()
    return [ContentDelta(f"\n\n{words}" if behind and apart else words)] if words.strip() else []


# --- the question ---


def question(
    model: Model, conversation: Conversation, fields: Mapping[str, Any], today: str, said: str, calls: Sequence[Call]
) -> GenerationRequest:
    """The request that asks about these candidates, after the answer `said`.

    Its prompt begins with the prompt of that answer.
    """
    shown = "\n".join(f'{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}' for call in calls)
    asked = Message("user", (TextPart(_QUESTION.format(call=shown)),))
    items = (*conversation.items, Message("assistant", (TextPart(said),)), asked)
    generation = build_generation_request(model, replace(conversation, items=items), fields, today)
    dialect, start = "", "message"
    if generation.prompt is not None:
        dialect, start = generation.dialect or "", generation.prompt.start
    words = Constraint(dialect, (), demanded=False, start=start, form=AnswerForm(words=(_RUN, _SHOWN)))
    return replace(
        generation,
        conversation=replace(generation.conversation, tool_choice="none"),
        tool_choice="none" if generation.tools else None,
        fields={name: value for name, value in generation.fields.items() if name not in _OF_THE_ANSWER},
        constraint=words if model.constrain else None,
    )


class AmbiguousReply(Struct):
    """The outcome of the question, and its token usage."""

    outcome: AmbiguousOutcome = "failed"
    usage: Usage | None = None


async def ask_ambiguous(
    model: Model,
    generation: GenerationRequest,
    timeout_s: float,
    seen: Observation | None,
) -> AmbiguousReply:
    """Ask the question and read the reply as text. Whatever goes wrong is an outcome, never an exception."""
    if seen is not None:
        generation = seen.requests(generation, "ambiguous_call")
    reply = AmbiguousReply()
    try:
        async with asyncio.timeout(timeout_s):
            await _read(placed(model.limit, generation, model.upstream.stream(generation)), generation, reply)
    except (RequestError, UpstreamError, TimeoutError) as error:
        if seen is not None:
            seen.failed(error)
    if seen is not None:
        seen.replied(reply.outcome)
    return reply


async def _read(deltas: Deltas, generation: GenerationRequest, reply: AmbiguousReply) -> None:
    texts: list[str] = []
    is_plain = True  # only text arrived, and it was not cut off
    async with aclosing(deltas) as batches:
        async for batch in batches:
            for delta in batch:
                match delta:
                    case TextDelta(text):
                        texts.append(text)
                    case ToolCallDelta() | UnparsedCallDelta() | RefusalDelta():
                        is_plain = False
                    case FinishDelta(reason):
                        is_plain = is_plain and reason == "stop"
                    case Usage():
                        reply.usage = delta
    reply.outcome = "run" if is_plain and _words(generation, "".join(texts)) == _RUN else "shown"


def _words(generation: GenerationRequest, text: str) -> str:
    """The text of a reply, without the reasoning and the marks of messages in a dialect's output.

    Empty if it has marks of a call.
    """
    if generation.dialect is None:
        return text.strip()
    start = generation.prompt.start if generation.prompt else "message"
    parser = OutputParser(get_dialect(generation.dialect), Toolset(()), PassThrough(), start)
    events = parser.finish("stop", text)
    if any(isinstance(event, CallStarted) for event in events):
        return ""
    return "".join(event.text for event in events if isinstance(event, ContentDelta)).strip()
