"""LFM2: `<|tool_call_start|>[f(a="x"), g()]<|tool_call_end|>`, calls as Python.

The format of Liquid's LFM2 and LFM2.5. Source: the chat templates of LFM2-1.2B and LFM2.5-8B-A1B. The tools stand as
JSON behind the system text, outputs come back in the role `tool`. The template of LFM2 drops the calls of history; here
they stand as that of LFM2.5 has them.
"""

import json
from typing import Any, Final, Literal, assert_never

from callwright.conversation import AssistantTurn, Conversation, ConversationTurn, Message, ToolTurn
from callwright.dialects.base import Dialect, PromptBy, RenderOptions, TurnMarks
from callwright.dialects.call_layout import CallLayout
from callwright.dialects.prompts.chat_messages import (
    format_note,
    last_asked,
    plain_text,
    split_instructions,
)
from callwright.dialects.prompts.kept_parts import put_tools, put_turns
from callwright.dialects.prompts.literal_arguments import PythonArguments
from callwright.dialects.prompts.told import ToldTurns, outputs_in
from callwright.dialects.readers.python_calls import PythonForm
from callwright.prompt import Prompt, PromptBuilder

__all__ = ["DIALECT"]


_OPEN: Final = "<|tool_call_start|>"
_CLOSE: Final = "<|tool_call_end|>"


def _calls(*in_json: type) -> CallLayout:
    """Calls as Python, with values of some types in JSON."""

    def literal(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False) if isinstance(value, in_json) else repr(value)

    arguments = PythonArguments(literal)
    return CallLayout(
        open=f"{_OPEN}[", begin="${name}(", arguments=arguments, end=")", between=", ", close=f"]{_CLOSE}"
    )


_CALLS: Final = _calls(dict)
_CALLS_OF: Final = {"lfm2": _calls(dict, list), "lfm2.5": _CALLS}
_FORM: Final = PythonForm(_CALLS, ((_OPEN, _CLOSE),))
_LIST: Final = ("<|tool_list_start|>", "<|tool_list_end|>")
_RESULT: Final = ("<|tool_response_start|>", "<|tool_response_end|>")
_CONTROLS: Final = (
    *("<|startoftext|>", "<|im_start|>", "<|im_end|>", _OPEN, _CLOSE, *_LIST, *_RESULT, "<think>", "</think>"),
)


class Options(RenderOptions, frozen=True, kw_only=True):
    """`flavour`: in LFM2 the tools and outputs stand between tokens of their own, and lists are JSON; not in LFM2.5."""

    flavour: Literal["lfm2", "lfm2.5"] = "lfm2"


# --- prompts ---


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt in ChatML, up to `<|im_start|>assistant`."""
    out = PromptBuilder().control("<|startoftext|>")
    instructions, items = split_instructions(conversation.items)
    instructions = [*filter(None, instructions), *format_note(conversation)]
    if instructions or conversation.tools:
        _begin(out, "system").text("\n\n".join(instructions))
        if conversation.tools:
            put_tools(out.text("\n" if instructions else ""), conversation, _tools, options)
        out.control("<|im_end|>").text("\n")
    put_turns(out, items, _turn, options, asked=last_asked(conversation, items))
    if options.add_generation_prompt:
        _begin(out, "assistant")
    return Prompt(out.pieces(), _CONTROLS)


def _turn(out: PromptBuilder, turn: ConversationTurn, number: int, options: Options, *, reasons: bool) -> None:
    """Append a turn of the history."""
    match turn:
        case Message(role, parts):
            _begin(out, "user" if role == "user" else "system").text(plain_text(parts, number))
        case AssistantTurn(reasoning, message, calls):
            _begin(out, "assistant")
            if reasoning and reasons:
                out.control("<think>").text(reasoning).control("</think>")
            out.text(plain_text(message.parts, number) if message else "")
            if calls:
                _CALLS_OF[options.flavour].put(out, calls, controls=_CONTROLS)
        case ToolTurn(outputs):
            for count, (_, output) in enumerate(outputs):
                if count:
                    out.control("<|im_end|>").text("\n")
                _begin(out, "tool")
                _put(out, _RESULT, plain_text(output.parts, number), options)
        case _:
            assert_never(turn)
    out.control("<|im_end|>").text("\n")


_TOLD: Final = ToldTurns(_CONTROLS, lambda turn: _said(turn).wire_text, outputs_in(*_RESULT))


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    return _TOLD.messages(conversation, _tools, options)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: all calls in one list."""
    return _said(turn).text


def _said(turn: AssistantTurn) -> Prompt:
    out = PromptBuilder()
    if turn.reasoning:
        out.control("<think>").text(turn.reasoning).control("</think>")
    out.text(turn.text)
    if turn.calls:
        _CALLS.put(out, turn.calls, controls=_CONTROLS)
    return Prompt(out.pieces(), _CONTROLS)


def _tools(out: PromptBuilder, conversation: Conversation, options: Options) -> None:
    out.text("List of tools: ")
    _put(out, _LIST, json.dumps([tool.as_openai() for tool in conversation.tools], ensure_ascii=False), options)


def _put(out: PromptBuilder, marks: tuple[str, str], text: str, options: Options) -> None:
    """A text between its tokens, or without them."""
    begin, end = marks if options.flavour == "lfm2" else ("", "")
    out.control(begin).text(text).control(end)


def _begin(out: PromptBuilder, role: str) -> PromptBuilder:
    return out.control("<|im_start|>").text(f"{role}\n")


# --- output ---


DIALECT = Dialect(
    name="lfm2",
    aliases=("lfm2.5",),
    model_families="LFM2, LFM2.5",
    model_globs=("lfm-2*", "openpangu-2"),
    model_options={"lfm2.5": {"flavour": "lfm2.5"}, "lfm-2.5": {"flavour": "lfm2.5"}},
    template_markers=("<|tool_list_start|>", "<|tool_call_start|>", "List of tools: "),
    source="chat templates of LFM2-1.2B and LFM2.5-8B-A1B; parsers of openPangu-2.0",
    tokenizers=("lfm2", "openpangu"),
    stops=("<|im_end|>",),
    options=Options,
    prompt=PromptBy(
        render=render,
        messages=messages,
        write=write,
        marks=TurnMarks(thought=("<think>", "</think>"), controls=_CONTROLS),
    ),
    calls=_FORM,
)
