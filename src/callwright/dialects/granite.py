"""Granite 3: `<|tool_call|>` and a list of `{"name": …, "arguments": {…}}`, whose bracket ends it.

The format of Granite 3.0 to 3.3; from 3.1 on the marker may be the text `<tool_call>`. Source: the chat template of
Granite-3.3-2B-Instruct: the tools are in a turn of their own.
"""

import json
from typing import Final

from callwright.conversation import Conversation
from callwright.dialects.base import Dialect
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, in_json
from callwright.prompt import PromptBuilder
from callwright.reading.json.marked import CallMarks

_CALLS: Final = CallLayout(open="<|tool_call|>[", begin=in_json(), end="}", between=", ", close="]")
# Phi-4-mini writes the same list, and closes it (microsoft/onnxruntime-genai#1334).
_MARKS: Final = CallMarks.of(_CALLS, opens=("<tool_call>",), around=("<|/tool_call|>",), ends=("<|end_of_text|>",))


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    out.control("<|start_of_role|>").text("available_tools").control("<|end_of_role|>")
    out.text(json.dumps([tool.as_openai() for tool in conversation.tools], indent=4, ensure_ascii=False))
    out.control("<|end_of_text|>").text("\n")


_TURNS: Final = Turns(
    controls=("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|tool_call|>", "<think>", "</think>"),
    head="«<|start_of_role|>system<|end_of_role|>$text<|end_of_text|>\n»$tools",
    system="<|start_of_role|>system<|end_of_role|>$text<|end_of_text|>\n",
    user="<|start_of_role|>user<|end_of_role|>$text<|end_of_text|>\n",
    assistant="<|start_of_role|>assistant<|end_of_role|>$written<|end_of_text|>\n",
    written="«<think>$thought:trim</think>»$text$calls",
    outputs="$each",
    output="<|start_of_role|>tool<|end_of_role|>$text<|end_of_text|>\n",
    answer="<|start_of_role|>assistant<|end_of_role|>«off¦<think></think>»«open¦<think>$thought»",
    calls=_CALLS,
    tools=_tools,
)


DIALECT = Dialect(
    name="granite",
    aliases=("granite3",),
    model_families="Granite 3.0 to 3.3",
    model_globs=("granite-3*", "granite-3.*"),
    template_markers=("<|tool_call|> + available_tools", "available_tools"),
    source="chat template of Granite-3.3-2B-Instruct",
    tokenizers=("granite3",),
    stops=("<|end_of_text|>",),
    options=ThinkingOptions,
    prompt=_TURNS,
    calls=_MARKS,
)
