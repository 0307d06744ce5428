"""The turns of Reka: plain words for roles and `<sep>` between turns, with the tools and calls of Hermes."""

import json
from collections.abc import Sequence
from typing import Final

import msgspec

from callwright.conversation import Conversation
from callwright.dialects.call_layout import CallLayout, in_json
from callwright.dialects.prompts.template import Frame, Result
from callwright.prompt import PromptBuilder

__all__ = ["FRAME", "THINKING"]

_SEP: Final = "<sep>"
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


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    out.text(*(f"<tool_response>\n{result.text}\n</tool_response>" for result in results))


THINKING: Final = Frame(
    controls=(_SEP,),
    system=("system: ", f"\n\n{_SEP}"),
    user=("human: ", _SEP),
    assistant=("assistant:", f"\n\n{_SEP}"),
    tool=("human: ", _SEP),
    said=(" ", ""),
    gap="\n",
    calls_begin=" ",
    thought=(" <think>\n", "\n</think>\n\n"),
    tools=_tools,
    calls=CallLayout(begin="<tool_call>\n" + in_json(), end="}\n</tool_call>"),
    results=_results,
    off="",
)
FRAME: Final = msgspec.structs.replace(THINKING, thoughts="none")
