"""The turns of Reka: plain words for roles and `<sep>` between turns, with the tools and calls of Hermes."""

import json
from collections.abc import Mapping
from typing import Any, Final

from callwright.conversation import Conversation
from callwright.layout.calls import CallLayout, in_json
from callwright.prompt import PromptBuilder

_TOOLS: Final = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>"""
_HOW_TO: Final = """
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    out.text(_TOOLS, *(f"\n{json.dumps(tool.as_openai())}" for tool in conversation.tools), _HOW_TO)


# What differs from the table of Hermes. Thoughts are shown if the answer begins in one.
TURNS: Final[Mapping[str, Any]] = {
    "controls": ("<sep>",),
    "head": "«text|tools¦system: $text«text tools¦\n\n»$tools\n\n<sep>»",
    "notes_choice": True,
    "system": "system: $text\n\n<sep>",
    "user": "human: $text<sep>",
    "assistant": (
        "assistant:«calls !text !thought|!open¦ »«open thought¦ <think>\n$thought:trim\n</think>\n\n»"
        "« $text»«text calls¦\n»$calls\n\n<sep>"
    ),
    "past_calls": CallLayout(begin="<tool_call>\n" + in_json(), end="}\n</tool_call>"),
    "outputs": "human: $each<sep>",
    "output": "<tool_response>\n$text\n</tool_response>",
    "answer": "assistant:«open¦ <think>\n$thought»",
    "tools": _tools,
}
