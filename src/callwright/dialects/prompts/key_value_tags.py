"""Renders calls and tools in formats with a name and elements for keys and values; `readers.key_values` parses them."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from msgspec import Struct

from callwright.conversation import AssistantTurn, Call, Conversation
from callwright.dialects.call_layout import CallLayout, TaggedArguments
from callwright.dialects.prompts.told import ToldTurns, outputs_in
from callwright.prompt import Prompt, PromptBuilder

__all__ = ["LINES", "KeyValueTags", "put_calls", "said", "told"]

LINES: Final = ("\n", "\n", "\n")


class KeyValueTags(Struct, frozen=True):
    """The tags of one format, and the white space between them.

    `name_end` stands behind a name, `blocks` around calls, `types` (a pair) around a type between key and value; each
    may be missing, and so may `value`. `gaps` are written before a key, before a value and before the end of a call,
    `name_gap` behind a name, `between` between calls. `LINES` as `gaps` puts each on its own line.
    """

    call: str = "<tool_call>"
    call_end: str = "</tool_call>"
    key: str = "<arg_key>"
    key_end: str = "</arg_key>"
    value: str = "<arg_value>"
    value_end: str = "</arg_value>"
    name_end: str = ""
    types: tuple[str, ...] = ()
    blocks: tuple[tuple[str, str], ...] = ()
    gaps: tuple[str, str, str] = ("", "", "")
    name_gap: str = ""
    between: str = ""

    @property
    def layout(self) -> CallLayout:
        """Calls as they are written, in their block if the format has one."""
        return _layout(self)

    @property
    def values(self) -> tuple[str, ...]:
        """The opening tag of a value, if the format has one."""
        return (self.value,) if self.value else ()

    @property
    def literals(self) -> tuple[str, ...]:
        """All tags; in the vocabularies of these models they are tokens."""
        frames = (*(tag for block in self.blocks for tag in block), self.call, self.call_end)
        elements = (self.key, self.key_end, *self.values, self.value_end, *self.types)
        return (*frames, *filter(None, (self.name_end,)), *elements)


@cache
def _layout(tags: KeyValueTags) -> CallLayout:
    before_key, before_value, before_end = tags.gaps
    return CallLayout(
        open="".join(begin + tags.between for begin, _ in tags.blocks),
        begin=f"{tags.call}${{name}}{tags.name_end}{tags.name_gap}",
        arguments=TaggedArguments(
            begin=f"{before_key}{tags.key}${{key}}{tags.key_end}{before_value}{tags.value}", end=tags.value_end
        ),
        end=before_end + tags.call_end,
        between=tags.between,
        close="".join(tags.between + end for _, end in tags.blocks),
    )


def put_calls(out: PromptBuilder, tags: KeyValueTags, calls: Sequence[Call]) -> None:
    """Append calls as the model writes them, in their block if the format has one."""
    tags.layout.put(out, calls, controls=tags.literals)


def said(turn: AssistantTurn, tags: KeyValueTags, think: str = "think") -> Prompt:
    """An assistant turn as the model writes it."""
    out = PromptBuilder()
    if turn.reasoning:
        out.control(f"<{think}>").text(turn.reasoning).control(f"</{think}>").text(tags.between)
    out.text(turn.text)
    if turn.calls:
        put_calls(out.text(tags.between if turn.text else ""), tags, turn.calls)
    return Prompt(out.pieces(), tags.literals)


def write_tools(
    out: PromptBuilder, conversation: Conversation, tags: KeyValueTags, lead: str = "For each function call, output"
) -> None:
    """Append the tools as JSON lines, and how to call them."""
    out.text("# Tools\n\nYou may call one or more functions to assist with the user query.\n\n")
    out.text("You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n")
    for tool in conversation.tools:
        out.text(tool.openai_json + "\n")
    out.text(f"</tools>\n\n{lead} the function name and arguments within the following XML format:\n")
    for begin, _ in tags.blocks:
        out.control(begin).text(tags.between)
    before_key, before_value, before_end = tags.gaps
    out.control(tags.call).text("{function-name}").control(tags.name_end)
    for number in (1, 2):
        out.text(before_key).control(tags.key).text(f"{{arg-key-{number}}}").control(tags.key_end)
        out.text(before_value).control(tags.value).text(f"{{arg-value-{number}}}").control(tags.value_end)
    out.text(f"{before_key}...{before_end}").control(tags.call_end)
    for _, end in tags.blocks:
        out.text(tags.between).control(end)


def told(conversation: Conversation, tags: KeyValueTags, controls: tuple[str, ...]) -> list[dict[str, Any]]:
    """Chat messages (mode prompt) with the tools in the system message, calls and outputs in the format's text."""
    return _told_turns(tags, controls).messages(conversation, write_tools, tags)


@cache
def _told_turns(tags: KeyValueTags, controls: tuple[str, ...]) -> ToldTurns:
    results = outputs_in("<tool_response>\n", "\n</tool_response>")
    return ToldTurns(controls, lambda turn: Prompt(said(turn, tags).pieces, controls).wire_text, results)
