"""DeepSeek V3.1: `NAME<｜tool▁sep｜>{…}` between control tokens.

The format of V3.1 and V3.2-Exp. Source: the chat template of DeepSeek-V3.1, which shows no tools. A turn without
reasoning holds an empty thought; an answer without thinking begins after `</think>`.
"""

from typing import Final, Literal

from callwright.dialects._deepseek import CONTROLS, HEAD, OUTPUT, SEP, calls, marks
from callwright.dialects.base import Dialect
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns


class Options(ThinkingOptions, frozen=True, kw_only=True):
    """`thinking`: off unless asked for, as in the template."""

    thinking: Literal["model", "open", "off"] = "off"


_CALLS: Final = calls(f"${{name}}{SEP}")
_TURNS: Final = Turns(
    controls=CONTROLS,
    head=HEAD,
    system="$text",
    user="<｜User｜>$text",
    assistant="«!after_outputs¦<｜Assistant｜>«!thought¦<think></think>»»$written<｜end▁of▁sentence｜>",
    written="«<think>$thought:trim</think>»$text$calls",
    outputs="$each",
    output=OUTPUT,
    answer="«!after_outputs¦<｜Assistant｜>«off¦</think>»«open¦<think>$thought»»",
    calls=_CALLS,
)


DIALECT = Dialect(
    name="deepseek_v31",
    aliases=("deepseekv31", "deepseek_v3_1"),
    model_families="DeepSeek V3.1, V3.2-Exp",
    model_globs=("deepseek-v3.1", "deepseek-v3.2-exp"),
    template_markers=("tool▁calls + tool▁sep",),
    source="chat templates of DeepSeek-V3.1 and DeepSeek-V3.2-Exp",
    tokenizers=("deepseek",),
    stops=("<｜end▁of▁sentence｜>",),
    options=Options,
    prompt=_TURNS,
    calls=marks(_CALLS),
)
