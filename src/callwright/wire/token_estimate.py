"""About how many tokens a conversation has, where no tokenizer is at hand: a quarter of its characters."""

from collections.abc import Sequence
from typing import Final

from callwright.conversation import Call, Conversation, FunctionTool, Item, Message, Reasoning, TextPart
from callwright.memo.prefixes import fold

_CHARACTERS_PER_TOKEN: Final = 4
# What Anthropic counts for the largest image that it takes; here for any image or file, whatever its bytes are.
_MEDIA_CHARACTERS: Final = 1_600 * _CHARACTERS_PER_TOKEN


def estimated_tokens(items: Sequence[Item], tools: Sequence[FunctionTool] = ()) -> int:
    """The approximate number of tokens: a quarter of the characters, and a fixed number for each image or file."""
    characters = fold(items, 0, _characters) + sum([len(tool.openai_json) for tool in tools])
    return max(1, characters // _CHARACTERS_PER_TOKEN)


def estimated_prompt(conversation: Conversation, *, is_native: bool) -> int:
    """The approximate number of tokens of the prompt, with the beginning of the answer. In mode native it lists the
    tools that a search found, too; else only their results have them.
    """
    items, tools = conversation.items, conversation.tools
    if conversation.prefill:
        items = (*items, Message("assistant", (TextPart(conversation.prefill),)))
    return estimated_tokens(items, tools if is_native else conversation.shown_tools or tools)


def _characters(before: int, items: Sequence[Item], start: int) -> int:
    return before + sum(map(_size, items[start:]))


def _size(item: Item) -> int:
    match item:
        case Call():
            return len(item.name) + len(item.arguments)
        case Reasoning(text):
            return len(text)
        case _:
            return sum([len(part.text) if isinstance(part, TextPart) else _MEDIA_CHARACTERS for part in item.parts])
