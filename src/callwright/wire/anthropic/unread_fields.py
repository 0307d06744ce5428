"""The fields of a Messages request that are not read. Their names are reported to the client.

Covers the objects of a request, its tools and its blocks. Fields that only describe the past (the caller, citations)
request nothing, and neither does `cache_control`. Blocks and tools of other types are refused, or reported by type by
their readers. Source: the types of the `anthropic` package 2.14.0.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from callwright.memo.prefixes import fold, once
from callwright.wire.anthropic.tools import is_direct

_CACHED: Final = frozenset({"type", "cache_control"})
_PAST: Final = _CACHED | {"id", "name", "input", "caller", "toolset_name", "tool_use_id", "content", "is_error"}
_NONE: Final[frozenset[str]] = frozenset()
# The fields read of each object of a request.
_OBJECTS: Final[Mapping[str, frozenset[str]]] = {
    "context_management": frozenset({"edits"}),
    "metadata": frozenset({"user_id"}),
    "output_config": frozenset({"effort", "format"}),
    "output_format": frozenset({"type", "schema"}),
    "thinking": frozenset({"type", "display"}),
    "tool_choice": frozenset({"type", "name", "disable_parallel_tool_use"}),
}
_MESSAGE: Final = frozenset({"role", "content", "clear_at"})
# The fields of each type of block that are read or describe the past.
_BLOCKS: Final[Mapping[str, frozenset[str]]] = {
    "text": _CACHED | {"text"},
    "image": _CACHED | {"source"},
    "document": _CACHED | {"source", "title", "context"},
    "search_result": _CACHED | {"source", "title", "content"},
    "tool_reference": _CACHED | {"tool_name"},
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "compaction": _CACHED | {"content", "encrypted_content", "signature"},
    "tool_addition": _CACHED | {"tool"},
    "tool_removal": _CACHED | {"tool"},
    "mcp_tool_use": _PAST | {"server_name"},
    **dict.fromkeys(("tool_use", "tool_result", "server_tool_use", "mcp_tool_result"), _PAST),
    **dict.fromkeys(("tool_search_tool_result", "web_search_tool_result"), _PAST),
}
_SOURCE: Final = frozenset({"type", "data", "media_type", "url", "content"})
_SERVER: Final = frozenset({"type", "name", "url", "authorization_token", "tool_configuration"})
_SET: Final = _CACHED | {"mcp_server_name", "configs", "default_config"}
_TOOL: Final = _CACHED | {"name", "description", "input_schema", "strict", "defer_loading"}
_FUNCTION: Final = _TOOL | {"allowed_callers", "eager_input_streaming", "input_examples"}
_SEARCH: Final = _CACHED | {
    "name",
    "allowed_callers",
    "allowed_domains",
    "blocked_domains",
    "max_uses",
    "user_location",
}
# The fields of tools by the prefix of their type; any other tool is a function.
_TOOLS: Final[Mapping[str, frozenset[str]]] = {
    "web_search": _SEARCH,
    "mcp_toolset": _SET,
    "tool_search_tool": _CACHED | {"name", "allowed_callers"},
}
# Values that describe what happens anyway: reasoning is shown or not, sources are not cited.
_AS_IT_IS: Final[Mapping[str, tuple[Any, ...]]] = {
    "thinking.type": ("enabled", "disabled", "adaptive"),
    "thinking.display": ("summarized", "omitted"),
    "document.citations": ({"enabled": False},),
    "search_result.citations": ({"enabled": False},),
}


def unread_fields(given: Mapping[str, Any]) -> frozenset[str]:
    """The names of the unread fields of a decoded and validated request, such as `image.transformations`."""
    found = {name for what, known in _OBJECTS.items() for name in _beside(what, given.get(what), known)}
    tools = given.get("tools") or ()
    found |= once(tools, "unread", lambda: _of_tools(tools))
    found.update(name for server in given.get("mcp_servers") or () for name in _beside("mcp_servers", server, _SERVER))
    found |= _of_blocks(given.get("system"), is_past=False)
    of_messages: frozenset[str] = fold(given.get("messages") or (), _NONE, _of_messages)
    return of_messages.union(found)


def _of_tools(tools: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset([name for tool in tools for name in _of_tool("tools", tool)])


def _of_tool(what: str, tool: Mapping[str, Any]) -> Iterator[str]:
    kind = tool.get("type") or ""
    known = next((known for begin, known in _TOOLS.items() if kind.startswith(begin)), _FUNCTION)
    yield from _beside(what, tool, known)
    if not is_direct(tool):
        yield f"{what}.allowed_callers"


def _of_messages(before: frozenset[str], messages: Sequence[Mapping[str, Any]], start: int) -> frozenset[str]:
    return before.union(*map(_of_message, messages[start:]))


def _of_message(message: Mapping[str, Any]) -> frozenset[str]:
    blocks = _of_blocks(message["content"], is_past=message["role"] == "assistant")
    return blocks.union(_beside("messages", message, _MESSAGE)) if not message.keys() <= _MESSAGE else blocks


def _of_blocks(blocks: object, *, is_past: bool) -> frozenset[str]:
    """The same for a list of blocks, including nested ones. `is_past`: the model wrote them."""
    found: set[str] = set()
    for block in blocks if isinstance(blocks, list) else ():
        kind = block.get("type") if isinstance(block, Mapping) else None
        known = _BLOCKS.get(kind) if isinstance(kind, str) else None
        if known is None:
            continue
        if not block.keys() <= known:
            found.update(_beside(str(kind), block, known | {"citations"} if is_past else known))
        if isinstance(source := block.get("source"), Mapping):
            found.update(_beside(f"{kind}.source", source, _SOURCE))
            found |= _of_blocks(source.get("content"), is_past=is_past)
        if kind == "tool_addition":
            found.update(_of_addition(block["tool"]))
        found |= _of_blocks(block.get("content"), is_past=is_past)
    return frozenset(found)


def _of_addition(tool: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(defined := tool.get("definition"), Mapping):
        yield from _of_tool("tool_addition", defined)


def _beside(what: str, value: object, known: frozenset[str]) -> Iterator[str]:
    """The fields of an object that are not read, and those with an unsupported value."""
    for name, it in value.items() if isinstance(value, Mapping) else ():
        path = f"{what}.{name}"
        done = _AS_IT_IS.get(path)
        if it is not None and (name not in known if done is None else it not in done):
            yield path
