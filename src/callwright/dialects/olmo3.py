"""Olmo 3: `<function_calls>f(a="x")` and further calls, one on each line, up to `</function_calls>`.

Calls are Python, with `null`, `true` and `false` beside Python's words. The functions stand as JSON in the system turn,
outputs come back in the role `environment`. Source: the chat template of Olmo-3-7B-Instruct. Olmo-3-Think leaves
`<think>` open.
"""

import json
from typing import Any, Final, Literal, assert_never

from callwright.conversation import AssistantTurn, Conversation, ConversationTurn, Message, ToolTurn
from callwright.dialects.base import Dialect, PromptBy, RenderOptions, TurnMarks
from callwright.dialects.call_layout import CallLayout
from callwright.dialects.prompts.chat_messages import format_note, plain_text, split_instructions
from callwright.dialects.prompts.kept_parts import put_tools, put_turns
from callwright.dialects.prompts.literal_arguments import PythonArguments
from callwright.dialects.prompts.told import ToldTurns, outputs_in
from callwright.dialects.readers.python_calls import PythonForm
from callwright.prompt import Prompt, PromptBuilder, own_words

__all__ = ["DIALECT"]

_STOPS: Final = ("<|im_end|>", "<|endoftext|>")

_OPEN: Final = "<function_calls>"
_CLOSE: Final = "</function_calls>"
_CALLS: Final = CallLayout(
    open=_OPEN, begin="${name}(", arguments=PythonArguments(), end=")", between="\n", close=_CLOSE
)
_FORM: Final = PythonForm(_CALLS, ((_OPEN, _CLOSE),), control=False)
_CONTROLS: Final = (*("<|im_start|>", *_STOPS, _OPEN, _CLOSE, "<functions>", "</functions>", "<think>", "</think>"),)
_IDENTITY: Final = "You are a helpful function-calling AI assistant."
_WITH_TOOLS: Final = (
    "You are provided with function signatures within <functions></functions> XML tags. You may call one or more "
    "functions to assist with the user query. Output any function calls within <function_calls></function_calls> XML "
    "tags. Do not make assumptions about what values to plug into functions."
)


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the model, `open` begins the answer in reasoning, as Olmo-3-Think has it."""

    thinking: Literal["model", "open"] = "model"


# --- prompts ---


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt in ChatML, up to `<|im_start|>assistant`."""
    out = PromptBuilder()
    instructions, items = split_instructions(conversation.items)
    instructions += format_note(conversation)
    if instructions or conversation.tools:
        _begin(out, "system").text("\n\n".join(instructions) or _IDENTITY)
        if conversation.tools:
            put_tools(out.text(" "), conversation, _tools)
        out.control("<|im_end|>").text("\n")
    put_turns(out, items, _turn)
    begins = options.add_generation_prompt
    if begins:
        _begin(out, "assistant")
        if options.thinking == "open":
            out.control("<think>")
    return Prompt(out.pieces(), _CONTROLS, start="reasoning" if begins and options.thinking == "open" else "assistant")


def _turn(out: PromptBuilder, turn: ConversationTurn, number: int) -> None:
    """Append a turn of the history."""
    match turn:
        case Message(role, parts):
            _begin(out, "user" if role == "user" else "system").text(plain_text(parts, number))
        case AssistantTurn(_, message, calls):
            # Reasoning is dropped on purpose: the template shows none.
            _begin(out, "assistant").text(plain_text(message.parts, number) if message else "")
            if calls:
                _CALLS.put(out, calls, controls=_CONTROLS)
        case ToolTurn(outputs):
            for count, (_, output) in enumerate(outputs):
                if count:
                    out.control("<|im_end|>").text("\n")
                _begin(out, "environment").text(plain_text(output.parts, number))
        case _:
            assert_never(turn)
    out.control("<|im_end|>").text("\n")


_TOLD: Final = ToldTurns(_CONTROLS, lambda turn: _said(turn).wire_text, outputs_in("", "", "\n\n"))


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    return _TOLD.messages(conversation, _tools)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: a line for each call."""
    return _said(turn).text


def _said(turn: AssistantTurn) -> Prompt:
    out = PromptBuilder()
    if turn.reasoning:
        out.control("<think>").text(turn.reasoning).control("</think>").text("\n")
    out.text(turn.text)
    if turn.calls:
        _CALLS.put(out, turn.calls, controls=_CONTROLS)
    return Prompt(out.pieces(), _CONTROLS)


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    shown = json.dumps([tool.as_openai() for tool in conversation.tools], ensure_ascii=False)
    own_words(out, f"{_WITH_TOOLS}\n\n", _CONTROLS).control("<functions>").text(shown).control("</functions>")


def _begin(out: PromptBuilder, role: str) -> PromptBuilder:
    return out.control("<|im_start|>").text(f"{role}\n")


# --- output ---


DIALECT = Dialect(
    name="olmo3",
    aliases=("olmo",),
    model_families="Olmo 3",
    model_globs=("olmo-3", "olmo-3.*", "olmo-hybrid"),
    template_markers=("<function_calls> + <functions>",),
    source="chat template of Olmo-3-7B-Instruct",
    tokenizers=("dolma2",),
    stops=_STOPS,
    options=Options,
    prompt=PromptBy(
        render=render,
        messages=messages,
        write=write,
        marks=TurnMarks(thought=("<think>", "</think>\n"), controls=_CONTROLS),
    ),
    calls=_FORM,
)
