"""The fixed pieces of a format: texts, control tokens, and call numbers.

Formats are compared atom by atom, so that no cut splits a control token or a number.
"""

import re
from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

from msgspec import Struct

from callwright.prompt import Control, Text


class Number(Struct, frozen=True, gc=False):
    """Digits with which a format counts its calls: `digits` of them; 0: a few.

    `letters`: an id, which may also have ASCII letters.
    """

    digits: int = 0
    letters: bool = False

    @property
    def pattern(self) -> str:
        """A regular expression for it."""
        return ("[0-9a-zA-Z]" if self.letters else "[0-9]") + (f"{{{self.digits}}}" if self.digits else "{1,4}")


Fixed: TypeAlias = tuple[Text | Control | Number, ...]
Atoms: TypeAlias = tuple[str | Number, ...]

_NOTHING: Final = r"(?!)"


class Splitter:
    """Cuts texts of one family, whose control tokens are `controls`."""

    def __init__(self, controls: Collection[str]) -> None:
        self._controls = frozenset(controls)
        literals = "|".join(map(re.escape, sorted(self._controls, key=len, reverse=True))) or _NOTHING
        self._atom = re.compile(rf"{literals}|\d+|.", re.DOTALL)

    def atoms(self, text: str) -> Atoms:
        """Control tokens and numbers as a whole, everything else by character."""
        return tuple(self._atom.findall(text))

    def fixed(self, atoms: Iterable[str | Number]) -> Fixed:
        """The same as pieces, neighbours of text joined."""
        out: list[Text | Control | Number] = []
        for atom in atoms:
            if isinstance(atom, Number):
                out.append(atom)
            elif atom in self._controls:
                out.append(Control(atom))
            elif out and isinstance(out[-1], Text):
                out[-1] = Text(out[-1].text + atom)
            else:
                out.append(Text(atom))
        return tuple(out)


def fixed_text(fixed: Fixed) -> str | None:
    """The pieces as one text; None when a number is among them."""
    texts = [piece.text for piece in fixed if not isinstance(piece, Number)]
    return "".join(texts) if len(texts) == len(fixed) else None


def without_start(fixed: Fixed, start: str) -> Fixed | None:
    """The pieces after a text that they begin with; None if they do not."""
    rest = list(fixed)
    while start:
        if not rest or isinstance(rest[0], Number):
            return None
        text = rest[0].text
        if start.startswith(text):
            start = start[len(text) :]
            rest.pop(0)
        elif text.startswith(start):
            rest[0] = Text(text[len(start) :])
            start = ""
        else:
            return None
    return tuple(rest)
