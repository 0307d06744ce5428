"""Granite 20B for function calling: `<function_call> {"name": …, "arguments": {…}}`, a line for each call.

Source: the model's card and vLLM's parser. The last bracket ends a call. Turns follow `SYSTEM:`, `USER:` and
`ASSISTANT:`, the tools `<|function_call_library|>`.
"""

from typing import Final

from callwright.dialects.base import Dialect
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, in_json
from callwright.reading.json.marked import CallMarks

_CALLS: Final = CallLayout(begin="<function_call> " + in_json(), end="}", between="\n")
_MARKS: Final = CallMarks.of(_CALLS, around=("</function_call>",), special=False)


_SHOW_TOOLS: Final = """\
You have access to the following function calls. Produce a sequence of them that answers the user.
<|function_call_library|>$each

Write each as <function_call> {"name": "function_name", "arguments": {"parameter_name": "value"}}"""
_TURNS: Final = Turns(
    controls=("<|endoftext|>", "<|function_call_library|>"),
    head="«text|tools¦SYSTEM: $text«text tools¦\n\n»$tools\n\n»",
    system="SYSTEM: $text\n\n",
    user="USER: $text\n",
    assistant="ASSISTANT: $written<|endoftext|>\n",
    written="«<think>\n$thought:trim\n</think>\n\n»$text«text calls¦\n»$calls",
    outputs="$each",
    output="FUNCTION RESPONSE: $text\n",
    answer="ASSISTANT: ",
    calls=_CALLS,
    tools=_SHOW_TOOLS,
    tool="\n$function",
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
    prompt=_TURNS,
    calls=_MARKS,
)
