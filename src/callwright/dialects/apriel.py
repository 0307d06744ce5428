"""Apriel Thinker: reasoning as plain text up to `[BEGIN FINAL RESPONSE]`, calls as a list in `<tool_calls>`.

The format of Apriel 1.5 and 1.6; the prompt of 1.6 ends in `Here are my reasoning steps:`. Source: the chat templates
of Apriel-1.5- and 1.6-15b-Thinker: the tools are Python dicts in the system turn.
"""

from typing import Final, Literal

import msgspec

from callwright.conversation import Conversation
from callwright.dialects.base import Dialect, PromptBy
from callwright.dialects.call_layout import CallLayout, in_json
from callwright.dialects.prompts.template import Frame, OpenThinkingOptions, put_example
from callwright.dialects.readers.marked import CallMarks
from callwright.prompt import Prompt, PromptBuilder

__all__ = ["DIALECT"]


_OPEN: Final = "<tool_calls>"
_CLOSE: Final = "</tool_calls>"
_THOUGHT: Final = ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]")
_CALLS: Final = CallLayout(
    open=f"{_OPEN}[", begin=in_json(), end='${, "id": id:json}}', between=", ", close=f"]{_CLOSE}"
)
_MARKS: Final = CallMarks.of(
    _CALLS, special=False, thoughts=(_THOUGHT, ("<think>", "</think>")), ends=("[END FINAL RESPONSE]", "<|end|>")
)


class Options(OpenThinkingOptions, frozen=True, kw_only=True):
    """`flavour`: the version whose turns are followed."""

    flavour: Literal["1.6", "1.5"] = "1.6"


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    shown = repr([tool.as_openai() for tool in conversation.tools])
    out.text(
        "You are provided with function signatures within <available_tools></available_tools> XML tags. You may call "
        f"one or more functions to assist with the user query.\n<available_tools>{shown}</available_tools>\n"
        "Return all function calls as a list of JSON objects within <tool_calls></tool_calls> XML tags, each with the "
        "name of the function and its arguments:\n"
    )
    put_example(out, _CALLS)


_FRAME: Final = Frame(
    controls=(
        *("<s>", "<|begin_system|>", "<|begin_user|>", "<|begin_assistant|>", "<|begin_tool_result|>", "<|end|>"),
        *("<|begin_content|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool_result|>", "<|content|>"),
    ),
    system=("<s><|begin_system|>\n", "\n"),
    user=("<|begin_user|>\n", ""),
    assistant=("\n<|begin_assistant|>\n", "\n<|end|>\n"),
    tool=("<|begin_tool_result|>\n", "\n\n\n"),
    thought=(f"{_THOUGHT[0]}\n", f"\n{_THOUGHT[1]}\n"),
    off=f"{_THOUGHT[1]}\n",
    gap="\n",
    calls_begin="\n",
    tools=_tools,
    calls=_CALLS,
    each=True,
)


_FRAME_15: Final = msgspec.structs.replace(
    _FRAME,
    begin="<s>",
    system=("<|system|>\n", "\n<|end|>\n"),
    user=("<|user|>\n", "\n<|end|>\n"),
    assistant=("<|assistant|>\n", "\n<|end|>\n<|end|>"),
    tool=("<|tool_result|>\n", "\n<|end|>\n"),
    thought=("", f"\n{_THOUGHT[1]}\n"),
)


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to the answer of the model."""
    return (_FRAME_15 if options.flavour == "1.5" else _FRAME).render(conversation, options)


DIALECT = Dialect(
    name="apriel",
    model_families="Apriel 1.5 and 1.6 Thinker",
    model_globs=("apriel",),
    model_options={"apriel-1.5": {"flavour": "1.5"}},
    template_markers=("[BEGIN FINAL RESPONSE] + <tool_calls>", "[BEGIN FINAL RESPONSE]"),
    source="chat templates of Apriel-1.5- and 1.6-15b-Thinker",
    tokenizers=("apriel",),
    stops=("<|end|>",),
    options=Options,
    prompt=PromptBy(render=render, messages=_FRAME.messages, write=_FRAME.write, marks=_FRAME.marks),
    calls=_MARKS,
)
