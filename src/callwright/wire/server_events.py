"""Events of the gateway's own steps in a turn: calls of MCP tools, searches, compaction.

The events are independent of the API, which writes them in its own format. One closed union, `ServerEvent`.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Literal, TypeAlias, final

from msgspec import Struct

from callwright.calls.citations import Cited
from callwright.calls.web_search import SearchResult
from callwright.conversation import JsonObject
from callwright.events import Event, Usage
from callwright.openai_format.mcp_tools import McpTool


@final
class McpListed(Struct, frozen=True):
    """The tools of an MCP server that the model may know."""

    server_label: str
    tools: tuple[McpTool, ...]


@final
class McpApprovalAsked(Struct, frozen=True):
    """A call of an MCP tool waits for a person's word. It is not run in this turn."""

    name: str  # as the model knows it
    arguments: str


@final
class McpStarted(Struct, frozen=True):
    """A call of an MCP tool begins; its arguments follow as those of any call. `id` is that of its item."""

    index: int
    id: str
    name: str  # as the model knows it
    approval_request_id: str | None = None


@final
class McpEnded(Struct, frozen=True):
    """A call of an MCP tool was answered, or has failed."""

    output: str | None
    error: JsonObject | None = None


@final
class ToolsSearched(Struct, frozen=True):
    """The model has searched for tools, and these were found, best first."""

    query: str
    names: tuple[str, ...]  # as the model knows them
    tools: tuple[JsonObject, ...]  # as the client gave them


# Why a search of the web has failed, in Anthropic's words.
SearchFault: TypeAlias = Literal[
    "invalid_tool_input", "max_uses_exceeded", "query_too_long", "too_many_requests", "unavailable"
]


@final
class WebSearchStarted(Struct, frozen=True):
    """A search of the web begins; `id` is that of its item."""

    id: str
    query: str


@final
class WebSearchEnded(Struct, frozen=True):
    """The results of the latest search, or why it failed. `words` is the text for the model."""

    results: tuple[SearchResult, ...]
    words: str
    fault: SearchFault | None = None


@final
class Compacted(Struct, frozen=True):
    """The model has written a summary that replaces the conversation from now on.

    `goes_on`: the summary is part of a turn and the answer follows; it replaces all that the model has answered so far.
    """

    summary: str
    goes_on: bool = False


ServerEvent: TypeAlias = (
    McpListed
    | McpApprovalAsked
    | McpStarted
    | McpEnded
    | ToolsSearched
    | WebSearchStarted
    | WebSearchEnded
    | Cited
    | Compacted
)
TurnEvent: TypeAlias = Event | ServerEvent | Usage
TurnEvents: TypeAlias = AsyncGenerator[Sequence[TurnEvent], None]  # in batches of what arrived together
