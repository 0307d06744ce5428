"""The items of a request: references to other items, their stored form, and their parsed form.

An agent resends all items of the previous request, and some more: results that depend on an item alone are cached.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from callwright.memo.prefixes import fold
from callwright.wire.responses.input_items import READ_WITHOUT_ID

Items: TypeAlias = list[Mapping[str, Any]]
_NUMBERS: Final[tuple[int, ...]] = ()
_TEXTS: Final[tuple[str, ...]] = ()
_PREFIXES: Final = {
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "tool_search_call": "tsc",
    "tool_search_output": "tso",
    "additional_tools": "at",
    "compaction": "cmp",
    "web_search_call": "ws",
    "mcp_list_tools": "mcpl",
    "mcp_call": "mcp",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
}


def references(items: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """The numbers of the items that are references."""
    return fold(items, _NUMBERS, _references)


def with_ids(items: Sequence[Mapping[str, Any]]) -> Items:
    """The items, with an id for each that has none."""
    ids = secrets.token_hex(20)
    prefixes = fold(items, _TEXTS, _prefixes)
    return [
        {**item, "id": f"{prefix}_{ids}{number:08x}"} if prefix else item
        for number, (item, prefix) in enumerate(zip(items, prefixes, strict=True))
    ]


def to_be_read(items: Sequence[Any], new: Items) -> list[dict[str, Any]]:
    """The items of a request, which are stored as `new`: each unchanged if its id is not needed."""
    return [
        item if item.get("type", "message") in READ_WITHOUT_ID else dict(with_id)
        for item, with_id in zip(items, new, strict=True)
    ]


def bring_tools(items: Sequence[Mapping[str, Any]]) -> bool:
    """Whether tools come with these items."""
    kinds = [item.get("type") for item in items]
    return "additional_tools" in kinds or "tool_search_output" in kinds


def _references(before: tuple[int, ...], items: Sequence[Mapping[str, Any]], start: int) -> tuple[int, ...]:
    kinds = [item.get("type", "item_reference" if item.keys() == {"id"} else None) for item in items[start:]]
    return (*before, *[number for number, kind in enumerate(kinds, start) if kind == "item_reference"])


def _prefixes(before: tuple[str, ...], items: Sequence[Mapping[str, Any]], start: int) -> tuple[str, ...]:
    """The prefix of the id that an item needs; "" if it has its own id, or if its type is unknown: an id would turn
    that into a reference.
    """
    needs = [
        item.get("id") in (None, "") and ("role" in item or item.get("type", "item_reference") != "item_reference")
        for item in items[start:]
    ]
    made = [
        _PREFIXES.get(str(item.get("type")), "msg") if needs_id else ""
        for item, needs_id in zip(items[start:], needs, strict=True)
    ]
    return (*before, *made)
