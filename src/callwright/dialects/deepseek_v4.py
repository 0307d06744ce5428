"""DeepSeek V4: DSML in `<｜DSML｜tool_calls>`.

V4-Flash-0731 writes this form, too, whatever the lists of engines say. Source: the encoding of DeepSeek-V4 (its README,
encoding_dsv4.py); `_dsml.py` has what the versions share.
"""

from typing import Final

from callwright.dialects._dsml import DsmlForm, DsmlOptions, v4_form
from callwright.dialects.base import Dialect

__all__ = ["DIALECT"]


_FORM: Final[DsmlForm] = v4_form(("tool_calls", ""), kin=(" calls", " "))


DIALECT = Dialect(
    name="deepseek_v4",
    aliases=("deepseekv4",),
    model_families="DeepSeek V4, V4-Flash",
    model_globs=("deepseek-v4",),
    template_markers=("｜DSML｜ + tool_calls",),
    source="chat templates of DeepSeek-V4 and V4-Flash-0731",
    tokenizers=("deepseek_v3.2",),
    stops=("<｜end▁of▁sentence｜>",),
    options=DsmlOptions,
    prompt=_FORM,
    calls=_FORM,
)
