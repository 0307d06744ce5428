"""The objects of Anthropic's Messages API: those of requests and those of answers.

Source: the types of the `anthropic` package 2.14.0 and platform.claude.com/docs, November 2026.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from callwright.wire.server_events import SearchFault

StopReason: TypeAlias = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"]
Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]


# --- requests ---


class MessageParam(Struct):
    """A message of a request; its blocks are read one by one."""

    role: Literal["user", "assistant", "system"]
    content: str | list[dict[str, Any]]
    clear_at: str | None = None


class OutputConfig(Struct):
    """The effort, and the format of the text."""

    effort: Effort | None = None
    format: dict[str, Any] | None = None


class ThinkingConfig(Struct):
    """Whether the model thinks, and how this is shown to the client."""

    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    budget_tokens: int | None = None
    display: Literal["summarized", "omitted", "updates"] | None = None


class ContextManagement(Struct):
    """Edits that remove old parts of the conversation."""

    edits: list[dict[str, Any]] = []


class MessagesRequest(Struct):
    """A request as received, with validated field types. Fields not listed here are ignored."""

    model: str
    messages: list[MessageParam]
    max_tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    system: str | list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: dict[str, Any] | None = None
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    thinking: ThinkingConfig | None = None
    output_config: OutputConfig | None = None
    output_format: dict[str, Any] | None = None
    context_management: ContextManagement | None = None
    mcp_servers: list[dict[str, Any]] | None = None
    thread: Any = None
    compaction: Any = None
    metadata: Any = None


# --- answers ---


class DirectCaller(Struct, frozen=True, tag_field="type", tag="direct"):
    """The caller of a tool: the model itself, not a program that it wrote."""


class Citation(Struct, frozen=True, tag_field="type", tag="web_search_result_location"):
    """A result of a search that a text cites."""

    url: str
    title: str
    encrypted_index: str
    cited_text: str


class TextBlock(Struct, tag_field="type", tag="text"):
    """Text for the user."""

    text: str = ""
    citations: tuple[Citation, ...] = ()  # no null: the AI SDK refuses it


class ThinkingBlock(Struct, tag_field="type", tag="thinking"):
    """Reasoning. `signature` contains it, too: clients send it back unchanged, even if the text was omitted."""

    thinking: str = ""
    signature: str = ""


class ToolUseBlock(Struct, tag_field="type", tag="tool_use"):
    """A call of a tool of the client."""

    id: str
    name: str
    input: Mapping[str, Any] = {}
    caller: DirectCaller = DirectCaller()


class ServerToolUseBlock(Struct, tag_field="type", tag="server_tool_use"):
    """A call of a tool that the server runs itself."""

    id: str
    name: str
    input: Mapping[str, Any] = {}
    caller: DirectCaller = DirectCaller()


class ToolSearchResultBlock(Struct, tag_field="type", tag="tool_search_tool_result"):
    """The result of a tool search: `content` has references to the tools."""

    tool_use_id: str
    content: Mapping[str, Any]


class WebSearchResultBlock(Struct, frozen=True, tag_field="type", tag="web_search_result"):
    """A page found by a search. `encrypted_content` is the text that the model has read."""

    url: str
    title: str
    encrypted_content: str
    page_age: str | None = None


class WebSearchToolResultError(Struct, frozen=True, tag_field="type", tag="web_search_tool_result_error"):
    """Why a search has failed."""

    error_code: SearchFault


class WebSearchToolResultBlock(Struct, tag_field="type", tag="web_search_tool_result"):
    """The result of a web search."""

    tool_use_id: str
    content: tuple[WebSearchResultBlock, ...] | WebSearchToolResultError
    caller: DirectCaller = DirectCaller()


class McpToolUseBlock(Struct, tag_field="type", tag="mcp_tool_use"):
    """A call of a tool of an MCP server, which the gateway runs."""

    id: str
    name: str
    server_name: str
    input: Mapping[str, Any] = {}


class McpToolResultBlock(Struct, tag_field="type", tag="mcp_tool_result"):
    """The result of an MCP tool call."""

    tool_use_id: str
    is_error: bool
    content: list[TextBlock]


AnyBlock: TypeAlias = (
    TextBlock
    | ThinkingBlock
    | ToolUseBlock
    | ServerToolUseBlock
    | ToolSearchResultBlock
    | WebSearchToolResultBlock
    | McpToolUseBlock
    | McpToolResultBlock
)


class OutputTokensDetails(Struct):
    """The number of reasoning tokens of an answer."""

    thinking_tokens: int = 0


class ServerToolUsage(Struct):
    """The number of calls of server tools."""

    web_search_requests: int
    web_fetch_requests: int = 0


class MessagesUsage(Struct):
    """Token counts. `input_tokens` are those not in a cache; fields that are always None are Anthropic's own.
    `cost` is in the currency of the gateway's prices.
    """

    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation: None = None
    output_tokens_details: OutputTokensDetails | None = None
    server_tool_use: ServerToolUsage | None = None
    inference_geo: None = None
    service_tier: Literal["standard"] = "standard"
    cost: float | UnsetType = UNSET


class RefusalStopDetails(Struct, tag_field="type", tag="refusal"):
    """Why the model refused; local servers give no reason."""

    category: None = None
    explanation: None = None


class MessagesResponse(Struct, kw_only=True):
    """A whole answer."""

    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    model: str
    content: list[AnyBlock] = []
    stop_reason: StopReason | None = None
    stop_sequence: str | None = None
    stop_details: RefusalStopDetails | None = None
    container: None = None
    usage: MessagesUsage
    context_management: Mapping[str, Any] | UnsetType = UNSET


class TokenCount(Struct):
    """The approximate number of tokens of a request."""

    input_tokens: int
