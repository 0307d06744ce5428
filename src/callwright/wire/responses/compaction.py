"""Compaction in the Responses API: its threshold, the items that remain, and the item that holds the summary.

A summary that the client asked for (`/responses/compact`, `compaction_trigger`) adds to the items that the client sends
with it. One that the server wrote during a turn (`context_management`) replaces everything before it except for items
that the model has not answered yet. Both are sealed, and the sealed text has a mark for the kind.
"""

from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

import msgspec

from callwright.conversation import Call, CallOutput, Item, Message, Reasoning, TextPart, instructs
from callwright.errors import RequestError
from callwright.wire.sealed import SealedTexts, sealed
from callwright.wire.server_words import summary_words

DEFAULT_THRESHOLD: Final = 100_000
_STANDS_FOR_ALL: Final = "\0"


class ContextManagement(msgspec.Struct):
    """An entry of `context_management`."""

    type: str
    compact_threshold: Annotated[int, msgspec.Meta(ge=1)] | None = None


class Summary(NamedTuple):
    """The content of a compaction item. `stands_for_all`: it replaces all items that the model has answered."""

    text: str
    stands_for_all: bool


def compact_threshold(given: Sequence[ContextManagement] | None) -> int | None:
    """The number of tokens from which a conversation is compacted. None: never. Raises `RequestError`."""
    if not given:
        return None
    for number, entry in enumerate(given):
        if entry.type != "compaction":
            raise RequestError(
                f"Invalid value: '{entry.type}'. Supported values are: 'compaction'.",
                param=f"context_management[{number}].type",
                code="invalid_value",
            )
    return min(entry.compact_threshold or DEFAULT_THRESHOLD for entry in given)


def pack(summary: Summary) -> str:
    """The `encrypted_content` of a compaction item."""
    return sealed((_STANDS_FOR_ALL if summary.stands_for_all else "") + summary.text)


def unpack(content: str, sealed_texts: SealedTexts) -> Summary | None:
    """The inverse of `pack`; None for the content of another server. Raises `RequestError`, see `SealedTexts`."""
    text = sealed_texts.text(content)
    return None if text is None else Summary(text.removeprefix(_STANDS_FOR_ALL), text.startswith(_STANDS_FOR_ALL))


def kept_beside_summary(items: Sequence[Item]) -> tuple[list[int], int]:
    """The indices of the items that remain in a prompt, in order, and the number of those before the summary.

    Before it: messages of system and developer. After it: everything after the model's last message, with the calls
    answered there and the reasoning that led to them.
    """
    begin = len(items)
    while begin and isinstance(items[begin - 1], CallOutput | Message) and not _is_models(items[begin - 1]):
        begin -= 1
    answered = {item.call_id for item in items[begin:] if isinstance(item, CallOutput)}
    while begin and answered and _leads(items[begin - 1], answered):
        begin -= 1
    before = [number for number in range(begin) if instructs(items[number])]
    return [*before, *range(begin, len(items))], len(before)


def shortened(items: Sequence[Item], summary: str) -> tuple[Item, ...]:
    """The items with the summary in place of those that it replaces, as a later request reads them."""
    numbers, before = kept_beside_summary(items)
    kept = [items[number] for number in numbers]
    told = Message("user", (TextPart(summary_words(summary)),))
    return (*kept[:before], told, *kept[before:])


def _leads(item: Item, answered: set[str]) -> bool:
    return isinstance(item, Reasoning) or (isinstance(item, Call) and item.id in answered)


def _is_models(item: Item) -> bool:
    return isinstance(item, Message) and item.role == "assistant"
