"""Text in an answer that is never a call, whatever it looks like.

These are verbatim repetitions of an earlier message, and text in the form that the request demands.
"""

from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from callwright.conversation import CallOutput, Conversation, Item, Message, parts_text
from callwright.schema.keywords import properties
from callwright.schema.validate import validator_of
from callwright.tolerant_json.codec import NotJsonError, decode


class KnownTexts(Struct, dict=True):
    """The texts of one conversation; called with one that may be a call."""

    conversation: Conversation

    def __call__(self, text: str) -> bool:
        """Whether this is no call, but text."""
        text = text.strip()
        return any(text in said for said in self._all_texts) or self._is_answer(text)

    @cached_property
    def _all_texts(self) -> tuple[str, ...]:
        return tuple(text for item in self.conversation.items for text in _texts(item))

    def _is_answer(self, text: str) -> bool:
        """Whether it fits the schema of the answer, which declares all that it holds: an open one fits every call."""
        form = self.conversation.response_format
        if form is None or form.schema is None:
            return False
        try:
            value = decode(text)
        except NotJsonError:
            return False
        declared = properties(form.schema)
        if not isinstance(value, dict) or not value.keys() <= declared.keys():
            return False
        return validator_of(form.schema).is_valid(value)


def _texts(item: Item) -> Iterator[str]:
    """The text of an item; instructions are left out, as they may show how calls are written, and mean it."""
    if isinstance(item, CallOutput) or (isinstance(item, Message) and item.role in ("user", "assistant")):
        yield parts_text(item.parts)
