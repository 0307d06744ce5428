"""xLAM: an answer that is a list of `{"name": …, "arguments": {…}}`; also in a fence or between tags.

The format of xLAM and models like ToolACE. An answer that begins with the call of a known tool is one; JSON between
words is weighed as in any text. Source: the chat template of xLAM-2: the system turn describes the form. Models
based on Llama have its turns; source: their handler in the Berkeley Function Calling Leaderboard.
"""

import json
from typing import Final, Literal

from callwright.conversation import Conversation
from callwright.dialects.base import Dialect
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, in_json
from callwright.prompt import PromptBuilder
from callwright.reading.json.marked import CallMarks


class Options(ThinkingOptions, frozen=True, kw_only=True):
    """`flavour`: whose turns; xLAM-2 is based on Qwen or Llama."""

    flavour: Literal["qwen", "llama"] = "qwen"


_CALLS: Final = CallLayout(open="[", begin=in_json(), end="}", between=", ", close="]")
_MARKS: Final = CallMarks(
    layout=_CALLS, opens=("<tool_call>", "[TOOL_CALLS]"), around=("</tool_call>",), bare=True, special=False
)


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    _put_tools(out, conversation, None)


def _tools_of_llama(out: PromptBuilder, conversation: Conversation) -> None:
    _put_tools(out, conversation, 4)


def _put_tools(out: PromptBuilder, conversation: Conversation, indent: int | None) -> None:
    out.text(
        "You have access to a set of tools. When using tools, make calls in a single JSON array: \n\n"
        '[{"name": "tool_call_name", "arguments": {"arg1": "value1", "arg2": "value2"}}, ... (additional parallel tool '
        "calls as needed)]\n\nIf no tool is suitable, state that explicitly. If the user's input lacks required "
        "parameters, ask for clarification. Do not interpret or respond until tool results are returned. Once they are "
        "available, process them or make additional calls if needed. For tasks that don't require tools, such as "
        "casual conversation or general advice, respond directly in plain text. The available tools are:\n\n"
    )
    for tool in conversation.tools:
        out.text(json.dumps(tool.as_openai()["function"], ensure_ascii=False, indent=indent), "\n\n")


_TURNS: Final = Turns(
    controls=("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>"),
    head="«text|tools¦<|im_start|>system\n$text«text tools¦\n\n»$tools<|im_end|>\n»",
    system="<|im_start|>system\n$text<|im_end|>\n",
    user="<|im_start|>user\n$text<|im_end|>\n",
    assistant="<|im_start|>assistant\n$written<|im_end|>\n",
    written="«<think>\n$thought:trim\n</think>\n\n»$text«text calls¦\n»$calls",
    outputs="$each",
    output="<|im_start|>tool\n$text<|im_end|>\n",
    answer="<|im_start|>assistant\n«off¦<think>\n\n</think>\n\n»«open¦<think>\n$thought»",
    calls=_CALLS,
    tools=_tools,
    flavours={
        "llama": {
            "controls": (
                "<|begin_of_text|>",
                "<|start_header_id|>",
                "<|end_header_id|>",
                "<|eot_id|>",
                "<think>",
                "</think>",
            ),
            "head": (
                "<|begin_of_text|>«text|tools¦<|start_header_id|>system<|end_header_id|>\n\n$text«text tools¦\n»"
                "$tools<|eot_id|>»"
            ),
            "default": ("You are a helpful assistant that can use tools. You are developed by Salesforce xLAM team."),
            "system": "<|start_header_id|>system<|end_header_id|>\n\n$text<|eot_id|>",
            "user": "<|start_header_id|>user<|end_header_id|>\n\n$text<|eot_id|>",
            "assistant": "<|start_header_id|>assistant<|end_header_id|>\n\n$written<|eot_id|>",
            "output": "<|start_header_id|>ipython<|end_header_id|>\n\n$text<|eot_id|>",
            "answer": (
                "<|start_header_id|>assistant<|end_header_id|>\n\n«off¦<think>\n\n</think>\n\n»«open¦<think>\n$thought»"
            ),
            "tools": _tools_of_llama,
        }
    },
)


DIALECT = Dialect(
    name="xlam",
    aliases=("toolace",),
    model_families="xLAM 2, Hammer 2 and their kin",
    model_globs=("xlam-2", "hammer-2*", "deephat-v1"),
    model_options={"llama-xlam": {"flavour": "llama"}},
    source="chat template of xLAM-2; card of Hammer2.1",
    tokenizers=("qwen2.5", "llama3", "mistral_v1", "deepseek"),
    stops=("<|im_end|>", "<|eot_id|>"),
    options=Options,
    prompt=_TURNS,
    calls=_MARKS,
)
