"""Any OpenAI-compatible chat endpoint: `POST {url}/chat/completions`.

Reads what servers really send: reasoning under two names, refusals and annotations, tool calls without an index, whole
calls in one chunk, arguments as objects, the old `function_call`, an answer that is not streamed, and an error of the
server's own parser in place of a call. A server is not sent what it does not support.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from callwright.constraints.compile import Compiled
from callwright.constraints.constraint import Constraint
from callwright.constraints.structural_tag import json_format
from callwright.conversation import NamedTool
from callwright.errors import UpstreamError
from callwright.events import AnnotationsDelta, AnswerMetadata, FinishReason, RefusalDelta, Usage
from callwright.tolerant_json.codec import encode
from callwright.upstreams.base import (
    Delta,
    Deltas,
    FinishDelta,
    GenerationRequest,
    ReasoningTextDelta,
    Server,
    TextDelta,
    ToolCallDelta,
    UnparsedCallDelta,
)
from callwright.upstreams.constrained import ConstrainedUpstream, ConstraintEncoding, sglang_tag, vllm_tag
from callwright.upstreams.http import Timeouts

__all__ = ["AnswerFields", "ChatUpstream", "CountedTokens", "SaidOnce", "streaming"]

_REASONS: Mapping[str, FinishReason] = {"length": "length", "content_filter": "content_filter"}
# The dialect whose calls are plain JSON. A JSON Schema can enforce only such calls, so servers that take nothing else
# get one for every dialect: each parses plain JSON where a call is required.
_JSON: Final = "json"
# Servers whose `tool_choice` must be a string. For an object llama.cpp assumes `auto`, LM Studio answers 400.
_CHOICE_IS_A_WORD: Final = ("llamacpp", "lmstudio")
# Errors of a server's tool parser: Ollama's quotes the arguments, llama.cpp's up to 2026 the rest of the text, a later
# llama.cpp's nothing.
_UNREAD: Final = (
    re.compile(r"error parsing tool call: raw='(?P<text>.*)', err=", re.DOTALL),
    re.compile(r"Failed to parse input at pos \d+(?:: (?P<text>.*))?", re.DOTALL),
    re.compile(r"output that does not match the expected \S+ format(?P<text>)"),
)


class ChatUpstream(ConstrainedUpstream):
    """A chat endpoint, for the modes native and prompt. `server` says which server's deviations apply."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        *,
        server: Server = "openai",
    ) -> None:
        self._server: Server = server
        super().__init__(url, headers, timeouts)

    def _spellings(self, constraint: Constraint) -> Sequence[ConstraintEncoding]:
        if self._server == "openai":
            return ()
        if self._server not in _OWN_FORMAT:
            return (_BY_SCHEMA,)
        if constraint.dialect != _JSON:
            return (_OWN_FORMAT[self._server],)
        return (_BY_TAGGED_SCHEMA[self._server], _BY_SCHEMA)

    async def _deltas(self, generation: GenerationRequest, constraining: Mapping[str, Any]) -> Deltas:
        body: dict[str, Any] = {
            **generation.fields,
            "model": generation.model,
            "messages": generation.messages,
            **streaming(generation),
            **_offered(generation, self._server),
            **constraining,
        }
        reader = _Choices()
        try:
            async with aclosing(self.events("/chat/completions", body, reader, generation.headers)) as batches:
                async for deltas in batches:
                    reader.has_begun = True
                    yield deltas
        except UpstreamError as error:
            if not _is_unread(error.said):
                raise
            if not (generation.streamed or reader.has_begun):  # as a stream the text before the call is kept
                async with aclosing(self._deltas(replace(generation, streamed=True), constraining)) as late:
                    async for later in late:
                        yield later
                return
            unread = _unread(error.said, said=reader.has_said)
            if unread is None:
                raise
            yield [unread, FinishDelta("stop")]


def streaming(generation: GenerationRequest) -> dict[str, Any]:
    """The request fields that turn streaming on or off."""
    return {"stream": True, "stream_options": {"include_usage": True}} if generation.streamed else {"stream": False}


def _offered(generation: GenerationRequest, server: Server) -> dict[str, Any]:
    """The fields `tools` and `tool_choice`. A server that ignores a choice is sent only the tools that it allows."""
    if not generation.tools:
        return {}
    tools, choice = generation.tools, generation.tool_choice
    conversation = generation.conversation
    wanted = conversation.allowed_tools
    if isinstance(conversation.tool_choice, NamedTool):
        by_word = server in _CHOICE_IS_A_WORD
        wanted, choice = ((conversation.tool_choice.name,), "required") if by_word else (None, choice)
    if server == "ollama":  # it ignores tool_choice
        wanted, choice = () if choice == "none" else wanted, None
    if wanted is not None and server != "openai":
        tools = [tool for tool in tools if tool["function"]["name"] in wanted]
    offered: dict[str, Any] = {"tools": tools} if tools else {}
    return offered | {"tool_choice": choice} if tools and choice is not None else offered


def _is_unread(words: str) -> bool:
    """Whether a server's error says that its own parser could not read a call."""
    return any(pattern.search(words) for pattern in _UNREAD)


def _unread(words: str, *, said: bool) -> UnparsedCallDelta | None:
    """What such an error quotes of the call; None if there is nothing to read. `said`: the text has come before the
    error.
    """
    for pattern in _UNREAD:
        if found := pattern.search(words):
            text = "" if said and pattern is not _UNREAD[0] else found["text"] or ""
            return UnparsedCallDelta(text, words.partition(":")[0]) if text or said else None
    return None


def _schema(found: Compiled) -> dict[str, Any]:
    schema = {"name": "calls", "schema": msgspec.Raw(found.text.encode()), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _tagged(found: Compiled) -> Compiled:
    """A schema as a tag, in which its white space can be bounded."""
    tag = {"type": "structural_tag", "format": json_format(msgspec.Raw(found.text.encode()))}
    return Compiled(encode(tag).decode())


def _shown_vllm_tag(found: Compiled) -> dict[str, Any]:
    """The tag, and the markers of calls in the text: in some vocabularies they are special tokens, which vLLM leaves
    out.
    """
    return {**vllm_tag(found), "skip_special_tokens": False, "spaces_between_special_tokens": False}


def _shown_sglang_tag(found: Compiled) -> dict[str, Any]:
    return {**sglang_tag(found), "skip_special_tokens": False}


_BY_SCHEMA: Final = ConstraintEncoding("json", _schema)
_BY_TAGGED_SCHEMA: Final[Mapping[Server, ConstraintEncoding]] = {
    "vllm": ConstraintEncoding("json", lambda found: vllm_tag(_tagged(found))),
    "sglang": ConstraintEncoding("json", lambda found: sglang_tag(_tagged(found))),
}
# Servers that can enforce the dialect's own format in a chat answer. llama.cpp's grammars could, too; but markers of
# calls that are control tokens are missing from its chat answers.
_OWN_FORMAT: Final[Mapping[Server, ConstraintEncoding]] = {
    "vllm": ConstraintEncoding("xgrammar", _shown_vllm_tag),
    "sglang": ConstraintEncoding("xgrammar", _shown_sglang_tag),
}


class _Function(Struct):
    name: str | None = None
    arguments: Any = None


_NO_FUNCTION: Final = _Function()


class _Call(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Part(Struct):
    text: str | None = None
    refusal: str | None = None


class _Delta(Struct):
    content: str | list[_Part] | None = None
    refusal: Any = None
    annotations: Any = None
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
    """`usage` of an answer, with the fields that servers send."""

    class Prompt(Struct):
        cached_tokens: int | None = None

    class Completion(Struct):
        reasoning_tokens: int | None = None

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: Prompt | None = None
    completion_tokens_details: Completion | None = None

    def usage(self) -> Usage:
        """The token counts; a missing one is 0."""
        return Usage(
            prompt_tokens=self.prompt_tokens or 0,
            completion_tokens=self.completion_tokens or 0,
            cached_tokens=(self.prompt_tokens_details and self.prompt_tokens_details.cached_tokens) or 0,
            reasoning_tokens=(self.completion_tokens_details and self.completion_tokens_details.reasoning_tokens) or 0,
        )


class AnswerFields(Struct, kw_only=True):
    """What an answer, and each chunk of one, says of itself. A server may send anything there: only texts are read."""

    system_fingerprint: Any = None
    service_tier: Any = None


class SaidOnce:
    """Passes on what the chunks of an answer say of it where it is new: they repeat it."""

    def __init__(self) -> None:
        self.said: tuple[object, object] = (None, None)

    def read(self, event: AnswerFields, deltas: list[Delta]) -> None:
        """Append a delta where the chunk says something new."""
        said = (event.system_fingerprint, event.service_tier)
        if said != self.said:
            self.said = said
            deltas.append(AnswerMetadata(*(value if isinstance(value, str) else None for value in said)))


class _Chunk(AnswerFields, kw_only=True):
    choices: list[_Choice] | None = None
    usage: CountedTokens | None = None


class _Choices:
    """Reads the chunks of one answer. It numbers the calls itself: the indexes of servers are not reliable."""

    kind = _Chunk

    def __init__(self) -> None:
        self._calls = 0
        self._number: dict[int, int] = {}  # by the server's index
        self._ids: dict[int, str] = {}
        self._of_answer = SaidOnce()
        self.has_begun = False
        self.has_said = False
        self.has_stopped = False

    def read(self, event: _Chunk, deltas: list[Delta]) -> None:
        """Append the deltas of a chunk, or of a whole answer that was not streamed."""
        if (event.system_fingerprint, event.service_tier) != self._of_answer.said:
            self._of_answer.read(event, deltas)
        for choice in event.choices or ():
            if delta := choice.delta or choice.message:
                self._read_message(delta, choice.logprobs, deltas)
            elif choice.logprobs:
                deltas.append(TextDelta("", choice.logprobs))
            if choice.finish_reason:
                self.has_stopped = True
                deltas.append(FinishDelta(_REASONS.get(choice.finish_reason, "stop")))
        if event.usage:
            deltas.append(event.usage.usage())

    def _read_message(self, delta: _Delta, logprobs: dict[str, Any] | None, out: list[Delta]) -> None:
        if reasoning := delta.reasoning_content or delta.reasoning:
            out.append(ReasoningTextDelta(reasoning))
        content = delta.content
        if delta.refusal or delta.annotations or isinstance(content, list):
            self._read_parts(delta, logprobs, out)
        elif content or logprobs:
            self.has_said = self.has_said or bool(content)
            out.append(TextDelta(content or "", logprobs))
        if delta.tool_calls:
            out += map(self._call, delta.tool_calls)
        if delta.function_call:
            out.append(self._call(_Call(0, None, delta.function_call)))

    def _read_parts(self, delta: _Delta, logprobs: dict[str, Any] | None, out: list[Delta]) -> None:
        """Content with a refusal, with annotations, or in parts."""
        parts = delta.content if isinstance(delta.content, list) else [_Part(delta.content)]
        text = "".join(part.text or "" for part in parts)
        refusal = delta.refusal if isinstance(delta.refusal, str) else ""
        refusal = refusal or "".join(part.refusal or "" for part in parts)
        if text or (logprobs and not refusal):
            self.has_said = self.has_said or bool(text)
            out.append(TextDelta(text, logprobs))
        if refusal:
            out.append(RefusalDelta(refusal, None if text else logprobs))
        found = delta.annotations if isinstance(delta.annotations, list) else []
        if annotations := tuple(one for one in found if isinstance(one, dict)):
            out.append(AnnotationsDelta(annotations))

    def _call(self, call: _Call) -> ToolCallDelta:
        function = call.function or _NO_FUNCTION
        arguments = function.arguments
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
        return ToolCallDelta(self._which(call, function), call.id, function.name, arguments)

    def _which(self, call: _Call, function: _Function) -> int:
        """The number of the call that a delta belongs to.

        Another id than the open call's begins a new call, whatever the index says: some servers give every call index
        0. With neither index nor id, a name begins one.
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
