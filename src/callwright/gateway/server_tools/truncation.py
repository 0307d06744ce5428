"""Fits requests into the context window: cuts the start of a conversation (`truncation: auto`), or limits the answer.

Knows no token counts: it cuts until the server accepts, and uses the sizes in the server's errors.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from callwright.conversation import Call, CallOutput, Conversation, Item, Message, instructs
from callwright.errors import RequestError
from callwright.wire.context_window import read_overflow

# An answer with less than this fraction (1 / n) of the window would end within its first sentences.
_LEAST_SHARE: Final = 16
_MAX_CUTS: Final = 12


class Fitting:
    """Makes a request fit into the window of its model, if that can be done: see `callwright.turn.loop.Fit`.

    `truncates`: while the server rejects the conversation as too long, its oldest part is left out. `clamps`: if
    the prompt fits but the allowed length of the answer does not, the answer gets the rest of the window: clients ask
    for more than any local model has.
    """

    def __init__(self, *, truncates: bool, clamps: bool = False) -> None:
        self._truncates = truncates
        self._clamps = clamps
        self._cuts = 0

    def __call__(
        self, error: RequestError, conversation: Conversation, fields: Mapping[str, Any], begun: bool
    ) -> tuple[Conversation, Mapping[str, Any]] | None:
        """The request to send instead; None if it cannot be made to fit, or an answer has `begun`."""
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
    """The tokens left for the answer, if the error is that the request allows more."""
    found = read_overflow(error.message) if error.code == "context_length_exceeded" else None
    room = found.room() if found is not None else None
    if found is None or found.window is None or room is None or room < found.window // _LEAST_SHARE:
        return None
    return room if room < fields.get("max_tokens", 0) else None


def without_oldest(conversation: Conversation) -> Conversation | None:
    """The conversation without its oldest part; None if nothing can go.

    Instructions at the start stay, and so does the user's last message. Items before that are removed first, then
    items after it, up to the latest calls. An output never loses its call.
    """
    items = conversation.items
    start = next((n for n, item in enumerate(items) if not instructs(item)), len(items))
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


def _begins(items: tuple[Item, ...], at: int) -> bool:
    """Whether a conversation can begin at this item: not between parallel calls, nor between a call and its output."""
    return not isinstance(items[at], CallOutput) and not (
        isinstance(items[at], Call) and isinstance(items[at - 1], Call)
    )
