"""Shared parts of the prompts of MiniMax: roles as words after a token, tools as JSON in tags."""

from collections.abc import Sequence
from typing import Final

from callwright.conversation import Item
from callwright.dialects.prompts.chat_messages import split_instructions

END: Final = "[e~["
TOKENS: Final = ("]~!b[", "]~b]", END)
USER: Final = "]~b]user\n$text[e~[\n"
OUTPUTS: Final = "]~b]tool$each[e~[\n"
OUTPUT: Final = "\n<response>$text</response>"
TOOLS: Final = (
    "# Tools\nYou may call one or more tools to assist with the user query.\n"
    "Here are the tools available in JSONSchema format:\n\n<tools>\n$each</tools>\n\n"
)
TOOL: Final = "<tool>$function</tool>\n"
_DEFAULT_SYSTEM: Final = "You are a helpful assistant."


def instructions_or_default(items: Sequence[Item]) -> tuple[list[str], tuple[Item, ...]]:
    """The texts of the system messages at the start, or the template's own, and the items after them."""
    texts, others = split_instructions(items)
    return texts or [_DEFAULT_SYSTEM], others
