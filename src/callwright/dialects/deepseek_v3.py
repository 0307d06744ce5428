"""DeepSeek V3: `function<｜tool▁sep｜>NAME` and the arguments in a json fence, between control tokens.

The format of V3-0324, R1-0528, R1's distills and Cogito. Source: the chat templates of DeepSeek-V3-0324 and R1-0528,
which show no tools.
"""

from typing import Final

from callwright.dialects._deepseek import CONTROLS, HEAD, OUTPUT, SEP, calls, marks
from callwright.dialects.base import Dialect
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns

_CALLS: Final = calls(f"function{SEP}${{name}}\n```json\n", "\n```", "\n")
_TURNS: Final = Turns(
    controls=CONTROLS,
    head=HEAD,
    system="$text",
    user="<｜User｜>$text",
    assistant="«!after_outputs¦<｜Assistant｜>»$written<｜end▁of▁sentence｜>",
    written="«<think>\n$thought:trim\n</think>\n\n»$text$calls",
    outputs="<｜tool▁outputs▁begin｜>$each<｜tool▁outputs▁end｜>",
    output=OUTPUT,
    answer="«!after_outputs¦<｜Assistant｜>«off¦<think>\n\n</think>\n\n»«open¦<think>\n$thought»»",
    calls=_CALLS,
)


DIALECT = Dialect(
    name="deepseek_v3",
    aliases=("deepseek_r1", "cogito", "deepseekv3", "deepseek3"),
    model_families="DeepSeek V3-0324, R1-0528, R1 distills, Cogito",
    model_globs=(
        "deepseek-v3",
        "deepseek-r1",
        "mai-ds-r1",
        "r1-1776",
        "r1t2",
        "r1t-chimera",
        "cogito-v2.1",
        "cogito-2.1",
        "cogito-v2-preview-deepseek",
    ),
    template_markers=("tool▁calls + tool▁sep + ```json",),
    source="chat templates of DeepSeek-V3-0324 and DeepSeek-R1-0528; R1T-Chimera and R1T2 are merged of these; "
    "cards of cogito-v2-preview-deepseek-671B-MoE and cogito-v2.1-671b (cogito-2.1)",
    tokenizers=("deepseek", "qwen2.5", "llama3"),
    stops=("<｜end▁of▁sentence｜>",),
    options=ThinkingOptions,
    prompt=_TURNS,
    calls=marks(_CALLS),
)
