"""Chat Completions answers: one JSON object, or chunks as OpenAI's API sends them.

Reasoning has no official place there; it goes out under the two names that clients look for.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, assert_never

import msgspec
from msgspec import UNSET

from callwright.collector import Turn
from callwright.conversation import Call
from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    Markup,
    Problem,
    ReasoningDelta,
    Usage,
)
from callwright.tolerant_json.codec import encode
from callwright.wire.chat.types import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionMessage,
    ChatCompletionMessageCustomToolCall,
    ChatCompletionMessageFunctionToolCall,
    ChatCompletionMessageToolCall,
    ChatFinishReason,
    Choice,
    ChoiceDelta,
    ChoiceDeltaToolCall,
    ChoiceLogprobs,
    ChunkChoice,
    CompletionTokensDetails,
    CompletionUsage,
    Custom,
    DeltaCustom,
    DeltaFunction,
    Function,
    PromptTokensDetails,
)
from callwright.wire.sse import data

__all__ = ["ChatChunks", "ReasoningField", "completion", "completion_usage"]

ReasoningField: TypeAlias = Literal["both", "reasoning_content", "reasoning", "none"]
_REASONING_NAMES: Final[dict[ReasoningField, tuple[str, ...]]] = {
    "both": ("reasoning_content", "reasoning"),
    "reasoning_content": ("reasoning_content",),
    "reasoning": ("reasoning",),
    "none": (),
}
_CUT: Final = ("length", "content_filter")
# Stands in a chunk for a text that comes later: no JSON has this byte.
_HOLE: Final = b"\0"
_LATER: Final[Any] = msgspec.Raw(_HOLE)


def completion_usage(usage: Usage) -> CompletionUsage:
    """Token counts as the API writes them."""
    return CompletionUsage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
        prompt_tokens_details=PromptTokensDetails(usage.cached_tokens),
        completion_tokens_details=CompletionTokensDetails(usage.reasoning_tokens),
    )


def completion(
    turn: Turn,
    usage: Usage | None,
    *,
    id_: str,
    created: int,
    model: str,
    call_id: Callable[[], str],
    legacy: bool = False,
    reasoning: ReasoningField = "both",
) -> ChatCompletion:
    """The whole answer. `call_id` makes ids for calls without one; `legacy`: the client knows `function_call` only.

    A call that the limit has cut is there as far as it was written, as in OpenAI's answers and in a stream.
    """
    message = ChatCompletionMessage(content=turn.content)
    if turn.reasoning is not None:
        for name in _REASONING_NAMES[reasoning]:
            setattr(message, name, turn.reasoning)
    calls = [call for call in turn.calls if call.complete or turn.finish_reason in _CUT]
    reason: ChatFinishReason = turn.finish_reason
    if calls and legacy:
        message.function_call = Function(calls[0].name, calls[0].arguments)
        reason = "function_call" if reason == "tool_calls" else reason
    elif calls:
        message.tool_calls = [_tool_call(call, call.id or call_id()) for call in calls]
    return ChatCompletion(
        id=id_,
        created=created,
        model=model,
        choices=[Choice(message=message, logprobs=_logprobs(turn), finish_reason=reason)],
        usage=UNSET if usage is None else completion_usage(usage),
    )


def _tool_call(call: Call, id_: str) -> ChatCompletionMessageToolCall:
    if call.kind == "custom":
        return ChatCompletionMessageCustomToolCall(id=id_, custom=Custom(call.name, call.arguments))
    return ChatCompletionMessageFunctionToolCall(id=id_, function=Function(call.name, call.arguments))


def _logprobs(turn: Turn) -> ChoiceLogprobs | None:
    """Those of all pieces, as one object."""
    if not turn.logprobs:
        return None
    return ChoiceLogprobs(content=[token for piece in turn.logprobs for token in piece.get("content") or ()])


class ChatChunks:
    """Writes the events of one turn as chunks, each a whole server-sent event.

    The chunks of a stream differ in a text each. So one of each kind is encoded with holes for the text, and what
    stands around the holes is kept.
    """

    def __init__(
        self,
        *,
        id_: str,
        created: int,
        model: str,
        call_id: Callable[[], str],
        include_usage: bool = False,
        legacy: bool = False,
        reasoning: ReasoningField = "both",
    ) -> None:
        self._blank = ChatCompletionChunk(id=id_, created=created, model=model, choices=[_LATER])
        self._blank.usage = None if include_usage else UNSET
        self._around_choice = data(encode(self._blank)).split(_HOLE)
        self._around_arguments: dict[int, list[bytes]] = {}  # by the index of the call
        self._call_id = call_id
        self._legacy = legacy
        self._reasoning = _REASONING_NAMES[reasoning]
        self._begun = False

    def heartbeat(self) -> bytes:
        """A chunk without news; before any other it says who speaks."""
        return self._chunk(ChoiceDelta()) if self._begun else self._begin(None)

    def event(self, event: Event) -> bytes:
        """The chunk for an event, behind one that says who speaks where it is the first; empty where clients are not
        told.
        """
        chunk = self._written(event)
        if self._begun or not chunk:
            return chunk
        return self._begin("" if isinstance(event, ContentDelta) else None) + chunk

    def _begin(self, content: str | None) -> bytes:
        self._begun = True
        return self._chunk(ChoiceDelta(role="assistant", content=content, refusal=None))

    def _written(self, event: Event) -> bytes:
        match event:
            case ArgumentsDelta(index, text):
                around = self._around_arguments.get(index)
                return encode(text).join(around) if around and text else b""
            case ContentDelta(text, None):
                return encode(text).join(self._around_content)
            case ContentDelta(text, logprobs):
                before, between, behind = self._around_logprobs
                return before + encode(text) + between + encode(logprobs) + behind
            case ReasoningDelta(text):
                return encode(text).join(self._around_reasoning) if self._reasoning else b""
            case CallStarted():
                return self._started(event)
            case Finished(reason):
                is_legacy = self._legacy and reason == "tool_calls"
                return self._chunk(ChoiceDelta(), finish_reason="function_call" if is_legacy else reason)
            case CallEnded() | Markup() | Problem():
                return b""
            case _:
                assert_never(event)

    def usage(self, usage: Usage | None) -> bytes:
        """The chunk with the token counts; empty where they are not wanted or not known."""
        if usage is None or self._blank.usage is UNSET:
            return b""
        return data(encode(msgspec.structs.replace(self._blank, choices=[], usage=completion_usage(usage))))

    @cached_property
    def _around_content(self) -> list[bytes]:
        return self._around(ChoiceDelta(content=_LATER))

    @cached_property
    def _around_logprobs(self) -> list[bytes]:
        return self._around(ChoiceDelta(content=_LATER), logprobs=_LATER)

    @cached_property
    def _around_reasoning(self) -> list[bytes]:
        return self._around(ChoiceDelta(**dict.fromkeys(self._reasoning, _LATER)))

    def _chunk(self, delta: ChoiceDelta, **rest: Any) -> bytes:
        return encode(ChunkChoice(delta=delta, **rest)).join(self._around_choice)

    def _around(self, delta: ChoiceDelta, **rest: Any) -> list[bytes]:
        """What stands around the holes of a chunk."""
        return self._chunk(delta, **rest).split(_HOLE)

    def _started(self, call: CallStarted) -> bytes:
        begun, goes_on = _delta_calls(call, call.id or self._call_id())
        if not self._legacy:
            self._around_arguments[call.index] = self._around(ChoiceDelta(tool_calls=[goes_on]))
            return self._chunk(ChoiceDelta(tool_calls=[begun]))
        if call.index:
            return b""
        self._around_arguments[0] = self._around(ChoiceDelta(function_call=goes_on.function))
        return self._chunk(ChoiceDelta(function_call=begun.function))


def _delta_calls(call: CallStarted, id_: str) -> tuple[ChoiceDeltaToolCall, ChoiceDeltaToolCall]:
    """How a call begins in a stream, and how it goes on."""
    begun = ChoiceDeltaToolCall(index=call.index, id=id_, type=call.kind)
    goes_on = ChoiceDeltaToolCall(index=call.index)
    if call.kind == "custom":
        begun.custom, goes_on.custom = DeltaCustom(name=call.name, input=""), DeltaCustom(input=_LATER)
    else:
        begun.function, goes_on.function = DeltaFunction(name=call.name, arguments=""), DeltaFunction(arguments=_LATER)
    return begun, goes_on
