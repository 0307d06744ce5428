"""InternLM: `<|action_start|><|plugin|>{"name": …, "parameters": {…}}<|action_end|>`, a block for each call.

The format of InternLM 2.5 and 3 and Intern-S1. Source: the chat format of internlm2_5-7b-chat: the tools are in a
system turn of the name `<|plugin|>`, outputs in one of the environment.
"""

from typing import Final

from callwright.dialects.base import Dialect
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, in_json
from callwright.reading.json.marked import CallMarks

_PLUGIN: Final = "<|plugin|>"
_CALLS: Final = CallLayout(begin=f"<|action_start|>{_PLUGIN}" + in_json(arguments="parameters"), end="}<|action_end|>")
_MARKS: Final = CallMarks.of(_CALLS, opens=(f"<|action_start|> {_PLUGIN}", f"<|action_start|>\n{_PLUGIN}"))


_SHOW_TOOLS: Final = "<|im_start|>system name=<|plugin|>\n$functions<|im_end|>\n"
_TURNS: Final = Turns(
    controls=(
        "<s>",
        "<|im_start|>",
        "<|im_end|>",
        "<|action_start|>",
        "<|action_end|>",
        _PLUGIN,
        "<think>",
        "</think>",
    ),
    head="<s>«<|im_start|>system\n$text<|im_end|>\n»$tools",
    system="<|im_start|>system\n$text<|im_end|>\n",
    user="<|im_start|>user\n$text<|im_end|>\n",
    assistant="<|im_start|>assistant\n$written<|im_end|>\n",
    written="«<think>\n$thought:trim\n</think>\n\n»$text$calls",
    outputs="$each",
    output="<|im_start|>environment name=<|plugin|>\n$text<|im_end|>\n",
    answer="<|im_start|>assistant\n«off¦<think>\n\n</think>\n\n»«open¦<think>\n$thought»",
    calls=_CALLS,
    tools=_SHOW_TOOLS,
)


DIALECT = Dialect(
    name="internlm2",
    aliases=("internlm", "interns1"),
    model_families="InternLM 2.5, InternLM 3, Intern-S1",
    model_globs=("internlm-2*", "internlm-3*", "intern-s1"),
    template_markers=("<|action_start|>",),
    source="chat format of internlm2_5-7b-chat; tokens of internlm3-8b-instruct",
    tokenizers=("internlm2", "internlm3", "intern_s1"),
    stops=("<|im_end|>",),
    options=ThinkingOptions,
    prompt=_TURNS,
    calls=_MARKS,
)
