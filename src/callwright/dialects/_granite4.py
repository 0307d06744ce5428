"""How Granite 4 is prompted: the calls are those of Hermes, the turns are Granite's.

Source: the chat template of granite-4.0-h-350m. The tools stand as JSON lines behind the system text, outputs come back
in a user turn.
"""

from collections.abc import Sequence
from typing import Final

from callwright.conversation import Conversation
from callwright.dialects.call_layout import CallLayout, in_json
from callwright.dialects.prompts.template import Frame, Result, tool_lines
from callwright.prompt import PromptBuilder

__all__ = ["FRAME"]

_CALL: Final = ("<tool_call>", "</tool_call>")
_RESULT: Final = ("<tool_response>", "</tool_response>")
_TOOLS: Final = ("<tools>", "</tools>")


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    out.text(
        "You are a helpful assistant with access to the following tools. You may call one or more tools to assist with "
        "the user query.\n\nYou are provided with function signatures within "
    )
    out.control(*_TOOLS).text(" XML tags:\n").control(_TOOLS[0])
    out.text(f"\n{tool_lines(conversation)}\n").control(_TOOLS[1])
    out.text("\n\nFor each tool call, return a json object with function name and arguments within ").control(*_CALL)
    out.text(" XML tags:\n").control(_CALL[0])
    out.text('\n{"name": <function-name>, "arguments": <args-json-object>}\n').control(_CALL[1])
    out.text(
        ". If a tool does not exist in the provided list of tools, notify the user that you do not have the ability to "
        "fulfill the request."
    )


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    for result in results:
        out.text("\n").control(_RESULT[0]).text(f"\n{result.text}\n").control(_RESULT[1])


def _turn(role: str) -> tuple[str, str]:
    return f"<|start_of_role|>{role}<|end_of_role|>", "<|end_of_text|>\n"


_CALLS: Final = CallLayout(begin=f"{_CALL[0]}\n" + in_json(), end=f"}}\n{_CALL[1]}", between="\n")

FRAME: Final = Frame(
    controls=("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", *_CALL, *_RESULT, *_TOOLS),
    system=_turn("system"),
    user=_turn("user"),
    assistant=_turn("assistant"),
    tool=_turn("user"),
    gap="\n",
    thoughts="none",
    tools=_tools,
    calls=_CALLS,
    results=_results,
)
