"""Compaction of long conversations: the model writes a summary, which then stands in place of the conversation."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec

from callwright.aio import each
from callwright.collector import collect
from callwright.conversation import Conversation, Message, TextPart
from callwright.errors import UpstreamError
from callwright.events import Event, Finished, Usage
from callwright.gateway.server_tools.server_items import ServerItem, TurnEvents
from callwright.turn.model import Model
from callwright.turn.run import run_turn
from callwright.wire.responses.output_types import ResponseCompactionItem
from callwright.wire.responses.request import ParsedRequest
from callwright.wire.sealed import sealed

__all__ = ["compacted", "kept_messages"]

_WISH: Final = (
    "Summarise this conversation so that somebody who has not read it can go on with it. Say what was asked, what was "
    "done and found (with names, paths, numbers and exact wording where they matter), what was decided, and what is "
    "still open. Write the summary only."
)
_LEAD: Final = "Summary of the conversation so far, which is not shown any more:\n\n"
# The user's latest messages stay word for word, up to this many bytes of JSON.
_MAX_KEPT: Final = 20_000


async def compacted(model: Model, asked: ParsedRequest, today: str) -> TurnEvents:
    """A turn whose only output is a compaction item. Raises `UpstreamError` if the model writes no summary."""
    conversation = asked.conversation
    wish = Message("user", (TextPart(_WISH),))
    conversation = Conversation(items=(*conversation.items, wish), tools=conversation.tools, tool_choice="none")
    kept: list[Event] = []
    usage: Usage | None = None
    fields = {key: value for key, value in asked.fields.items() if key not in ("logprobs", "top_logprobs")}
    async with aclosing(each(run_turn(model, conversation, fields, today=today, streamed=False))) as events:
        async for event in events:
            if isinstance(event, Usage):
                usage = event
            else:
                kept.append(event)
    summary = (collect(kept).content or "").strip()
    if not summary:
        raise UpstreamError("The model wrote no summary.", fault="unmet", upstream=model.upstream.name)
    yield [ServerItem("cmp", ResponseCompactionItem(encrypted_content=sealed(_LEAD + summary))), Finished("stop")]
    if usage is not None:
        yield [usage]


def kept_messages(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The user's latest messages among the items, which stay beside the summary."""
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
