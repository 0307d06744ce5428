"""Any OpenAI-compatible chat endpoint: `POST {url}/chat/completions`.

Reads what servers really send: reasoning under two names, tool calls without an index, whole calls in one chunk,
arguments as objects, the old `function_call`, an answer that is not streamed at all.
"""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from msgspec import Struct

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

__all__ = ["ChatUpstream", "CountedTokens"]

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
        async with aclosing(self.events("/chat/completions", body, _Chunk)) as events:
            async for event in events:
                for delta in reader.read(event):
                    stopped = stopped or isinstance(delta, Stopped)
                    yield delta
        if not stopped:
            raise self.cut()


class _Function(Struct):
    name: str | None = None
    arguments: Any = None


class _Call(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _TextPart(Struct):
    text: str = ""


class _Delta(Struct):
    content: str | list[_TextPart] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None


class _Choice(Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None


class CountedTokens(Struct):
    """`usage` of an answer, as far as servers send it."""

    class Prompt(Struct):
        cached_tokens: int | None = None

    class Completion(Struct):
        reasoning_tokens: int | None = None

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: Prompt | None = None
    completion_tokens_details: Completion | None = None

    def usage(self) -> Usage:
        """The counts; what is missing is 0."""
        return Usage(
            prompt_tokens=self.prompt_tokens or 0,
            completion_tokens=self.completion_tokens or 0,
            cached_tokens=(self.prompt_tokens_details and self.prompt_tokens_details.cached_tokens) or 0,
            reasoning_tokens=(self.completion_tokens_details and self.completion_tokens_details.reasoning_tokens) or 0,
        )


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    usage: CountedTokens | None = None


class _Choices:
    """Reads the chunks of one answer. It numbers the calls itself: servers count them in ways of their own."""

    def __init__(self) -> None:
        self._calls = 0
        self._number: dict[int, int] = {}  # by the server's index
        self._ids: dict[int, str] = {}

    def read(self, chunk: _Chunk) -> Iterator[Delta]:
        for choice in chunk.choices or ():
            delta = choice.delta or choice.message or _Delta()
            if reasoning := delta.reasoning_content or delta.reasoning:
                yield ReasoningText(reasoning)
            content = delta.content
            text = "".join(part.text for part in content) if isinstance(content, list) else content
            if text or choice.logprobs:
                yield TextDelta(text or "", choice.logprobs)
            for call in delta.tool_calls or ():
                yield self._call(call)
            if delta.function_call:
                yield self._call(_Call(0, None, delta.function_call))
            if choice.finish_reason:
                yield Stopped(_REASONS.get(choice.finish_reason, "stop"))
        if chunk.usage:
            yield chunk.usage.usage()

    def _call(self, call: _Call) -> ToolCallDelta:
        function = call.function or _Function()
        arguments = function.arguments
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
        return ToolCallDelta(self._which(call, function), call.id, function.name, arguments)

    def _which(self, call: _Call, function: _Function) -> int:
        """The number of the call that a piece belongs to.

        An id that is not the open call's begins another one, whatever the index says: some servers give all calls the
        index 0. Where there is neither index nor id, a name does.
        """
        index = call.index if call.index is not None else -1
        number = self._number.get(index)
        known = self._ids.get(number) if number is not None else None
        other = bool(call.id and known and call.id != known)
        if number is None or other or (index < 0 and not call.id and function.name):
            number = self._number[index] = self._calls
            self._calls += 1
        if call.id:
            self._ids[number] = call.id
        return number
