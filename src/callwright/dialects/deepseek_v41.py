"""DeepSeek V4.1: DSML in `<｜DSML｜ calls>`, with a space before each name.

The prompt is that of V4 with these tags; nothing says otherwise. Source: DeepSeek-V4's encoding and
what engines read of V4.1; `_dsml.py` has what the versions share.
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

aliases = ("deepseekv41",)
model_families = "DeepSeek V4.1"
model_globs = ("deepseek-v4.1*",)
template_markers = ("｜DSML｜ calls",)
source = "DeepSeek-V4 encoding with the tags of V4.1"
stops = ("<｜end▁of▁sentence｜>",)
stop_token_ids = ()

_FORM: Final[DsmlForm] = v4_form((" calls", " "), kin=("tool_calls", ""))

Options = DsmlOptions
render = _FORM.render
messages = _FORM.messages
write = _FORM.write
parse = _FORM.parse
