"""Chat Completions answers: one JSON object, or chunks as OpenAI's API sends them.

Reasoning has no official place there; it goes out under the two names that clients look for.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias, assert_never

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
from callwright.wire.sse import data

__all__ = ["ChatChunks", "ReasoningField", "completion", "usage_body"]

ReasoningField: TypeAlias = Literal["both", "reasoning_content", "reasoning", "none"]
_REASONING_NAMES: dict[str, tuple[str, ...]] = {
    "both": ("reasoning_content", "reasoning"),
    "reasoning_content": ("reasoning_content",),
    "reasoning": ("reasoning",),
    "none": (),
}
_CUT: Final = ("length", "content_filter")
_ARGUMENTS = b'"function":{"arguments":'
_INPUT = b'"custom":{"input":'


def usage_body(usage: Usage) -> dict[str, Any]:
    """Token counts as the API writes them."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


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
) -> dict[str, Any]:
    """The whole answer. `call_id` makes ids for calls without one; `legacy`: the client knows `function_call` only.

    A call that the limit has cut is there as far as it was written, as in OpenAI's answers and in a stream.
    """
    message: dict[str, Any] = {"role": "assistant", "content": turn.content, "refusal": None}
    if turn.reasoning is not None:
        message |= dict.fromkeys(_REASONING_NAMES[reasoning], turn.reasoning)
    calls = [call for call in turn.calls if call.complete or turn.finish_reason in _CUT]
    reason: str = turn.finish_reason
    if calls and legacy:
        message["function_call"] = {"name": calls[0].name, "arguments": calls[0].arguments}
        reason = "function_call" if reason == "tool_calls" else reason
    elif calls:
        message["tool_calls"] = [call.as_openai(call.id or call_id()) for call in calls]
    answer: dict[str, Any] = {
        "id": id_,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": _logprobs(turn), "finish_reason": reason}],
    }
    if usage is not None:
        answer["usage"] = usage_body(usage)
    return answer


def _logprobs(turn: Turn) -> dict[str, Any] | None:
    """Those of all pieces, as one object."""
    if not turn.logprobs:
        return None
    content = [token for piece in turn.logprobs for token in piece.get("content") or ()]
    return {"content": content, "refusal": None}


class ChatChunks:
    """Writes the events of one turn as chunks, each a whole server-sent event."""

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
        head = encode({"id": id_, "object": "chat.completion.chunk", "created": created, "model": model})
        usage = b',"usage":null' if include_usage else b""
        # A chunk is this, its delta, and one of the tails.
        self._head = b"data: " + head[:-1] + b',"choices":[{"index":0,"delta":'
        self._tail = b',"logprobs":null,"finish_reason":null}]' + usage + b"}\n\n"
        self._last = b"}]" + usage + b"}\n\n"
        self._usage = head[:-1] + b',"choices":[],"usage":' if include_usage else b""
        self._call_id = call_id
        self._legacy = legacy
        self._reasoning = _REASONING_NAMES[reasoning]
        self._custom: set[int] = set()  # the indexes of calls of custom tools
        self._begun = False

    def heartbeat(self) -> bytes:
        """A chunk without news; before any other it says who speaks."""
        return self._chunk({}) if self._begun else self._begin(None)

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
        return self._chunk({"role": "assistant", "content": content, "refusal": None})

    def _written(self, event: Event) -> bytes:
        match event:
            case ArgumentsDelta(index, text):
                return self._arguments(index, text) if text else b""
            case ContentDelta(text, None):
                return b'%b{"content":%b}%b' % (self._head, encode(text), self._tail)
            case ContentDelta(text, logprobs):
                told = b',"logprobs":' + encode(logprobs) + self._tail.removeprefix(b',"logprobs":null')
                return self._head + encode({"content": text}) + told
            case ReasoningDelta(text):
                return self._chunk(dict.fromkeys(self._reasoning, text)) if self._reasoning else b""
            case CallStarted():
                return self._started(event)
            case Finished(reason):
                name = "function_call" if self._legacy and reason == "tool_calls" else reason
                return self._head + b'{},"logprobs":null,"finish_reason":' + encode(name) + self._last
            case CallEnded() | Markup() | Problem():
                return b""
            case _:
                assert_never(event)

    def usage(self, usage: Usage | None) -> bytes:
        """The chunk with the token counts; empty where they are not wanted or not known."""
        return data(self._usage + encode(usage_body(usage)) + b"}") if usage is not None and self._usage else b""

    def _chunk(self, delta: dict[str, Any]) -> bytes:
        return self._head + encode(delta) + self._tail

    def _arguments(self, index: int, text: str) -> bytes:
        if self._legacy:
            return self._chunk({"function_call": {"arguments": text}}) if index == 0 else b""
        field = _INPUT if index in self._custom else _ARGUMENTS
        return b'%b{"tool_calls":[{"index":%d,%b%b}}]}%b' % (self._head, index, field, encode(text), self._tail)

    def _started(self, call: CallStarted) -> bytes:
        begun = Call(call.name, "", kind=call.kind).as_openai(call.id or self._call_id())
        if self._legacy:
            return self._chunk({"function_call": begun["function"]}) if call.index == 0 else b""
        if call.kind == "custom":
            self._custom.add(call.index)
        return self._chunk({"tool_calls": [{"index": call.index, **begun}]})
