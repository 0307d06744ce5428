"""Random texts of grammars, for as long as they may take."""

from time import thread_time
from typing import Final

from callwright.grammar.grammar import Grammar

__all__ = ["drawn"]

# Of the processor: the same grammar gives up in the same place on a busy machine.
_S: Final = 2.0


def drawn(grammar: Grammar, seed: int = 0) -> str:
    """A text of the grammar; an empty one where none is found in time."""
    end_s = thread_time() + _S
    return grammar.sample(seed, lambda: thread_time() < end_s) or ""
