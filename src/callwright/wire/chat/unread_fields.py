"""The fields of a chat request that are neither read nor forwarded. Their names are reported to the client.

All fields except the messages are forwarded unchanged, apart from those that the gateway handles: MCP servers and web
search. Text parts are joined, so other fields of these parts are lost.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from callwright.memo.prefixes import fold, once
from callwright.wire.mcp_tools import MCP_FIELDS

_SEARCH: Final = frozenset({"search_context_size", "user_location"})
_NONE: Final[frozenset[str]] = frozenset()
_TEXTS: Final = {"text": frozenset({"type", "text"}), "refusal": frozenset({"type", "refusal"})}


def unread_fields(given: Mapping[str, Any]) -> frozenset[str]:
    """The names of the unread fields of a decoded and validated request."""
    streaming = given.get("stream_options")
    obfuscates = isinstance(streaming, Mapping) and streaming.get("include_obfuscation")
    of_messages = fold(given.get("messages") or (), _NONE, _of_messages)
    found = set(of_messages)
    if (search := given.get("web_search_options")) is not None:
        found.update(_beside("web_search_options", search, _SEARCH))
    tools = given.get("tools") or ()
    found.update(once(tools, "unread", lambda: _of_tools(tools)))
    if _loses_names(given.get("messages") or ()):
        found.add("messages.name")
    return frozenset(found | ({"stream_options.include_obfuscation"} if obfuscates else set()))


def _loses_names(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether instructions with a name become one message: those at the start, if one of them is a developer's."""
    number = 0
    while number < len(messages) and messages[number].get("role") in ("system", "developer"):
        number += 1
    if number <= 1:
        return False
    begin = messages[:number]
    return any(one.get("name") for one in begin) and any(one["role"] == "developer" for one in begin)


def _of_tools(tools: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset([name for tool in tools if tool.get("type") == "mcp" for name in _beside("mcp", tool, MCP_FIELDS)])


def _of_messages(before: frozenset[str], messages: Sequence[Mapping[str, Any]], start: int) -> frozenset[str]:
    return before.union(*[_of_message(message) for message in messages[start:]])


def _of_message(message: Mapping[str, Any]) -> Sequence[str]:
    found = ["messages.audio"] if message.get("audio") is not None else []
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        known = _TEXTS.get(part.get("type"))
        if known is not None and not part.keys() <= known:
            found += [f"messages.content.{name}" for name in part if name not in known]
    return found


def _beside(what: str, value: object, known: frozenset[str]) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (f"{what}.{name}" for name, it in value.items() if name not in known and it is not None)
