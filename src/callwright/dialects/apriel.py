"""Apriel Thinker: reasoning as plain text up to `[BEGIN FINAL RESPONSE]`, calls as a list in `<tool_calls>`.

The format of Apriel 1.5 and 1.6; the prompt of 1.6 ends in `Here are my reasoning steps:`. Source: the chat template of
Apriel-1.6-15b-Thinker: the tools stand as Python dicts in the system turn.
"""

import json
from collections.abc import Sequence
from typing import Final, Literal

from callwright.conversation import Call, Conversation
from callwright.dialects.base import Dialect
from callwright.dialects.prompts.template import Frame, ThinkingOptions
from callwright.dialects.readers.marked import CallMarks
from callwright.prompt import PromptBuilder

__all__ = ["DIALECT"]


class Options(ThinkingOptions, frozen=True, kw_only=True):
    """`thinking`: the answer begins in reasoning unless told otherwise, as in the template."""

    thinking: Literal["model", "open", "off"] = "open"


_OPEN: Final = "<tool_calls>"
_CLOSE: Final = "</tool_calls>"
_THOUGHT: Final = ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]")
_MARKS: Final = CallMarks(
    opens=(_OPEN,),
    closes=(_CLOSE,),
    special=False,
    thoughts=(_THOUGHT, ("<think>", "</think>")),
    ends=("[END FINAL RESPONSE]", "<|end|>"),
)


def _calls(out: PromptBuilder, calls: Sequence[Call], _: int) -> None:
    out.text(_OPEN, "[")
    for count, call in enumerate(calls):
        out.text(", " if count else "", f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "arguments": ')
        out.json(call.arguments or "{}").text(f', "id": {json.dumps(call.id)}}}' if call.id else "}")
    out.text("]", _CLOSE)


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    shown = repr([tool.as_openai() for tool in conversation.tools])
    out.text(
        "You are provided with function signatures within <available_tools></available_tools> XML tags. You may call "
        f"one or more functions to assist with the user query.\n<available_tools>{shown}</available_tools>\n"
        "Return all function calls as a list of JSON objects within <tool_calls></tool_calls> XML tags, each with the "
        "name of the function and its arguments:\n"
    )
    _calls(out, [Call("function_name", '{"parameter_name": "value"}')], 0)


_FRAME: Final = Frame(
    controls=(
        *("<s>", "<|begin_system|>", "<|begin_user|>", "<|begin_assistant|>", "<|begin_tool_result|>", "<|end|>"),
        *("<|begin_content|>",),
    ),
    system=("<s><|begin_system|>\n", "\n"),
    user=("<|begin_user|>\n", ""),
    assistant=("\n<|begin_assistant|>\n", "\n<|end|>\n"),
    tool=("<|begin_tool_result|>\n", "\n\n\n"),
    thought=(f"{_THOUGHT[0]}\n", f"\n{_THOUGHT[1]}\n"),
    off=f"{_THOUGHT[1]}\n",
    gap="\n",
    calls_begin="\n",
    tools=_tools,
    calls=_calls,
    each=True,
)


DIALECT = Dialect(
    name="apriel",
    model_families="Apriel 1.5 and 1.6 Thinker",
    model_globs=("apriel*",),
    template_markers=("[BEGIN FINAL RESPONSE]",),
    source="chat template of Apriel-1.6-15b-Thinker",
    tokenizers=("apriel",),
    stops=("<|end|>",),
    options=Options,
    prompt=_FRAME,
    calls=_MARKS,
)
