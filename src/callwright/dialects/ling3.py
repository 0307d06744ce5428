"""Ling 3: `<tool_call>f<arg_key>k</arg_key>` and `<arg_value>v</arg_value>`, as GLM 4.5 writes it.

Source: the chat template of Ling-3.0, as inclusionAI's models and the engines that serve them show it. Turns are
`<role>NAME</role> … <|role_end|>`; the last line of the system turn switches reasoning, which the prompt leaves open.
"""

from typing import Any, Final, Literal, assert_never

from callwright.conversation import AssistantTurn, Conversation, ConversationTurn, Message, ToolTurn
from callwright.dialects.base import Dialect, PromptBy, RenderOptions, TurnMarks
from callwright.dialects.prompts.chat_messages import format_note, plain_text, split_instructions
from callwright.dialects.prompts.kept_parts import put_tools, put_turns
from callwright.dialects.prompts.key_value_tags import LINES, KeyValueTags, put_calls, said, told, write_tools
from callwright.dialects.readers.key_values import KeyValueForm
from callwright.prompt import Prompt, PromptBuilder

__all__ = ["DIALECT"]

_STOPS: Final = ("<|role_end|>",)

_TAGS: Final = KeyValueTags(gaps=LINES, between="\n")
# As the template shows earlier calls.
_HISTORY: Final = KeyValueTags(gaps=("", "\n", "\n"), name_gap="\n", between="\n")
_CONTROLS: Final = (
    *("<role>", "</role>", *_STOPS, *_TAGS.literals),
    *("<tool_response>", "</tool_response>", "<think>", "</think>"),
)
_WHEN: Final = (
    "If none of the functions can be used, point it out. If the given question lacks the parameters required by the "
    "function, also point it out.\nIf you need to use a function, for each function call, output"
)


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, `off` behind an empty one."""

    thinking: Literal["open", "off"] = "open"


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to `<role>ASSISTANT</role>` and the begin of its thought."""
    out = PromptBuilder()
    instructions, items = split_instructions(conversation.items)
    thinks = options.thinking == "open"
    _begin(out, "SYSTEM")
    for text in [*instructions, *format_note(conversation)]:
        out.text(text + "\n")
    if conversation.tools:
        put_tools(out, conversation, write_tools, _TAGS, _WHEN)
        out.text("\n")
    out.text(f"detailed thinking {'on' if thinks else 'off'}").control("<|role_end|>")
    put_turns(out, items, _turn)
    begins = options.add_generation_prompt
    if begins:
        _begin(out, "ASSISTANT").text("\n").control("<think>", "" if thinks else "</think>")
    return Prompt(out.pieces(), _CONTROLS, start="reasoning" if begins and thinks else "assistant")


def _turn(out: PromptBuilder, turn: ConversationTurn, number: int) -> None:
    """Append a turn of the history."""
    match turn:
        case Message(role, parts):
            _begin(out, "HUMAN" if role == "user" else "SYSTEM").text(plain_text(parts, number))
        case AssistantTurn(reasoning, message, calls):
            _begin(out, "ASSISTANT").text("\n").control("<think>").text((reasoning or "").strip("\n"))
            text = plain_text(message.parts, number) if message else ""
            out.control("</think>").text(text)
            if calls:
                put_calls(out.text("\n" if text else ""), _HISTORY, calls)
        case ToolTurn(outputs):
            _begin(out, "OBSERVATION")
            for _, output in outputs:
                out.text("\n").control("<tool_response>").text(f"\n{plain_text(output.parts, number)}\n")
                out.control("</tool_response>")
        case _:
            assert_never(turn)
    out.control("<|role_end|>")


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    return told(conversation, _TAGS, _CONTROLS)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one block for each call."""
    return said(turn, _TAGS).text


def _begin(out: PromptBuilder, role: str) -> PromptBuilder:
    return out.control("<role>").text(role).control("</role>")


DIALECT = Dialect(
    name="ling3",
    aliases=("ling", "bailing"),
    model_families="Ling 3, Ring 2.6",
    model_globs=("ling-3*", "ring-2.6"),
    template_markers=("<arg_key> + <role_end>", "<arg_key> + <|role_end|>"),
    source="chat template of Ling-3.0",
    tokenizers=("ling",),
    stops=_STOPS,
    options=Options,
    prompt=PromptBy(
        render=render,
        messages=messages,
        write=write,
        marks=TurnMarks(thought=("<think>", "</think>\n"), controls=_CONTROLS),
    ),
    calls=KeyValueForm(_TAGS, ends=_STOPS),
)
