"""DeepSeek V4.1: DSML in `<｜DSML｜ calls>`, with a space before each name.

The prompt is that of V4 with these tags; nothing says otherwise. Source: DeepSeek-V4's encoding and
what engines read of V4.1; `_dsml.py` has what the versions share.
"""

from typing import Final

from callwright.dialects._dsml import DsmlForm, DsmlOptions, v4_form
from callwright.dialects.base import Dialect

__all__ = ["DIALECT"]


_FORM: Final[DsmlForm] = v4_form((" calls", " "), kin=("tool_calls", ""))


DIALECT = Dialect(
    name="deepseek_v41",
    aliases=("deepseekv41",),
    model_families="DeepSeek V4.1",
    model_globs=("deepseek-v4.1",),
    template_markers=("｜DSML｜ calls",),
    source="DeepSeek-V4 encoding with the tags of V4.1",
    tokenizers=("deepseek_v3.2",),
    stops=("<｜end▁of▁sentence｜>",),
    options=DsmlOptions,
    prompt=_FORM,
    calls=_FORM,
)
