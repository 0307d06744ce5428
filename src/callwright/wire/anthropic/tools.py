"""The tools of a Messages request: functions with a schema, tools known by their type, and those of MCP servers.

Tools that the client can run are offered to the model as functions. Deferred tools are not in the prompt until a
reference in the conversation names them.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Any, Final

import msgspec

from callwright.conversation import FunctionTool, NamedTool, ToolChoice
from callwright.errors import RequestError, did_you_mean
from callwright.memo.by_text import kept_by_text
from callwright.memo.prefixes import once
from callwright.openai_format.errors import missing, quote_list, type_error, wrong_type
from callwright.openai_format.mcp_tools import AskedServer, McpServer
from callwright.openai_format.request_rules import STRICT, RequestRules
from callwright.openai_format.tool_catalog import ToolCatalog
from callwright.schema.plain import plain_schema
from callwright.schema.strict import MAX_LEVELS, closed_problems, form_problems, levels, schema_problems
from callwright.tolerant_json.codec import decode, encode
from callwright.wire.anthropic import searches
from callwright.wire.anthropic.typed_tools import SEARCH_KINDS, typed_tool

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
# Controls caching and does not describe the tool; clients move it between tools.
_PASSING: Final = "cache_control"
_SHOWN: Final = 100
_DIRECT: Final = "direct"
_TOOLSET: Final = "mcp_toolset"
NO_WEB_SEARCH: Final = "The web cannot be searched here. Say so, and answer from what you know."
_CHOICES: Final = ("auto", "any", "tool", "none")


class _Tool(msgspec.Struct):
    """A tool as a request writes it."""

    name: str
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    type: str | None = None
    strict: bool | None = None
    defer_loading: bool | None = None
    eager_input_streaming: bool | None = None
    input_examples: list[Any] | None = None
    allowed_callers: list[str] | None = None


class _ServerFields(msgspec.Struct):
    name: str
    url: str | None = None
    type: str | None = None
    authorization_token: str | None = None
    tool_configuration: dict[str, Any] | None = None


class _Loading(msgspec.Struct):
    enabled: bool | None = None
    defer_loading: bool | None = None


class _Toolset(msgspec.Struct):
    mcp_server_name: str
    default_config: _Loading | None = None
    configs: dict[str, _Loading] | None = None


def offered_tools(
    given: Sequence[Mapping[str, Any]] | None,
    servers: Mapping[str, McpServer],
    *,
    eager: bool = False,
    searches_web: bool = False,
    rules: RequestRules = STRICT,
) -> ToolCatalog:
    """The tools of a request, followed by those of MCP servers. Cached by the list of tools, as a client sends the same
    ones with each request. Raises `RequestError` that names the field.

    `eager`: the input of every tool streams as it is written; otherwise that of a tool that does not ask for it is held
    until it is known to fit. `searches_web`: the gateway can search the web.
    """

    def make_catalog() -> ToolCatalog:
        catalog = ToolCatalog(servers, checks=False, searches_web=searches_web, rules=rules)
        _add_tools(catalog, given or (), eager=eager)
        return catalog

    if not servers:
        name = f"offer of messages, {eager=} {searches_web=} {rules.is_lenient}"
        return copy(once(given or (), name, make_catalog))
    catalog = make_catalog()
    catalog.add([{"type": "mcp", "server_label": name} for name in servers], "mcp_servers", shape="any")
    return catalog


def _add_tools(catalog: ToolCatalog, given: Sequence[Mapping[str, Any]], *, eager: bool) -> None:
    for number, tool in enumerate(given):
        path = f"tools[{number}]"
        kind = tool.get("type")
        if kind is not None and not isinstance(kind, str):
            raise wrong_type(f"{path}.type", "str", kind)
        if kind == _TOOLSET:
            continue  # read by `read_servers`
        if kind is not None and kind.startswith(searches.KIND):
            if is_direct(tool):
                catalog.offer_web_search(searches.read_tool(tool, path), kind, path)
        elif kind is not None and kind.startswith(SEARCH_KINDS):
            catalog.offer_search(path)
        elif kind in (None, "custom") or typed_tool(kind) is not None or not catalog.leave_out(kind, path):
            read, defers = find_tool(tool, path, catalog.rules, eager=eager)
            if not is_direct(tool):
                continue  # for programs that the model writes, which do not run here
            catalog.offer_tool(read, tool, path, is_deferred=defers)


def is_direct(tool: Mapping[str, Any]) -> bool:
    """Whether the model may call a tool itself."""
    callers = tool.get("allowed_callers")
    return not callers or _DIRECT in callers


def find_tool(
    given: Mapping[str, Any], path: str, rules: RequestRules = STRICT, *, eager: bool = False
) -> tuple[FunctionTool, bool]:
    """One tool, and whether it is deferred. Cached by its text, as a client sends the same ones again and again.
    Raises `RequestError`.
    """
    given = {name: value for name, value in given.items() if name != _PASSING}
    try:
        return _read_kept(encode(given), eager, rules)
    except RequestError:
        _read(given, path, eager, rules)  # for an error with its path
        raise


@kept_by_text
def _read_kept(text: bytes, eager: bool, rules: RequestRules) -> tuple[FunctionTool, bool]:
    return _read(decode(text), "", eager, rules)


def _read(given: Mapping[str, Any], path: str, eager: bool, rules: RequestRules) -> tuple[FunctionTool, bool]:
    kind = given.get("type")
    known: FunctionTool | None = None
    if kind not in (None, "custom"):
        known = typed_tool(kind)
        if known is None:
            raise RequestError(
                f"Unsupported tool type '{kind}' at '{path}': this gateway has no such tool. Send tools with an "
                "'input_schema', or of the types bash_20250124, text_editor_20250728, memory_20250818 and "
                "tool_search_tool_bm25_20251119.",
                param=f"{path}.type",
                code="unsupported_value",
            )
        fields = {name: value for name, value in given.items() if value is not None}
        given = {"name": known.name, "description": known.description, **fields, "input_schema": known.parameters}
    try:
        tool = msgspec.convert(given, _Tool)
    except msgspec.ValidationError as error:
        raise type_error(error, path, given) from error
    if not (rules.is_lenient and tool.name):
        _check_name(tool.name, f"{path}.name")
    if tool.input_schema is None and not rules.is_lenient:
        raise missing(f"{path}.input_schema")
    _check_schema(tool, f"{path}.input_schema", rules, is_strict=bool(tool.strict) and known is None)
    is_live = eager if tool.eager_input_streaming is None else tool.eager_input_streaming
    read = FunctionTool(
        tool.name,
        _described(tool),
        tool.input_schema,
        bool(tool.strict),
        retry_invalid=not is_live,
    )
    return read, bool(tool.defer_loading)


def _check_name(name: object, param: str) -> None:
    if not isinstance(name, str):
        raise wrong_type(param, "str", name)
    if not _NAME.fullmatch(name):
        raise RequestError(
            f"Invalid '{param}': expected a string that matches the pattern '^{_NAME.pattern}$', got "
            f"'{name[:_SHOWN]}'.",
            param=param,
            code="invalid_value",
        )


def _check_schema(tool: _Tool, param: str, rules: RequestRules, *, is_strict: bool) -> None:
    schema = tool.input_schema or {}
    problems: Sequence[str] = ()
    if levels(schema) > MAX_LEVELS:
        problems = (f"expected at most {MAX_LEVELS} levels.",)
    elif schema:
        wanted = closed_problems if is_strict else schema_problems
        problems = form_problems(plain_schema(schema)) if rules.is_lenient else wanted(schema)
    if problems:
        raise RequestError(f"Invalid schema for tool '{tool.name}': {problems[0]}", param=param, code="invalid_value")


def _described(tool: _Tool) -> str | None:
    """The description, with the tool's examples of inputs."""
    if not tool.input_examples:
        return tool.description
    examples = "\n".join(json.dumps(example, ensure_ascii=False) for example in tool.input_examples)
    return "\n\n".join(filter(None, (tool.description, f"Examples of inputs:\n{examples}")))


# --- MCP servers ---


def read_servers(
    servers: Sequence[Mapping[str, Any]] | None, tools: Sequence[Mapping[str, Any]] | None
) -> list[AskedServer]:
    """The MCP servers of a request, each with the tools of it that the model may know. Raises `RequestError`.

    These tools are selected by an entry `mcp_toolset` among the tools, or by the server's own `tool_configuration`.
    """
    sets = {one.mcp_server_name: one for one in _toolsets(tools or ())}
    found: list[AskedServer] = []
    for number, given in enumerate(servers or ()):
        path = f"mcp_servers[{number}]"
        try:
            fields = msgspec.convert(given, _ServerFields)
        except msgspec.ValidationError as error:
            raise type_error(error, path, given) from error
        if any(fields.name == other.server_label for other in found):
            raise RequestError(
                f"Invalid '{path}.name': two MCP servers are called '{fields.name}'. Expected a name of its own for "
                "each.",
                param=f"{path}.name",
                code="invalid_value",
            )
        wanted = sets.pop(fields.name, None)
        asked = AskedServer(
            fields.name,
            fields.url,
            authorization=fields.authorization_token,
            require_approval="never",
            param=path,
            label_field="name",
            url_field="url",
        )
        selected = _of_configuration(asked, fields.tool_configuration) if wanted is None else _of_set(asked, wanted)
        if selected is not None:
            found.append(selected)
    for name in sets:
        known = [one.server_label for one in found]
        raise RequestError(
            f"Invalid 'tools': an mcp_toolset names the server '{name}', which is not in 'mcp_servers'."
            f"{did_you_mean(name, known)}",
            param="tools",
            code="invalid_value",
        )
    return found


def _toolsets(tools: Sequence[Mapping[str, Any]]) -> list[_Toolset]:
    found: list[_Toolset] = []
    for number, tool in enumerate(tools):
        if tool.get("type") == _TOOLSET:
            try:
                found.append(msgspec.convert(tool, _Toolset))
            except msgspec.ValidationError as error:
                raise type_error(error, f"tools[{number}]", tool) from error
    return found


def _of_configuration(asked: AskedServer, given: Mapping[str, Any] | None) -> AskedServer | None:
    """A server as requests before November 2025 wrote it."""
    if given is None:
        return asked
    if given.get("enabled") is False:
        return None
    allowed = given.get("allowed_tools")
    return msgspec.structs.replace(asked, allowed_tools=allowed) if isinstance(allowed, list) else asked


def _of_set(asked: AskedServer, wanted: _Toolset) -> AskedServer | None:
    default, configs = wanted.default_config or _Loading(), wanted.configs or {}
    defers = bool(default.defer_loading)
    if default.enabled is False:
        named = [name for name, config in configs.items() if config.enabled]
        return msgspec.structs.replace(asked, allowed_tools=named, defer_loading=defers) if named else None
    denied = tuple(name for name, config in configs.items() if config.enabled is False)
    return msgspec.structs.replace(asked, denied_tools=denied, defer_loading=defers)


# --- the choice ---


def read_choice(
    given: Mapping[str, Any] | None, catalog: ToolCatalog, removed: Collection[str] = ()
) -> tuple[ToolChoice, bool]:
    """The tool choice, and whether parallel calls are allowed. `removed` are the flat names of tools that may not be
    called any more. Raises `RequestError`.
    """
    if given is None:
        return "auto", True
    kind = given.get("type")
    if kind is None:
        raise missing("tool_choice.type")
    if kind not in _CHOICES:
        raise RequestError(
            f"Invalid value: '{kind}'. Supported values are: {quote_list(_CHOICES)}.",
            param="tool_choice.type",
            code="invalid_value",
        )
    single = given.get("disable_parallel_tool_use")
    if not isinstance(single, bool | None):
        raise wrong_type("tool_choice.disable_parallel_tool_use", "bool", single)
    parallel = single is not True
    if kind == "tool":
        name = given.get("name")
        if not isinstance(name, str):
            raise missing("tool_choice.name")
        if name == "web_search" and not catalog.names.has(name, None):
            catalog.check_demanded(name, "tool_choice.name")
        flat = catalog.names.flat(name)
        if flat in {tool.name for tool in catalog.deferred}:
            catalog.show(flat)
        offered = [tool.name for tool in catalog.tools if tool.name not in removed]
        if flat not in offered:
            raise RequestError(
                f"Tool '{name}' not found in provided tools.{did_you_mean(name, offered)}",
                param="tool_choice.name",
                code="invalid_value",
            )
        return NamedTool(flat), parallel
    if kind == "any" and all(tool.name in removed for tool in catalog.tools):
        raise RequestError("tool_choice 'any' may only be specified while providing tools.", param="tool_choice")
    if kind == "any":
        return "required", parallel
    return ("none" if kind == "none" else "auto"), parallel
