"""Phi-4-mini: `functools` and a list of `{"name": …, "arguments": {…}}`, whose bracket ends it.

The format of Phi-4-mini and Firefunction v2. Source: the chat template of Phi-4-mini-instruct: the tools are in the
system turn, between `<|tool|>` and `<|/tool|>`.
"""

from typing import Final

from callwright.dialects.base import Dialect
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, in_json
from callwright.reading.json.marked import CallMarks

_CALLS: Final = CallLayout(open="functools[", begin=in_json(), end="}", between=", ", close="]")
# The model card shows calls between tokens, which the template does not have; fine-tunes write them.
_MARKS: Final = CallMarks.of(_CALLS, special=False, opens=("<|tool_call|>",), around=("<|/tool_call|>",))


_SHOW_TOOLS: Final = "<|tool|>$functions<|/tool|>"
_TURNS: Final = Turns(
    controls=("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|/tool|>", "<|end|>"),
    head="«text|tools¦<|system|>$text«text tools¦\n\n»$tools<|end|>»",
    system="<|system|>$text<|end|>",
    user="<|user|>$text<|end|>",
    assistant="<|assistant|>$written<|end|>",
    written="«<think>\n$thought:trim\n</think>\n\n»$text«text calls¦\n»$calls",
    outputs="$each",
    output="<|tool|>$text<|end|>",
    answer="<|assistant|>",
    calls=_CALLS,
    tools=_SHOW_TOOLS,
)


DIALECT = Dialect(
    name="phi4_mini",
    aliases=("phi4_mini_json", "firefunction_v2", "functools"),
    model_families="Phi-4-mini, Firefunction v2",
    model_globs=("phi-4-mini", "firefunction-v2"),
    template_markers=("functools",),
    source="chat template of Phi-4-mini-instruct",
    tokenizers=("phi4_mini", "llama3"),
    stops=("<|end|>", "<|endoftext|>"),
    stop_token_ids=(200020, 199999),
    prompt=_TURNS,
    calls=_MARKS,
)
