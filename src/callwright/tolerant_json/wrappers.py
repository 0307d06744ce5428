"""What models put around JSON: fences and words."""

import re
from collections.abc import Iterable

__all__ = ["unfenced", "without"]


_FENCE = re.compile(r"\s*+(?P<ticks>`{3,}|~{3,})[\w+-]*+\s*+")


def without(text: str, parts: Iterable[str]) -> str:
    """What is left of a text without these parts of it, which stand in it in this order."""
    left: list[str] = []
    at = 0
    for part in parts:
        found = text.find(part, at)
        if found >= 0:
            left.append(text[at:found])
            at = found + len(part)
    return "".join([*left, text[at:]])


def unfenced(text: str) -> tuple[int, int] | None:
    """From where to where the inside of a fence goes that a whole text is; None when it begins with no fence.

    White space at the ends of the inside is left out; the closing fence may be missing.
    """
    opening = _FENCE.match(text)
    if opening is None:
        return None
    end = len(text[opening.end() :].rstrip().removesuffix(opening["ticks"]).rstrip())
    return opening.end(), opening.end() + end
