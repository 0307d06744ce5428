"""Turns as they are recorded, one JSON object a line; and a record parsed again by the installed version.

A record holds what the model was asked, what its server sent, word for word and when, the events parsed of it, and the
tools and settings that parsing depends on. So one can compare how another version reads the same output.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from callwright.calls.aliases import GROUPS, ParameterAliases, ToolInferenceRule
from callwright.collector import Turn, collect
from callwright.conversation import Conversation, CustomInput, FunctionTool, NamedTool, ResponseFormat, ToolChoice
from callwright.errors import ConfigError, GrammarError, RequestError, UpstreamError
from callwright.events import Event
from callwright.grammar.grammar import Grammar
from callwright.prompt import Prompt
from callwright.response_template.template import ResponseTemplate
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.turn.model import Mode, Model
from callwright.turn.observe import Observation, Raw, RequestedTurn
from callwright.turn.output import GenerationReader
from callwright.upstreams.base import Delta, GenerationRequest
from callwright.upstreams.simulated.scripted import ScriptedUpstream

__all__ = ["Record", "RecordError", "RecordedAttempt", "Reread", "read_record", "record_of", "reread"]

VERSION: Final = 1
Typed: TypeAlias = dict[str, Any]  # a delta or an event: its fields, and its class as `type`
_CHOICES: Final[tuple[Literal["none", "auto", "required"], ...]] = ("none", "auto", "required")
_DELTAS: Final = {kind.__name__: kind for kind in get_args(Delta)}
_EVENTS: Final = {kind.__name__: kind for kind in get_args(Event)}


class RecordError(ValueError):
    """What was given is not a record that can be parsed again; the message says why."""


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


class Reread(Struct):
    """An attempt as it was parsed then and as it is parsed now."""

    then: Turn
    now: Turn

    @property
    def differing(self) -> list[str]:
        """The parts that differ: content, reasoning, calls, finish_reason, problems."""
        return [name for name in self.then.__struct_fields__ if getattr(self.then, name) != getattr(self.now, name)]


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
        attempts=[_attempt(asked, asked.raw) for asked in seen.asked if asked.raw is not None],
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


def _attempt(asked: RequestedTurn, raw: Raw) -> RecordedAttempt:
    generation = asked.generation
    prompt = generation.prompt
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
    )


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


# --- reading it again ---


def read_record(line: bytes | str) -> Record:
    """The record in a line of a file. Raises `RecordError`."""
    try:
        record = decode(line, Record)
    except NotJsonError as error:
        raise RecordError(f"it is no record of a turn: {error}") from error
    if record.version != VERSION:
        raise RecordError(f"expected a record of version {VERSION}, got version {record.version}")
    return record


def reread(record: Record, dialect: str | None = None) -> list[Reread | None]:
    """Parse the attempts of a turn again; None in place of one that was recorded only in part.

    `dialect`: parse as this one, where a dialect was used at all. Raises `RecordError` if tools or deltas cannot be
    read.
    """
    try:
        conversation = Conversation(
            tools=tuple(_tool(tool) for tool in record.tools),
            tool_choice=_choice(record.tool_choice),
            allowed_tools=None if record.allowed_tools is None else tuple(record.allowed_tools),
            parallel_tool_calls=record.parallel_tool_calls,
            response_format=ResponseFormat("json_object") if record.response_format else None,
        )
        given = record.response_template
        reads = None if given is None else ResponseTemplate(given)
    except GrammarError as error:
        raise RecordError(f"the grammar of a tool cannot be used: {error}") from error
    except ConfigError as error:
        raise RecordError(f"its response template cannot be used: {error}") from error
    model = Model(
        name=record.model,
        upstream=ScriptedUpstream(()),
        upstream_model=record.upstream_model,
        output_parser=reads,
        hints=ParameterAliases(
            aliases=(*map(frozenset, record.aliases), *GROUPS),
            inference=tuple(ToolInferenceRule(tool, frozenset(keys)) for tool, keys in record.infer),
        ),
    )
    return [_reread(model, conversation, record, attempt, dialect) for attempt in record.attempts]


def _reread(
    model: Model, conversation: Conversation, record: Record, attempt: RecordedAttempt, dialect: str | None
) -> Reread | None:
    if record.is_cut or attempt.is_cut:
        return None
    generation = GenerationRequest(
        model=model.upstream_model,
        conversation=conversation,
        dialect=attempt.dialect if attempt.mode == "native" else dialect or attempt.dialect,
        fields={"logprobs": record.logprobs},
        prompt=None if attempt.start is None else Prompt((), (), attempt.start, attempt.prefill),
    )
    reader = GenerationReader(model, generation)
    now: list[Event] = []
    for _, delta in attempt.deltas:
        now += reader.read([_made(delta, _DELTAS)])
    if attempt.ended != "left":
        now += reader.finish() if attempt.ended == "whole" else reader.abandoned()
    return Reread(collect([_made(event, _EVENTS) for event in attempt.events]), collect(now))


def _made(given: Mapping[str, Any], kinds: Mapping[str, Any]) -> Any:
    kind = kinds.get(str(given.get("type")))
    if kind is None:
        raise RecordError(f"expected one of {', '.join(kinds)}, got {given.get('type')!r}")
    try:
        return msgspec.convert({name: value for name, value in given.items() if name != "type"}, kind)
    except msgspec.ValidationError as error:
        raise RecordError(f"a {given['type']} in it cannot be: {error}") from error


def _tool(given: RecordedTool) -> FunctionTool:
    grammar = Grammar(*given.grammar) if given.grammar else None
    return FunctionTool(
        name=given.name,
        description=given.description,
        parameters=given.parameters,
        strict=given.strict,
        custom=CustomInput(grammar) if given.custom else None,
        enforce_schema=given.enforce_schema,
    )


def _choice(given: str | dict[str, str]) -> ToolChoice:
    if isinstance(given, dict):
        return NamedTool(given.get("name", ""))
    for choice in _CHOICES:
        if given == choice:
            return choice
    raise RecordError(f"expected none, auto, required or a name as tool_choice, got {given!r}")
