"""MCP servers among the tools of a request: their settings in the request, and their tools."""

from typing import Literal

from msgspec import Struct

from callwright.conversation import FunctionTool, JsonObject
from callwright.errors import RequestError
from callwright.schema.strict import MAX_LEVELS, levels


class McpToolFilter(Struct, frozen=True):
    """Some tools of a server: those with these names, those declared read-only (or not), or both."""

    tool_names: list[str] | None = None
    read_only: bool | None = None

    def fits(self, tool: "McpTool") -> bool:
        """Whether a tool is one of them. An empty filter matches none."""
        if self.tool_names is None and self.read_only is None:
            return False
        named = self.tool_names is None or tool.name in self.tool_names
        return named and self.read_only in (None, tool.only_reads)


class McpApproval(Struct, frozen=True):
    always: McpToolFilter | None = None
    never: McpToolFilter | None = None


class AskedServer(Struct, frozen=True):
    """A server as a request names it. `param` is its path in the request, `label_field` and `url_field` are what its
    API calls the two, for errors.
    """

    server_label: str
    server_url: str | None = None
    server_description: str | None = None
    connector_id: str | None = None
    tunnel_id: str | None = None
    headers: dict[str, str] | None = None
    authorization: str | None = None
    allowed_tools: list[str] | McpToolFilter | None = None
    require_approval: Literal["always", "never"] | McpApproval | None = None
    defer_loading: bool | None = None
    param: str = ""
    denied_tools: tuple[str, ...] = ()
    label_field: str = "server_label"
    url_field: str = "server_url"

    def allows(self, tool: "McpTool") -> bool:
        """Whether the request lets the model see a tool."""
        if tool.name in self.denied_tools:
            return False
        wanted = self.allowed_tools
        if wanted is None:
            return True
        return wanted.fits(tool) if isinstance(wanted, McpToolFilter) else tool.name in wanted

    def wants_approval(self, tool: "McpTool") -> bool:
        """Whether a person must approve calls of a tool: without a word about it, they must."""
        wanted = self.require_approval
        if not isinstance(wanted, McpApproval):
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
        """Whether the server marks the tool as read-only."""
        return bool(self.annotations and self.annotations.get("readOnlyHint"))


class McpServer(Struct, frozen=True):
    """A server that a request offers, with the tools that the model may know."""

    asked: AskedServer
    tools: tuple[McpTool, ...]

    def definition(self, tool: McpTool) -> FunctionTool:
        """The definition of a tool for the model. Raises `RequestError` for a schema that is too deeply nested."""
        if levels(tool.input_schema) > MAX_LEVELS:
            raise RequestError(
                f"The tool '{tool.name}' of the MCP server '{self.asked.server_label}' has a schema of more than "
                f"{MAX_LEVELS} levels: leave it out of 'allowed_tools'.",
                param=f"{self.asked.param}.allowed_tools",
                code="invalid_value",
            )
        return FunctionTool(tool.name, tool.description, {"type": "object", **tool.input_schema})
