"""Laguna: `<tool_call>f` and lines of `<arg_key>k</arg_key>`, `<arg_value>v</arg_value>`, as GLM 4.5 writes it.

Poolside's models. Source: vLLM's parser `poolside_v1` and Ollama's of Laguna; both read JSON between the tags as well,
and some checkpoints open a call with the tag of a turn. Their sources show of the prompt only that turns are marked
`<system>`, `<user>` and `<assistant>`; the rest is rendered like GLM's: tools in the system turn, outputs as
`<tool_response>` in a user's turn.
"""

from typing import Any, Final, Literal, assert_never

import msgspec

from toolwright.conversation import AssistantTurn, Conversation, Message, ToolTurn
from toolwright.dialects._chat import format_note, plain_text, split_instructions
from toolwright.dialects._key_value_tags import LINES, KeyValueTags, put_calls, put_tools, said, told
from toolwright.dialects._key_values import KeyValueReader
from toolwright.dialects.base import RenderOptions
from toolwright.prompt import Prompt, PromptBuilder
from toolwright.source import Source, Steps
from toolwright.toolset import Toolset

__all__ = ["Options", "aliases", "messages", "models", "parse", "render", "source", "stop_token_ids", "stops", "write"]

aliases = ("poolside_v1", "poolside")
models = "Poolside Laguna"
names = ("laguna*", "*poolside*")
source = "vLLM's parser poolside_v1; Ollama's parser of Laguna"
stops = ("</assistant>",)
stop_token_ids = ()

_TAGS: Final = KeyValueTags(gaps=LINES, between="\n")
_IN_TURN: Final = KeyValueTags(call="<user>", call_end="</user>")
_ROLES: Final = ("system", "user", "assistant")
_CONTROLS: Final = (
    *(tag for role in _ROLES for tag in (f"<{role}>", f"</{role}>")),
    *(*_TAGS.literals, "<tool_response>", "</tool_response>", "<think>", "</think>"),
)


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, `off` behind an empty one."""

    thinking: Literal["open", "off"] = "open"


# --- prompts ---


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to `<assistant>` and the begin of its thought."""
    out = PromptBuilder()
    instructions, items = split_instructions(conversation.items)
    instructions += format_note(conversation)
    if instructions or conversation.tools:
        out.control("<system>").text("\n" + "\n\n".join(instructions))
        if conversation.tools:
            put_tools(out.text("\n\n" if instructions else ""), _TAGS, conversation.tools)
        out.text("\n").control("</system>").text("\n")
    for number, turn in enumerate(msgspec.structs.replace(conversation, items=items).turns()):
        role = "assistant" if isinstance(turn, AssistantTurn) else "user"
        match turn:
            case Message(own, parts):
                role = "user" if own == "user" else "system"
                out.control(f"<{role}>").text("\n" + plain_text(parts, number))
            case AssistantTurn(reasoning, message, calls):
                out.control("<assistant>").text("\n").control("<think>").text(reasoning or "").control("</think>")
                text = plain_text(message.parts, number) if message else ""
                out.text(f"\n{text}" if text else "")
                if calls:
                    put_calls(out.text("\n"), _TAGS, calls)
            case ToolTurn(outputs):
                out.control("<user>")
                for _, output in outputs:
                    out.text("\n").control("<tool_response>").text(f"\n{plain_text(output.parts, number)}\n")
                    out.control("</tool_response>")
            case _:
                assert_never(turn)
        out.text("\n").control(f"</{role}>").text("\n")
    begins, thinks = options.add_generation_prompt, options.thinking == "open"
    if begins:
        out.control("<assistant>").text("\n").control("<think>", "" if thinks else "</think>")
    return Prompt(out.pieces(), _CONTROLS, start="reasoning" if begins and thinks else "assistant")


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    return told(conversation, _TAGS, _CONTROLS)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one block for each call."""
    return said(turn, _TAGS).text


# --- output ---


def parse(source: Source, start: str, tools: Toolset) -> Steps[None]:
    """Events of an output. `start`: `reasoning` when the prompt left `<think>` open."""
    return _Reader(source, tools, _TAGS, ends=stops, also=(_IN_TURN.call,)).read(start)


class _Reader(KeyValueReader):
    """Calls in their own tags, and those in the tags of a user's turn."""

    def _spelling(self, opener: str) -> Steps[tuple[str, KeyValueTags] | None]:
        yield from ()
        return "", _IN_TURN
