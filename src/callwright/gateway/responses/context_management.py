"""`context_management` of the Responses API: a conversation that has grown too long is compacted before the next turn.

The summary covers all of it, as clients may omit the items before the summary from then on; items that the model has
not answered yet stay verbatim. Knows no transport.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec

from callwright.conversation import Conversation
from callwright.events import Usage
from callwright.gateway.server_tools.compaction import compacted
from callwright.gateway.store.store import StoredResponse
from callwright.turn.deferred_tools import estimate_prompt
from callwright.turn.model import Model
from callwright.wire.parsed_request import ParsedRequest
from callwright.wire.responses.compaction import kept_beside_summary, shortened
from callwright.wire.server_events import Compacted, TurnEvent, TurnEvents
from callwright.wire.token_estimate import estimated_tokens

# The user's latest messages stay word for word, up to this many bytes of JSON.
_MAX_KEPT: Final = 20_000
# Items of an answer that one turn of the model makes: of others the counts are those of several turns together.
_OF_ONE_TURN: Final = frozenset({"message", "reasoning", "function_call", "custom_tool_call", "shell_call"})


def conversation_tokens(model: Model, conversation: Conversation, counted: StoredResponse | None, new: int) -> int:
    """The approximate number of tokens of a conversation for this model.

    `counted` is the stored response that it continues, with the server's token counts of its input and output; `new`
    is the number of later items. Else all of it is estimated.
    """
    usage = counted.body.get("usage") if counted is not None else None
    if counted is None or not usage or not all(item.get("type") in _OF_ONE_TURN for item in counted.output):
        return estimate_prompt(model, conversation)
    items = conversation.items[len(conversation.items) - new :] if new else ()
    return int(usage["total_tokens"]) + (estimated_tokens(items) if items else 0)


def is_too_long(conversation: Conversation, tokens: int, threshold: int) -> bool:
    """Whether a conversation is to be compacted: it has more tokens, and something in it that may go."""
    if tokens <= threshold:
        return False
    kept, _ = kept_beside_summary(conversation.items)
    return len(kept) < len(conversation.items)


async def compacted_first(
    model: Model, asked: ParsedRequest, today: str, go_on: Callable[[ParsedRequest], TurnEvents]
) -> TurnEvents:
    """The events of a turn that begins with a compaction; `go_on` returns those of the turn after it.

    Raises `UpstreamError` if the model writes no summary.
    """
    used: Usage | None = None
    summary = ""
    async with aclosing(compacted(model, asked, today)) as events:
        async for batch in events:
            for event in batch:
                if isinstance(event, Usage):
                    used = event
                elif isinstance(event, Compacted):
                    summary = event.summary
    yield [Compacted(summary, goes_on=True)]
    conversation = msgspec.structs.replace(asked.conversation, items=shortened(asked.conversation.items, summary))
    async with aclosing(go_on(msgspec.structs.replace(asked, conversation=conversation))) as events:
        async for batch in events:
            rest: list[TurnEvent] = []
            for event in batch:
                if isinstance(event, Usage):
                    used = event if used is None else used.plus(event)
                else:
                    rest.append(event)
            if rest:
                yield rest
    if used is not None:
        yield [used]


def kept_messages(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The user's latest messages among the items, which remain with the summary of `POST /v1/responses/compact`."""
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
