"""What exceeds the context window: a conversation is cut at its start (`truncation: auto`), or the answer at its end.

Knows no token counts: it cuts until the server accepts, and goes by what the server says of the room that is left.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from callwright.conversation import Call, CallOutput, Conversation, Item, Message
from callwright.errors import RequestError
from callwright.wire.context_window import read_overflow

# An answer that has less of the window than one part in so many is cut in its first sentences.
_LEAST_SHARE: Final = 16
_MAX_CUTS: Final = 12


class Fitting:
    """Makes a request fit into the window of its model, if that can be done: see `callwright.turn.loop.Fit`.

    `truncates`: while the server says that the conversation is too long, its oldest part is left out. `clamps`: where
    the prompt fits and the answer may not be as long as the request allows, it may be as long as the window: clients
    ask for more than any local model has.
    """

    def __init__(self, *, truncates: bool, clamps: bool = False) -> None:
        self._truncates = truncates
        self._clamps = clamps
        self._cuts = 0

    def __call__(
        self, error: RequestError, conversation: Conversation, fields: Mapping[str, Any], begun: bool
    ) -> tuple[Conversation, Mapping[str, Any]] | None:
        """What to ask for instead; None where nothing can be done, or an answer has `begun`."""
        again = not begun and self._cuts < _MAX_CUTS
        self._cuts += 1
        if self._clamps and again and (room := _room(error, fields)) is not None:
            return conversation, {**fields, "max_tokens": room}
        if error.code != "context_length_exceeded":
            return None
        shorter = without_oldest(conversation) if self._truncates and again else None
        if shorter is None:
            error.param = "input"
            return None
        return shorter, fields


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
