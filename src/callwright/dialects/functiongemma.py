"""FunctionGemma: `<start_function_call>call:f{k:<escape>v<escape>,n:3}<end_function_call>`.

A 270M model for calls. Source: the model's documentation. The tools are declared in the same notation in the
developer's turn, an answer that calls ends with `<start_function_response>`, and the results follow it in the
developer's name. The model does not think; fine-tunes do, between `<think>` and `</think>`.
"""

from typing import Any, Final

from callwright.conversation import AssistantTurn, Conversation
from callwright.dialects._gemma import SHOWN, GemmaTurns, declare
from callwright.dialects.base import Dialect, PromptBy, RenderOptions, TurnMarks
from callwright.dialects.prompts.chat_messages import format_note, split_instructions
from callwright.dialects.prompts.kept_parts import put_tools
from callwright.dialects.prompts.told import ToldTurns
from callwright.dialects.readers.notation import Notation
from callwright.prompt import Prompt, PromptBuilder

__all__ = ["DIALECT"]

_STOPS: Final = ("<end_of_turn>", "<start_function_response>")

_RESULT: Final = ("<start_function_response>", "<end_function_response>")
_FORM: Final = Notation("<start_function_call>", "<end_function_call>", "<escape>", _RESULT, ends=_STOPS)
_DECLARE: Final = ("<start_function_declaration>", "<end_function_declaration>")
_CONTROLS: Final = (
    *("<bos>", "<start_of_turn>", "<end_of_turn>", _FORM.call, _FORM.call_end, _FORM.quote),
    *(*_DECLARE, *_RESULT),
)
_TURNS: Final = GemmaTurns(_FORM, _CONTROLS, ("<start_of_turn>", "<end_of_turn>"), "developer")
_CAN_CALL: Final = "You are a model that can do function calling with the following functions"


class Options(RenderOptions, frozen=True, kw_only=True):
    """Nothing of its own."""


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to `<start_of_turn>model`, or to the results of the last calls."""
    out = PromptBuilder().control("<bos>")
    instructions, items = split_instructions(conversation.items)
    instructions += format_note(conversation)
    if conversation.tools:
        instructions = [_CAN_CALL, *instructions]
    if instructions:
        _TURNS.begin(out, "developer").text("\n".join(instructions))
        put_tools(out, conversation, _tools)
        _TURNS.end(out)
    answering = _TURNS.put(out, items, -1)
    if options.add_generation_prompt and not answering:
        _TURNS.begin(out, "model")
    return Prompt(out.pieces(), _CONTROLS)


_TOLD: Final = ToldTurns(
    _CONTROLS,
    lambda turn: _said(turn).wire_text,
    lambda outputs: "\n".join(f"{_RESULT[0]}{_result(*output)}{_RESULT[1]}" for output in outputs),
)


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    return _TOLD.messages(conversation, _told_tools)


def _told_tools(out: PromptBuilder, conversation: Conversation) -> None:
    _tools(out.text(_CAN_CALL + "\n"), conversation)


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    for tool in conversation.tools:
        out.control(_DECLARE[0])
        declare(out, _FORM.quote, tool)
        out.control(_DECLARE[1])


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it."""
    return _said(turn).text


def _said(turn: AssistantTurn) -> Prompt:
    out = PromptBuilder()
    out.text(turn.text)
    _FORM.layout.put(out, turn.calls, controls=_CONTROLS)
    return Prompt(out.pieces(), _CONTROLS)


def _result(name: str, text: str) -> str:
    return f"response:{name}{{value:{_FORM.quote}{text}{_FORM.quote}}}"


DIALECT = Dialect(
    name="functiongemma",
    aliases=("function_gemma",),
    model_families="FunctionGemma",
    model_globs=("functiongemma",),
    template_markers=("<start_function_call>",),
    source="documentation of FunctionGemma-270m-it",
    tokenizers=("functiongemma",),
    stops=_STOPS,
    options=Options,
    shown_keywords=SHOWN,
    prompt=PromptBy(render=render, messages=messages, write=write, marks=TurnMarks(controls=_CONTROLS)),
    calls=_FORM,
)
