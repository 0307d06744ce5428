"""What the gateway itself does in a turn, beside the model's events: calls of MCP tools, tool search, compaction.

The events know no API: each writes them in its own shapes. One closed union, `ServerEvent`.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import TypeAlias

from msgspec import Struct

from callwright.conversation import JsonObject
from callwright.events import Event, Usage
from callwright.openai_format.mcp_tools import McpTool

__all__ = [
    "Compacted",
    "McpApprovalAsked",
    "McpEnded",
    "McpListed",
    "McpStarted",
    "ServerEvent",
    "ToolsSearched",
    "TurnEvent",
    "TurnEvents",
]


class McpListed(Struct, frozen=True):
    """The tools of an MCP server that the model may know."""

    server_label: str
    tools: tuple[McpTool, ...]


class McpApprovalAsked(Struct, frozen=True):
    """A call of an MCP tool waits for a person's word. It is not run in this turn."""

    name: str  # as the model knows it
    arguments: str


class McpStarted(Struct, frozen=True):
    """A call of an MCP tool begins; its arguments follow as those of any call. `id` is that of its item."""

    index: int
    id: str
    name: str  # as the model knows it
    approval_request_id: str | None = None


class McpEnded(Struct, frozen=True):
    """A call of an MCP tool was answered, or has failed."""

    output: str | None
    error: JsonObject | None = None


class ToolsSearched(Struct, frozen=True):
    """The model has searched for tools, and these were found, best first."""

    query: str
    names: tuple[str, ...]  # as the model knows them
    tools: tuple[JsonObject, ...]  # as the client gave them


class Compacted(Struct, frozen=True):
    """The model has written a summary that stands for the conversation from now on."""

    summary: str


ServerEvent: TypeAlias = McpListed | McpApprovalAsked | McpStarted | McpEnded | ToolsSearched | Compacted
TurnEvent: TypeAlias = Event | ServerEvent | Usage
TurnEvents: TypeAlias = AsyncGenerator[Sequence[TurnEvent], None]  # in batches of what arrived together
