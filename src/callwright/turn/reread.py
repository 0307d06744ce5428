"""A record parsed again by the installed version."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import Struct

from callwright.calls.aliases import GROUPS, ParameterAliases, ToolInferenceRule
from callwright.conversation import Conversation, CustomInput, FunctionTool, NamedTool, ResponseFormat, ToolChoice
from callwright.errors import ConfigError, GrammarError
from callwright.events import Event
from callwright.grammar.grammar import Grammar
from callwright.prompt import Prompt
from callwright.reading.collect import Turn, collect
from callwright.response_template.template import ResponseTemplate
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.turn.model import Model
from callwright.turn.output import GenerationReader
from callwright.turn.records import VERSION, Record, RecordedAttempt, RecordedTool
from callwright.upstreams.base import Delta, GenerationRequest
from callwright.upstreams.simulated.scripted import ScriptedUpstream

_CHOICES: Final[tuple[Literal["none", "auto", "required"], ...]] = ("none", "auto", "required")
_DELTAS: Final = {kind.__name__: kind for kind in get_args(Delta)}
_EVENTS: Final = {kind.__name__: kind for kind in get_args(Event)}


class RecordError(ValueError):
    """The input is not a record that can be parsed again; the message has the reason."""


class Reread(Struct):
    """An attempt as it was parsed then and as it is parsed now."""

    then: Turn
    now: Turn

    @property
    def differing(self) -> list[str]:
        """The parts that differ: content, reasoning, calls, finish_reason, problems."""
        return [name for name in self.then.__struct_fields__ if getattr(self.then, name) != getattr(self.now, name)]


class ReplayStep(Struct, frozen=True):
    """A delta, its time, and the events that were certain then; None for the end of the output."""

    at_s: float | None
    delta: Delta | None
    events: list[Event]


class Replay(Struct, frozen=True):
    """One attempt of a record with a reader of today, which reads once."""

    attempt: RecordedAttempt
    reader: GenerationReader

    def steps(self) -> Iterator[ReplayStep]:
        """Parse the recorded deltas, one by one. Raises `RecordError` for an invalid delta."""
        attempt, reader = self.attempt, self.reader
        for at_s, given in attempt.deltas:
            delta = _convert(given, _DELTAS)
            yield ReplayStep(at_s, delta, reader.read([delta]))
        if attempt.ended != "left":
            yield ReplayStep(None, None, reader.finish() if attempt.ended == "whole" else reader.abandoned())


def read_record(line: bytes | str) -> Record:
    """The record in a line of a file. Raises `RecordError`."""
    try:
        record = decode(line, Record)
    except NotJsonError as error:
        raise RecordError(f"not a record of a turn: {error}") from error
    if record.version != VERSION:
        raise RecordError(f"expected a record of version {VERSION}, got version {record.version}")
    return record


def reread(record: Record, dialect: str | None = None) -> list[Reread | None]:
    """Parse the attempts of a turn again; None in place of one that was recorded only in part.

    `dialect`: parse as this one, if a dialect was used at all. Raises `RecordError` if tools or deltas cannot be read.
    """
    return [again if again is None else _reread(again) for again in replays(record, dialect)]


def _reread(again: Replay) -> Reread:
    now = [event for step in again.steps() for event in step.events]
    return Reread(collect(recorded_events(again.attempt)), collect(now))


def recorded_events(attempt: RecordedAttempt) -> list[Event]:
    """The events that were recorded. Raises `RecordError` for an invalid one."""
    return [_convert(event, _EVENTS) for event in attempt.events]


def replays(record: Record, dialect: str | None = None, *, trace: bool = False) -> list[Replay | None]:
    """The attempts of a turn, each with a reader of today; None in place of one that was recorded only in part.

    `dialect` as for `reread`. `trace`: the readers record where each character goes. Raises `RecordError` if tools or
    deltas cannot be read.
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

    def replay(attempt: RecordedAttempt) -> Replay | None:
        if record.is_cut or attempt.is_cut:
            return None
        generation = GenerationRequest(
            model=model.upstream_model,
            conversation=conversation,
            dialect=attempt.dialect if attempt.mode == "native" else dialect or attempt.dialect,
            fields={"logprobs": record.logprobs},
            prompt=None if attempt.start is None else Prompt((), (), attempt.start, attempt.prefill),
        )
        return Replay(attempt, GenerationReader(model, generation, trace=trace))

    return [replay(attempt) for attempt in record.attempts]


def _convert(given: Mapping[str, Any], kinds: Mapping[str, Any]) -> Any:
    kind = kinds.get(str(given.get("type")))
    if kind is None:
        raise RecordError(f"expected one of {', '.join(kinds)}, got {given.get('type')!r}")
    try:
        return msgspec.convert({name: value for name, value in given.items() if name != "type"}, kind)
    except msgspec.ValidationError as error:
        raise RecordError(f"a {given['type']} in it is invalid: {error}") from error


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
