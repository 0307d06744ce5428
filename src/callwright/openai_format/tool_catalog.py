"""The tools of a Responses request: functions and custom tools, namespaces of them, and OpenAI's built-in kinds.

Tools that the client or the gateway can run are offered to the model as functions. Tools that only OpenAI can run are
left out or refused, depending on the kind. Deferred tools are hidden until a search finds them.
"""

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Any, Final, Literal

import msgspec

from callwright.calls.tool_search import SEARCH_TOOL
from callwright.calls.toolset import Toolset
from callwright.calls.web_search import WebSearchTool, search_tool
from callwright.conversation import FunctionTool, JsonObject
from callwright.errors import RequestError
from callwright.memo.by_text import kept_by_text
from callwright.memo.prefixes import Same
from callwright.openai_format.builtin_tools import BUILTIN_TOOLS
from callwright.openai_format.errors import missing, quote_list, type_error, wrong_type
from callwright.openai_format.mcp_tools import McpServer
from callwright.openai_format.request_rules import STRICT, RequestRules
from callwright.openai_format.skills import with_skills
from callwright.openai_format.tool_names import ClientTool, ToolKind, ToolNames
from callwright.openai_format.tools import ApiShape, FoundTool, check_name, check_parameters, find_tool, twice
from callwright.openai_format.web_search import read_web_search, refused_kind
from callwright.schema.strict import strict_problems
from callwright.tolerant_json.codec import decode, encode

SearchWay = Literal["none", "client", "server"]
# Maximum length of a namespace's description in the description of each of its tools, in characters.
_MAX_ABOUT: Final = 200
_INNER: Final = ("function", "custom")  # of a namespace
_KINDS: Final = ("function", "custom", "namespace", "mcp", "tool_search", "shell", "local_shell", "apply_patch")
_ADDRESSES: Final = ("server_url", "connector_id", "tunnel_id")  # of an MCP server
# Kinds with a date suffix. Codex sends them by default: unless they can be run, the model is not shown them.
_HOSTED: Final = ("web_search", "image_generation")


class NamespaceFields(msgspec.Struct):
    """A namespace as a request writes it."""

    name: str
    tools: list[dict[str, Any]]
    description: str | None = None


class ToolCatalog:
    """The tools of one request. `tools` are those shown to the model, in order; `deferred` those that a search
    may find. `search`: which side executes it. `web`: the options of the web search, if the model is offered one.
    `left_out` maps each type of tool that cannot be run to its path in the request.
    """

    def __init__(
        self,
        servers: Mapping[str, McpServer] | None = None,
        *,
        checks: bool = True,
        searches_web: bool = False,
        rules: RequestRules = STRICT,
    ) -> None:
        """`servers`: what MCP servers have, by their labels. `checks`: names and schemas must be those that OpenAI's
        API takes, or those that the `rules` let through. `searches_web`: the gateway can.
        """
        self._servers = {} if servers is None else servers
        self._checks = checks
        self.rules = rules
        self.names = ToolNames(aliases=rules.is_lenient)
        self.search: SearchWay = "none"
        self.web: WebSearchTool | None = None
        self.left_out: dict[str, str] = {}
        self._searches_web = searches_web
        self._shown: dict[str, FunctionTool] = {}
        self._deferred: dict[str, FunctionTool] = {}
        # As the client wrote them, for search outputs: each tool by its flat name, and its namespace if it has one.
        self._given: dict[str, tuple[Mapping[str, Any], Mapping[str, Any] | None]] = {}

    def __copy__(self) -> "ToolCatalog":
        """The same catalogue, which changes by itself."""
        made = object.__new__(ToolCatalog)
        vars(made).update(vars(self))
        made.names, made.left_out, made._given = copy(self.names), self.left_out.copy(), self._given.copy()
        made._shown, made._deferred = self._shown.copy(), self._deferred.copy()
        return made

    @property
    def cache_key(self) -> object:
        """Equal for catalogues of the same tools, in the same spelling and under the same rules, that show the same."""
        under = self._servers or None, self._checks, self._searches_web, self.rules, self.search, self.web
        spelled = [part for pair in self._given.values() for part in pair]
        return Same((*under, *self._shown.values(), *self._deferred.values(), *spelled)), tuple(self.left_out.items())

    @property
    def tools(self) -> tuple[FunctionTool, ...]:
        """The tools shown to the model."""
        return tuple(self._shown.values())

    @property
    def deferred(self) -> tuple[FunctionTool, ...]:
        """What only a search shows."""
        return tuple(tool for name, tool in self._deferred.items() if name not in self._shown)

    @property
    def searchable(self) -> tuple[FunctionTool, ...]:
        """The tools that a search looks through: all deferred ones, including those already found."""
        return tuple(self._deferred.values())

    @property
    def has_servers(self) -> bool:
        """Whether there are MCP servers in it."""
        return bool(self._servers)

    def shown_tool(self, flat: str) -> FunctionTool | None:
        """The tool of this flat name that the model is shown."""
        return self._shown.get(flat)

    def show_deferred(self, flat: str) -> None:
        """Show the tool of this flat name from now on, if it is one that is deferred."""
        if flat in self._deferred:
            self.show(flat)

    def client_tool(self, flat: str) -> Mapping[str, Any]:
        """A tool as the client wrote it, within its namespace."""
        given, around = self._given[flat]
        return given if around is None else {**around, "tools": [given]}

    def add(self, given: Sequence[Any] | None, param: str = "tools", *, shape: ApiShape = "responses") -> None:
        """Take the tools of a request. Raises `RequestError` that names the field."""
        if given is None:
            return
        if not isinstance(given, list | tuple):
            raise wrong_type(param, "array", given)
        if not given:
            return
        kinds = [self._kind_of(tool, f"{param}[{number}]", shape) for number, tool in enumerate(given)]
        self.search = _search_way(given, kinds, param) or self.search
        before = {*self._shown, *self._deferred}
        for number, (tool, kind) in enumerate(zip(given, kinds, strict=True)):
            self._add(tool, kind, f"{param}[{number}]", shape, before)

    def leave_out(self, kind: str, at: str) -> bool:
        """Leave out the tool of an unknown type at path `at`, if the rules are lenient; returns whether they are."""
        if self.rules.is_lenient:
            self.left_out[kind] = at
        return self.rules.is_lenient

    def offer_tool(self, tool: FunctionTool, given: Mapping[str, Any], at: str, *, is_deferred: bool = False) -> str:
        """Take a function that was read already, as the client gave it; answers its flat name. Raises `RequestError`
        where its name is taken.
        """
        if self.names.has(tool.name, None):
            raise twice(tool.name, at)
        flat = self.names.add(ClientTool(tool.name))
        self._given[flat] = given, None
        (self._deferred if is_deferred else self._shown)[flat] = _rename_tool(tool, flat)
        return flat

    def offer_as_named(self, given: Mapping[str, Any], at: str, shape: ApiShape) -> None:
        """Take a function or custom tool of an API without namespaces. Raises `RequestError` that names the field."""
        self._place(given, None, None, at, shape, set(), loads=False)

    def offer_search(self, at: str) -> None:
        """Add a search for deferred tools that the server runs. Idempotent."""
        if self.search == "server":
            return
        self.search = "server"
        self._show("tool_search", SEARCH_TOOL, at, set())

    def offer_web_search(self, wanted: WebSearchTool | None, kind: str, at: str, before: Collection[str] = ()) -> None:
        """Add a web search of type `kind`, or leave it out if it cannot be run. Raises `RequestError` if its name is
        taken.
        """
        if wanted is None or not self._searches_web:
            self.left_out[kind] = at
            return
        tool = search_tool(wanted)
        if self.names.has(tool.name, None) and self.names.flat(tool.name) not in before:
            raise twice(tool.name, at)
        self.web = wanted
        self._show("web_search", tool, at, {*before, tool.name})

    def check_run(self) -> None:
        """Raises `RequestError` if all tools were left out because they cannot be run."""
        for kind, at in self.left_out.items():
            if not (self._shown or self._deferred or self.rules.is_lenient):
                raise refused_kind(kind, f"{at}.type", searches=self._searches_web)

    def check_demanded(self, kind: str, param: str) -> None:
        """Raises `RequestError` if a required type was left out. `param` is the parameter that requires it."""
        if any(_hosted(one) == _hosted(kind) for one in self.left_out):
            raise refused_kind(kind, param, searches=self._searches_web)

    def load(self, given: Sequence[Any], param: str) -> list[str]:
        """Take tools that a search has found: they can be called from now on. Answers their flat names."""
        before = {*self._shown, *self._deferred}
        names: list[str] = []
        for number, tool in enumerate(given):
            at = f"{param}[{number}]"
            names += self._add(tool, self._kind_of(tool, at, "responses"), at, "responses", before, loads=True)
        return names

    def show(self, flat: str) -> None:
        """Show a deferred tool from now on."""
        self._shown.setdefault(flat, self._deferred[flat])

    def _kind_of(self, tool: object, at: str, shape: ApiShape) -> str:
        """The kind of a tool; none for a type that is left out."""
        kind = tool.get("type") if isinstance(tool, Mapping) else None
        is_unknown = isinstance(kind, str) and kind not in _KINDS and _hosted(kind) is None
        return "" if is_unknown and self.leave_out(str(kind), at) else _kind(tool, at, shape)

    def _add(
        self, tool: Mapping[str, Any], kind: str, at: str, shape: ApiShape, before: set[str], *, loads: bool = False
    ) -> list[str]:
        """Add one entry of a list; `before` are the names of tools from other lists, which may be repeated."""
        if not _may_call(tool, at):
            return []
        if kind in ("function", "custom"):
            return self._place(tool, None, None, at, shape, before, loads=loads)
        if kind == "namespace":
            return self._add_namespace(tool, at, shape, before, loads=loads)
        if kind == "mcp":
            return self._serve(tool, at, loads=loads)
        if kind == "web_search":
            self.offer_web_search(read_web_search(tool, at), tool["type"], at, before)
            return []
        if kind == "image_generation":
            self.left_out[tool["type"]] = at
            return []
        if kind == "tool_search" and self.search == "client":
            shown = SEARCH_TOOL
            if (told := tool.get("description")) is not None:
                if not isinstance(told, str):
                    raise wrong_type(f"{at}.description", "str", told)
                shown = msgspec.structs.replace(shown, description=told)
            if isinstance(tool.get("parameters"), Mapping):
                given = FunctionTool(shown.name, shown.description, tool["parameters"])
                shown = msgspec.structs.replace(given, strict=_fits_strict(given))
            return self._show("tool_search", shown, at, before)
        if kind == "tool_search" and self.search == "server":
            return self._show("tool_search", SEARCH_TOOL, at, before)
        if kind in BUILTIN_TOOLS:
            built_in = BUILTIN_TOOLS[kind] if kind != "shell" else with_skills(BUILTIN_TOOLS[kind], tool, at)
            return self._show(kind, built_in, at, before)  # type: ignore[arg-type]  # the kinds of the table
        return []

    def _add_namespace(
        self, given: Mapping[str, Any], at: str, shape: ApiShape, before: set[str], *, loads: bool
    ) -> list[str]:
        try:
            space = msgspec.convert(given, NamespaceFields)
        except msgspec.ValidationError as error:
            raise type_error(error, at, given) from error
        if self._checks:
            check_name(space.name, f"{at}.name", self.rules)
        if space.name in self._servers:
            raise twice(space.name, at)
        names: list[str] = []
        for number, inner in enumerate(space.tools):
            path = f"{at}.tools[{number}]"
            _kind(inner, path, shape, known=_INNER)
            names += self._place(inner, space.name, given, path, shape, before, loads=loads)
        return names

    def _serve(self, given: Mapping[str, Any], at: str, *, loads: bool) -> list[str]:
        """Take the tools of an MCP server; of those that a search has found the ones that it names."""
        label = str(given.get("server_label"))
        server = self._servers.get(label)
        if loads and (server is not None or not any(map(given.get, _ADDRESSES))):
            wanted = given.get("allowed_tools")
            flats = [self.names.flat(name, label) for name in (wanted if isinstance(wanted, list) else ())]
            for flat in flats:
                if flat in self._deferred:
                    self.show(flat)
            return flats
        if server is None:
            raise RequestError(
                f"Unsupported tool type 'mcp' at '{at}': MCP servers are accepted only in the 'tools' of a "
                "request to /v1/responses or /v1/chat/completions.",
                param=f"{at}.type",
                code="unsupported_value",
            )
        around = {"name": label, "description": server.asked.server_description}
        taken: list[str] = []
        for listed_tool in server.tools:
            definition = server.definition(listed_tool)
            flat = self.names.add(ClientTool(listed_tool.name, label, "mcp"))
            tool = msgspec.structs.replace(definition, name=flat, description=_described(definition, around))
            self._given[flat] = {"type": "mcp", "server_label": label, "allowed_tools": [listed_tool.name]}, None
            is_deferred = server.asked.defer_loading and self.search != "none"
            (self._deferred if is_deferred else self._shown)[flat] = tool
            taken.append(flat)
        return taken

    def _show(self, kind: ToolKind, tool: FunctionTool, at: str, before: Collection[str]) -> list[str]:
        """Show a tool of a built-in kind, which has the name of its kind."""
        if self.names.has(tool.name, None) and self.names.flat(tool.name) not in before:
            error = twice(tool.name, at)
            error.param = f"{at}.type"
            raise error
        flat = self.names.add(ClientTool(tool.name, None, kind))
        self._shown[flat] = msgspec.structs.replace(tool, name=flat)
        return [flat]

    def _read(self, given: Mapping[str, Any], at: str, shape: ApiShape) -> FoundTool:
        """A function or custom tool. Clients resend the same tools with each request: they are cached by their text."""
        if not self._checks:
            return _with_strict_default(find_tool(given, at, shape), shape)
        try:
            tool, path = _read_checked(encode(given), shape, self.rules)
            return FoundTool(tool, at + path)
        except RequestError:
            _check(find_tool(given, at, shape), self.rules)  # for an error with the full path
            raise

    def _place(
        self,
        given: Mapping[str, Any],
        namespace: str | None,
        around: Mapping[str, Any] | None,
        at: str,
        shape: ApiShape,
        before: set[str],
        *,
        loads: bool,
    ) -> list[str]:
        """Take a function or custom tool, under its flat name."""
        if not _may_call(given, at):
            return []
        found = self._read(given, at, shape)
        kind: ToolKind = "custom" if found.tool.custom else "function"
        is_known = self.names.has(found.tool.name, namespace)
        flat = self.names.add(ClientTool(found.tool.name, namespace, kind, given.get("async") is True))
        if self._checks and is_known and flat not in before:
            raise twice(found.tool.name, found.path)
        tool, described = found.tool, _described(found.tool, around)
        if (flat, described) != (tool.name, tool.description):
            tool = msgspec.structs.replace(tool, name=flat, description=described)
        self._given[flat] = given, around
        is_deferred = given.get("defer_loading") or (around or {}).get("defer_loading")
        if is_deferred and not loads and self.search != "none" and flat not in self._shown:
            self._deferred[flat] = tool
        else:
            self._shown[flat] = tool
        return [flat]


@kept_by_text
def _read_checked(text: bytes, shape: ApiShape, rules: RequestRules) -> FoundTool:
    """A tool, with its path relative to its entry in the list, so that the cache is independent of the position."""
    found = find_tool(decode(text), "", shape)
    _check(found, rules)
    return _with_strict_default(found, shape)


def _with_strict_default(found: FoundTool, shape: ApiShape) -> FoundTool:
    """The tool, with the default of `strict` in OpenAI's Responses API: true if the schema allows it."""
    tool = found.tool
    if tool.strict is None and not tool.custom and shape == "responses":
        return FoundTool(msgspec.structs.replace(tool, strict=_fits_strict(tool)), found.path)
    return found


def _may_call(given: Mapping[str, Any], at: str) -> bool:
    """Whether the model itself may call a tool, and not only a program that it writes."""
    callers = given.get("allowed_callers")
    if callers is not None and not isinstance(callers, list):
        raise wrong_type(f"{at}.allowed_callers", "array", callers)
    return not callers or "direct" in callers


def _described(tool: FunctionTool, around: Mapping[str, Any] | None) -> str | None:
    """The description of a tool, and of its namespace: models know no other place for that."""
    about = (around or {}).get("description")
    if not about:
        return tool.description
    line = f"({(around or {})['name']}: {about if len(about) <= _MAX_ABOUT else about[:_MAX_ABOUT].rstrip() + '…'})"
    return "\n\n".join(filter(None, (tool.description, line)))


class OfferedTools(msgspec.Struct, frozen=True):
    """The tools of a library call. `renamed`: the model knows some by another name than the caller. `toolset`: the
    same tools, for a request with default `tool_choice`.
    """

    tools: tuple[FunctionTool, ...]
    names: ToolNames
    renamed: bool
    toolset: Toolset


def read_tool_catalog(given: Sequence[Any] | None) -> OfferedTools:
    """The tools of a library call: of either API, with any name and schema, all of them shown.

    Callers resend the same tools with each call, so the result is cached by their JSON text. Different values may
    encode to the same text, as some that are not JSON do: so the decoded value is compared with `given`.
    """
    given = list(given) if isinstance(given, tuple) else given
    try:
        read, offered = _parse_cached(encode(given))
        if read == given:
            return offered
    except (RequestError, TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        pass  # not JSON, or not tools: `_offered` raises the error
    return _offered(given)


@kept_by_text
def _parse_cached(text: bytes) -> tuple[object, OfferedTools]:
    given = decode(text)
    return given, _offered(given)


def _offered(given: Sequence[Any] | None) -> OfferedTools:
    catalog = ToolCatalog(checks=False)
    catalog.add(given, shape="any")
    tools, names = catalog.tools, catalog.names
    renamed = any(tool.name != names.client(tool.name).name for tool in tools)
    return OfferedTools(tools, names, renamed, Toolset(tools))


def _kind(given: object, at: str, shape: ApiShape, known: Sequence[str] = _KINDS) -> str:
    """The kind of a tool, without a date suffix. Raises `RequestError` for a kind that is not in `known`."""
    if not isinstance(given, Mapping):
        raise wrong_type(at, "object", given)
    kind = given.get("type", "function" if shape == "any" and given.keys() & {"function", "name"} else None)
    if kind is None:
        raise missing(f"{at}.type")
    if not isinstance(kind, str):
        raise wrong_type(f"{at}.type", "str", kind)
    if known is _KINDS and (hosted := _hosted(kind)) is not None:
        return hosted
    _expect(kind, known, at)
    environment = given.get("environment")
    if kind == "shell" and environment is not None and not isinstance(environment, Mapping):
        raise wrong_type(f"{at}.environment", "object", environment)
    if kind == "shell" and isinstance(environment, Mapping) and environment.get("type") not in (None, "local"):
        raise RequestError(
            f"Unsupported value: '{at}.environment.type' does not support '{environment.get('type')}' here. Only "
            "'local' is supported: the client runs the commands.",
            param=f"{at}.environment.type",
            code="unsupported_value",
        )
    return kind


def _hosted(kind: str) -> str | None:
    """The hosted kind without its date suffix; None if `kind` is not a hosted one."""
    return next((one for one in _HOSTED if kind.startswith(one)), None)


def _expect(kind: str, known: Sequence[str], at: str) -> None:
    if kind not in known:
        raise RequestError(
            f"Unsupported tool type '{kind}': this gateway has no such tool. Supported types are: {quote_list(known)}.",
            param=f"{at}.type",
            code="unsupported_value",
        )


def _check(found: FoundTool, rules: RequestRules) -> None:
    check_name(found.tool.name, f"{found.path}.name", rules)
    check_parameters(found.tool, f"{found.path}.parameters", rules)


def _rename_tool(tool: FunctionTool, flat: str) -> FunctionTool:
    return tool if tool.name == flat else msgspec.structs.replace(tool, name=flat)


def _search_way(given: Sequence[JsonObject], kinds: Sequence[str], param: str) -> SearchWay | None:
    """Who executes the search, if there is one: without deferred tools a search on the server would find nothing."""
    for number, (tool, kind) in enumerate(zip(given, kinds, strict=True)):
        if kind == "tool_search":
            if tool.get("execution") not in (None, "client", "server"):
                raise RequestError(
                    f"Invalid value: '{tool['execution']}'. Supported values are: 'client' and 'server'.",
                    param=f"{param}[{number}].execution",
                    code="invalid_value",
                )
            if tool.get("execution") == "client":
                return "client"
            return "server" if any(map(_defers, given)) else None
    return None


def _defers(tool: object) -> bool:
    if not isinstance(tool, Mapping):
        return False
    inner = tool.get("tools")
    return bool(tool.get("defer_loading")) or (isinstance(inner, list) and any(map(_defers, inner)))


def _fits_strict(tool: FunctionTool) -> bool:
    """Whether the schema meets the rules of `strict`: then it is the default, as in OpenAI's API."""
    return not strict_problems(tool.parameters or {"type": "object", "properties": {}})
