"""The MCP servers that the configuration allows, connected on first use, as long as they are in it.

No request can make the gateway contact another server. All requests share one connection to a server; requests with
headers of their own share one with those that send the same headers.
"""

import asyncio
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from callwright.agent.agent import Limits
from callwright.agent.mcp.connection import Connection
from callwright.agent.mcp.targets import Command, Url
from callwright.agent.mcp.tools import mcp_command, needs_sdk, server_tool
from callwright.agent.tools import Tool, ToolOptions
from callwright.conversation import FunctionTool
from callwright.errors import ConfigError, RequestError, did_you_mean
from callwright.gateway.config.config import McpConfig
from callwright.gateway.config.urls import check_header, check_url
from callwright.openai_format.mcp_tools import AskedServer, McpServer, McpTool, McpToolFilter
from callwright.settings.bounds import Bounds
from callwright.upstreams.base_urls import without_credentials

log = logging.getLogger("callwright.gateway")

# The list of a server's tools is refreshed when it is this old.
_LISTED_EVERY_S: Final = 300.0
# Characters of a result that the model reads; longer results lose their middle, as in agents.
_RESULT_CHARS: Final = Limits().result_chars
# The number of cached connections of a server with clients' headers; the least recently used is evicted.
_MAX_OF_CLIENTS: Final = 64
# Headers that clients may not set: they belong to the connection or the protocol.
_NOT_OF_CLIENTS: Final = ("host", "content-length", "content-type", "transfer-encoding", "connection", "accept", "te")
# Called for each call: the server's label in the configuration, the outcome, the seconds it took.
Told: TypeAlias = Callable[[str, str, float], None]
_Headers: TypeAlias = tuple[tuple[str, str], ...]


class OpenServer(Struct, frozen=True):
    """A connected server of a request. `listed` are its tools by name, as the MCP SDK has them; `told` is called for
    each call.
    """

    server: McpServer
    connection: Connection
    config: McpConfig
    listed: Mapping[str, Any]
    told: Told

    def tool(self, name: str, definition: FunctionTool) -> Tool:
        """One of its tools, ready to run. `definition` is how the model knows it."""
        options = ToolOptions(timeout_s=self.config.timeout_s, result_chars=_RESULT_CHARS)
        return server_tool(self.connection, self.listed[name], definition, options, describe_media=True)


class _Kept:
    """A connection that requests share."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.connection: Connection | None = None
        self.listed_at = 0.0


class ConfiguredServer:
    """A server of the configuration, and its connections. Raises `ConfigError` for a wrong entry."""

    def __init__(self, config: McpConfig, bounds: Bounds) -> None:
        try:
            self.target = _target(config)
        except ConfigError as error:
            raise ConfigError(f"MCP server {config.label!r}: {error}") from error
        self.config = config
        self._bounds = bounds
        self._kept: OrderedDict[_Headers, _Kept] = OrderedDict()

    async def connect(self, given: Mapping[str, str]) -> Connection:
        """A connection with these headers of a client, and a recent list of tools. Raises `ConfigError`."""
        target, config, headers = self.target, self.config, tuple(sorted(given.items()))
        if given:
            assert isinstance(target, Url)
            target = msgspec.structs.replace(target, headers={**target.headers, **given})
        kept = self._kept.setdefault(headers, _Kept())
        self._kept.move_to_end(headers)
        async with kept.lock:
            if kept.connection is None:
                connection = Connection(target, config.connect_timeout_s, self._bounds)
                try:
                    await connection.open()
                except BaseException:
                    await connection.close()
                    raise
                kept.connection = connection
            elif kept.connection.is_stale or time.monotonic() - kept.listed_at > _LISTED_EVERY_S:
                await kept.connection.refresh()
            else:
                return kept.connection
            kept.listed_at = time.monotonic()
        await self._drop_some()
        return kept.connection

    async def close(self) -> None:
        """Close all connections, and the process that was started."""
        kept, self._kept = self._kept, OrderedDict()
        await asyncio.gather(*(one.connection.close() for one in kept.values() if one.connection is not None))

    async def _drop_some(self) -> None:
        """Close the least recently used connections with clients' headers, if there are too many."""
        of_clients = [headers for headers in self._kept if headers]
        for headers in of_clients[: max(0, len(of_clients) - _MAX_OF_CLIENTS)]:
            kept = self._kept[headers]
            if not kept.lock.locked() and (kept.connection is None or kept.connection.is_idle):
                del self._kept[headers]
                if kept.connection is not None:
                    await kept.connection.close()


# Returns the server of an entry: the one that exists already, or a new one from the function.
TakesServer: TypeAlias = Callable[[McpConfig, Callable[[], ConfiguredServer]], ConfiguredServer]


class McpServers:
    """The servers of a configuration. Raises `ConfigError` for a wrong entry."""

    def __init__(
        self,
        configs: Sequence[McpConfig],
        told: Told = lambda *_: None,
        bounds: Bounds | None = None,
        take: TakesServer = lambda _, build: build(),
    ) -> None:
        self._told = told
        self._servers: dict[str, ConfiguredServer] = {}
        if configs:
            needs_sdk()
        for config in configs:
            if config.label in self._servers:
                raise ConfigError(f"Two MCP servers are called {config.label!r}.")
            self._servers[config.label] = take(config, partial(ConfiguredServer, config, bounds or Bounds()))

    async def open(self, asked: Sequence[AskedServer], labels: Sequence[str] = ()) -> dict[str, OpenServer]:
        """The servers that a request offers, connected, by the labels it gives them; and the configured servers of its
        model, by their `labels` of the configuration. Raises `RequestError`.
        """
        if not (asked or labels):  # as nearly always
            return {}
        given = {one.server_label for one in asked}
        more = [AskedServer(one, require_approval="never", param="tools") for one in labels if one not in given]
        asked = [*asked, *more]
        return dict(
            zip(
                (one.server_label for one in asked),
                await asyncio.gather(*(self._open(one) for one in asked)),
                strict=True,
            )
        )

    async def _open(self, asked: AskedServer) -> OpenServer:
        found = self._find(asked)
        config = found.config
        try:
            connection = await found.connect(_headers(asked, config))
        except ConfigError as error:
            log.warning("%s", " ".join((str(error), *getattr(error, "__notes__", ()))))
            raise RequestError(
                f"Error retrieving tool list from MCP server: '{asked.server_label}'. {error}",
                param="tools",
                code="http_error",
                status=424,
                type_="external_connector_error",
            ) from error
        listed = {str(tool.name): tool for tool in connection.tools}
        tools = tuple(_tool(tool) for name, tool in listed.items() if config.tools is None or name in config.tools)
        server = McpServer(asked, tuple(filter(asked.allows, tools)))
        if not server.tools:
            raise RequestError(
                f"Invalid '{asked.param}.allowed_tools': none of the tools of the MCP server '{asked.server_label}' is "
                f"allowed. It has: {', '.join(tool.name for tool in tools) or 'none'}.{_tool_hint(asked, tools)}",
                param=f"{asked.param}.allowed_tools",
                code="invalid_value",
            )
        return OpenServer(server, connection, config, listed, self._told)

    def _find(self, asked: AskedServer) -> ConfiguredServer:
        """The configured server that a request means, by its URL, or without one by its label."""
        if asked.server_url is None:
            if asked.server_label in self._servers:
                return self._servers[asked.server_label]
            field, said, near = asked.label_field, asked.server_label, did_you_mean(asked.server_label, self._servers)
        else:
            for server in self._servers.values():
                url = server.target.url if isinstance(server.target, Url) else ""
                if url.rstrip("/") == asked.server_url.rstrip("/"):
                    return server
            field, said = asked.url_field, without_credentials(asked.server_url)
            near = ""  # addresses in the configuration are not revealed
        known = f"They are: {', '.join(self._servers)}." if self._servers else "There are none."
        raise RequestError(
            f"Unsupported value: '{asked.param}.{field}' does not support '{said}' here: this gateway contacts the MCP "
            f"servers of its configuration only.{near} {known} Add it there ([[mcp]] with a label and a url or "
            "command), or offer its tools as functions and run them in the client.",
            param=f"{asked.param}.{field}",
            code="unsupported_value",
        )


def _target(config: McpConfig) -> Command | Url:
    if (config.url is None) == (config.command is None):
        got = "neither" if config.url is None else "both: leave one of them out"
        raise ConfigError(f"expected either url = 'http://…' or command = '…', got {got}.")
    if config.command is not None:
        for field in ("headers", "api_key_env", "client_headers"):
            if getattr(config, field):
                raise ConfigError(f"{field} is for servers with a url; name a command's variables in env.")
        return mcp_command(config.command, {name: _variable(name) for name in config.env})
    assert config.url is not None
    if config.env:
        raise ConfigError("env is for servers with a command; a url has headers and api_key_env.")
    check_url(config.url, f"url {str(Url(config.url))!r}: expected one such as https://example.com/mcp")
    headers = {name.lower(): value for name, value in config.headers.items()}
    if config.api_key_env:
        if "authorization" in headers:
            raise ConfigError("its key is given more than once, by headers.authorization and api_key_env: leave one.")
        headers["authorization"] = f"Bearer {_variable(config.api_key_env)}"
    for name, value in headers.items():
        check_header(name, value, f"headers.{name}")
    return Url(config.url, headers)


def _tool_hint(asked: AskedServer, tools: Sequence[McpTool]) -> str:
    """A hint, "Did you mean …?", for the first tool name that a request allows."""
    allowed = asked.allowed_tools
    names = allowed.tool_names if isinstance(allowed, McpToolFilter) else allowed
    return did_you_mean(names[0], [tool.name for tool in tools]) if names else ""


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise ConfigError(f"the environment variable {name} is not set.")
    return value


def _headers(asked: AskedServer, config: McpConfig) -> dict[str, str]:
    """The headers that a request sends to a server. Raises `RequestError`."""
    given = {name.lower(): value for name, value in (asked.headers or {}).items()}
    field = "headers" if given else "authorization"
    if asked.authorization is not None:
        given["authorization"] = f"Bearer {asked.authorization.removeprefix('Bearer ')}"
    if given and not config.client_headers:
        raise RequestError(
            f"Unsupported parameter: '{asked.param}.{field}': this gateway gives the MCP server "
            f"'{asked.server_label}' its keys itself. Leave it out, or set client_headers in its configuration.",
            param=f"{asked.param}.{field}",
            code="unsupported_parameter",
        )
    for name, value in given.items():
        try:
            if name in _NOT_OF_CLIENTS or name.startswith(("mcp-", "proxy-")):
                raise ConfigError(f"headers: {name!r} is the gateway's own.")
            check_header(name, value, f"headers.{name}")
        except ConfigError as error:
            raise RequestError(
                f"Invalid '{asked.param}.{field}': {error}", param=f"{asked.param}.{field}", code="invalid_value"
            ) from error
    return given


def _tool(listed: Any) -> McpTool:
    hints = listed.annotations
    return McpTool(
        str(listed.name),
        listed.description or listed.title,
        listed.input_schema,
        hints.model_dump(by_alias=True, exclude_none=True) if hints else None,
    )
