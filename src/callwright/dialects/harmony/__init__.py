"""Harmony: gpt-oss-20b and gpt-oss-120b, LLM-jp-4.1.

Every message is `<|start|>HEADER<|message|>BODY<|end|>`; the header names a role, a channel (analysis = reasoning,
commentary = preambles and calls, final = the answer) and, for a call, its recipient. `prompt` renders, `header` and
`output` read. Sources: openai/harmony 0.0.8, the gpt-oss chat template, and observed outputs of the models.
"""

from callwright.calls.history import HistoryRules
from callwright.dialects.base import Dialect, ParsedBy
from callwright.dialects.harmony import prompt
from callwright.dialects.harmony.output import parse
from callwright.dialects.harmony.prompt import Options
from callwright.dialects.harmony.tokens import CALLS
from callwright.schema.shown import ShownKeywords

DIALECT = Dialect(
    name="harmony",
    aliases=("gpt-oss", "gpt_oss", "openai", "openai_gptoss", "llm-jp-harmony"),
    model_families="gpt-oss-20b, gpt-oss-120b, LLM-jp-4.1",
    model_globs=("gpt-oss", "llm-jp-4"),
    template_markers=("<|channel|> + <|message|> + commentary",),
    history_rules=HistoryRules(single_calls=True),
    source="openai/harmony 0.0.8, gpt-oss chat template, oss-harmony 0.0.11",
    tokenizers=("o200k_harmony", "llm_jp_4"),
    stops=("<|return|>", "<|call|>"),
    stop_token_ids=(200002, 200012),
    options=Options,
    shown_keywords=ShownKeywords(
        frozenset(("type", "description", "enum", "default", "properties", "required", "items", "oneOf", "examples")),
        items=frozenset(("type", "enum", "properties", "required", "items")),
        resolves=False,
        text_enums=True,
    ),
    prompt=prompt,
    calls=ParsedBy(CALLS, parse),
)
