"""DeepSeek V4: DSML in `<｜DSML｜tool_calls>`.

V4-Flash-0731 writes this form, too, despite the lists of engines. Source: DeepSeek's own encoder,
deepseek-recipe 0.2.0; `_dsml.py` has the shared parts of the versions.
"""

from typing import Final

from callwright.dialects._dsml import DsmlForm, EffortOptions, form_v4
from callwright.dialects.base import Dialect

_FORM: Final[DsmlForm] = form_v4()


DIALECT = Dialect(
    name="deepseek_v4",
    aliases=("deepseekv4",),
    model_families="DeepSeek V4, V4-Flash",
    model_globs=("deepseek-v4",),
    template_markers=("｜DSML｜ + tool_calls",),
    source="deepseek-recipe 0.2.0, DeepSeek's own encoder; chat templates of DeepSeek-V4 and V4-Flash-0731",
    tokenizers=("deepseek_v3.2",),
    stops=("<｜end▁of▁sentence｜>",),
    options=EffortOptions,
    prompt=_FORM,
    calls=_FORM,
)
