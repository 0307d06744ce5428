"""A stop for a model that repeats the same text without end: it would do so up to its token limit.

Only exact repetition counts. Equal values, rows and padding repeat, too, and differ from a loop only in length: so the
limit is a length, wide enough for them.
"""

from collections.abc import Sequence
from typing import Final

from callwright.upstreams.base import Delta, FinishDelta, ReasoningTextDelta, TextDelta, ToolCallDelta

# A shorter loop looks like rows of a table, zeros or padding.
MOST_REPEATED: Final = 8_192
_EACH: Final = 512  # characters between two checks
_MAX_PERIOD: Final = 1_024


class EndlessText:
    """The end of one answer. `most`: the number of characters that may repeat."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._tail = ""
        self._new: list[str] = []
        self._number_new = 0

    def find(self, batch: Sequence[Delta]) -> str | None:
        """Take deltas that arrived together; returns the text that repeats, if the answer does nothing else and has not
        ended.
        """
        for delta in batch:
            if type(delta) is TextDelta or type(delta) is ReasoningTextDelta:
                text = delta.text
            elif type(delta) is ToolCallDelta:
                text = delta.arguments
            elif type(delta) is FinishDelta:
                return None
            else:
                continue
            self._new.append(text)
            self._number_new += len(text)
        if self._number_new < _EACH:
            return None
        self._tail = (self._tail + "".join(self._new))[-self.most :]
        self._new, self._number_new = [], 0
        return self._find_period()

    def _find_period(self) -> str | None:
        """The repeated text, if all of the tail repeats it.

        The last characters, as many as the longest period has, occur again one period earlier.
        """
        tail = self._tail
        if len(tail) < self.most:
            return None
        probe = tail[-min(_MAX_PERIOD, self.most // 2) :]
        period = len(tail) - len(probe) - tail.rfind(probe, 0, len(tail) - 1)
        if period <= len(probe) and tail[period:] == tail[:-period]:
            return tail[-period:]
        return None
