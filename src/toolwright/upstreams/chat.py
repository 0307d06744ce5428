"""Any OpenAI-compatible chat endpoint: `POST {url}/chat/completions`.

Reads what servers really send: reasoning under two names, tool calls without an index, whole calls in one chunk,
arguments as objects, the old `function_call`, an answer that is not streamed at all.
"""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from toolwright.events import FinishReason, Usage
from toolwright.upstreams.base import (
    Delta,
    Generation,
    ReasoningText,
    Stopped,
    TextDelta,
    ToolCallDelta,
)
from toolwright.upstreams.http import HttpUpstream

__all__ = ["ChatUpstream", "read_usage"]

_REASONS: Mapping[str, FinishReason] = {"length": "length", "content_filter": "content_filter"}


class ChatUpstream(HttpUpstream):
    """A chat endpoint, for the modes native and prompt."""

    async def stream(self, generation: Generation) -> AsyncGenerator[Delta, None]:
        """See `Upstream`."""
        body: dict[str, Any] = {
            **generation.fields,
            "model": generation.model,
            "messages": generation.messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if generation.tools:
            body["tools"] = generation.tools
            if generation.tool_choice is not None:
                body["tool_choice"] = generation.tool_choice
        stopped = False
        reader = _Choices()
        async with aclosing(self.events("/chat/completions", body)) as events:
            async for event in events:
                for delta in reader.read(event):
                    stopped = stopped or isinstance(delta, Stopped)
                    yield delta
        if not stopped:
            raise self.cut()


class _Choices:
    """Reads the chunks of one answer."""

    def __init__(self) -> None:
        self._indexes: dict[str, int] = {}
        self._last = -1

    def read(self, event: Any) -> Iterator[Delta]:
        if not isinstance(event, dict):
            return
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or choice.get("message") or {}
            for field in ("reasoning_content", "reasoning"):
                if isinstance(text := delta.get(field), str) and text:
                    yield ReasoningText(text)
                    break
            if isinstance(text := delta.get("content"), str) and text:
                yield TextDelta(text)
            for call in delta.get("tool_calls") or ():
                yield self._call(call)
            if old := delta.get("function_call"):
                yield self._call({"index": 0, "function": old})
            if reason := choice.get("finish_reason"):
                yield Stopped(_REASONS.get(reason, "stop"))
        if usage := event.get("usage"):
            yield read_usage(usage)

    def _call(self, call: Mapping[str, Any]) -> ToolCallDelta:
        function = call.get("function") or {}
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
        return ToolCallDelta(
            index=self._index(call, function), id=call.get("id"), name=function.get("name"), arguments=arguments
        )

    def _index(self, call: Mapping[str, Any], function: Mapping[str, Any]) -> int:
        """The server's index; where it sends none, a new id or a name without an id begins the next call."""
        index = call.get("index")
        if not isinstance(index, int):
            id_ = call.get("id")
            if id_:
                index = self._indexes.setdefault(id_, self._last + 1)
            else:
                index = self._last + 1 if function.get("name") or self._last < 0 else self._last
        self._last = max(self._last, index)
        return index


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """Token counts of a chat or completion answer; what is missing is 0."""
    prompt = usage.get("prompt_tokens_details") or {}
    completion = usage.get("completion_tokens_details") or {}
    return Usage(
        prompt_tokens=usage.get("prompt_tokens") or 0,
        completion_tokens=usage.get("completion_tokens") or 0,
        cached_tokens=prompt.get("cached_tokens") or 0,
        reasoning_tokens=completion.get("reasoning_tokens") or 0,
    )
