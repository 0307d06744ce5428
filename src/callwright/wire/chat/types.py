"""The objects of the Chat Completions API: the fields read of a request, and those of answers and chunks.

Answers encode in the order of their fields; names are those of OpenAI's library.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from callwright.conversation import JsonObject
from callwright.openai_format.message_types import ChatMessage

ChatFinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "function_call", "content_filter"]


# --- requests ---


class StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class ChatRequestBody(msgspec.Struct):
    model: str
    messages: list[ChatMessage]
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    response_format: dict[str, Any] | None = None
    functions: list[dict[str, Any]] | None = None
    function_call: str | dict[str, Any] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, msgspec.Meta(ge=1)] | None = None
    modalities: list[str] | None = None
    web_search_options: dict[str, Any] | None = None
    # Validated here, forwarded unchanged.
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    stop: str | Annotated[list[str], msgspec.Meta(max_length=4)] | None = None
    seed: int | None = None
    frequency_penalty: Annotated[float, msgspec.Meta(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, msgspec.Meta(ge=-2, le=2)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    logit_bias: dict[str, Annotated[float, msgspec.Meta(ge=-100, le=100)]] | None = None
    prediction: dict[str, Any] | None = None
    audio: dict[str, Any] | None = None
    store: bool | None = None
    metadata: dict[str, Any] | None = None
    service_tier: str | None = None
    user: str | None = None
    safety_identifier: Annotated[str, msgspec.Meta(max_length=128)] | None = None
    prompt_cache_key: Annotated[str, msgspec.Meta(max_length=64)] | None = None


# --- answers ---


class PromptTokensDetails(msgspec.Struct):
    cached_tokens: int


class CompletionTokensDetails(msgspec.Struct):
    reasoning_tokens: int


class CompletionUsage(msgspec.Struct, kw_only=True):
    """Token counts. `cost` is in the currency of the gateway's prices."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails
    cost: float | UnsetType = UNSET


class Function(msgspec.Struct):
    name: str
    arguments: str


class Custom(msgspec.Struct):
    name: str
    input: str


class ChatCompletionMessageToolCall(msgspec.Struct, kw_only=True):
    """A call; `type` is its kind."""

    id: str
    type: str  # no tag: tags are written first


class ChatCompletionMessageFunctionToolCall(ChatCompletionMessageToolCall, kw_only=True):
    type: Literal["function"] = "function"
    function: Function


class ChatCompletionMessageCustomToolCall(ChatCompletionMessageToolCall, kw_only=True):
    type: Literal["custom"] = "custom"
    custom: Custom


class ChatCompletionMessage(msgspec.Struct, kw_only=True):
    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: str | None = None
    annotations: Sequence[JsonObject] | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    tool_calls: list[ChatCompletionMessageToolCall] | UnsetType = UNSET
    function_call: Function | UnsetType = UNSET


class ChoiceLogprobs(msgspec.Struct, kw_only=True):
    """One object for each token of the content and of the refusal, as the model's server wrote it."""

    content: list[dict[str, Any]] | None
    refusal: list[dict[str, Any]] | None = None


class Choice(msgspec.Struct, kw_only=True):
    index: int = 0
    message: ChatCompletionMessage
    logprobs: ChoiceLogprobs | None = None
    finish_reason: ChatFinishReason


class ChatCompletion(msgspec.Struct, kw_only=True):
    """The answer to a chat request that is not streamed."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: CompletionUsage | UnsetType = UNSET
    service_tier: str | UnsetType = UNSET
    system_fingerprint: str | UnsetType = UNSET


# --- streams ---


class DeltaFunction(msgspec.Struct, kw_only=True):
    name: str | UnsetType = UNSET
    arguments: str


class DeltaCustom(msgspec.Struct, kw_only=True):
    name: str | UnsetType = UNSET
    input: str


class ChoiceDeltaToolCall(msgspec.Struct, kw_only=True):
    """A delta of the call with this index; only the first one has `id`, `type` and `name`."""

    index: int
    id: str | UnsetType = UNSET
    type: Literal["function", "custom"] | UnsetType = UNSET
    function: DeltaFunction | UnsetType = UNSET
    custom: DeltaCustom | UnsetType = UNSET


class ChoiceDelta(msgspec.Struct, kw_only=True):
    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType | None = UNSET
    refusal: str | UnsetType | None = UNSET
    annotations: Sequence[JsonObject] | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    tool_calls: list[ChoiceDeltaToolCall] | UnsetType = UNSET
    function_call: DeltaFunction | UnsetType = UNSET


class ChunkChoice(msgspec.Struct, kw_only=True):
    """`logprobs` are those of the model's server, unchanged."""

    index: int = 0
    delta: ChoiceDelta
    logprobs: dict[str, Any] | None = None
    finish_reason: ChatFinishReason | None = None


class ChatCompletionChunk(msgspec.Struct, kw_only=True):
    """A piece of an answer that is streamed. Where token counts are wanted, the last one has them and no choices."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    service_tier: str | UnsetType = UNSET
    system_fingerprint: str | UnsetType = UNSET
    choices: list[ChunkChoice]
    usage: CompletionUsage | UnsetType | None = UNSET
