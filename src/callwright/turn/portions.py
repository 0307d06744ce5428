"""Splits a server's deltas into portions, so that parsing one does not block the event loop for long.

A whole answer, or a burst, would otherwise be parsed in one go: a megabyte of calls takes seconds.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from callwright.upstreams.base import Delta, ReasoningTextDelta, TextDelta, ToolCallDelta

# Characters of text that are parsed in one go: some 20 ms of the slowest dialect.
_PORTION: Final = 8_192
# Seconds of parsing after which other tasks get a turn.
PAUSE_S: Final = 0.01


def portions(batch: Sequence[Delta]) -> Iterable[Sequence[Delta]]:
    """A batch as it is, or a long one in several."""
    size = 0
    for delta in batch:
        if type(delta) is TextDelta or type(delta) is ReasoningTextDelta:
            size += len(delta.text)
        elif type(delta) is ToolCallDelta:
            size += len(delta.arguments)
    return (batch,) if size <= _PORTION else _portions(batch)


def _portions(batch: Sequence[Delta]) -> Iterator[Sequence[Delta]]:
    portion: list[Delta] = []
    size = 0
    for delta in batch:
        for piece in _pieces(delta):
            portion.append(piece)
            if isinstance(piece, ToolCallDelta):
                size += len(piece.arguments)
            elif isinstance(piece, TextDelta | ReasoningTextDelta):
                size += len(piece.text)
            if size >= _PORTION:
                yield portion
                portion, size = [], 0
    if portion:
        yield portion


def _pieces(delta: Delta) -> Iterator[Delta]:
    """A long text in several; not one whose tokens' probabilities belong to it."""
    if not isinstance(delta, TextDelta) or delta.logprobs is not None or len(delta.text) <= _PORTION:
        yield delta
        return
    for at in range(0, len(delta.text), _PORTION):
        yield TextDelta(delta.text[at : at + _PORTION])
