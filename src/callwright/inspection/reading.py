"""A parsed model output, with the places of all its parts.

Each character has its part, the calls have the places of their arguments, the problems have theirs; then the steps in
which the output arrived. `source_pieces` puts the characters together; this module parses them.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from callwright.dialects.auto import detected_format
from callwright.dialects.base import get_dialect
from callwright.events import AnnotationsDelta, AnswerMetadata, CallKind, Event, FinishReason, Problem, RefusalDelta
from callwright.inspection.source_pieces import Piece, SourceText
from callwright.openai_format.tool_catalog import read_tool_catalog
from callwright.openai_format.tool_choice import check_named, read_allowed_tools, read_tool_choice
from callwright.reading.collect import collect
from callwright.reading.spans import TracedEvent
from callwright.turn.model import AUTO
from callwright.turn.records import VERSION, Record, RecordedAttempt, record_choice, recorded_tool, to_typed
from callwright.turn.reread import Replay, replays
from callwright.upstreams.base import (
    FinishDelta,
    ReasoningTextDelta,
    TextDelta,
    ToolCallDelta,
    UnparsedCallDelta,
)

__all__ = ["Piece", "ReadCall", "ReadProblem", "Reading", "Step", "read_output", "read_replay"]

# Characters in each step of a pasted output; a long one has larger steps, up to this number of them.
_STEP_CHARS: Final = 4
_MAX_STEPS: Final = 4_000
_UNSHOWN: Final = (AnnotationsDelta, AnswerMetadata)
Json: TypeAlias = dict[str, Any]


class ReadCall(Struct):
    """A call as sent; `written` are its arguments as parsed, before any check.

    `problems` are numbers among those of the reading.
    """

    index: int
    name: str
    kind: CallKind
    arguments: str
    written: str
    complete: bool
    problems: list[int] = []


class ReadProblem(Struct):
    """A problem, and its place in the output. `text`: the model's words, where no piece shows them."""

    kind: str
    detail: str
    call: int | None
    text: str
    place: int


class Step(Struct):
    """What became certain when the output was read up to `end`. `at_s`: in seconds since the turn began."""

    end: int
    at_s: float | None
    events: list[Json]


class Reading(Struct):
    """See the module's docstring. `found` is the format that `auto` took it for."""

    dialect: str | None
    found: str | None
    output: str
    pieces: list[Piece]
    calls: list[ReadCall]
    problems: list[ReadProblem]
    content: str | None
    reasoning: str | None
    finish_reason: FinishReason | None
    steps: list[Step]


def read_output(
    output: str,
    *,
    dialect: str,
    tools: Sequence[Json] = (),
    tool_choice: str | Json | None = None,
    start: str | None = None,
    finish_reason: FinishReason = "stop",
) -> Reading:
    """Parse a pasted output. Takes the arguments of `callwright.Parser`, and raises the same errors."""
    offer = read_tool_catalog(list(tools))
    choice, allowed = record_choice("auto"), None
    if tool_choice is not None:
        read = read_tool_choice(tool_choice, (), flat=offer.names.flat)
        check_named(read, offer.tools)
        choice = record_choice(read)
        allowed = read_allowed_tools(tool_choice, offer.tools, flat=offer.names.flat)
    found = detected_format(output, start or "assistant", offer.tools) if dialect == AUTO else None
    get_dialect(found or dialect)
    size = max(_STEP_CHARS, len(output) // _MAX_STEPS)
    texts = [TextDelta(output[begin : begin + size]) for begin in range(0, len(output), size)]
    attempt = RecordedAttempt(
        mode="raw",
        ended="whole",
        dialect=found or dialect,
        start=start or "assistant",
        deltas=[(0.0, to_typed(delta)) for delta in (*texts, FinishDelta(finish_reason))],
    )
    record = Record(
        version=VERSION,
        callwright="",
        time="",
        model="",
        upstream="",
        upstream_model="",
        attempts=[attempt],
        tools=[recorded_tool(tool) for tool in offer.tools],
        tool_choice=choice,
        allowed_tools=None if allowed is None else list(allowed),
    )
    (again,) = replays(record, trace=True)
    assert again is not None
    reading = read_replay(again)
    for step in reading.steps:
        step.at_s = None
    return msgspec.structs.replace(reading, dialect=dialect, found=found)


def read_replay(again: Replay) -> Reading:
    """Parse an attempt of a record, replayed with `trace`. Raises `RecordError` for an invalid record."""
    source = SourceText(again.attempt.prefill)
    steps: list[Step] = []
    events: list[Event] = []
    ends: list[int] = []  # how much was read when an event was certain
    for step in again.steps():
        match step.delta:
            case TextDelta(text):
                source.text(text)
            case ReasoningTextDelta(text):
                source.other(text, "reasoning")
            case RefusalDelta(text):
                source.other(text, "content")
            case ToolCallDelta():
                source.call(step.delta.index, step.delta.id, step.delta.name or "", step.delta.arguments)
            case UnparsedCallDelta(text):
                source.other(text, "markup")
        events += step.events
        ends += [source.size] * len(step.events)
        shown = [to_typed(event) for event in step.events if not isinstance(event, _UNSHOWN)]
        if shown or step.delta is not None:
            steps.append(Step(source.size, step.at_s, shown))
    if not steps and source.size:
        steps.append(Step(source.size, None, []))
    return _reading(again, source, events, ends, steps)


def _reading(
    again: Replay, source: SourceText, events: Sequence[Event], ends: Sequence[int], steps: list[Step]
) -> Reading:
    parser, indexes = again.reader.parser, again.reader.check.indexes
    turn = collect(events)
    traced: dict[int, TracedEvent] = {}
    if parser is None:
        source.read((), (), indexes)
    else:
        recorder = parser.recorder
        source.read(*recorder.read(), indexes)
        traced = {id(one.event): one for one in recorder.events}
    calls = [
        ReadCall(number, call.name, call.kind, call.arguments, source.raw_arguments(number), call.complete)
        for number, call in enumerate(turn.calls)
    ]
    problems: list[ReadProblem] = []
    for event, end in zip(events, ends, strict=True):
        if isinstance(event, Problem):
            number = len(problems)
            place = source.mark(number, event, end, traced.get(id(event)))
            has_own = bool(event.text) and event.text not in source.output
            problems.append(ReadProblem(event.kind, event.detail, event.call, event.text if has_own else "", place))
            if event.call is not None and event.call < len(calls):
                calls[event.call].problems.append(number)
    return Reading(
        dialect=again.attempt.dialect,
        found=None,
        output=source.output,
        pieces=source.pieces(),
        calls=calls,
        problems=problems,
        content=turn.content,
        reasoning=turn.reasoning,
        finish_reason=turn.finish_reason if events else None,
        steps=steps,
    )
