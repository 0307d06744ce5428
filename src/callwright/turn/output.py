"""Parses the deltas of an upstream into checked events; one reader for each attempt."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never

from msgspec.structs import replace

from callwright.calls.check import Check
from callwright.calls.toolset import Toolset
from callwright.conversation import Conversation, ToolChoice
from callwright.dialects.base import get_dialect
from callwright.events import (
    AnnotationsDelta,
    AnswerMetadata,
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    FinishReason,
    Problem,
    ReasoningDelta,
    RefusalDelta,
    Usage,
)
from callwright.reading.parser import OutputParser, PassThrough
from callwright.tolerant_json.find import json_places
from callwright.turn.endless_text import MOST_REPEATED, EndlessText
from callwright.turn.known_texts import KnownTexts
from callwright.turn.model import Model
from callwright.turn.native_calls import NativeCalls, PrintedCalls
from callwright.turn.observe import Raw
from callwright.upstreams.base import (
    Delta,
    FinishDelta,
    GenerationRequest,
    ReasoningTextDelta,
    TextDelta,
    ToolCallDelta,
    UnparsedCallDelta,
)


def unread_call(batch: Sequence[Event]) -> Problem | None:
    """The problem `call_unread` in a batch: the server could not parse a call itself."""
    told = (event for event in batch if isinstance(event, Problem) and event.kind == "call_unread")
    return next(told, None)


# The dialect that reads calls which a native server left in the text: JSON in all its forms, marked or not.
_PRINTED: Final = "json"

# Deltas that may follow the text of a complete answer.
_CLOSING: Final = frozenset((FinishDelta, Usage, AnswerMetadata))

# Indexes of calls recovered here, above those that servers give to calls.
_SALVAGED: Final = 1 << 16


def _may_print_calls(conversation: Conversation, fields: Mapping[str, Any]) -> bool:
    """Whether to look for calls in the text of a native server: not if the text must be JSON, or its logprobs must
    match.
    """
    wanted = conversation.response_format is None and not fields.get("logprobs")
    return bool(conversation.tools) and conversation.tool_choice != "none" and wanted


class GenerationReader:
    """Turns the deltas of one generation into checked events, as soon as they are certain, and notes its times.

    `raw` stores the deltas and the events parsed of them. `trace`: `parser` records the destination of each character.
    """

    def __init__(
        self, model: Model, generation: GenerationRequest, raw: Raw | None = None, *, trace: bool = False
    ) -> None:
        conversation = generation.conversation
        tools = Toolset(
            conversation.tools,
            conversation.tool_choice,
            parallel=conversation.parallel_tool_calls,
            allowed=conversation.allowed_tools,
            hints=model.hints,
            is_text=KnownTexts(conversation),
        )
        self.generation = generation
        self._raw = raw
        self.usage: Usage | None = None
        self.metadata: AnswerMetadata | None = None
        self._trace = trace
        most = model.max_repeated_text
        if most is None:
            most = MOST_REPEATED if generation.constraint is not None else 0
        self._endless = EndlessText(most) if most else None
        self.is_stopped = False  # it repeated itself: the rest of the answer is not wanted
        self._upstream = model.upstream
        self._enforces_schema = model.enforces_schema
        self._timings = self._waiting = generation.timings
        self._has_text = False
        self.check = Check(tools)
        self._reason: FinishReason = "stop"
        self._native_calls: NativeCalls | None = None
        self._tools = tools
        self.parser: OutputParser | None = None
        self._may_print = False
        self._is_whole = not generation.streamed
        self._last = ""  # text that is parsed after it is known whether more follows, which costs less
        self._reasoned: list[str] = []  # the reasoning that a native server has sent, while there is no text
        self._early: list[Event] = []
        if generation.dialect is not None:
            prompt = generation.prompt
            # A chat endpoint answers the whole message; a raw prompt already ends inside it.
            start = prompt.start if prompt else "message"
            self.parser = OutputParser(get_dialect(generation.dialect), tools, self.check, start, trace=trace)
            if prompt and prompt.prefill:
                self._early = self.parser.feed(prompt.prefill)
        elif model.output_parser is not None:
            self.parser = OutputParser(
                model.output_parser, tools, PrintedCalls(self.check, self._native, is_leak=False), trace=trace
            )
        else:
            self._may_print = _may_print_calls(conversation, generation.fields)

    @property
    def is_constrained(self) -> bool:
        """Whether the server holds its answer to the form that the request asks for."""
        if self.generation.prompt is None:
            return self._enforces_schema and "response_format" in self.generation.fields
        return self.has_grammar

    @property
    def has_grammar(self) -> bool:
        """Whether a grammar was sent with the request."""
        return self._timings is not None and self._timings.is_constrained

    @property
    def _native(self) -> NativeCalls:
        """The calls that the server has parsed itself: none in mode raw, so made on first use."""
        if self._native_calls is None:
            self._native_calls = NativeCalls(self.check, self._tools, self._upstream)
        return self._native_calls

    def read(self, batch: Sequence[Delta]) -> list[Event]:
        """Parse deltas that arrived together; returns the events that are certain."""
        if self._waiting is not None:
            self._waiting.first_s, self._waiting = time.monotonic(), None
        out, self._early = self._early, []
        if self._last and self.parser is not None:
            out += self.parser.feed(self._last)
            self._last = ""
        for number, delta in enumerate(batch):
            if type(delta) is TextDelta:
                self._has_text = True
                if self._may_print:
                    self._read_printed()
                parser = self.parser
                if parser is None:
                    out += self._native.text(delta.text, delta.logprobs)
                elif self._is_whole and self._is_last(batch[number + 1 :]):
                    self._last = delta.text
                else:
                    out += parser.feed(delta.text)
            elif type(delta) is ToolCallDelta:
                out += (self._native_calls or self._native).call(delta)
            elif type(delta) is ReasoningTextDelta:
                if self._may_print or self._reasoned:
                    self._reasoned.append(delta.text)
                out += self._native.reasoning(delta.text)
            elif type(delta) is FinishDelta:
                self._reason = delta.reason
            elif type(delta) is Usage:
                self.usage = delta
            else:
                out += self._read_rare(delta)
        if self._endless is not None and (repeated := self._endless.find(batch)) is not None:
            detail = f"{repeated[:100]!r} was repeated over {self._endless.most} characters"
            out.append(Problem("output_endless", detail))
            self._endless, self._reason, self.is_stopped = None, "length", True
        if self._raw is not None:
            self._raw.add(batch, out)
        return out

    def _read_rare(
        self, delta: AnswerMetadata | RefusalDelta | AnnotationsDelta | UnparsedCallDelta
    ) -> Sequence[Event]:
        if type(delta) is AnswerMetadata:
            self.metadata = self.metadata.updated(delta) if self.metadata else delta
            return ()
        if type(delta) is RefusalDelta or type(delta) is AnnotationsDelta:
            return (delta,)
        if type(delta) is UnparsedCallDelta:
            return self._salvaged(delta.text, delta.told)
        assert_never(delta)

    def _is_last(self, others: Sequence[Delta]) -> bool:
        """Whether a text is likely to be the last of an answer that is not streamed: only closing deltas follow it."""
        return self._native_calls is None and _CLOSING.issuperset(map(type, others))

    def take_metadata(self) -> list[Event]:
        """The server's metadata since the last call. Sent with other events, never alone."""
        metadata, self.metadata = self.metadata, None
        return [metadata] if metadata is not None else []

    def _read_printed(self) -> None:
        """Start to look for calls in the text: servers whose own parser fails leave them there."""
        self._may_print = False
        tools = self._tools
        printed = Toolset(
            tools.ordered, tools.choice, hints=tools.hints, infer_bare_arguments=False, is_text=tools.is_text
        )
        self.parser = OutputParser(
            get_dialect(_PRINTED), printed, PrintedCalls(self.check, self._native, is_leak=True), trace=self._trace
        )

    def _salvaged(self, text: str, told: str) -> list[Event]:
        """The text that the server failed to parse: as calls if it can be parsed here, else as text."""
        out: list[Event] = [Problem("call_unread", f"the server could not read what the model wrote: {told}")]
        if not text:
            return out
        begun: dict[int, list[Event]] = {}  # the events of each call
        has_problem = False
        for event in self._read_salvaged(text):
            match event:
                case ContentDelta(words):
                    out += self._native.text(words) if words.strip() else []
                case CallStarted(index) | ArgumentsDelta(index) | Problem(call=int(index)):
                    begun.setdefault(index, []).append(event)
                case CallEnded(index, complete):
                    out += self._salvaged_call(index, begun[index], complete=complete)
                case Problem():
                    has_problem = True
                    out.append(event)
        if not (begun or has_problem):
            out.append(Problem("malformed_call", "the server took it for a call, and it is none"))
        return out

    def _salvaged_call(self, index: int, events: Sequence[Event], *, complete: bool) -> list[Event]:
        """A call recovered from text that the server failed to parse."""
        name = next(event.name for event in events if isinstance(event, CallStarted))
        arguments = "".join(event.text for event in events if isinstance(event, ArgumentsDelta))
        told = [event for event in events if isinstance(event, Problem)]
        number = _SALVAGED + index
        if complete:
            problems = [replace(problem, call=None) for problem in told]
            return [*self._native.call(ToolCallDelta(number, None, name, arguments)), *problems]
        words = f"a call of {name!r} that is not whole"
        return [*[replace(problem, call=None) for problem in told], Problem("malformed_call", words, text=arguments)]

    def _read_salvaged(self, text: str) -> list[Event]:
        """The events of a text that contains a call, or the arguments of one, among other words."""
        choice = "required" if self._tools.choice == "auto" else self._tools.choice
        events = self._read_again(text, choice=choice)
        if any(isinstance(event, CallStarted) for event in events):
            return events
        for place in json_places(text, names=self._tools.names):
            inner = self._read_again(text[place.begin : place.end], choice=choice)
            if any(isinstance(event, CallStarted) for event in inner):
                return [ContentDelta(text[: place.begin]), *inner, ContentDelta(text[place.end :])]
        return events

    def _in_reasoning(self) -> list[Event]:
        """The calls with which the reasoning ends of an answer that is nothing else."""
        if not self._reasoned or self._has_text or self._reason != "stop" or self._native.has_calls:
            return []
        thought = "".join(self._reasoned)
        events = self._read_again(f"{thought}</think>", "reasoning", choice=self._tools.choice)
        said = ReasoningDelta | Finished
        return [event for event in events if not isinstance(event, said | ContentDelta)]

    def _read_again(self, text: str, start: str = "assistant", *, choice: ToolChoice) -> list[Event]:
        """The events of a whole text that a native server did not read."""
        tools = self._tools
        again = Toolset(tools.ordered, choice, hints=tools.hints, is_text=tools.is_text)
        return OutputParser(get_dialect(_PRINTED), again, PassThrough(), start).finish("stop", text)

    def abandoned(self) -> list[Event]:
        """The text that was held back when the upstream failed, so that none is lost; calls are dropped.

        A prefill is no answer by itself.
        """
        left: list[Event] = []
        if self._has_text:
            self._reason = "length"
            left = [event for event in self._rest() if isinstance(event, ContentDelta | ReasoningDelta)]
        if self._raw is not None:
            self._raw.end("failed", left)
        return left

    def finish(self) -> list[Event]:
        """The upstream's stream is over; answers the remaining events, `Finished` last."""
        if self._timings is not None:
            self._timings.ended_s = time.monotonic()
        rest = self._rest()
        if self._raw is not None:
            self._raw.end("whole", rest)
        return rest

    def _rest(self) -> list[Event]:
        out, self._early = self._early, []
        if self._reasoned:
            self.check.push(self._in_reasoning(), out)
        if self._native_calls is not None:
            out += self._native_calls.end(cut=self._reason != "stop")
        if self.parser is not None:
            return out + self.parser.finish(self._reason, self._last)
        self.check.finish(self._reason, out)
        return out
