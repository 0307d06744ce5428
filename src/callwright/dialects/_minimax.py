"""The prompts of MiniMax, which M2 and M3 share: turns of `]~b]role`, a line feed, the text, `[e~[`."""

import json
from collections.abc import Sequence
from typing import Final

import msgspec

from callwright.conversation import Conversation, Message, TextPart
from callwright.dialects.call_layout import CallLayout
from callwright.dialects.prompts.template import Frame, Result
from callwright.prompt import PromptBuilder, own_words

__all__ = ["END", "minimax_frame", "with_system"]

END: Final = "[e~["
_DEFAULT_SYSTEM: Final = "You are a helpful assistant."
_TOOLS: Final = (
    "# Tools\nYou may call one or more tools to assist with the user query.\n"
    "Here are the tools available in JSONSchema format:\n\n<tools>\n"
)


def minimax_frame(
    controls: tuple[str, ...], *, system: str, how_to: str, thought: tuple[str, str], calls: CallLayout
) -> Frame:
    """The turns of one version. `system` is the role of system texts and tools, `how_to` stands behind the tools,
    `thought` around reasoning; `calls` is the layout of the calls.
    """
    controls = ("]~!b[", "]~b]", END, *controls)

    def tools(out: PromptBuilder, conversation: Conversation) -> None:
        out.text(_TOOLS)
        for tool in conversation.tools:
            out.text(f"<tool>{json.dumps(tool.as_openai()['function'], ensure_ascii=False)}</tool>\n")
        own_words(out.text("</tools>\n\n"), how_to, controls)

    return Frame(
        controls=controls,
        begin="]~!b[",
        system=(f"]~b]{system}\n", f"{END}\n"),
        user=("]~b]user\n", f"{END}\n"),
        assistant=("]~b]ai\n", f"{END}\n"),
        tool=("]~b]tool", f"{END}\n"),
        tools=tools,
        calls=calls,
        results=_results,
        thought=thought,
    )


def with_system(conversation: Conversation) -> Conversation:
    """The conversation with a system text: the template's, if it has none."""
    items = conversation.items
    if items and isinstance(items[0], Message) and items[0].role in ("system", "developer"):
        return conversation
    default = Message("system", (TextPart(_DEFAULT_SYSTEM),))
    return msgspec.structs.replace(conversation, items=(default, *items))


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    for result in results:
        out.text(f"\n<response>{result.text}</response>")
