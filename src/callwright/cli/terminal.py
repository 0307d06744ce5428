"""Output helpers of the commands: the terminal's width, counts in words, tables with one line per row."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import IO, Final

_MAX_WIDTH: Final = 140
_MIN_WIDTH: Final = 60
_GAP: Final = "  "


def width() -> int:
    """The number of terminal columns to use."""
    return max(_MIN_WIDTH, min(_MAX_WIDTH, shutil.get_terminal_size((100, 24)).columns))


def is_terminal(stream: IO[str]) -> bool:
    """Whether the stream is shown to a person live."""
    return stream.isatty()


def count_noun(number: int, noun: str) -> str:
    """`1 row`, `1,200 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def shortened(words: Sequence[str], room: int) -> str:
    """As many of the words as there is room for, with commas; `…` for the rest."""
    kept = ", ".join(words)
    number = len(words)
    while len(kept) > room and number > 1:
        number -= 1
        kept = ", ".join((*words[:number], "…"))
    return kept if len(kept) <= room else f"{kept[: max(0, room - 1)]}…"


def table(heads: Sequence[str], rows: Sequence[Sequence[Sequence[str]]]) -> Iterator[str]:
    """Lines for rows of cells, each a list of words. In a terminal a row is one line, and long cells are shortened, the
    widest columns first; elsewhere nothing is shortened.
    """
    widths = [
        max(len(head), *(len(", ".join(row[place])) for row in rows)) if rows else len(head)
        for place, head in enumerate(heads)
    ]
    if is_terminal(sys.stdout):
        over = sum(widths) + len(_GAP) * (len(widths) - 1) - width()
        while over > 0:
            widest = max(range(len(widths)), key=widths.__getitem__)
            widths[widest] -= 1
            over -= 1
    for row in ([(head,) for head in heads], *rows):
        cells = (shortened(cell, room).ljust(room) for cell, room in zip(row, widths, strict=True))
        yield _GAP.join(cells).rstrip()
