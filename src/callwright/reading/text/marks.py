"""The marks of a format in an answer, and the literals that a reader of it looks for."""

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

from callwright.streaming.reader import Markers
from callwright.tolerant_json.markers import END_TOKENS

FENCES: Final = ("```", "~~~")
BRACES: Final = ("{", "[")
# A tag that looks like a word between angle brackets: it can be mentioned.
_WORD = re.compile(r"</?[\w:.-]+(?: [^<>|]*)?[=>]").fullmatch


class Marks(Struct, frozen=True):
    """The marks of a format. `tags` open its calls; `thoughts` are pairs of tags around reasoning, of which the prompt
    may have opened the first; `ends` are stop tokens, in addition to those of all formats.

    `control`: the tags are tokens of their own, which users do not type, so that they are certain anywhere. `structure`
    are those of `tags` and `ends` that are around texts and open no call, `end_thoughts` those of `tags` that a thought
    cannot contain. `channel` is the text after the opener of a thought, if other blocks may have the same opener.
    """

    tags: tuple[str, ...] = ()
    thoughts: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)
    ends: tuple[str, ...] = ()
    control: bool = True
    structure: tuple[str, ...] = ()
    end_thoughts: tuple[str, ...] = ()
    channel: str = ""


# The following is the same for each answer of a format.


@lru_cache(maxsize=256)
def all_ends(ends: tuple[str, ...]) -> tuple[str, ...]:
    """The stop tokens of a format, with those of all formats."""
    return tuple(dict.fromkeys((*ends, *END_TOKENS)))


@lru_cache(maxsize=256)
def markers(marks: Marks, foreign: tuple[str, ...] | None) -> tuple[Markers, dict[str, Markers]]:
    """The markers to search for in content, and in reasoning by its closing tag. `foreign` are the openings of other
    formats' calls, None if no tools are offered.
    """
    ends = all_ends(marks.ends)
    openers = (*BRACES, *FENCES, *foreign) if foreign is not None else ()
    opens, closes = [opening for opening, _ in marks.thoughts], [close for _, close in marks.thoughts]
    in_text = Markers(*marks.tags, *opens, *closes, *ends, *openers)
    return in_text, {close: Markers(*marks.tags, close, *ends, *openers) for close in closes}


def is_token(tag: str) -> bool:
    """Whether a tag looks like a control token, which users do not type."""
    return _WORD(tag) is None
