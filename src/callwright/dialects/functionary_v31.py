"""Functionary v3.1: `<function=NAME>{…}</function>`.

Source: the chat template of meetkai's functionary-medium-v3.1, in the turns of Llama 3.1: the tools and the form of a
call are in a turn of their own, before the system text.
"""

import re
from typing import Final

from callwright.dialects.base import Dialect
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout
from callwright.reading.json.marked import CallMarks

_CALLS: Final = CallLayout(begin="<function=${name}>", end="</function>")
_MARKS: Final = CallMarks(
    layout=_CALLS,
    opens=("<function=",),
    closes=("</function>",),
    header=re.compile(r"""["']?([^<>{}"'\n]*?)["']?\s*>\s*"""),
    special=False,
)
_SHOW_TOOLS: Final = """
You have access to the following functions:

$each
Think very carefully before calling functions.
If a you choose to call a function ONLY reply in the following format:
<{start_tag}={function_name}>{parameters}{end_tag}
where

start_tag => `<function`
parameters => a JSON dict with the function argument name as key and function argument value as value.
end_tag => `</function>`

Here is an example,
<function=example_function_name>{"example_name": "example_value"}</function>

Reminder:
- If looking for real time information use relevant functions before falling back to brave_search
- Function calls MUST follow the specified format, start with <function= and end with </function>
- Required parameters MUST be specified
- Only call one function at a time
- Put the entire function call reply on one line

<|eot_id|>"""
_TURNS: Final = Turns(
    controls=("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>"),
    head=(
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n\nCutting Knowledge Date: December 2023\n\n"
        "«tools¦$tools¦<|eot_id|>»«<|start_header_id|>system<|end_header_id|>\n\n$text<|eot_id|>»"
    ),
    system="<|start_header_id|>system<|end_header_id|>\n\n$text<|eot_id|>",
    user="<|start_header_id|>user<|end_header_id|>\n\n$text<|eot_id|>",
    assistant="<|start_header_id|>assistant<|end_header_id|>\n\n$written«calls¦<|eom_id|>¦<|eot_id|>»",
    written="«<think>\n$thought:trim\n</think>\n\n»$text$calls",
    thoughts="none",
    outputs="$each",
    output="<|start_header_id|>ipython<|end_header_id|>\n\n$text<|eot_id|>",
    answer="<|start_header_id|>assistant<|end_header_id|>\n\n",
    calls=_CALLS,
    tools=_SHOW_TOOLS,
    tool="Use the function '$name' to '$about'\n$function\n\n",
)


DIALECT = Dialect(
    name="functionary_v31",
    aliases=("functionary",),
    model_families="Functionary v3.1",
    model_globs=("functionary-*-v3.1", "kanana-1.5"),
    template_markers=("<function= + </function> + <|eom_id|>",),
    source="chat template of functionary-medium-v3.1",
    tokenizers=("llama3",),
    stops=("<|eot_id|>", "<|eom_id|>"),
    stop_token_ids=(128009, 128008),
    prompt=_TURNS,
    calls=_MARKS,
)
