"""The instructions before a conversation, which the requests of a client have in common."""

from typing import Final

from callwright.conversation import Message, TextPart
from callwright.memo.latest import Latest

_COPIES: Final = 16  # bytes that a character takes, with what is made of it
_MESSAGE_BYTES: Final = 2_048
_KNOWN: Final[Latest[str, Message]] = Latest(16_777_216)


def instructions(text: str) -> Message:
    """A message of the system with this text: the same object again, so that what is made of it is still there."""
    known = _KNOWN.young.get(text)
    if known is None:
        known = _KNOWN.old.get(text) or Message("system", (TextPart(text),))
        _KNOWN.keep(text, known, _MESSAGE_BYTES + _COPIES * len(text))
    return known
