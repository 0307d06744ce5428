"""Nemotron Nano v2: `<TOOLCALL>` around a list of `{"name": …, "arguments": {…}}`.

Source: the chat template of NVIDIA-Nemotron-Nano-9B-v2: the answer begins in `<think>`, outputs come back as one list
in a user turn.
"""

from typing import Final

from callwright.dialects.base import Dialect
from callwright.dialects.prompts.options import OpenThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, in_json
from callwright.reading.json.marked import CallMarks

_OPEN: Final = "<TOOLCALL>"
_CLOSE: Final = "</TOOLCALL>"
_CALLS: Final = CallLayout(open=f"{_OPEN}[", begin=in_json(), end="}", between=", ", close=f"]{_CLOSE}")
_MARKS: Final = CallMarks.of(_CALLS, special=False, ends=("<SPECIAL_12>",))


_SHOW_TOOLS: Final = """You can use the following tools to assist the user if required:
<AVAILABLE_TOOLS>$functions</AVAILABLE_TOOLS>

If you decide to call any tool(s), use the following format:
<TOOLCALL>[{{"name": "tool_name1", "arguments": "tool_args1"}}, {{"name": "tool_name2", "arguments": "tool_args2"}}]\
</TOOLCALL>

The user will execute tool-calls and return responses from tool(s) in this format:
<TOOL_RESPONSE>[{{"tool_response1"}}, {{"tool_response2"}}]</TOOL_RESPONSE>

Based on the tool responses, you can call additional tools if needed, correct tool calls if any errors are found, or \
just respond to the user."""
_TURNS: Final = Turns(
    controls=("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<think>", "</think>"),
    head="<SPECIAL_10>System\n$text«text tools¦\n\n»$tools\n\n",
    system="<SPECIAL_10>System\n$text\n\n",
    user="<SPECIAL_11>User\n$text\n",
    assistant="<SPECIAL_11>Assistant\n$written\n<SPECIAL_12>\n",
    written="«<think>\n$thought:trim\n</think>\n\n»$text«text calls¦\n»$calls",
    outputs="<SPECIAL_11>User\n<TOOL_RESPONSE>[$each]</TOOL_RESPONSE>",
    between=", ",
    answer="<SPECIAL_11>Assistant\n«off¦<think></think>»«open¦<think>\n$thought»",
    trims=("system", "user"),
    calls=_CALLS,
    tools=_SHOW_TOOLS,
)


DIALECT = Dialect(
    name="nemotron_nano_v2",
    aliases=("nemotron_v2", "nemotron_json"),
    model_families="Nemotron Nano 9B and 12B v2",
    model_globs=(
        "nemotron-nano-*-v2",
        "nemotron-nano-v2",
        "llama-3.1-nemotron-nano",
        "llama-3.3-nemotron-super-49b-v1.5",
    ),
    template_markers=("<TOOLCALL>",),
    source="chat template of NVIDIA-Nemotron-Nano-9B-v2",
    tokenizers=("nemotron",),
    stops=("<SPECIAL_12>",),
    options=OpenThinkingOptions,
    prompt=_TURNS,
    calls=_MARKS,
)
