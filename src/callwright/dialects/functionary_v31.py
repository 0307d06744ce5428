"""Functionary v3.1: `<function=NAME>{…}</function>`.

Source: the chat template of meetkai's functionary-medium-v3.1, in the turns of Llama 3.1: the tools and the form of a
call are in a turn of their own, before the system text.
"""

import json
import re
from typing import Final

import msgspec

from callwright.conversation import Conversation
from callwright.dialects.base import Dialect, PromptBy, RenderOptions
from callwright.dialects.call_layout import CallLayout
from callwright.dialects.prompts.template import Frame
from callwright.dialects.readers.marked import CallMarks
from callwright.prompt import Prompt, PromptBuilder

__all__ = ["DIALECT"]


_CALLS: Final = CallLayout(begin="<function=${name}>", end="</function>")
_MARKS: Final = CallMarks(
    layout=_CALLS,
    opens=("<function=",),
    closes=("</function>",),
    header=re.compile(r"""["']?([^<>{}"'\n]*?)["']?\s*>\s*"""),
    special=False,
)
_HOW_TO: Final = """
Think very carefully before calling functions.
If a you choose to call a function ONLY reply in the following format:
<{start_tag}={function_name}>{parameters}{end_tag}
where

start_tag => `<function`
parameters => a JSON dict with the function argument name as key and function argument value as value.
end_tag => `</function>`

Here is an example,
<function=example_function_name>{"example_name": "example_value"}</function>

Reminder:
- If looking for real time information use relevant functions before falling back to brave_search
- Function calls MUST follow the specified format, start with <function= and end with </function>
- Required parameters MUST be specified
- Only call one function at a time
- Put the entire function call reply on one line

"""


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    out.text("\nYou have access to the following functions:\n\n")
    for tool in conversation.tools:
        out.text(f"Use the function '{tool.name}' to '{tool.about or ''}'\n")
        out.text(json.dumps(tool.as_openai()["function"], ensure_ascii=False), "\n\n")
    out.text(_HOW_TO).control("<|eot_id|>")


def _turn(role: str) -> tuple[str, str]:
    return f"<|start_header_id|>{role}<|end_header_id|>\n\n", "<|eot_id|>"


_FIRST: Final = (
    "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n\nCutting Knowledge Date: December 2023\n\n"
)
_FRAME: Final = Frame(
    controls=("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>"),
    begin=f"{_FIRST}<|eot_id|>",
    thoughts="none",
    system=_turn("system"),
    user=_turn("user"),
    assistant=_turn("assistant"),
    tool=_turn("ipython"),
    calls_end="<|eom_id|>",
    calls=_CALLS,
    each=True,
)
_WITH_TOOLS: Final = msgspec.structs.replace(_FRAME, begin=_FIRST, place="before system", tools=_tools)


def render(conversation: Conversation, options: RenderOptions) -> Prompt:
    """The whole prompt, up to the answer of the model."""
    return (_WITH_TOOLS if conversation.tools else _FRAME).render(conversation, options)


DIALECT = Dialect(
    name="functionary_v31",
    aliases=("functionary",),
    model_families="Functionary v3.1",
    model_globs=("functionary-*-v3.1", "kanana-1.5"),
    template_markers=("<function= + </function> + <|eom_id|>",),
    source="chat template of functionary-medium-v3.1",
    tokenizers=("llama3",),
    stops=("<|eot_id|>", "<|eom_id|>"),
    stop_token_ids=(128009, 128008),
    prompt=PromptBy(render=render, messages=_WITH_TOOLS.messages, write=_FRAME.write, marks=_FRAME.marks),
    calls=_MARKS,
)
