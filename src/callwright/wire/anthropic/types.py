"""The shapes of Anthropic's Messages API: what a request may hold, and what an answer is made of.

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
    """How much is thought and said, and in which form the text is."""

    effort: Effort | None = None
    format: dict[str, Any] | None = None


class ThinkingConfig(Struct):
    """Whether the model thinks, and how the client is shown it."""

    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    budget_tokens: int | None = None
    display: Literal["summarized", "omitted", "updates"] | None = None


class ContextManagement(Struct):
    """What of an old conversation may be left out."""

    edits: list[dict[str, Any]] = []


class MessagesRequest(Struct):
    """A request as it came, its fields of the right types. What is not named here is passed over."""

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
    """Who called: the model itself, and no program that it wrote."""


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
    """Reasoning. `signature` holds it too, packed: it comes back unchanged, also where the text was left out."""

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
    """What a search for tools has found: `content` holds references to them."""

    tool_use_id: str
    content: Mapping[str, Any]


class WebSearchResultBlock(Struct, frozen=True, tag_field="type", tag="web_search_result"):
    """A page that a search has found. `encrypted_content` is what the model has read of it."""

    url: str
    title: str
    encrypted_content: str
    page_age: str | None = None


class WebSearchToolResultError(Struct, frozen=True, tag_field="type", tag="web_search_tool_result_error"):
    """Why a search has failed."""

    error_code: SearchFault


class WebSearchToolResultBlock(Struct, tag_field="type", tag="web_search_tool_result"):
    """What a search of the web has found."""

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
    """What an MCP server answered."""

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
    """How many of the tokens of an answer were reasoning."""

    thinking_tokens: int = 0


class ServerToolUsage(Struct):
    """How often tools of the server were run."""

    web_search_requests: int
    web_fetch_requests: int = 0


class MessagesUsage(Struct):
    """Token counts. `input_tokens` are those that no cache held; what is always None is Anthropic's own."""

    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation: None = None
    output_tokens_details: OutputTokensDetails | None = None
    server_tool_use: ServerToolUsage | None = None
    inference_geo: None = None
    service_tier: Literal["standard"] = "standard"


class RefusalStopDetails(Struct, tag_field="type", tag="refusal"):
    """Why the model refused; local servers do not say."""

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
    """About how many tokens a request has."""

    input_tokens: int
