"""DeepSeek V4.1: DSML in `<｜DSML｜ calls>`, with a space before each name.

The token `<｜System｜>` precedes each system text. Source: DeepSeek's own encoder, deepseek-recipe 0.2.0;
`_dsml.py` has the shared parts of the versions.
"""

from typing import Final

from callwright.dialects._dsml import DsmlForm, EffortOptions, form_v41
from callwright.dialects.base import Dialect

_FORM: Final[DsmlForm] = form_v41()


DIALECT = Dialect(
    name="deepseek_v41",
    aliases=("deepseekv41",),
    model_families="DeepSeek V4.1",
    model_globs=("deepseek-v4.1",),
    template_markers=("｜DSML｜ calls",),
    source="deepseek-recipe 0.2.0, DeepSeek's own encoder: DeepSeek-V4.1",
    tokenizers=("deepseek_v3.2",),
    stops=("<｜end▁of▁sentence｜>",),
    options=EffortOptions,
    prompt=_FORM,
    calls=_FORM,
)
