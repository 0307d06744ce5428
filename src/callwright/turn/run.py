"""One turn of a model: render, ask, read, check. The place where the pure core meets an upstream.

Events come out as they become certain, in batches of what came together; what the upstream counted comes as a last
`Usage`. An upstream that fails raises out of the stream, before or after the first event. Where a call does not hold
the model is asked again, see `callwright.turn.retry`.
"""

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, nullcontext
from typing import Any, Final, Literal, Protocol, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from callwright.calls.aliases import Hints
from callwright.calls.check import Check
from callwright.calls.history import shaped, with_told_media
from callwright.calls.toolset import Toolset
from callwright.constraints.compile import constraint_of
from callwright.conversation import Conversation, Item, NamedTool
from callwright.dialects.base import RenderOptions, get_dialect
from callwright.dialects.detect import by_name, history_form
from callwright.errors import ConfigError, RequestError, UpstreamError
from callwright.events import ContentDelta, Event, FinishReason, Problem, ReasoningDelta, Usage
from callwright.free_text.recover import Found, Prose, recover_arguments
from callwright.parser import OutputParser, Reads
from callwright.tolerant_json.codec import decode
from callwright.turn.native_calls import NativeCalls, PrintedCalls
from callwright.turn.observe import Observation, Observer, Raw
from callwright.turn.retry import Guarantee, Unmet
from callwright.upstreams.base import (
    Delta,
    Generation,
    ReasoningText,
    Stopped,
    TextDelta,
    ToolCallDelta,
    UnreadCall,
    Upstream,
)
from callwright.wire.chat.request import write_messages
from callwright.wire.response_format import write_response_format
from callwright.wire.tool_choice import write_tool_choice

__all__ = [
    "AUTO",
    "MODES",
    "SIMULATED",
    "UNKNOWN",
    "Chooser",
    "Events",
    "Mode",
    "Model",
    "Reader",
    "open_models",
    "plan",
    "run_turn",
]

Mode: TypeAlias = Literal["native", "prompt", "raw"]
Events: TypeAlias = AsyncGenerator[Sequence[Event | Usage], None]
MODES: tuple[Mode, ...] = ("native", "prompt", "raw")
# The simulated model in each way of asking it: mode and dialect by the name that it has then.
SIMULATED: Final[Mapping[str, tuple[Mode, str | None]]] = {
    "simulated": ("raw", "harmony"),
    "simulated-hermes": ("raw", "hermes"),
    "simulated-json": ("prompt", "json"),
    "simulated-native": ("native", None),
}
# A mode that is chosen by what the server can do, or a dialect that is found by the name of the model; and the dialect
# for models that nothing is known of.
AUTO: Final[Literal["auto"]] = "auto"
UNKNOWN: Final = "json"


class Model(Struct, frozen=True):
    """A model that can be asked.

    `mode`: `native`, the server renders and parses; `prompt`, the tools go into the messages as text and the reply
    is read here; `raw`, the whole prompt is rendered here. The last two need a dialect. `fields` are sent with
    every request. A call that does not hold is asked for again `retries` times, the last time after `retry_s` seconds.
    `tells_media`: a raw prompt has words where an image or a file was; otherwise such a request is refused.
    `constrain`: a server that takes grammars gets one where a call is demanded (modes raw and prompt).
    `heeds_choice`: the server knows `tool_choice`; one that does not is asked in mode prompt where a call is demanded.
    `always_streams`: answers that are wanted whole are fetched as streams, too.
    `object_arguments`: a server that renders natively gets the arguments in a history as objects. `reads` reads the
    text of a server that renders but does not parse (mode native). `chooser`: mode and dialect are chosen when the
    model is asked, by what its server can do; until then the mode is `native`. `observers` see each turn.
    """

    name: str
    upstream: Upstream
    upstream_model: str
    mode: Mode = "native"
    dialect: str | None = None
    options: RenderOptions = RenderOptions()
    fields: Mapping[str, Any] = {}
    hints: Hints = Hints()
    retries: int = 2
    retry_s: float = 100.0
    tells_media: bool = False
    constrain: bool = True
    object_arguments: bool = False
    heeds_choice: bool = True
    always_streams: bool = False
    reads: Reads | None = None
    chooser: "Chooser | None" = None
    observers: tuple[Observer, ...] = ()

    async def close(self) -> None:
        """Give back all connections."""
        await self.upstream.close()
        if self.chooser is not None:
            await self.chooser.close()

    def called(self, name: str) -> "Model":
        """The same, for another model of the same upstream: the dialect `auto` is found by its name."""
        dialect = self.dialect
        if dialect == AUTO:
            detected = by_name(name)
            dialect = detected.dialect if detected else UNKNOWN
        return replace(self, name=name, upstream_model=name, dialect=dialect)


class Chooser(Protocol):
    """Chooses how a model is asked (mode `auto`)."""

    def start(self) -> None:
        """Begin to find out, in the background."""
        ...

    async def choose(self, model: Model) -> Model:
        """The model as it is to be asked now."""
        ...

    async def instead(self, model: Model, failure: RequestError | UpstreamError | Problem) -> Model | None:
        """Another way to ask a model that has failed, or whose server could not read a call (`call_unread`); None where
        the failure is not of the way.
        """
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...


async def open_models(models: Mapping[str, Model]) -> None:
    """Make ready the models that need it, one after the other. Raises `ConfigError` that names the one that fails."""
    for model in models.values():
        try:
            await model.upstream.open()
        except ConfigError as error:
            raise ConfigError(f"Model {model.name!r}: {error}") from error


def plan(model: Model, conversation: Conversation, fields: Mapping[str, Any], today: str) -> Generation:
    """What the upstream is asked for. `today` (YYYY-MM-DD) goes into prompts that show the date."""
    asked = Generation(model=model.upstream_model, conversation=conversation, fields={**model.fields, **fields})
    mode, name = _way(model, conversation)
    if mode == "native":
        return _native(asked, conversation, objects=model.object_arguments)
    if name is None:
        raise ConfigError(f"Model {model.name!r} in mode {mode!r} needs a dialect.")
    dialect = get_dialect(name)
    asked = replace(asked, dialect=name)
    given = model.options if isinstance(model.options, dialect.Options) else dialect.Options()
    options = _options(given, fields, today)
    if mode == "raw":
        shown = with_told_media(conversation.items) if model.tells_media else conversation.items
        prompt = dialect.render(replace(conversation, items=shown), options)
        return replace(
            asked,
            prompt=prompt,
            stops=dialect.stops,
            stop_token_ids=dialect.stop_token_ids,
            constraint=constraint_of(name, conversation, prompt) if model.constrain else None,
        )
    format_ = conversation.response_format
    if format_ is not None and not conversation.tools:
        asked = replace(asked, fields={**asked.fields, "response_format": write_response_format(format_)})
    return replace(
        asked,
        messages=dialect.messages(conversation, options),
        constraint=constraint_of(name, conversation, None) if model.constrain else None,
    )


def _way(model: Model, conversation: Conversation) -> tuple[Mode, str | None]:
    """Mode and dialect of one request."""
    choice = conversation.tool_choice
    demanded = bool(conversation.tools) and (choice == "required" or isinstance(choice, NamedTool))
    if model.mode == "native" and demanded and not model.heeds_choice:
        return "prompt", UNKNOWN
    return model.mode, model.dialect


def _native(asked: Generation, conversation: Conversation, *, objects: bool) -> Generation:
    """Ask a server that renders and reads: with a history that its template gets right."""
    items = shaped(conversation.items, history_form(asked.model))
    messages = write_messages(replace(conversation, items=items))
    fields = dict(asked.fields)
    if conversation.response_format is not None:
        fields["response_format"] = write_response_format(conversation.response_format)
    if conversation.tools and not conversation.parallel_tool_calls:
        fields["parallel_tool_calls"] = False
    choice = conversation.tool_choice
    return replace(
        asked,
        fields=fields,
        messages=list(map(_with_objects, messages)) if objects else messages,
        tools=[tool.openai for tool in conversation.tools] or None,
        tool_choice=None if choice == "auto" else write_tool_choice(choice),
    )


def _with_objects(message: dict[str, Any]) -> dict[str, Any]:
    """A message with the arguments of its calls as objects."""
    calls = [
        {**call, "function": {**call["function"], "arguments": decode(call["function"]["arguments"])}}
        for call in message.get("tool_calls", ())
    ]
    return {**message, "tool_calls": calls} if calls else message


def _options(options: RenderOptions, fields: Mapping[str, Any], today: str) -> RenderOptions:
    """The configured options, with what the request and the day say where the configuration does not."""
    wanted: dict[str, Any] = {}
    if getattr(options, "current_date", today) is None:
        wanted["current_date"] = today
    if "reasoning_effort" in options.__struct_fields__ and fields.get("reasoning_effort"):
        wanted["reasoning_effort"] = fields["reasoning_effort"]
    return replace(options, **wanted)


async def run_turn(
    model: Model, conversation: Conversation, fields: Mapping[str, Any], *, today: str, streamed: bool = True
) -> Events:
    """Ask the model and answer its checked events, then what the upstream counted, if it counts.

    `streamed`: the events are sent on as they come; otherwise all of them may wait for a better answer. Raises
    `UpstreamError` when the upstream fails, `RequestError` when it says that the request was wrong.
    """
    seen = _observed(model, conversation, fields, streamed) if model.observers else None
    with seen or nullcontext():
        chooser = model.chooser
        if chooser is not None:
            model = await chooser.choose(model)
        asked = conversation
        guarantee = Guarantee(asked, retries=model.retries, streamed=streamed)
        deadline = time.monotonic() + model.retry_s
        counted: Usage | None = None
        has_sent = False
        more: list[Item] | None = []

        def passed(events: Sequence[Event]) -> Sequence[Event]:
            """What of these goes out now, by the guarantee as it stands."""
            certain = guarantee.push(events)
            if certain and seen is not None:
                seen.events(certain)
            return certain

        while more is not None:
            conversation = replace(conversation, items=(*conversation.items, *more))
            generation = plan(model, conversation, fields, today)
            generation = replace(generation, streamed=streamed or model.always_streams)
            raw: Raw | None = None
            if seen is not None:
                generation, raw = seen.asks(generation, guarantee.again_for)
            attempt = _Attempt(model, generation, raw)
            try:
                async with aclosing(model.upstream.stream(generation)) as batches:
                    async for batch in batches:
                        events = attempt.read(batch)
                        if chooser is not None and (unread := _unread(events)):
                            await chooser.instead(model, unread)  # this answer is read here, the next asked for anew
                        if events and (certain := passed(events)):
                            has_sent = True
                            yield certain
                if certain := passed(attempt.finish()):
                    has_sent = True
                    yield certain
                if (usage := attempt.usage) is not None:
                    counted = usage if counted is None else counted.plus(usage)
            except (RequestError, UpstreamError) as error:
                if seen is not None:
                    seen.failed(error)
                other = await chooser.instead(model, error) if chooser is not None else None
                if other is not None and not has_sent:
                    model, conversation, more = other, asked, []
                    guarantee = Guarantee(asked, retries=model.retries, streamed=streamed)
                    continue
                if isinstance(error, UpstreamError) and (certain := passed(attempt.abandoned())):
                    yield certain
                if not guarantee.give_up():
                    raise
                break
            more = guarantee.again(in_time=time.monotonic() < deadline)
        try:
            last: list[Event | Usage] = [*guarantee.finish()]
        except Unmet as unmet:
            raise UpstreamError(str(unmet), fault="unmet", upstream=model.upstream.name) from unmet
        if counted is not None:
            last.append(counted)
        if seen is not None:
            seen.events(last)
        if last:
            yield last


def _observed(model: Model, conversation: Conversation, fields: Mapping[str, Any], streamed: bool) -> Observation:
    return Observation(
        model=model.name,
        upstream=model.upstream.name,
        upstream_model=model.upstream_model,
        mode=model.mode,
        dialect=model.dialect,
        reads=model.reads,
        hints=model.hints,
        conversation=conversation,
        fields=fields,
        streamed=streamed,
    ).begin(model.observers)


class _Attempt:
    """Reads one generation, and notes how it fares."""

    def __init__(self, model: Model, generation: Generation, raw: Raw | None) -> None:
        self._reader = Reader(model, generation)
        self._trip = self._waiting = generation.trip
        self._raw = raw

    @property
    def usage(self) -> Usage | None:
        return self._reader.usage

    def read(self, batch: Sequence[Delta]) -> list[Event]:
        """The events of a batch."""
        if self._waiting is not None:
            self._waiting.first_s, self._waiting = time.monotonic(), None
        events: list[Event] = []
        for delta in batch:
            read = self._reader.read(delta)
            if self._raw is not None:
                self._raw.add(delta, read)
            events += read
        return events

    def finish(self) -> list[Event]:
        """The last events: the upstream has sent all of it."""
        if self._trip is not None:
            self._trip.ended_s = time.monotonic()
        events = self._reader.finish()
        if self._raw is not None:
            self._raw.end("whole", events)
        return events

    def abandoned(self) -> list[Event]:
        """What was held when the upstream failed."""
        events = self._reader.abandoned()
        if self._raw is not None:
            self._raw.end("failed", events)
        return events


def _unread(batch: Sequence[Event]) -> Problem | None:
    """The problem that tells of a call that the server could not read."""
    told = (event for event in batch if isinstance(event, Problem) and event.kind == "call_unread")
    return next(told, None)


# What calls in the text of a server with tools of its own are read as: all forms of JSON, marked or not.
_PRINTED: Final = "json"
# Above the numbers that servers give to calls.
_SALVAGED: Final = 1 << 16


def _may_print_calls(conversation: Conversation, fields: Mapping[str, Any]) -> bool:
    """Whether the text of a server that reads calls itself is looked at: not where it must be something else."""
    wanted = conversation.response_format is None and not fields.get("logprobs")
    return bool(conversation.tools) and conversation.tool_choice != "none" and wanted


class Reader:
    """Turns the deltas of one generation into checked events: those that each makes certain, then the rest."""

    def __init__(self, model: Model, generation: Generation) -> None:
        conversation = generation.conversation
        tools = Toolset(
            conversation.tools,
            conversation.tool_choice,
            parallel=conversation.parallel_tool_calls,
            allowed=conversation.allowed_tools,
            hints=model.hints,
        )
        self.usage: Usage | None = None
        self._check = Check(tools)
        self._reason: FinishReason = "stop"
        self._native = NativeCalls(self._check)
        self._tools = tools
        self._parser: OutputParser | None = None
        self._may_print = False
        self._early: list[Event] = []
        if generation.dialect is not None:
            prompt = generation.prompt
            # A chat endpoint hands on the whole message; in a raw prompt the header of it was ours.
            start = prompt.start if prompt else "message"
            self._parser = OutputParser(get_dialect(generation.dialect), tools, self._check, start)
            if prompt and prompt.prefill:
                self._early = self._parser.feed(prompt.prefill)
        elif model.reads is not None:
            self._parser = OutputParser(model.reads, tools, PrintedCalls(self._check, self._native, is_leak=False))
        else:
            self._may_print = _may_print_calls(conversation, generation.fields)

    def read(self, delta: Delta) -> list[Event]:
        """Read more of what the upstream sent."""
        events = self._read(delta)
        if self._early:
            events, self._early = self._early + events, []
        return events

    def _read(self, delta: Delta) -> list[Event]:
        match delta:
            case TextDelta(text, logprobs):
                if self._may_print:
                    self._read_printed()
                return self._parser.feed(text) if self._parser else self._native.text(text, logprobs)
            case ToolCallDelta():
                return self._native.call(delta)
            case ReasoningText(text):
                return self._native.reasoning(text)
            case UnreadCall(text, told):
                return self._salvaged(text, told)
            case Stopped(reason):
                self._reason = reason
            case Usage():
                self.usage = delta
            case _:
                assert_never(delta)
        return []

    def _read_printed(self) -> None:
        """Look for calls in the text: servers whose own parser fails print them there."""
        self._may_print = False
        tools = self._tools
        printed = Toolset(tools.ordered, tools.choice, hints=tools.hints, infers=False)
        self._parser = OutputParser(
            get_dialect(_PRINTED), printed, PrintedCalls(self._check, self._native, is_leak=True)
        )

    def _salvaged(self, text: str, told: str) -> list[Event]:
        """What the server could not read, as calls where it can be read here, else as text."""
        out: list[Event] = [Problem("call_unread", f"the server could not read what the model wrote: {told}")]
        pieces = recover_arguments(text, self._tools) if text else []
        for number, piece in enumerate(pieces):
            match piece:
                case Prose(words, problem):
                    out += self._native.text(words) if words.strip() else []
                    out += [problem] if problem else []
                case Found(name, arguments, _, problems):
                    out += [*self._native.call(ToolCallDelta(_SALVAGED + number, None, name, arguments)), *problems]
                case _:
                    assert_never(piece)
        if text and not any(isinstance(piece, Found) for piece in pieces):
            out.append(Problem("malformed_call", "the server took it for a call, and it is none"))
        return out

    def abandoned(self) -> list[Event]:
        """The text that was held when the upstream failed: it is not lost."""
        self._reason = "length"
        return [event for event in self.finish() if isinstance(event, ContentDelta | ReasoningDelta)]

    def finish(self) -> list[Event]:
        """The upstream has sent all of it."""
        if self._parser is not None:
            return self._early + self._native.end(cut=self._reason == "length") + self._parser.finish(self._reason)
        out = self._native.end(cut=self._reason == "length")
        self._check.finish(self._reason, out)
        return out
