"""MCP tools of the Responses API: what a request says of a server, and the shapes of its items.

Nothing here contacts a server: which tools it has comes in as `McpServer`. Source of the shapes: OpenAI's types of the
Responses API (`Mcp`, `McpCall`, `McpListTools`, `McpToolCallError`).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from callwright.conversation import FunctionTool, JsonObject
from callwright.errors import RequestError
from callwright.schema.strict import MAX_LEVELS, levels
from callwright.tolerant_json.codec import encode
from callwright.wire.errors import missing, typed

__all__ = [
    "NOT_OFFERED",
    "AskedServer",
    "McpEnded",
    "McpServer",
    "McpStarted",
    "McpTool",
    "McpToolFilter",
    "call_words",
    "read_mcp_tools",
    "rejected_words",
    "shown_mcp",
    "tool_failure",
    "wrong_call",
]

NOT_OFFERED: Final = "This call was not run: the request does not offer its server any more."
_REJECTED: Final = "The user did not approve this call; it was not run."
_LABEL: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_SUPPORTED: Final = {"tools[].require_approval": ("always", "never")}
_INVALID_PARAMS: Final = -32602  # of JSON-RPC
_REDACTED: Final = "<redacted>"


class McpToolFilter(Struct, frozen=True):
    """Some tools of a server: those of these names, those that say that they only read (or do not), or both."""

    tool_names: list[str] | None = None
    read_only: bool | None = None

    def fits(self, tool: "McpTool") -> bool:
        """Whether a tool is one of them. A filter that says nothing fits none."""
        if self.tool_names is None and self.read_only is None:
            return False
        named = self.tool_names is None or tool.name in self.tool_names
        return named and self.read_only in (None, tool.only_reads)


class _Approval(Struct, frozen=True):
    always: McpToolFilter | None = None
    never: McpToolFilter | None = None


class AskedServer(Struct, frozen=True):
    """A server as a request names it. `param` is the path at which it stood."""

    server_label: str
    server_url: str | None = None
    server_description: str | None = None
    connector_id: str | None = None
    tunnel_id: str | None = None
    headers: dict[str, str] | None = None
    authorization: str | None = None
    allowed_tools: list[str] | McpToolFilter | None = None
    require_approval: Literal["always", "never"] | _Approval | None = None
    defer_loading: bool | None = None
    param: str = ""

    def allows(self, tool: "McpTool") -> bool:
        """Whether the request lets the model see a tool."""
        wanted = self.allowed_tools
        if wanted is None:
            return True
        return wanted.fits(tool) if isinstance(wanted, McpToolFilter) else tool.name in wanted

    def wants_approval(self, tool: "McpTool") -> bool:
        """Whether a person must approve calls of a tool: without a word about it, they must."""
        wanted = self.require_approval
        if not isinstance(wanted, _Approval):
            return wanted != "never"
        if wanted.always is not None and wanted.always.fits(tool):
            return True
        return not wanted.never.fits(tool) if wanted.never is not None else wanted.always is None


class McpTool(Struct, frozen=True):
    """A tool as its server lists it."""

    name: str
    description: str | None
    input_schema: JsonObject
    annotations: JsonObject | None = None

    @property
    def only_reads(self) -> bool:
        """Whether the server says so."""
        return bool(self.annotations and self.annotations.get("readOnlyHint"))


class McpServer(Struct, frozen=True):
    """A server that a request offers, with the tools that the model may know."""

    asked: AskedServer
    tools: tuple[McpTool, ...]

    def listed(self) -> dict[str, Any]:
        """The item that lists them, without its id."""
        return {
            "type": "mcp_list_tools",
            "server_label": self.asked.server_label,
            "tools": [msgspec.to_builtins(tool) for tool in self.tools],
            "error": None,
        }

    def definition(self, tool: McpTool) -> FunctionTool:
        """What a model is told of a tool. Raises `RequestError` for a schema that nobody could read."""
        if levels(tool.input_schema) > MAX_LEVELS:
            raise RequestError(
                f"The tool '{tool.name}' of the MCP server '{self.asked.server_label}' has a schema of more than "
                f"{MAX_LEVELS} levels: leave it out of 'allowed_tools'.",
                param=f"{self.asked.param}.allowed_tools",
                code="invalid_value",
            )
        return FunctionTool(tool.name, tool.description, {"type": "object", **tool.input_schema})


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


# --- requests ---


def read_mcp_tools(tools: Sequence[Mapping[str, Any]]) -> list[AskedServer]:
    """The MCP servers among the tools of a request. Raises `RequestError`."""
    found: list[AskedServer] = []
    for number, tool in enumerate(tools):
        if tool.get("type") == "mcp":
            found.append(_read(tool, f"tools[{number}]"))
            if found[-1].server_label in (other.server_label for other in found[:-1]):
                raise RequestError(
                    f"Invalid 'tools[{number}].server_label': two MCP servers are called "
                    f"'{found[-1].server_label}'. Expected a label of its own for each.",
                    param=f"tools[{number}].server_label",
                    code="invalid_value",
                )
    return found


def _read(given: Mapping[str, Any], param: str) -> AskedServer:
    if given.get("server_label") is None:
        raise missing(f"{param}.server_label")
    try:
        asked = msgspec.convert({**given, "param": param}, AskedServer)
    except msgspec.ValidationError as error:
        raise typed(error, param, _SUPPORTED) from error
    if not _LABEL.fullmatch(asked.server_label):
        raise RequestError(
            f"Invalid '{param}.server_label': string does not match pattern. Expected a string that matches the "
            "pattern '^[a-zA-Z][a-zA-Z0-9_-]{0,63}$'.",
            param=f"{param}.server_label",
            code="invalid_value",
        )
    for field in ("connector_id", "tunnel_id"):
        if getattr(asked, field) is not None:
            raise RequestError(
                f"Unsupported parameter: '{param}.{field}': connectors and tunnels are OpenAI's own. Name a server of "
                "this gateway's configuration with 'server_url' or 'server_label'.",
                param=f"{param}.{field}",
                code="unsupported_parameter",
            )
    return asked


def shown_mcp(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as a response shows it: without the keys that came with it."""
    shown = {"allowed_tools": None, "require_approval": "always", **tool}
    shown.pop("authorization", None)
    if isinstance(shown.get("headers"), Mapping):
        shown["headers"] = dict.fromkeys(shown["headers"], _REDACTED)
    return shown


# --- outcomes ---


_Error: TypeAlias = dict[str, Any]


def tool_failure(words: str) -> _Error:
    """The error of a call that its tool or its server failed."""
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": words}]}


def wrong_call(words: str) -> _Error:
    """The error of a call that was not run."""
    return {"type": "mcp_protocol_error", "code": _INVALID_PARAMS, "message": words}


def call_words(output: str | None, error: Any) -> str:
    """What the model reads of a call, from the fields of its item."""
    if error is None:
        return output or ""
    if isinstance(error, Mapping):
        content = error.get("content")
        texts = [str(part.get("text")) for part in content or () if isinstance(part, Mapping) and part.get("text")]
        error = error.get("message") or "\n".join(texts) or encode(error).decode()
    return f"Error: {error if isinstance(error, str) else encode(error).decode()}"


def rejected_words(reason: str | None) -> str:
    """What the model reads of a call that a person did not approve."""
    return f"{_REJECTED} {reason}" if reason else _REJECTED
