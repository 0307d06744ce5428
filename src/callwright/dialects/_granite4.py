"""How Granite 4 is prompted: the calls are those of Hermes, the turns are Granite's.

Source: the chat template of granite-4.0-h-350m. The tools are JSON lines after the system text, outputs are
in a user turn.
"""

from collections.abc import Mapping
from typing import Any, Final

_TOOLS: Final = """You are a helpful assistant with access to the following tools. You may call one or more tools to \
assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
$lines
</tools>

For each tool call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>. If a tool does not exist in the provided list of tools, notify the user that you do not have the ability \
to fulfill the request."""

# What differs from the table of Hermes.
TURNS: Final[Mapping[str, Any]] = {
    "controls": (
        *("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<tool_call>", "</tool_call>"),
        *("<tool_response>", "</tool_response>", "<tools>", "</tools>"),
    ),
    "head": "«text|tools¦<|start_of_role|>system<|end_of_role|>$text«text tools¦\n\n»$tools<|end_of_text|>\n»",
    "notes_choice": True,
    "system": "<|start_of_role|>system<|end_of_role|>$text<|end_of_text|>\n",
    "user": "<|start_of_role|>user<|end_of_role|>$text<|end_of_text|>\n",
    "assistant": "<|start_of_role|>assistant<|end_of_role|>$text«text calls¦\n»$calls<|end_of_text|>\n",
    "thoughts": "none",
    "outputs": "<|start_of_role|>user<|end_of_role|>$each<|end_of_text|>\n",
    "answer": "<|start_of_role|>assistant<|end_of_role|>",
    "tools": _TOOLS,
}
