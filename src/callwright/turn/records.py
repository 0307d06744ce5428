"""Turns as they are recorded, one JSON object a line.

A record holds the request, the server's deltas with their times, verbatim, the events parsed of them, and the tools and
settings that parsing depends on. So one can compare how another version parses the same output.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from callwright.calls.aliases import GROUPS
from callwright.conversation import (
    CallOutput,
    Conversation,
    FunctionTool,
    Item,
    Message,
    NamedTool,
    TextPart,
    ToolChoice,
)
from callwright.errors import RequestError, UpstreamError
from callwright.prompt import Control, Prompt
from callwright.response_template.template import ResponseTemplate
from callwright.turn.call_outcome import TurnEnd, TurnOutcome, turn_end, turn_outcome
from callwright.turn.model import Mode
from callwright.turn.observe import Observation, Raw, RequestedTurn, SeenCall

VERSION: Final = 1
_ASKED_CHARS: Final = 200
_LOOKED_AT: Final = 4_096
Ending: TypeAlias = Literal["whole", "failed", "left", "running"]
Typed: TypeAlias = dict[str, Any]  # a delta or an event: its fields, and its class as `type`


class RecordedTool(Struct, omit_defaults=True):
    """A tool as the model was offered it. `grammar` of a custom tool: syntax and definition."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    enforce_schema: bool = False
    custom: bool = False
    grammar: tuple[str, str] | None = None


class AttemptFacts(Struct):
    """A request to the model and its outcome.

    `ended` is `whole`, `failed` (by the upstream; `error` has the reason), `left` (the client left), or `running`,
    which never appears in a record.

    `model` is another model that was asked in place of the turn's, for this `reason`. `again` is the problem that
    caused this retry, `told` the messages about it to the model. `start` is the state in
    which the answer begins; the server got `messages` or a prompt, a native one also `sent_tools`. `is_cut`: some of it
    was too large to store. Times are in seconds since the begin of the turn: when the request was due, how long it
    waited in a queue, when it was sent, its first and its last piece.
    """

    mode: Mode
    ended: Ending
    dialect: str | None = None
    error: str | None = None
    model: str | None = None
    reason: str | None = None
    again: str | None = None
    told: list[str] = []
    start: str | None = None
    messages: list[dict[str, Any]] | None = None
    sent_tools: list[dict[str, Any]] | None = None
    is_cut: bool = False
    begun_s: float | None = None
    queued_s: float = 0.0
    sent_s: float | None = None
    first_s: float | None = None
    ended_s: float | None = None


class RecordedAttempt(AttemptFacts, omit_defaults=True):
    """One request to the model.

    `prompt` is the server's input in mode raw, with `prefill` at its end; `controls` are the ranges of it that are
    control tokens. `deltas` have the seconds since the turn began; `events` were parsed of them. `constraint` is the
    form that the answer was held to: its kind, and its text.
    """

    deltas: list[tuple[float, Typed]] = []
    events: list[Typed] = []
    prompt: str | None = None
    prefill: str = ""
    controls: list[tuple[int, int]] = []
    constraint: tuple[str, str] | None = None


class Record(Struct, omit_defaults=True):
    """One turn.

    `request` is the body as received, without keys. Times are in seconds since the begin of the turn. `calls` are those
    that were sent; `ambiguous` is the outcome of a question about ambiguous calls. `reasoning_put_back`: number of
    earlier turns whose reasoning the client had dropped and the gateway restored. `asked` are the last words of the
    user, cut off, `conversation` is the same for the turns of one conversation. `cost` is that of all attempts, in
    millionths of the currency, if the models have prices.
    """

    version: int
    callwright: str
    time: str
    model: str
    upstream: str
    upstream_model: str
    attempts: list[RecordedAttempt]
    request_id: str | None = None
    client_request_id: str | None = None
    endpoint: str | None = None
    request: Any = None
    response_template: dict[str, Any] | None = None
    tools: list[RecordedTool] = []
    tool_choice: str | dict[str, str] = "auto"
    allowed_tools: list[str] | None = None
    parallel_tool_calls: bool = True
    response_format: bool = False
    logprobs: bool = False
    aliases: list[list[str]] = []
    infer: list[tuple[str, list[str]]] = []
    streamed: bool = False
    problems: list[Typed] = []
    finish_reason: str | None = None
    usage: dict[str, int] | None = None
    cost: int | None = None
    error: str | None = None
    first_s: float | None = None
    seconds: float = 0.0
    is_cut: bool = False
    calls: list[SeenCall] = []
    ambiguous: str | None = None
    reasoning_put_back: int = 0
    asked: str = ""
    outcome: TurnOutcome = ""
    ended: TurnEnd = ""
    conversation: str = ""


# --- making one ---


def record_of(seen: Observation, *, version: str, time: str, **about: Any) -> Record:
    """The record of a turn that has ended. `about`: fields that the turn does not know, such as `request_id`."""
    conversation = seen.conversation
    own = [sorted(group) for group in seen.hints.aliases if group not in GROUPS]
    return Record(
        version=VERSION,
        callwright=version,
        time=time,
        model=seen.model,
        upstream=seen.upstream,
        upstream_model=seen.upstream_model,
        attempts=[
            _attempt(asked, asked.raw, seen, earlier)
            for asked, earlier in zip(seen.asked, (None, *seen.asked), strict=False)
            if asked.raw is not None
        ],
        response_template=dict(seen.output_parser.template)
        if isinstance(seen.output_parser, ResponseTemplate)
        else None,
        tools=[recorded_tool(tool) for tool in conversation.tools],
        tool_choice=record_choice(conversation.tool_choice),
        allowed_tools=None if conversation.allowed_tools is None else list(conversation.allowed_tools),
        parallel_tool_calls=conversation.parallel_tool_calls,
        response_format=conversation.response_format is not None,
        logprobs=bool(seen.fields.get("logprobs")),
        aliases=own,
        infer=[(rule.tool, sorted(rule.keys)) for rule in seen.hints.inference],
        streamed=seen.streamed,
        problems=[to_typed(problem) for problem in seen.problems],
        finish_reason=seen.reason,
        usage=msgspec.structs.asdict(seen.usage) if seen.usage else None,
        cost=seen.cost,
        error=_error(seen.error),
        first_s=None if seen.first_s is None else round(seen.first_s - seen.begun_s, 6),
        seconds=round((seen.ended_s or seen.begun_s) - seen.begun_s, 6),
        calls=list(seen.calls.values()),
        ambiguous=seen.ambiguous,
        asked=words_asked(conversation),
        outcome=turn_outcome(seen),
        ended=turn_end(seen),
        **about,
    )


def words_asked(conversation: Conversation) -> str:
    """The last words of the user in one line of at most 200 characters; empty if the user wrote nothing."""
    for item in reversed(conversation.items):
        if type(item) is Message and item.role == "user":
            typed = first = ""
            for part in item.parts:
                if type(part) is TextPart and part.text and not part.text.isspace():
                    first = first or part.text
                    # clients put their own additions into tags, in a part of its own
                    typed = typed if part.text.startswith("<") else part.text
            words = " ".join((typed or first)[:_LOOKED_AT].split())
            return words if len(words) <= _ASKED_CHARS else f"{words[: _ASKED_CHARS - 1]}…"
    return ""


def timed_attempts(seen: Observation) -> list[RecordedAttempt]:
    """The attempts of a turn, without contents."""
    has_left = seen.error is not None and not isinstance(seen.error, Exception)
    last = len(seen.asked) - 1

    def ending(number: int, asked: RequestedTurn) -> Ending:
        return "failed" if asked.failure is not None else "left" if has_left and number == last else "whole"

    return [_timed(asked, seen, ending(number, asked)) for number, asked in enumerate(seen.asked)]


def _timed(asked: RequestedTurn, seen: Observation, ended: Ending) -> RecordedAttempt:
    timings = asked.timings

    def since_begin(time_s: float | None) -> float | None:
        return None if time_s is None else round(time_s - seen.begun_s, 6)

    return RecordedAttempt(
        mode=asked.mode,
        ended=ended,
        dialect=asked.generation.dialect,
        model=asked.fallback.model if asked.fallback else None,
        reason=asked.fallback.reason if asked.fallback else None,
        again=asked.again,
        begun_s=since_begin(timings.begun_s),
        queued_s=round(timings.queued_s, 6),
        sent_s=since_begin(timings.sent_s),
        first_s=since_begin(timings.first_s),
        ended_s=since_begin(timings.ended_s),
    )


def _attempt(asked: RequestedTurn, raw: Raw, seen: Observation, earlier: RequestedTurn | None) -> RecordedAttempt:
    generation = asked.generation
    prompt = generation.prompt
    attempt = _timed(asked, seen, raw.ended)
    attempt.deltas = [(round(at, 6), to_typed(delta)) for at, delta in raw.deltas]
    attempt.events = [to_typed(event) for event in raw.events]
    attempt.messages, attempt.sent_tools = generation.messages, generation.tools
    attempt.constraint, attempt.error, attempt.is_cut = asked.timings.constraint, _error(asked.failure), raw.room < 0
    if prompt is not None:
        attempt.prompt, attempt.start, attempt.prefill = prompt.text, prompt.start, prompt.prefill
        attempt.controls = _controls(prompt)
    if earlier is not None:
        attempt.told = _retry_messages(generation.conversation.items, earlier.generation.conversation.items)
    return attempt


def _controls(prompt: Prompt) -> list[tuple[int, int]]:
    """Ranges of a prompt's text that are control tokens."""
    found: list[tuple[int, int]] = []
    begin = 0
    for piece in prompt.pieces:
        end = begin + len(piece.text)
        if isinstance(piece, Control):
            found.append((begin, end))
        begin = end
    return found


def _retry_messages(items: Sequence[Item], earlier: Sequence[Item]) -> list[str]:
    """The messages of a retry to the model, without its own earlier output."""
    added = items[len(earlier) :] if items[: len(earlier)] == earlier else ()
    return [
        item.text for item in added if isinstance(item, CallOutput) or (type(item) is Message and item.role == "user")
    ]


def to_typed(value: Struct) -> Typed:
    """A delta or an event as JSON has it."""
    fields = msgspec.structs.asdict(value)
    return {"type": type(value).__name__, **{name: given for name, given in fields.items() if given is not None}}


def recorded_tool(tool: FunctionTool) -> RecordedTool:
    """A tool as it is recorded."""
    grammar = tool.custom.grammar if tool.custom else None
    return RecordedTool(
        name=tool.name,
        description=tool.description,
        parameters=None if tool.parameters is None else dict(tool.parameters),
        strict=tool.strict,
        enforce_schema=tool.enforce_schema,
        custom=tool.custom is not None,
        grammar=(grammar.syntax, grammar.definition) if grammar else None,
    )


def record_choice(choice: ToolChoice) -> str | dict[str, str]:
    """A choice of tools as it is recorded."""
    return {"name": choice.name} if isinstance(choice, NamedTool) else choice


def _error(error: BaseException | None) -> str | None:
    match error:
        case None:
            return None
        case UpstreamError() | RequestError():
            return error.message
        case Exception():
            return type(error).__name__
    return "nobody listened any more"
