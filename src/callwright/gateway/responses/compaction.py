"""The items of a conversation that remain with the summary when it is compacted (`POST /v1/responses/compact`)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

# The user's latest messages stay word for word, up to this many bytes of JSON.
_MAX_KEPT: Final = 20_000


def kept_messages(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The user's latest messages among the items, which are retained in addition to the summary."""
    kept: list[dict[str, Any]] = []
    size = 0
    for item in reversed(items):
        if item.get("role") != "user" or item.get("type", "message") != "message":
            continue
        size += len(msgspec.json.encode(item))
        if size > _MAX_KEPT:
            break
        kept.append({"type": "message", **item})
    return kept[::-1]
