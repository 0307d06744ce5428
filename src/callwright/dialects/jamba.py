"""Jamba: `<tool_calls>` around a list of `{"name": …, "arguments": {…}}`.

The format of Jamba 1.5 to 1.7 and Hunyuan-A13B, which writes its answer between `<answer>` tags. Source: the chat
template of Jamba-1.5: the tools are in the system turn.
"""

import json
from typing import Final

from callwright.conversation import Conversation
from callwright.dialects.base import Dialect
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, in_json
from callwright.prompt import PromptBuilder
from callwright.reading.json.marked import CallMarks

_OPEN: Final = "<tool_calls>"
_CLOSE: Final = "</tool_calls>"
_CALLS: Final = CallLayout(open=f"{_OPEN}[", begin="\n    " + in_json(), end="}", between=",", close=f"\n]{_CLOSE}")
_MARKS: Final = CallMarks.of(_CALLS, around=("<answer>",), special=False, ends=("</answer>", "<|eom|>"))


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    functions = (tool.as_openai()["function"] for tool in conversation.tools)
    shown = "".join(f"\n\n{json.dumps(function, ensure_ascii=False, indent=2)}" for function in functions)
    out.text(f"<tool_definitions>\n# Tools\n\n## Functions{shown}\n</tool_definitions>")


_TURNS: Final = Turns(
    controls=("<|startoftext|>", "<|bom|>", "<|eom|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"),
    head="<|startoftext|><|bom|><|system|> $text«text tools¦\n\n»$tools<|eom|>",
    system="<|bom|><|system|> $text<|eom|>",
    user="<|bom|><|user|> $text<|eom|>",
    # The text of an assistant is shown after a blank, which no answer needs.
    assistant=(
        "<|bom|><|assistant|>«calls !text !thought¦ »«<think>\n$thought:trim\n</think>\n\n»« $text»$calls<|eom|>"
    ),
    written="«<think>\n$thought:trim\n</think>\n\n»$text«text calls¦\n»$calls",
    outputs="$each",
    output="<|bom|><|tool|> $text<|eom|>",
    answer="<|bom|><|assistant|>«off¦<think>\n\n</think>\n\n»«open¦<think>\n$thought»",
    calls=_CALLS,
    tools=_tools,
)


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
    prompt=_TURNS,
    calls=_MARKS,
)
