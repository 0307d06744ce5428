"""xLAM: an answer that is a list of `{"name": …, "arguments": {…}}`; also in a fence or between tags.

The format of xLAM and models like ToolACE. An answer that begins with the call of a known tool is one; JSON between
words is weighed as in any text. Source: the chat template of xLAM-2: the form is told in the system turn. Those that
come of Llama have its turns; source: their handler in the Berkeley Function Calling Leaderboard.
"""

import json
from typing import Final, Literal

import msgspec

from callwright.conversation import Conversation
from callwright.dialects.base import Dialect, PromptBy
from callwright.dialects.call_layout import CallLayout, in_json
from callwright.dialects.prompts.template import Frame, ThinkingOptions
from callwright.dialects.readers.marked import CallMarks
from callwright.prompt import Prompt, PromptBuilder

__all__ = ["DIALECT"]


class Options(ThinkingOptions, frozen=True, kw_only=True):
    """`flavour`: whose turns; xLAM-2 comes of Qwen or of Llama."""

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


def _turn(role: str) -> tuple[str, str]:
    return f"<|im_start|>{role}\n", "<|im_end|>\n"


_FRAME: Final = Frame(
    controls=("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>"),
    system=_turn("system"),
    user=_turn("user"),
    assistant=_turn("assistant"),
    tool=_turn("tool"),
    gap="\n",
    tools=_tools,
    calls=_CALLS,
    each=True,
)


def _llama(role: str) -> tuple[str, str]:
    return f"<|start_header_id|>{role}<|end_header_id|>\n\n", "<|eot_id|>"


_FRAME_OF_LLAMA: Final = msgspec.structs.replace(
    _FRAME,
    controls=("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<think>", "</think>"),
    begin="<|begin_of_text|>",
    system=_llama("system"),
    user=_llama("user"),
    assistant=_llama("assistant"),
    tool=_llama("ipython"),
    default_system="You are a helpful assistant that can use tools. You are developed by Salesforce xLAM team.",
    seam="\n",
    tools=_tools_of_llama,
)


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to where the model's answer begins."""
    return (_FRAME_OF_LLAMA if options.flavour == "llama" else _FRAME).render(conversation, options)


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
    prompt=PromptBy(render=render, messages=_FRAME.messages, write=_FRAME.write, marks=_FRAME.marks),
    calls=_MARKS,
)
