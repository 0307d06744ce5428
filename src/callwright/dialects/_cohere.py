"""What Cohere's formats share: the tokens of turns, and citations in text, which are left out of it."""

import re
from typing import Final

from callwright.dialects.readers.marked import MarkedReader
from callwright.events import Markup
from callwright.stream_reader import Markers, Parse, read_until

__all__ = ["ANSWERS", "CITATIONS", "TURNS", "CohereReader", "turn"]

TURNS: Final = (
    *("<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
    *("<|SYSTEM_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>"),
)
# `<co>…</co: 0:[1]>` or `<co: 0>…</co: 0>` around what is cited.
CITATIONS: Final = ("<co>", "<co:", "</co:", "</co>")
# What begins the text of an answer.
ANSWERS: Final = ("<|START_RESPONSE|>", "<|START_TEXT|>")
_MAX_SOURCES: Final = 200
_SOURCES = re.compile(r"[\s\d:,\[\]]*>")


def turn(role: str) -> tuple[str, str]:
    """What stands around the turn of a role."""
    return f"<|START_OF_TURN_TOKEN|><|{role}_TOKEN|>", "<|END_OF_TURN_TOKEN|>"


class CohereReader(MarkedReader):
    """Marked calls, and text without its marks of citations. The begin of the answer's text ends a thought."""

    def _draft(self, opening: str, close: str) -> Parse[bool]:
        if opening.strip() in ANSWERS:
            self.source.unread(opening)
            return True
        return (yield from super()._draft(opening, close))

    def _marked(self, blanks: str, tag: str) -> Parse[None]:
        if tag not in CITATIONS:
            yield from super()._marked(blanks, tag)
            return
        if blanks:
            self.emit(self.say(blanks))
        if tag.endswith(">"):
            self.emit(Markup(tag))
            return
        sources, end = yield from read_until(self.source, Markers(">"), _MAX_SOURCES)
        is_citation = bool(_SOURCES.fullmatch(sources + end))
        self.emit(Markup(tag + sources + end) if is_citation else self.say(tag + sources + end))
