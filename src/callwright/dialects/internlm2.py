"""InternLM: `<|action_start|><|plugin|>{"name": …, "parameters": {…}}<|action_end|>`, a block for each call.

The format of InternLM 2.5 and 3 and Intern-S1. Source: the chat format of internlm2_5-7b-chat: the tools stand in a
system turn of the name `<|plugin|>`, outputs in one of the environment.
"""

import json
from typing import Final

from callwright.conversation import Conversation
from callwright.dialects.base import Dialect
from callwright.dialects.call_layout import CallLayout, in_json
from callwright.dialects.prompts.template import Frame, ThinkingOptions
from callwright.dialects.readers.marked import CallMarks
from callwright.prompt import PromptBuilder

__all__ = ["DIALECT"]


_PLUGIN: Final = "<|plugin|>"
_CALLS: Final = CallLayout(begin=f"<|action_start|>{_PLUGIN}" + in_json(arguments="parameters"), end="}<|action_end|>")
_MARKS: Final = CallMarks.of(_CALLS, opens=(f"<|action_start|> {_PLUGIN}", f"<|action_start|>\n{_PLUGIN}"))


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    out.control("<|im_start|>").text("system name=").control(_PLUGIN).text("\n")
    functions = [tool.as_openai()["function"] for tool in conversation.tools]
    out.text(json.dumps(functions, ensure_ascii=False)).control("<|im_end|>").text("\n")


_FRAME: Final = Frame(
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
    begin="<s>",
    system=("<|im_start|>system\n", "<|im_end|>\n"),
    user=("<|im_start|>user\n", "<|im_end|>\n"),
    assistant=("<|im_start|>assistant\n", "<|im_end|>\n"),
    tool=(f"<|im_start|>environment name={_PLUGIN}\n", "<|im_end|>\n"),
    place="after system",
    tools=_tools,
    calls=_CALLS,
    each=True,
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
    prompt=_FRAME,
    calls=_MARKS,
)
