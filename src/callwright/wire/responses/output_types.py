"""The items of a response, by OpenAI's names: the model's output, and calls that this server ran.

They are filled while they are written. Items from a client or from the store are read by the types of
`item_types`.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType, field

from callwright.conversation import JsonObject
from callwright.openai_format.mcp_tools import McpTool

ItemStatus: TypeAlias = Literal["in_progress", "completed", "incomplete", "failed"]


# --- parts ---


class ResponseOutputText(Struct, tag_field="type", tag="output_text", kw_only=True):
    """Text for the user. `logprobs`: one object for each token, as the model's server wrote it."""

    text: str
    annotations: list[JsonObject] = []
    logprobs: list[Any]


class ResponseOutputRefusal(Struct, tag_field="type", tag="refusal"):
    """Text with which the model refuses."""

    refusal: str


class ReasoningText(Struct, tag_field="type", tag="reasoning_text"):
    """Reasoning, as its own text."""

    text: str


class SummaryText(Struct, tag_field="type", tag="summary_text"):
    """A summary of reasoning."""

    text: str


# --- items ---


class OutputItem(Struct, kw_only=True):
    """An item of a response; `type` is its kind."""

    id: str = ""  # set when the item is written, for items of this server
    type: str  # no tag: tags are written first


class WrittenItem(OutputItem, kw_only=True):
    """An item that is streamed before it is complete."""

    status: ItemStatus = "in_progress"


class ResponseOutputMessage(WrittenItem, kw_only=True):
    """Text for the user. `phase`: whether calls follow it."""

    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    content: list[ResponseOutputText | ResponseOutputRefusal] = []
    phase: Literal["commentary", "final_answer"] | UnsetType = UNSET


class ResponseReasoningItem(WrittenItem, kw_only=True):
    """Reasoning as its own text, or as a summary. `encrypted_content` is the same text, for the client to send back."""

    type: Literal["reasoning"] = "reasoning"
    summary: list[SummaryText] = []
    content: list[ReasoningText] | UnsetType = UNSET
    encrypted_content: str | UnsetType = UNSET


class ResponseFunctionToolCall(WrittenItem, kw_only=True):
    """A call of a function, which the client runs."""

    type: Literal["function_call"] = "function_call"
    call_id: str
    name: str
    arguments: str = ""
    namespace: str | UnsetType = UNSET
    is_async: Literal[True] | UnsetType = field(default=UNSET, name="async")


class ResponseCustomToolCall(WrittenItem, kw_only=True):
    """A call of a custom tool, which the client runs."""

    type: Literal["custom_tool_call"] = "custom_tool_call"
    call_id: str
    name: str
    input: str = ""
    namespace: str | UnsetType = UNSET
    is_async: Literal[True] | UnsetType = field(default=UNSET, name="async")


class ResponseToolSearchCall(WrittenItem, kw_only=True):
    """A search for tools, which the client runs, or this server did."""

    type: Literal["tool_search_call"] = "tool_search_call"
    call_id: str | None
    arguments: JsonObject = {}
    execution: Literal["client", "server"] = "client"


class ResponseFunctionShellToolCall(WrittenItem, kw_only=True):
    """Commands that the client is to run."""

    type: Literal["shell_call"] = "shell_call"
    call_id: str
    action: JsonObject = {}
    environment: JsonObject | None = None


class ResponseLocalShellCall(WrittenItem, kw_only=True):
    """A command that the client is to run on its machine."""

    type: Literal["local_shell_call"] = "local_shell_call"
    call_id: str
    action: JsonObject = {}


class ResponseApplyPatchToolCall(WrittenItem, kw_only=True):
    """A change of a file that the client is to make."""

    type: Literal["apply_patch_call"] = "apply_patch_call"
    call_id: str
    operation: JsonObject = {}


class ResponseFunctionWebSearch(WrittenItem, kw_only=True):
    """A web search, which is run here. `encrypted_content`: its results, for the client to send back with the item."""

    type: Literal["web_search_call"] = "web_search_call"
    action: JsonObject
    encrypted_content: str | UnsetType = UNSET


class McpCall(WrittenItem, kw_only=True):
    """A call of an MCP tool, which is run here, with its result."""

    type: Literal["mcp_call"] = "mcp_call"
    server_label: str | None
    name: str
    arguments: str = ""
    approval_request_id: str | None = None
    output: str | None = None
    error: JsonObject | None = None


class ResponseToolSearchOutputItem(OutputItem, kw_only=True):
    """The tools that a search of this server has found, as the request had them."""

    type: Literal["tool_search_output"] = "tool_search_output"
    execution: Literal["server"] = "server"
    call_id: str | None = None
    status: Literal["completed"] = "completed"
    tools: Sequence[JsonObject]


class McpListTools(OutputItem, kw_only=True):
    """The tools of an MCP server."""

    type: Literal["mcp_list_tools"] = "mcp_list_tools"
    server_label: str
    tools: Sequence[McpTool]
    error: None = None


class McpApprovalRequest(OutputItem, kw_only=True):
    """A call of an MCP tool that needs an approval."""

    type: Literal["mcp_approval_request"] = "mcp_approval_request"
    server_label: str | None
    name: str
    arguments: str


class ResponseCompactionItem(OutputItem, kw_only=True):
    """A summary that replaces the conversation before it."""

    type: Literal["compaction"] = "compaction"
    encrypted_content: str
