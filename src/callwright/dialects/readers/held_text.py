"""Where a text ends that stands between tags and may hold tags itself, decided by what follows.

Its closer ends it if a tag follows, or other text and then no further closer before the next value's opening or the end
of what holds it. An opening in it is text if it is closed before. Without a closer the text ends at its first tag.
"""

from msgspec import Struct

__all__ = ["HeldText", "Tag"]


class Tag(Struct, frozen=True):
    """A tag as it is written, mark and all: its name, and whether it closes."""

    text: str
    head: str
    closes: bool


class HeldText:
    """What is held of a text from its first tag on, until its end is known.

    `name` is the text's own tag, `around` are the tags of what holds it, `siblings` those of the values that may follow
    it (none: any may).
    """

    def __init__(self, name: str, around: tuple[str, ...], siblings: frozenset[str]) -> None:
        self._name = name
        self._around = around
        self._siblings = siblings
        self._pieces: list[str] = []
        self._open: list[str] = []
        self._end = 0  # how many pieces belong to the value
        self.closer = ""

    @property
    def text(self) -> str:
        """All that is held."""
        return "".join(self._pieces)

    def is_over(self, text: str, tag: Tag | None, *, guess: bool) -> bool:
        """Take a tag and the text before it; answers whether the end of the value is known. `guess`: an opening is
        taken for the next value, without a look at what closes it.
        """
        if tag is None:
            self._pieces.append(text)
            return True
        self._pieces += (text, tag.text)
        if not tag.closes:
            is_next = not self._siblings or tag.head in self._siblings
            self._open.append(tag.head.partition(" ")[0])
            return guess or (bool(self.closer) and is_next)
        if tag.head in self._open:
            while self._open.pop() != tag.head:
                pass
            return False
        if tag.head != self._name:
            return tag.head in self._around
        if self._open or (self.closer and not text.strip()):  # not balanced; twice
            return True
        self._end, self.closer = len(self._pieces) - 1, tag.text
        return False

    def value(self) -> tuple[str, str]:
        """What belongs to the value, without its closer, and what does not."""
        rest = self._pieces[self._end + 1 :] if self.closer else self._pieces
        return "".join(self._pieces[: self._end]), "".join(rest)
