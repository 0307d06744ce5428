"""Turns as they are recorded, one JSON object a line.

A record holds what the model was asked, what its server sent, word for word and when, the events parsed of it, and the
tools and settings that parsing depends on. So one can compare how another version reads the same output.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from callwright.calls.aliases import GROUPS, ParameterAliases, ToolInferenceRule
from callwright.collector import Turn, collect
from callwright.conversation import (
    CallOutput,
    Conversation,
    CustomInput,
    FunctionTool,
    Item,
    Message,
    NamedTool,
    ResponseFormat,
    ToolChoice,
)
from callwright.errors import ConfigError, GrammarError, RequestError, UpstreamError
from callwright.events import Event
from callwright.grammar.grammar import Grammar
from callwright.prompt import Control, Prompt
from callwright.response_template.template import ResponseTemplate
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.turn.model import Mode, Model
from callwright.turn.observe import Observation, Raw, RequestedTurn
from callwright.turn.output import GenerationReader
from callwright.upstreams.base import Delta, GenerationRequest
from callwright.upstreams.simulated.scripted import ScriptedUpstream

__all__ = ["VERSION", "Record", "RecordedAttempt", "RecordedTool", "record_of"]

VERSION: Final = 1
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


class RecordedAttempt(Struct, omit_defaults=True):
    """One request to the model.

    `prompt` (mode raw) or `messages` are what its server got; `start` and `prefill` say where the answer begins.
    `deltas` are what came, each with the seconds since the turn began; `events` what was parsed of them. `ended` is
    `whole`, `failed` (by the upstream; `error` says how) or `left` (the client left). `is_cut`: some of it was too
    large for a record.

    `controls` are the places of the prompt that are control tokens, `sent_tools` the tools that a native server got,
    `constraint` what was sent to hold the answer to a form: of which kind it is, and its text. `again` is the problem
    for which the model was asked again, `told` what it was told then. Times are in seconds since the begin of the turn:
    when it was to be asked, how long it waited in a queue, when the request was sent, its first and its last piece.
    """

    mode: Mode
    ended: Literal["whole", "failed", "left"]
    dialect: str | None = None
    deltas: list[tuple[float, Typed]] = []
    events: list[Typed] = []
    prompt: str | None = None
    start: str | None = None
    prefill: str = ""
    messages: list[dict[str, Any]] | None = None
    error: str | None = None
    is_cut: bool = False
    controls: list[tuple[int, int]] = []
    sent_tools: list[dict[str, Any]] | None = None
    constraint: tuple[str, str] | None = None
    again: str | None = None
    told: list[str] = []
    begun_s: float | None = None
    queued_s: float = 0.0
    sent_s: float | None = None
    first_s: float | None = None
    ended_s: float | None = None


class Record(Struct, omit_defaults=True):
    """One turn. `request` is the body as it came, without keys. Times are in seconds since the begin of the turn."""

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
    error: str | None = None
    first_s: float | None = None
    seconds: float = 0.0
    is_cut: bool = False


# --- making one ---


def record_of(seen: Observation, *, version: str, time: str, **about: Any) -> Record:
    """The record of a turn that has ended. `about`: fields that the turn does not know, such as `request_id`."""
    conversation = seen.conversation
    choice = conversation.tool_choice
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
        tools=[_recorded(tool) for tool in conversation.tools],
        tool_choice={"name": choice.name} if isinstance(choice, NamedTool) else choice,
        allowed_tools=None if conversation.allowed_tools is None else list(conversation.allowed_tools),
        parallel_tool_calls=conversation.parallel_tool_calls,
        response_format=conversation.response_format is not None,
        logprobs=bool(seen.fields.get("logprobs")),
        aliases=own,
        infer=[(rule.tool, sorted(rule.keys)) for rule in seen.hints.inference],
        streamed=seen.streamed,
        problems=[_typed(problem) for problem in seen.problems],
        finish_reason=seen.reason,
        usage=msgspec.structs.asdict(seen.usage) if seen.usage else None,
        error=_error(seen.error),
        first_s=None if seen.first_s is None else round(seen.first_s - seen.begun_s, 6),
        seconds=round((seen.ended_s or seen.begun_s) - seen.begun_s, 6),
        **about,
    )


def _attempt(asked: RequestedTurn, raw: Raw, seen: Observation, earlier: RequestedTurn | None) -> RecordedAttempt:
    generation = asked.generation
    prompt, timings = generation.prompt, asked.timings

    def since_begin(time_s: float | None) -> float | None:
        return None if time_s is None else round(time_s - seen.begun_s, 6)

    return RecordedAttempt(
        mode=asked.mode,
        ended=raw.ended,
        dialect=generation.dialect,
        deltas=[(round(at, 6), _typed(delta)) for at, delta in raw.deltas],
        events=[_typed(event) for event in raw.events],
        prompt=prompt.text if prompt else None,
        start=prompt.start if prompt else None,
        prefill=prompt.prefill if prompt else "",
        messages=generation.messages,
        error=_error(asked.failure),
        is_cut=raw.room < 0,
        controls=_controls(prompt) if prompt else [],
        sent_tools=generation.tools,
        constraint=timings.constraint,
        again=asked.again,
        told=_told(generation.conversation.items, earlier.generation.conversation.items) if earlier else [],
        begun_s=since_begin(timings.begun_s),
        queued_s=round(timings.queued_s, 6),
        sent_s=since_begin(timings.sent_s),
        first_s=since_begin(timings.first_s),
        ended_s=since_begin(timings.ended_s),
    )


def _controls(prompt: Prompt) -> list[tuple[int, int]]:
    """Where the text of a prompt is control tokens."""
    found: list[tuple[int, int]] = []
    begin = 0
    for piece in prompt.pieces:
        end = begin + len(piece.text)
        if isinstance(piece, Control):
            found.append((begin, end))
        begin = end
    return found


def _told(items: Sequence[Item], earlier: Sequence[Item]) -> list[str]:
    """What a retry tells the model beyond what it said itself."""
    added = items[len(earlier) :] if items[: len(earlier)] == earlier else ()
    return [
        item.text for item in added if isinstance(item, CallOutput) or (type(item) is Message and item.role == "user")
    ]


def _typed(value: Struct) -> Typed:
    fields = msgspec.structs.asdict(value)
    return {"type": type(value).__name__, **{name: given for name, given in fields.items() if given is not None}}


def _recorded(tool: FunctionTool) -> RecordedTool:
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


def _error(error: BaseException | None) -> str | None:
    match error:
        case None:
            return None
        case UpstreamError() | RequestError():
            return error.message
        case Exception():
            return type(error).__name__
    return "nobody listened any more"
