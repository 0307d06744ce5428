"""Nemotron Nano v2: `<TOOLCALL>` around a list of `{"name": …, "arguments": {…}}`.

Source: the chat template of NVIDIA-Nemotron-Nano-9B-v2: the answer begins in `<think>`, outputs come back as one list
in a user turn.
"""

import json
from collections.abc import Sequence
from typing import Final

from callwright.conversation import Conversation
from callwright.dialects.base import Dialect
from callwright.dialects.call_layout import CallLayout, in_json
from callwright.dialects.prompts.template import Frame, OpenThinkingOptions, Result
from callwright.dialects.readers.marked import CallMarks
from callwright.prompt import PromptBuilder

__all__ = ["DIALECT"]


_OPEN: Final = "<TOOLCALL>"
_CLOSE: Final = "</TOOLCALL>"
_CALLS: Final = CallLayout(open=f"{_OPEN}[", begin=in_json(), end="}", between=", ", close=f"]{_CLOSE}")
_MARKS: Final = CallMarks.of(_CALLS, special=False, ends=("<SPECIAL_12>",))


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    functions = [tool.as_openai()["function"] for tool in conversation.tools]
    out.text(
        "You can use the following tools to assist the user if required:\n<AVAILABLE_TOOLS>",
        json.dumps(functions, ensure_ascii=False),
        "</AVAILABLE_TOOLS>\n\nIf you decide to call any tool(s), use the following format:\n"
        '<TOOLCALL>[{{"name": "tool_name1", "arguments": "tool_args1"}}, {{"name": "tool_name2", "arguments": '
        '"tool_args2"}}]</TOOLCALL>\n\nThe user will execute tool-calls and return responses from tool(s) in this '
        'format:\n<TOOL_RESPONSE>[{{"tool_response1"}}, {{"tool_response2"}}]</TOOL_RESPONSE>\n\nBased on the tool '
        "responses, you can call additional tools if needed, correct tool calls if any errors are found, or just "
        "respond to the user.",
    )


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    out.text("<TOOL_RESPONSE>[", ", ".join(result.text for result in results), "]</TOOL_RESPONSE>")


_FRAME: Final = Frame(
    controls=("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<think>", "</think>"),
    system=("<SPECIAL_10>System\n", "\n\n"),
    empty_system=True,
    user=("<SPECIAL_11>User\n", "\n"),
    assistant=("<SPECIAL_11>Assistant\n", "\n<SPECIAL_12>\n"),
    tool=("<SPECIAL_11>User\n", ""),
    off="<think></think>",
    gap="\n",
    tools=_tools,
    calls=_CALLS,
    results=_results,
    trims=True,
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
    prompt=_FRAME,
    calls=_MARKS,
)
