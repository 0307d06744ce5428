"""MCP tools of the Responses API: what a request says of a server, and the shapes of its items.

Nothing here contacts a server: which tools it has comes in as `McpServer`. Source of the shapes: OpenAI's types of the
Responses API (`Mcp`, `McpCall`, `McpListTools`, `McpToolCallError`).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from callwright.conversation import JsonObject
from callwright.errors import RequestError
from callwright.openai_format.errors import missing, type_error
from callwright.openai_format.mcp_tools import AskedServer
from callwright.tolerant_json.codec import encode

__all__ = [
    "NOT_OFFERED",
    "McpEnded",
    "McpStarted",
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
        raise type_error(error, param, _SUPPORTED) from error
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
