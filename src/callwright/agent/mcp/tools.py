"""The tools of an MCP server as tools of an agent: over the standard streams of a process, or streamable HTTP.

    async with mcp_tools("python examples/mcp/clock.py") as tools:
        result = await callwright.run(callwright.Agent(model="simulated", tools=tools), "What time is it in Oslo?")

It needs the official SDK: `.venv/bin/python -m pip install '.[mcp]'`. Arguments are validated against the tool's schema
before the call is sent. The server's descriptions of its tools are untrusted: by default a person must approve all
calls except those of tools declared read-only; `approve` changes that.
"""

import hashlib
import importlib.util
import itertools
import os
import re
import shlex
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, TypeAlias

from callwright.agent.annotations import Context
from callwright.agent.mcp.connection import Connection
from callwright.agent.mcp.elicitation import Elicit
from callwright.agent.mcp.results import result_of
from callwright.agent.mcp.targets import Command, Url
from callwright.agent.tools import HiddenParameter, LiveTools, Tool, ToolOptions, unasked
from callwright.conversation import FunctionTool
from callwright.errors import ConfigError
from callwright.settings.bounds import Bounds
from callwright.settings.extras import missing_package

# Which calls a person must approve: all (True), no calls (False), or those of tools not declared read-only.
ApproveMcp: TypeAlias = bool | Literal["writes"]

_MAX_NAME: Final = 64
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
# The name under which a tool's function gets its context: no argument of a server can have it.
_CONTEXT: Final = " context"


@asynccontextmanager
async def mcp_tools(
    server: str | Sequence[str],
    *,
    name: str | None = None,
    approve: ApproveMcp | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    headers: Mapping[str, str] | None = None,
    connect_timeout_s: float = 30.0,
    timeout_s: float | None = None,
    deferred: bool = False,
    elicit: Elicit | None = None,
    bounds: Bounds | None = None,
) -> AsyncGenerator[LiveTools, None]:
    """The tools of a server, sorted by name, each called `name__tool`; `name` defaults to the server's own.

    A person must approve the calls that `approve` names; without it as with "writes", and a run warns where it ends so.
    `server` is a URL (`-H 'Name: value'` before it is a header, as are `headers`), or a command as one would type it
    (`KEY=value` before it goes into its environment, as does `env`), or the words of one. `timeout_s` is for each call;
    by default the agent's limit applies. `deferred`: the model must search for them. `elicit` answers questions of the
    server to a person; without it such a call fails. `bounds`: how much the server may send.

    New tools of the server are added to this list, also for agents that have it. Raises `ConfigError` if the server is
    unusable, or the SDK is missing.
    """
    needs_sdk()
    target = _target(server, dict(env or {}), cwd, dict(headers or {}))
    connection = Connection(target, connect_timeout_s, bounds or Bounds(), elicit)
    await connection.open()
    try:
        prefix = _OTHER.sub("_", name or connection.server_name or "mcp")
        tools = LiveTools()

        def take(listed: Sequence[Any]) -> None:
            tools.extend(_tools(connection, listed, tools, prefix, approve, timeout_s, deferred=deferred))

        take(connection.tools)
        connection.on_new_tools = take
        yield tools
    finally:
        await connection.close()


def needs_sdk() -> None:
    """Raises `ConfigError` if the SDK is missing."""
    if importlib.util.find_spec("mcp") is None:
        raise missing_package("mcp", "Tools of MCP servers")


def _target(
    server: str | Sequence[str], env: dict[str, str], cwd: str | None, headers: dict[str, str]
) -> Command | Url:
    if isinstance(server, str) and (found := _with_headers(server)):
        server, more = found
        headers = {**headers, **more}
    if isinstance(server, str) and server.startswith(("http://", "https://")):
        if env or cwd:
            raise ConfigError("env and cwd are for servers that are started by a command, not for a URL.")
        return Url(server, headers)
    if headers:
        raise ConfigError("headers are for servers with a URL; a command gets its keys by env.")
    return mcp_command(server, env, cwd)


def _with_headers(server: str) -> tuple[str, dict[str, str]] | None:
    """A URL and the headers before it, each written as for curl: `-H 'Authorization: Bearer $TOKEN' https://…`. `$NAME`
    is a variable of the environment. None for anything else.
    """
    if not server.lstrip().startswith("-H"):
        return None
    try:
        words = shlex.split(server)
    except ValueError as error:
        raise ConfigError(f"The headers of an MCP server cannot be read: {error}.") from error
    *flags, url = words
    headers: dict[str, str] = {}
    for flag, header in itertools.zip_longest(flags[::2], flags[1::2]):
        name, colon, value = (header or "").partition(":")
        if flag != "-H" or not colon:
            raise ConfigError("Expected headers as -H 'Name: value' and then the URL of an MCP server.")
        headers[name.strip()] = _VARIABLE.sub(_variable, value.strip())
    return url, headers


def _variable(found: re.Match[str]) -> str:
    name = found[1] or found[2]
    value = os.environ.get(name)
    if not value:
        raise ConfigError(f"The environment variable {name}, of a header of an MCP server, is not set.")
    return value


def mcp_command(server: str | Sequence[str], env: Mapping[str, str], cwd: str | None = None) -> Command:
    """A command as one would type it, or its words. Raises `ConfigError`."""
    env = dict(env)
    try:
        words = shlex.split(server) if isinstance(server, str) else list(server)
    except ValueError as error:
        raise ConfigError(f"The command of an MCP server cannot be read: {error}.") from error
    if isinstance(server, str):
        while words and (found := _ASSIGNMENT.fullmatch(words[0])):
            env[found[1]] = found[2]
            words.pop(0)
    if not words:
        raise ConfigError("Expected an MCP server: a command such as 'python server.py', or a URL. Got nothing.")
    return Command(tuple(words), env, cwd)


def _tools(
    connection: Connection,
    given: Sequence[Any],
    before: Sequence[Tool],
    prefix: str,
    approve: ApproveMcp | None,
    timeout_s: float | None,
    *,
    deferred: bool,
) -> list[Tool]:
    tools: dict[str, Tool] = {}
    taken = {tool.name: tool for tool in before}
    for listed in given:
        name = _unique_name(f"{prefix}__{listed.name}", {**taken, **tools})
        hints = listed.annotations
        only_reads = bool(hints and hints.read_only_hint)
        definition = FunctionTool(name, listed.description or listed.title, {"type": "object", **listed.input_schema})
        asks = approve if isinstance(approve, bool) else not only_reads
        options = ToolOptions(
            approve=unasked if asks and approve is None else asks, timeout_s=timeout_s, deferred=deferred
        )
        tools[name] = server_tool(connection, listed, definition, options)
    return list(tools.values())


def server_tool(
    connection: Connection, listed: Any, definition: FunctionTool, options: ToolOptions, *, describe_media: bool = False
) -> Tool:
    """Convert a tool of a server (`listed`: its entry in the list) to one that a model may call by another name.
    `describe_media`: describe its images and sounds in words.
    """
    return Tool(
        _function(connection, listed, describe_media=describe_media),
        definition,
        None,
        (HiddenParameter(_CONTEXT, "context", is_optional=True),),
        options,
    )


def _unique_name(wanted: str, taken: Mapping[str, Tool]) -> str:
    """A unique name that OpenAI accepts; a changed name ends with a hash of the real one."""
    name = _OTHER.sub("_", wanted)
    if len(name) <= _MAX_NAME and name not in taken:
        return name
    mark = hashlib.sha256(wanted.encode()).hexdigest()[:8]
    return f"{name[: _MAX_NAME - 9]}_{mark}"


def _function(connection: Connection, listed: Any, *, describe_media: bool) -> Any:
    name, hints = listed.name, listed.annotations
    is_repeatable = bool(hints and (hints.read_only_hint or hints.idempotent_hint))

    async def call(**arguments: Any) -> Any:
        context: Context = arguments.pop(_CONTEXT)

        async def progress(done: float, total: float | None, message: str | None) -> None:
            context.progress({"progress": done, "total": total, "message": message})

        connection.note_call()
        answer = await connection.call(name, arguments, is_repeatable=is_repeatable, progress=progress)
        return result_of(answer, describe_media=describe_media)

    call.__name__ = call.__qualname__ = name
    return call
