"""How much of a prompt was read again that the prompt before it in the same conversation had already."""

from collections import OrderedDict
from typing import Final

_MOST: Final = 4_096


class RepeatedPrompts:
    """Knows the tokens of the latest prompt of each conversation; of many, the latest ones."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[int, int] = OrderedDict()

    def repeated(self, words: tuple[str, ...], tokens: int) -> int:
        """The tokens of a prompt that may be repeated from the previous one; 0 for the first of a conversation, whose
        requests share these `words`.
        """
        key = hash(words)  # stores no content
        before = self._tokens.pop(key, 0)
        self._tokens[key] = tokens
        if len(self._tokens) > _MOST:
            self._tokens.popitem(last=False)
        return min(before, tokens)
