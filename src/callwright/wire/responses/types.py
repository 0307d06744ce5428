"""The objects of the Responses and the Conversations API that are answered, by OpenAI's names.

They encode in the order of their fields. Objects repeated unchanged, such as tools of the request and stored items, are
dicts.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypeAlias, TypedDict

from msgspec import UNSET, Struct, UnsetType

from callwright.conversation import JsonObject
from callwright.wire.responses.item_types import Effort
from callwright.wire.responses.output_types import OutputItem

ResponseStatus: TypeAlias = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]


class InputTokensDetails(Struct, kw_only=True):
    cached_tokens: int
    cache_write_tokens: int = 0


class OutputTokensDetails(Struct):
    reasoning_tokens: int


class ResponseUsage(Struct, kw_only=True):
    """Token counts. `cost` is in the currency of the gateway's prices."""

    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int
    cost: float | UnsetType = UNSET


class ResponseError(Struct):
    """Why a response has failed."""

    code: str
    message: str


class ResponseIncompleteDetails(Struct):
    """Why a response is incomplete."""

    reason: Literal["max_output_tokens", "content_filter"]


class ResponseTextConfig(Struct, kw_only=True):
    """Settings for the text."""

    format: JsonObject
    verbosity: Literal["low", "medium", "high"] | UnsetType = UNSET


class ResponseReasoning(Struct, kw_only=True):
    """Settings for the reasoning."""

    effort: Effort | None
    summary: Literal["auto", "concise", "detailed", "none"] | None


class ResponseConversation(Struct):
    """The conversation that a response belongs to."""

    id: str


class Response(Struct, kw_only=True):
    """A response: the settings of the request, with defaults for those not set, and the output."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    completed_at: int | None = None
    status: ResponseStatus = "in_progress"
    error: ResponseError | None = None
    incomplete_details: ResponseIncompleteDetails | None = None
    model: str
    output: list[OutputItem] = []
    previous_response_id: str | None
    instructions: str | None
    tools: Sequence[JsonObject]
    tool_choice: str | JsonObject
    parallel_tool_calls: bool
    text: ResponseTextConfig
    reasoning: ResponseReasoning
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
    service_tier: str = "default"
    metadata: Mapping[str, str]
    safety_identifier: str | None
    prompt_cache_key: str | None
    user: str | None
    usage: ResponseUsage | None = None
    conversation: ResponseConversation | UnsetType = UNSET


class InputTokens(Struct, kw_only=True):
    """The approximate number of tokens of a request."""

    object: Literal["response.input_tokens"] = "response.input_tokens"
    input_tokens: int


# --- stored items ---


class Item(TypedDict):
    """An item of a conversation, as received or stored. Its other fields depend on its type."""

    type: str
    id: NotRequired[str]


class CompactedResponse(Struct, kw_only=True):
    """A compacted conversation."""

    id: str
    object: Literal["response.compaction"] = "response.compaction"
    created_at: int
    output: list[Item]
    usage: ResponseUsage


class ItemList(Struct, kw_only=True):
    """A page of items."""

    object: Literal["list"] = "list"
    data: list[Item]
    first_id: str | None
    last_id: str | None
    has_more: bool


class Conversation(Struct, kw_only=True):
    """A conversation, without its items."""

    id: str
    object: Literal["conversation"] = "conversation"
    created_at: int
    metadata: Mapping[str, str]


class DeletedObject(Struct, kw_only=True):
    """A confirmation that an object was deleted."""

    id: str
    object: Literal["response", "conversation.deleted"]
    deleted: bool = True
