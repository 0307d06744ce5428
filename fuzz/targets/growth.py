"""Outputs that repeat something: four times the text takes no more than `MOST` times the time, whole and in pieces.

It measures time, so `scripts/fuzz` runs it and the tests do not.
"""

import time
from collections.abc import Callable

import callwright
from callwright import NotJsonError
from fuzz import words
from fuzz.targets.dialects import CATALOGUE
from tests.support.cases import tools
from tests.support.choices import Choices

__all__ = ["run"]

SIZE = 3_000
TIMES = 4
# What is linear takes 4 times as long, what is quadratic 16 times.
MOST = 9.0
# Less is noise.
LEAST_S = 0.01
TRIES = 4


def run(draw: Choices) -> None:
    """See the module."""
    dialect = draw.one(words.DIALECTS)
    atoms = words.language(dialect)
    before, again = draw.text(atoms, 4), draw.text(atoms, 4) or "x"
    behind = draw.text(atoms, 2)
    size = draw.one((1, 7, 1 << 30))
    draw.about = dialect
    offered = tools(*CATALOGUE)

    def parse(text: str) -> None:
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        callwright.parse(pieces, dialect=dialect, tools=offered)

    read: Callable[[str], object] = parse
    if draw.once_in(10):
        draw.about, read = "loads", _loads

    def repeated(length: int) -> str:
        return before + again * (length // len(again)) + behind

    for length in (SIZE, SIZE * TIMES):  # what is read a few times over up to a limit grows at first
        for _ in range(TRIES):
            small, large = _took(read, repeated(length)), _took(read, repeated(length * TIMES))
            if large < max(LEAST_S, small * MOST):
                return
    raise AssertionError(f"{small:.4f} s and {large:.4f} s for {before!r} {again!r}… {behind!r} in pieces of {size}")


def _took(read: Callable[[str], object], text: str) -> float:
    begun = time.process_time()
    read(text)
    return time.process_time() - begun


def _loads(text: str) -> None:
    try:
        callwright.loads(text)
    except NotJsonError:
        return
