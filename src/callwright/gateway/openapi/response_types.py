"""The types of the gateway's JSON answers, by OpenAI's names. They are told in its OpenAPI document and build nothing:
answers are written by `wire.chat_answer`, `wire.response_answer` and the endpoints, and tests hold the two together.
"""

from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from callwright.wire.responses.item_types import Effort

__all__ = [
    "Compaction",
    "Completion",
    "Conversation",
    "Deleted",
    "ErrorAnswer",
    "Health",
    "InputTokens",
    "Item",
    "ItemList",
    "ModelAnswer",
    "ModelList",
    "ResponseAnswer",
]

Object: TypeAlias = dict[str, Any]


class _Error(Struct, kw_only=True):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorAnswer(Struct, kw_only=True):
    """What was wrong: `message` for people, the rest for programs. `param` is the path of the field in the request."""

    error: _Error


# --- chat ---


class _Function(Struct, kw_only=True):
    name: str
    arguments: str


class _Custom(Struct, kw_only=True):
    name: str
    input: str


class _FunctionCall(Struct, kw_only=True, tag_field="type", tag="function"):
    id: str
    function: _Function


class _CustomCall(Struct, kw_only=True, tag_field="type", tag="custom"):
    id: str
    custom: _Custom


class _Message(Struct, kw_only=True):
    role: Literal["assistant"]
    content: str | None
    refusal: None
    reasoning_content: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    tool_calls: list[_FunctionCall | _CustomCall] | UnsetType = UNSET
    function_call: _Function | UnsetType = UNSET


class _LogProbabilities(Struct, kw_only=True):
    content: list[Object]
    refusal: None


class _Choice(Struct, kw_only=True):
    index: int
    message: _Message
    logprobs: _LogProbabilities | None
    finish_reason: Literal["stop", "length", "tool_calls", "function_call", "content_filter"]


class _CachedTokens(Struct, kw_only=True):
    cached_tokens: int


class _ReasoningTokens(Struct, kw_only=True):
    reasoning_tokens: int


class _CompletionUsage(Struct, kw_only=True):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: _CachedTokens
    completion_tokens_details: _ReasoningTokens


class Completion(Struct, kw_only=True):
    """The answer to a chat request that is not streamed."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[_Choice]
    usage: _CompletionUsage | UnsetType = UNSET


# --- responses ---


class Item(Struct, kw_only=True):
    """An item of a conversation. What else it has depends on its type."""

    type: str
    id: str | UnsetType = UNSET


class _Failure(Struct, kw_only=True):
    code: str
    message: str


class _Incomplete(Struct, kw_only=True):
    reason: Literal["max_output_tokens", "content_filter"]


class _Text(Struct, kw_only=True):
    format: Object
    verbosity: Literal["low", "medium", "high"] | UnsetType = UNSET


class _Reasoning(Struct, kw_only=True):
    effort: Effort | None
    summary: Literal["auto", "concise", "detailed", "none"] | None


class _WrittenTokens(_CachedTokens, kw_only=True):
    cache_write_tokens: int


class _ResponseUsage(Struct, kw_only=True):
    input_tokens: int
    input_tokens_details: _WrittenTokens
    output_tokens: int
    output_tokens_details: _ReasoningTokens
    total_tokens: int


class _Id(Struct, kw_only=True):
    id: str


class ResponseAnswer(Struct, kw_only=True):
    """A response: what was asked, with the defaults of what was not said, and what came of it."""

    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
    error: _Failure | None
    incomplete_details: _Incomplete | None
    model: str
    output: list[Item]
    previous_response_id: str | None
    instructions: str | None
    tools: list[Object]
    tool_choice: str | Object
    parallel_tool_calls: bool
    text: _Text
    reasoning: _Reasoning
    temperature: float
    top_p: float
    top_logprobs: int
    presence_penalty: float
    frequency_penalty: float
    max_output_tokens: int | None
    max_tool_calls: int | None
    truncation: Literal["auto", "disabled"]
    store: bool
    background: bool
    service_tier: str
    metadata: dict[str, str]
    safety_identifier: str | None
    prompt_cache_key: str | None
    user: str | None
    usage: _ResponseUsage | None
    conversation: _Id | UnsetType = UNSET


class InputTokens(Struct, kw_only=True):
    """About how many tokens a request has."""

    object: Literal["response.input_tokens"]
    input_tokens: int


class Compaction(Struct, kw_only=True):
    """A conversation made short."""

    id: str
    object: Literal["response.compaction"]
    created_at: int
    output: list[Item]
    usage: _ResponseUsage


class Conversation(Struct, kw_only=True):
    """A conversation, without its items."""

    id: str
    object: Literal["conversation"]
    created_at: int
    metadata: dict[str, str]


class ItemList(Struct, kw_only=True):
    """A page of items."""

    object: Literal["list"]
    data: list[Item]
    first_id: str | None
    last_id: str | None
    has_more: bool


class Deleted(Struct, kw_only=True):
    """What is not there any more."""

    id: str
    object: Literal["response", "conversation.deleted"]
    deleted: bool


# --- the gateway ---


class ModelAnswer(Struct, kw_only=True):
    """A model that can be asked."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(Struct, kw_only=True):
    """The models that can be asked."""

    object: Literal["list"]
    data: list[ModelAnswer]


class Health(Struct, kw_only=True):
    """Whether requests are taken."""

    status: Literal["ok", "draining"]
    version: str
