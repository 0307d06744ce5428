"""What models put around JSON: code fences and words."""

import re
from collections.abc import Iterable

_FENCE = re.compile(r"\s*+(?P<ticks>`{3,}|~{3,})[\w+-]*+\s*+")


def without(text: str, parts: Iterable[str]) -> str:
    """A text without `parts`, which occur in it in this order."""
    left: list[str] = []
    at = 0
    for part in parts:
        found = text.find(part, at)
        if found >= 0:
            left.append(text[at:found])
            at = found + len(part)
    return "".join([*left, text[at:]])


def is_cut_fence(text: str) -> bool:
    """Whether a text begins with a fence that is never closed: by ticks at the end of a line."""
    opening = _FENCE.match(text)
    return opening is not None and not re.compile(opening["ticks"] + r"[`~ \t]*+$", re.MULTILINE).search(
        text, opening.end()
    )


def unfenced(text: str) -> tuple[int, int] | None:
    """The span of the inside of a code fence that makes up the whole text; None if the text does not begin with a
    fence.

    White space at both ends of the inside is left out. The closing fence may be missing.
    """
    opening = _FENCE.match(text)
    if opening is None:
        return None
    end = len(text[opening.end() :].rstrip().removesuffix(opening["ticks"]).rstrip())
    return opening.end(), opening.end() + end
