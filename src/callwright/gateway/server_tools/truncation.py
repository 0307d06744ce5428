"""What exceeds the context window: a conversation is cut at its start (`truncation: auto`), or the answer at its end.

Knows no token counts: it cuts until the server accepts, and goes by what the server says of the room that is left.
"""

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, Final

import msgspec

from callwright.conversation import Call, CallOutput, Conversation, Item, Message
from callwright.errors import RequestError
from callwright.turn.model import Model
from callwright.turn.run import Events, run_turn
from callwright.wire.context_window import read_overflow

__all__ = ["with_truncation", "without_oldest"]

# An answer that has less of the window than one part in so many is cut in its first sentences.
_LEAST_SHARE: Final = 16
_MAX_CUTS: Final = 12


async def with_truncation(
    model: Model,
    conversation: Conversation,
    fields: Mapping[str, Any],
    *,
    today: str,
    streamed: bool,
    truncates: bool,
    clamps: bool = False,
) -> Events:
    """The events of a turn. While the server says that the conversation is too long, its oldest part is left out.

    `clamps`: where the prompt fits and the answer may not be as long as the request allows, it may be as long as the
    window: clients ask for more than any local model has.
    """
    for cuts in range(_MAX_CUTS + 1):
        begun = False
        try:
            async with aclosing(run_turn(model, conversation, fields, today=today, streamed=streamed)) as events:
                async for batch in events:
                    begun = True
                    yield batch
            return
        except RequestError as error:
            again = not begun and cuts < _MAX_CUTS
            if clamps and again and (room := _room(error, fields)) is not None:
                fields = {**fields, "max_tokens": room}
                continue
            shorter = without_oldest(conversation) if truncates and again else None
            if error.code != "context_length_exceeded":
                raise
            if shorter is None:
                error.param = "input"
                raise
            conversation = shorter


def _room(error: RequestError, fields: Mapping[str, Any]) -> int | None:
    """How many tokens the answer may have, if that it might have more is what was wrong."""
    found = read_overflow(error.message) if error.code == "context_length_exceeded" else None
    room = found.room() if found is not None else None
    if found is None or found.window is None or room is None or room < found.window // _LEAST_SHARE:
        return None
    return room if room < fields.get("max_tokens", 0) else None


def without_oldest(conversation: Conversation) -> Conversation | None:
    """The conversation without its oldest part; None if nothing can go.

    Instructions at the start stay, and so does the user's last message. What stands before that goes first, then what
    stands behind it, up to the latest calls. An output never loses its call.
    """
    items = conversation.items
    start = next((n for n, item in enumerate(items) if not _instructs(item)), len(items))
    last = max((n for n, item in enumerate(items) if isinstance(item, Message) and item.role == "user"), default=-1)
    end = last
    if last <= start:
        start = max(start, last + 1)
        end = max((n for n in range(start, len(items)) if _begins(items, n)), default=start)
    if end <= start:
        return None
    cut = start + max(1, (end - start) // 4)
    while cut < end and not _begins(items, cut):
        cut += 1
    return msgspec.structs.replace(conversation, items=(*items[:start], *items[cut:]))


def _instructs(item: Item) -> bool:
    return isinstance(item, Message) and item.role in ("system", "developer")


def _begins(items: tuple[Item, ...], at: int) -> bool:
    """Whether a conversation can begin at this item: not between parallel calls, nor between a call and its output."""
    return not isinstance(items[at], CallOutput) and not (
        isinstance(items[at], Call) and isinstance(items[at - 1], Call)
    )
