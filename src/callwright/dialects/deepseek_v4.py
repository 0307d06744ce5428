"""DeepSeek V4: DSML in `<｜DSML｜tool_calls>`.

V4-Flash-0731 writes this form, too, whatever the lists of engines say. Source: the encoding of DeepSeek-V4 (its README,
encoding_dsv4.py); `_dsml.py` has what the versions share.
"""

from typing import Final

from callwright.dialects._dsml import DsmlForm, DsmlOptions, v4_form

__all__ = [
    "Options",
    "aliases",
    "messages",
    "model_families",
    "parse",
    "render",
    "source",
    "stop_token_ids",
    "stops",
    "write",
]

aliases = ("deepseekv4",)
model_families = "DeepSeek V4, V4-Flash"
model_globs = ("deepseek-v4*",)
template_markers = ("｜DSML｜ + tool_calls",)
source = "chat templates of DeepSeek-V4 and V4-Flash-0731"
stops = ("<｜end▁of▁sentence｜>",)
stop_token_ids = ()

_FORM: Final[DsmlForm] = v4_form(("tool_calls", ""), kin=(" calls", " "))

Options = DsmlOptions
render = _FORM.render
messages = _FORM.messages
write = _FORM.write
parse = _FORM.parse
