"""Granite 20B for function calling: `<function_call> {"name": …, "arguments": {…}}`, a line for each call.

Source: the model's card and vLLM's parser. The last bracket ends a call. Turns stand behind `SYSTEM:`, `USER:` and
`ASSISTANT:`, the tools behind `<|function_call_library|>`.
"""

import json
from typing import Final

from callwright.conversation import Conversation
from callwright.dialects.base import Dialect
from callwright.dialects.call_layout import CallLayout, in_json
from callwright.dialects.prompts.template import Frame
from callwright.dialects.readers.marked import CallMarks
from callwright.prompt import PromptBuilder

__all__ = ["DIALECT"]


_CALLS: Final = CallLayout(begin="<function_call> " + in_json(), end="}", between="\n")
_MARKS: Final = CallMarks.of(_CALLS, around=("</function_call>",), special=False)


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    out.text("You have access to the following function calls. Produce a sequence of them that answers the user.\n")
    out.control("<|function_call_library|>")
    for tool in conversation.tools:
        out.text("\n", json.dumps(tool.as_openai()["function"], ensure_ascii=False))
    out.text('\n\nWrite each as <function_call> {"name": "function_name", "arguments": {"parameter_name": "value"}}')


_FRAME: Final = Frame(
    controls=("<|endoftext|>", "<|function_call_library|>"),
    system=("SYSTEM: ", "\n\n"),
    user=("USER: ", "\n"),
    assistant=("ASSISTANT: ", "<|endoftext|>\n"),
    tool=("FUNCTION RESPONSE: ", "\n"),
    gap="\n",
    tools=_tools,
    calls=_CALLS,
    each=True,
)


DIALECT = Dialect(
    name="granite_20b_fc",
    aliases=("granite_fc",),
    model_families="Granite-20B-FunctionCalling",
    model_globs=("granite-20b-functioncalling",),
    template_markers=("<function_call>",),
    source="card of granite-20b-functioncalling; vLLM 0.33.0",
    tokenizers=("granite_20b",),
    stops=("<|endoftext|>",),
    prompt=_FRAME,
    calls=_MARKS,
)
