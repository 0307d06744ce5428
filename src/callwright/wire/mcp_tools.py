"""MCP servers among the `tools` of a request, in Chat Completions and in the Responses API.

Nothing here contacts a server: its tools are passed as `McpServer`. Source of the shape: OpenAI's type `Mcp` of
the Responses API.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from callwright.errors import RequestError
from callwright.memo.prefixes import once
from callwright.openai_format.errors import missing, type_error
from callwright.openai_format.mcp_tools import AskedServer

# The fields read of such a tool.
MCP_FIELDS: Final = frozenset(
    {"type", "server_label", "server_url", "server_description", "connector_id", "tunnel_id", "allowed_tools"}
    | {"require_approval", "defer_loading", "headers", "authorization", "allowed_callers"}
)

_LABEL: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_SUPPORTED: Final = {"tools[].require_approval": ("always", "never")}
_REDACTED: Final = "<redacted>"


def read_mcp_tools(tools: Sequence[Mapping[str, Any]]) -> list[AskedServer]:
    """The MCP servers among the tools of a request. Raises `RequestError`."""
    return once(tools, "mcp servers", lambda: _read_all(tools))


def _read_all(tools: Sequence[Mapping[str, Any]]) -> list[AskedServer]:
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
    read = {name: value for name, value in given.items() if name in MCP_FIELDS}
    try:
        asked = msgspec.convert({**read, "param": param}, AskedServer)
    except msgspec.ValidationError as error:
        raise type_error(error, param, given, _SUPPORTED) from error
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
    """A tool as a response shows it: without its credentials."""
    shown = {"allowed_tools": None, "require_approval": "always", **tool}
    shown.pop("authorization", None)
    if isinstance(shown.get("headers"), Mapping):
        shown["headers"] = dict.fromkeys(shown["headers"], _REDACTED)
    return shown
