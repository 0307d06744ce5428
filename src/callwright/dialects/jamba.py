"""Jamba: `<tool_calls>` around a list of `{"name": …, "arguments": {…}}`.

The format of Jamba 1.5 to 1.7 and Hunyuan-A13B, which says its answer between `<answer>` tags. Source: the chat
template of Jamba-1.5: the tools stand in the system turn.
"""

import json
from typing import Final

import msgspec

from callwright.conversation import Conversation
from callwright.dialects.base import Dialect, PromptBy
from callwright.dialects.call_layout import CallLayout, in_json
from callwright.dialects.prompts.template import Frame, ThinkingOptions
from callwright.dialects.readers.marked import CallMarks
from callwright.prompt import PromptBuilder

__all__ = ["DIALECT"]


_OPEN: Final = "<tool_calls>"
_CLOSE: Final = "</tool_calls>"
_CALLS: Final = CallLayout(open=f"{_OPEN}[", begin="\n    " + in_json(), end="}", between=",", close=f"\n]{_CLOSE}")
_MARKS: Final = CallMarks.of(_CALLS, around=("<answer>",), special=False, ends=("</answer>", "<|eom|>"))


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    functions = (tool.as_openai()["function"] for tool in conversation.tools)
    shown = "".join(f"\n\n{json.dumps(function, ensure_ascii=False, indent=2)}" for function in functions)
    out.text(f"<tool_definitions>\n# Tools\n\n## Functions{shown}\n</tool_definitions>")


def _turn(role: str) -> tuple[str, str]:
    return f"<|bom|><|{role}|> ", "<|eom|>"


_FRAME: Final = Frame(
    controls=("<|startoftext|>", "<|bom|>", "<|eom|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"),
    begin="<|startoftext|>",
    system=_turn("system"),
    user=_turn("user"),
    assistant=("<|bom|><|assistant|>", "<|eom|>"),
    tool=_turn("tool"),
    gap="\n",
    tools=_tools,
    calls=_CALLS,
    each=True,
)
# What an assistant says is shown behind a blank, which no answer needs.
_SHOWN: Final = msgspec.structs.replace(_FRAME, empty_system=True, said=(" ", ""), gap="", calls_begin=" ")


DIALECT = Dialect(
    name="jamba",
    aliases=("hunyuan_a13b", "jamba_1_5"),
    model_families="Jamba 1.5 to 1.7, Hunyuan-A13B",
    model_globs=("jamba", "hunyuan-a13b"),
    template_markers=("<tool_calls>",),
    source="chat template of Jamba-1.5; vLLM 0.33.0: tests of hunyuan_a13b",
    tokenizers=("jamba", "hunyuan"),
    stops=("<|eom|>",),
    options=ThinkingOptions,
    prompt=PromptBy(render=_SHOWN.render, messages=_FRAME.messages, write=_FRAME.write, marks=_FRAME.marks),
    calls=_MARKS,
)
