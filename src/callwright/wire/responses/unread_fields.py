"""The fields of a request that are not read. Their names are reported to the client, so that nothing is silently
ignored.

Covers tools, parts of content, and the fields of a request other than its conversation. Fields that merely describe a
past item, such as its state or its caller, request nothing: they are stored with the item and listed again.
Source: the request types of OpenAI's library, November 2026.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from callwright.memo.prefixes import fold, once
from callwright.wire.mcp_tools import MCP_FIELDS

_TOOL: Final = frozenset({"type", "name", "description", "allowed_callers", "defer_loading"})
_SEARCH: Final = frozenset({"type", "search_context_size", "user_location", "filters", "external_web_access"})
# The fields read of each type of tool. Types missing here are refused, or read elsewhere.
_TOOLS: Final[Mapping[str, frozenset[str]]] = {
    "function": _TOOL | {"parameters", "strict", "async", "output_schema"},
    "custom": _TOOL | {"format", "async"},
    "namespace": frozenset({"type", "name", "description", "tools", "defer_loading"}),
    "tool_search": frozenset({"type", "execution", "description", "parameters"}),
    "shell": frozenset({"type", "environment", "allowed_callers"}),
    "local_shell": frozenset({"type"}),
    "apply_patch": frozenset({"type", "allowed_callers"}),
    "mcp": MCP_FIELDS,
    **dict.fromkeys(("web_search", "web_search_2025_08_26"), _SEARCH),
    **dict.fromkeys(("web_search_preview", "web_search_preview_2025_03_11"), _SEARCH),
}
_PARTS: Final[Mapping[str, frozenset[str]]] = {
    "input_text": frozenset({"type", "text"}),
    "input_image": frozenset({"type", "image_url", "detail"}),
    "input_file": frozenset({"type", "file_data", "filename"}),
    "input_audio": frozenset({"type", "input_audio"}),
}
# The fields read of each object of a request.
_OBJECTS: Final[Mapping[str, frozenset[str]]] = {
    "reasoning": frozenset({"effort", "summary", "generate_summary", "context"}),
    "text": frozenset({"format", "verbosity"}),
    "prompt_cache_options": frozenset({"mode", "ttl", "prewarm"}),
    "background_options": frozenset(),
    "stream_options": frozenset(),
}
_LOGPROBS: Final = "message.output_text.logprobs"
_NONE: Final[frozenset[str]] = frozenset()
_COMPACTION: Final = frozenset({"type", "compact_threshold"})
# Values that describe what happens anyway: nothing is obfuscated, background responses begin immediately.
_AS_IT_IS: Final[Mapping[str, Any]] = {
    "reasoning.mode": "standard",
    "background_options.completion_window": "soonest",
    "stream_options.include_obfuscation": False,
    "web_search_preview.search_content_types": ["text"],
    "web_search_preview_2025_03_11.search_content_types": ["text"],
}


def unread_fields(given: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """The names of the unread fields of a decoded request and of its `items`.

    A name within a tool, a part or an object has its type or name as a prefix: `input_text.prompt_cache_breakpoint`.
    """
    found = set(_of_request(given))
    tools = given.get("tools")
    found |= once(tools or (), "unread fields", lambda: _of_tools(tools))
    of_items: frozenset[str] = fold(items, _NONE, _of_items)
    return of_items.union(found)


def _of_items(before: frozenset[str], items: Sequence[Mapping[str, Any]], start: int) -> frozenset[str]:
    return before.union(*[_of_item(item) for item in items[start:]])


def _of_item(item: Mapping[str, Any]) -> frozenset[str]:
    lists = [parts for field in ("content", "output") if isinstance(parts := item.get(field), list)]
    return _of_tools(item.get("tools")).union(*(_beside(part, _PARTS) for parts in lists for part in parts))


def _of_request(given: Mapping[str, Any]) -> Iterator[str]:
    for name, known in _OBJECTS.items():
        value = given.get(name)
        if isinstance(value, Mapping):
            yield from _unread(name, value, known)
    if given.get("top_logprobs") and _LOGPROBS not in (given.get("include") or ()):
        yield "top_logprobs"
    edits = given.get("context_management")
    for edit in edits if isinstance(edits, list) else ():
        if isinstance(edit, Mapping):
            yield from _unread("context_management", edit, _COMPACTION)


def _of_tools(tools: object) -> frozenset[str]:
    found: set[str] = set()
    for tool in tools if isinstance(tools, list) else ():
        found.update(_beside(tool, _TOOLS))
        if isinstance(tool, Mapping):
            found |= _of_tools(tool.get("tools"))
    return frozenset(found)


def _beside(value: object, known: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """The fields of an object that are not among those of its type."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    if isinstance(value, Mapping) and isinstance(kind, str) and kind in known and not value.keys() <= known[kind]:
        yield from _unread(kind, value, known[kind])


def _unread(name: str, value: Mapping[str, Any], known: frozenset[str]) -> Iterator[str]:
    for key, it in value.items():
        if key not in known and it is not None and _AS_IT_IS.get(f"{name}.{key}") != it:
            yield f"{name}.{key}"
