"""Chat Completions answers: one JSON object, or chunks as OpenAI's API sends them.

Reasoning has no official place there; it is sent under the two names that clients look for.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, assert_never

import msgspec
from msgspec import UNSET

from callwright.conversation import Call
from callwright.events import (
    AnnotationsDelta,
    AnswerMetadata,
    ArgumentsDelta,
    CallEnded,
    CallKind,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    Markup,
    Problem,
    ReasoningDelta,
    RefusalDelta,
    Usage,
)
from callwright.reading.collect import Turn
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

_CUT: Final = ("length", "content_filter")


def completion_usage(usage: Usage, cost: int | None = None) -> CompletionUsage:
    """Token counts as the API writes them. `cost` is in millionths of the currency."""
    return CompletionUsage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens,
        prompt_tokens_details=PromptTokensDetails(usage.cached_tokens),
        completion_tokens_details=CompletionTokensDetails(usage.reasoning_tokens),
        cost=UNSET if cost is None else cost / 1_000_000,
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
    others: Sequence[Turn] = (),
    cost: int | None = None,
) -> ChatCompletion:
    """The whole answer, with the `others` if several were requested. `call_id` creates ids for calls without
    one; `legacy`: the client knows `function_call` only. `cost` is in millionths of the currency.

    A call truncated by the limit is included as far as it was written, as in OpenAI's answers and in a stream.
    """
    how: dict[str, Any] = {"call_id": call_id, "legacy": legacy}
    return ChatCompletion(
        id=id_,
        created=created,
        model=model,
        choices=[_chosen(one, index, **how) for index, one in enumerate((turn, *others))],
        usage=UNSET if usage is None else completion_usage(usage, cost),
        service_tier=turn.metadata.service_tier or UNSET,
        system_fingerprint=turn.metadata.system_fingerprint or UNSET,
    )


def _chosen(turn: Turn, index: int, *, call_id: Callable[[], str], legacy: bool) -> Choice:
    """One choice of an answer."""
    message = ChatCompletionMessage(content=turn.content, refusal=turn.refusal, annotations=turn.annotations or UNSET)
    if turn.reasoning is not None:
        message.reasoning_content = message.reasoning = turn.reasoning
    calls = [call for call in turn.calls if call.complete or turn.finish_reason in _CUT]
    reason: ChatFinishReason = turn.finish_reason
    if calls and legacy:
        message.function_call = Function(calls[0].name, calls[0].arguments)
        reason = "function_call" if reason == "tool_calls" else reason
    elif calls:
        message.tool_calls = [_tool_call(call, call.id or call_id()) for call in calls]
    return Choice(
        index=index, message=message, logprobs=_logprobs(turn) if turn.logprobs else None, finish_reason=reason
    )


def _tool_call(call: Call, id_: str) -> ChatCompletionMessageToolCall:
    if call.kind == "custom":
        return ChatCompletionMessageCustomToolCall(id=id_, custom=Custom(call.name, call.arguments))
    return ChatCompletionMessageFunctionToolCall(id=id_, function=Function(call.name, call.arguments))


def _logprobs(turn: Turn) -> ChoiceLogprobs:
    """Those of all pieces, as one object."""
    content, refusal = (
        [token for piece in turn.logprobs for token in piece.get(part) or ()] for part in ("content", "refusal")
    )
    return ChoiceLogprobs(content=None if refusal and not content else content, refusal=refusal or None)


# --- chunks ---

# The chunks of a stream differ in a few values each. So a choice of each kind is encoded once, with places for these:
# for the text of a delta a byte that JSON never contains, at which it is split, and for other values one for `%`.
_SPLIT: Final = b"\0"
_TEXT: Final[Any] = msgspec.Raw(_SPLIT)
_VALUE: Final[Any] = msgspec.Raw(b"%b")


# The start of a choice: its index.
_INDEX: Final = b'{"index":%d,'


def _choice(delta: ChoiceDelta, **rest: Any) -> bytes:
    return encode(ChunkChoice(delta=delta, **rest)).removeprefix(_INDEX % 0)


def _call(**fields: Any) -> bytes:
    return _choice(ChoiceDelta(tool_calls=[ChoiceDeltaToolCall(index=_VALUE, **fields)]))


_NO_NEWS: Final = _choice(ChoiceDelta())
_ROLE: Final = _choice(ChoiceDelta(role="assistant", content=_VALUE, refusal=None))
_CONTENT: Final = _choice(ChoiceDelta(content=_TEXT))
_REFUSAL: Final = _choice(ChoiceDelta(refusal=_VALUE), logprobs=_VALUE)
_ANNOTATIONS: Final = _choice(ChoiceDelta(annotations=_VALUE))
_CONTENT_AND_LOGPROBS: Final = _choice(ChoiceDelta(content=_VALUE), logprobs=_VALUE)
# Some clients read the one field and some the other.
_REASONING: Final = _choice(ChoiceDelta(reasoning_content=_TEXT, reasoning=_TEXT))
# The first piece of a call has its index, id and name; later ones its index and more of its text.
_CALL_BEGINS: Final[dict[CallKind, bytes]] = {
    "function": _call(id=_VALUE, type="function", function=DeltaFunction(name=_VALUE, arguments="")),
    "custom": _call(id=_VALUE, type="custom", custom=DeltaCustom(name=_VALUE, input="")),
}
_CALL_GOES_ON: Final[dict[CallKind, bytes]] = {
    "function": _call(function=DeltaFunction(arguments=_TEXT)),
    "custom": _call(custom=DeltaCustom(input=_TEXT)),
}
_LEGACY_CALL_BEGINS: Final = _choice(ChoiceDelta(function_call=DeltaFunction(name=_VALUE, arguments="")))
_LEGACY_CALL_GOES_ON: Final = _choice(ChoiceDelta(function_call=DeltaFunction(arguments=_TEXT)))
_FINISH: Final = _choice(ChoiceDelta(), finish_reason=_VALUE)


class ChatChunks:
    """Writes the events of one turn as chunks, each a whole server-sent event. `choice`: which of several turns.

    `counted` and `problems` are the token counts and problems received so far.
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
        choice: int = 0,
    ) -> None:
        self._index = _INDEX % choice
        self._empty = ChatCompletionChunk(
            id=id_, created=created, model=model, choices=[_TEXT], usage=None if include_usage else UNSET
        )
        self._call_choices: dict[int, bytes] = {}  # template of the next piece of each call, by its index
        self._arguments: dict[int, list[bytes]] = {}  # the same, around the places of the text
        self._lay_out()
        self.counted: Usage | None = None
        self.problems: list[Problem] = []
        self._call_id = call_id
        self._legacy = legacy
        self._begun = False

    def _lay_out(self) -> None:
        """Encode the fields that all chunks share, and the frequent chunks around their texts."""
        head, self._tail = data(encode(self._empty)).split(_SPLIT)
        self._head = head + self._index
        self._content = self._around(_CONTENT)
        self._reasoning = self._around(_REASONING)
        for index, choice in self._call_choices.items():
            self._arguments[index] = self._around(choice)

    def heartbeat(self) -> bytes:
        """A keep-alive chunk; the first chunk of a stream has the role."""
        return self._chunk(_NO_NEWS) if self._begun else self._begin(None)

    def write(self, batch: Sequence[Event | Usage]) -> list[bytes]:
        """The chunks for the events of a batch. Token counts and problems are stored: they are sent at the end."""
        written: list[bytes] = []
        for event in batch:
            if type(event) is Usage:
                self.counted = event
            elif type(event) is Problem:
                self.problems.append(event)
            else:
                written.append(self.event(event))
        return written

    def event(self, event: Event) -> bytes:
        """The chunk for an event, after one with the role if it is the first; empty for events not sent to clients."""
        if not self._begun:
            return self._first(event)
        match event:
            case ArgumentsDelta(index, text):
                around = self._arguments.get(index)
                return encode(text).join(around) if around and text else b""
            case ContentDelta(text, None):
                return encode(text).join(self._content)
            case ContentDelta(text, logprobs):
                return self._chunk(_CONTENT_AND_LOGPROBS % (encode(text), encode(logprobs)))
            case ReasoningDelta(text):
                return encode(text).join(self._reasoning)
            case RefusalDelta(text, logprobs):
                return self._chunk(_REFUSAL % (encode(text), encode(logprobs)))
            case AnnotationsDelta(annotations):
                return self._chunk(_ANNOTATIONS % encode(annotations))
            case AnswerMetadata():
                said = {"service_tier": event.service_tier, "system_fingerprint": event.system_fingerprint}
                said = {name: value for name, value in said.items() if value}
                self._empty = msgspec.structs.replace(self._empty, **said)
                self._lay_out()
                return b""
            case CallStarted():
                return self._started(event)
            case Finished(reason):
                is_legacy = self._legacy and reason == "tool_calls"
                return self._chunk(_FINISH % encode("function_call" if is_legacy else reason))
            case CallEnded() | Markup() | Problem():
                return b""
            case _:
                assert_never(event)

    def _first(self, event: Event) -> bytes:
        """The first chunk that is not empty, after one with the role."""
        self._begun = True
        chunk = self.event(event)
        self._begun = bool(chunk)
        return self._begin("" if isinstance(event, ContentDelta) else None) + chunk if chunk else b""

    def _begin(self, content: str | None) -> bytes:
        self._begun = True
        return self._chunk(_ROLE % encode(content))

    def usage(self, usage: Usage | None, cost: int | None = None) -> bytes:
        """The chunk with the token counts; empty if they are not requested or not known. `cost` is in millionths."""
        if usage is None or self._empty.usage is UNSET:
            return b""
        return data(encode(msgspec.structs.replace(self._empty, choices=[], usage=completion_usage(usage, cost))))

    def _started(self, call: CallStarted) -> bytes:
        id_ = call.id or self._call_id()
        if not self._legacy:
            index = b"%d" % call.index
            self._goes_on(call.index, _CALL_GOES_ON[call.kind] % index)
            return self._chunk(_CALL_BEGINS[call.kind] % (index, encode(id_), encode(call.name)))
        if call.index:
            return b""
        self._goes_on(0, _LEGACY_CALL_GOES_ON)
        return self._chunk(_LEGACY_CALL_BEGINS % encode(call.name))

    def _goes_on(self, index: int, choice: bytes) -> None:
        self._call_choices[index] = choice
        self._arguments[index] = self._around(choice)

    def _chunk(self, choice: bytes) -> bytes:
        return self._head + choice + self._tail

    def _around(self, choice: bytes) -> list[bytes]:
        """The pieces of a chunk around its places for text."""
        return (self._head + choice + self._tail).split(_SPLIT)
