"""Jamba: `<tool_calls>` around a list of `{"name": …, "arguments": {…}}`.

The format of Jamba 1.5 to 1.7 and Hunyuan-A13B, which says its answer between `<answer>` tags. Source: the chat
template of Jamba-1.5: the tools stand in the system turn.
"""

from typing import Final

from callwright.dialects.base import Dialect
from callwright.dialects.call_layout import CallLayout, in_json
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.dialects.readers.marked import CallMarks

__all__ = ["DIALECT"]


_OPEN: Final = "<tool_calls>"
_CLOSE: Final = "</tool_calls>"
_CALLS: Final = CallLayout(open=f"{_OPEN}[", begin="\n    " + in_json(), end="}", between=",", close=f"\n]{_CLOSE}")
_MARKS: Final = CallMarks.of(_CALLS, around=("<answer>",), special=False, ends=("</answer>", "<|eom|>"))


_SHOW_TOOLS: Final = """# Tools

You can call the tools below, each a JSON schema:
<tool_definitions>
$lines
</tool_definitions>

To call tools, write a JSON list of their names and arguments:
$example"""
_TURNS: Final = Turns(
    controls=("<|startoftext|>", "<|bom|>", "<|eom|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"),
    head="<|startoftext|>«text|tools¦<|bom|><|system|> $text«text tools¦\n\n»$tools<|eom|>»",
    system="<|bom|><|system|> $text<|eom|>",
    user="<|bom|><|user|> $text<|eom|>",
    assistant="<|bom|><|assistant|>$written<|eom|>",
    written="«<think>\n$thought:trim\n</think>\n\n»$text«text calls¦\n»$calls",
    outputs="$each",
    output="<|bom|><|tool|> $text<|eom|>",
    answer="<|bom|><|assistant|>«off¦<think>\n\n</think>\n\n»«open¦<think>\n$thought»",
    calls=_CALLS,
    tools=_SHOW_TOOLS,
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
