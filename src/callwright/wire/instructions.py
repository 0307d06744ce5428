"""The instructions before a conversation, which the requests of a client have in common."""

from callwright.conversation import Message, TextPart, shared_item


def instructions(text: str) -> Message:
    """A message of the system with this text: the same object for the same text."""
    return shared_item(Message("system", (TextPart(text),)))
