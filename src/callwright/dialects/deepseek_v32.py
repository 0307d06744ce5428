"""DeepSeek V3.2: DSML in `<｜DSML｜function_calls>`.

Outputs follow the calls, outside any turn. Source: the chat template of DeepSeek-V3.2 that llama.cpp bundles;
`_dsml.py` has the shared parts of the versions.
"""

from typing import Final

from callwright.dialects._dsml import DsmlForm, DsmlOptions
from callwright.dialects.base import Dialect

_HOW_TO: Final = """## Tools

You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "<｜DSML｜function_calls>" block like the following as part of your reply to the \
user:
<｜DSML｜function_calls>
<｜DSML｜invoke name="$FUNCTION_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$FUNCTION_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜function_calls>

String and scalar parameters should be specified as is without any escaping or quotes, while lists and objects should \
use JSON format. The "string" attribute should be set to "true" for string type parameters and "false" for other types \
(numbers, booleans, arrays, objects).

If the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking block. \
Here is an example:

<｜DSML｜function_calls>
...
</｜DSML｜function_calls>

<function_results>
...
</function_results>

<think>...thinking about results</think>

Here are the functions available in JSONSchema format:
<functions>
"""
_FORM: Final = DsmlForm(
    calls="function_calls",
    lead="",
    how_to=(_HOW_TO, "\n</functions>\n"),
    results=("\n\n<function_results>\n", "<result>", "</result>", "\n", "\n</function_results>"),
    inline=True,
    kin=(" calls", " "),
)


DIALECT = Dialect(
    name="deepseek_v32",
    aliases=("deepseekv32",),
    model_families="DeepSeek V3.2",
    model_globs=("deepseek-v3.2",),
    template_markers=("｜DSML｜ + function_calls",),
    source="chat template of DeepSeek-V3.2 (llama.cpp models/templates)",
    tokenizers=("deepseek_v3.2",),
    stops=("<｜end▁of▁sentence｜>",),
    options=DsmlOptions,
    prompt=_FORM,
    calls=_FORM,
)
