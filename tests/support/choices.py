"""Bytes read as choices: which atom comes next, how many, whether. A change of one byte changes one choice.

So a fuzzer that knows bytes only makes inputs in the language of a format. Where the bytes end every choice is the
first one, so that less bytes make a smaller input.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["Choices", "cut"]

T = TypeVar("T")


def cut(text: str, sizes: Sequence[int]) -> list[str]:
    """The text in pieces of these sizes, over and over."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    return pieces


class Choices:
    """What some bytes choose. `about`: what the target reads, so that equal findings are told once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self.about = ""

    def number(self, most: int) -> int:
        """A number from 0 to `most`."""
        size = (most.bit_length() + 7) // 8
        taken = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(taken, "big") % (most + 1)

    def one(self, items: Sequence[T]) -> T:
        """One of them."""
        return items[self.number(len(items) - 1)]

    def once_in(self, times: int) -> bool:
        """Whether something happens that happens once in so many times."""
        return self.number(times - 1) == times - 1

    def several(self, most: int, make: Callable[[], T]) -> list[T]:
        """Up to `most` of what is made."""
        return [make() for _ in range(self.number(most))]

    def text(self, atoms: Sequence[str], most: int) -> str:
        """Up to `most` atoms, one behind the other."""
        return "".join(self.several(most, lambda: self.one(atoms)))

    def bytes(self, most: int) -> bytes:
        """Up to `most` bytes as they are."""
        size = self.number(most)
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def cuts(self, text: str) -> list[str]:
        """The text in pieces of a few sizes, over and over."""
        return cut(text, [1 + self.number(24) for _ in range(1 + self.number(5))])
