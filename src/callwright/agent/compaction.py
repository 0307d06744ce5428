"""Compaction: when a conversation is long enough for its old part to be summarized, and how it is replaced.

The rules are those of `context_management` in the gateway: items that the model has not answered yet stay unchanged.
"""

from collections.abc import Callable
from typing import Final

from callwright.conversation import Conversation, Item
from callwright.events import Usage
from callwright.wire.responses.compaction import DEFAULT_THRESHOLD, kept_beside_summary, shortened
from callwright.wire.token_estimate import estimated_tokens

# The share of the context window; the rest is room for the summary and the next answer.
_SHARE_OF_WINDOW: Final = 0.8


def threshold_of(given: int | None, window: int | None) -> int:
    """The number of tokens above which a conversation is compacted."""
    if given is not None:
        return given
    return DEFAULT_THRESHOLD if window is None else int(window * _SHARE_OF_WINDOW)


class Compaction:
    """Compacts the conversation of a run if it has more than `threshold` tokens, or if `is_full` returns True."""

    def __init__(self, threshold: int, is_full: Callable[[], bool] = lambda: False) -> None:
        self._threshold = threshold
        self._is_full = is_full
        self._counted: tuple[int, int] | None = None  # tokens as the server counted them, and the number of items then

    def note(self, count: int, usage: Usage | None) -> None:
        """Record the token count of a request with `count` items."""
        self._counted = None if usage is None else (usage.prompt_tokens, count)

    def is_due(self, conversation: Conversation, items: list[Item]) -> bool:
        """Whether to compact now. `items` are the conversation's items without the instructions."""
        if not self._is_full() and self._tokens(conversation, items) <= self._threshold:
            return False
        kept, _ = kept_beside_summary(items)
        return len(kept) < len(items)

    def shortened(self, items: list[Item], summary: str) -> list[Item]:
        """The items with a summary in place of the old ones."""
        self._counted = None
        return list(shortened(items, summary))

    def _tokens(self, conversation: Conversation, items: list[Item]) -> int:
        if self._counted is None:
            return estimated_tokens(conversation.items, conversation.tools)
        tokens, count = self._counted
        return tokens + (estimated_tokens(items[count:]) if count < len(items) else 0)
