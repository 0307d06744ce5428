"""IQuest Q1: `<iquest_tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></iquest_tool_call>`, as GLM 4.7.

Values are text, typed by the schema; the answer begins in `<think>`. Source: SGLang's parser `iquest_q1`, and turns as
engines that serve the model write them. How its template shows tools and outputs is unknown: here the tools are
described in the system turn, outputs are in a turn of the user.
"""

from typing import Final

from callwright.dialects.base import Dialect
from callwright.dialects.prompts.options import OpenThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.key_values import KeyValueTags
from callwright.reading.tagged.key_values import KeyValueForm

_END: Final = "<|iquest_end|>"
_THOUGHT: Final = ("<think>", "</think>")
_TAGS: Final = KeyValueTags(call="<iquest_tool_call>", call_end="</iquest_tool_call>")
_CONTROLS: Final = (
    *("<|iquest_system|>", "<|iquest_developer|>", "<|iquest_user|>", "<|iquest_assistant|>", _END),
    *("<tool_response>", "</tool_response>", *_THOUGHT, *_TAGS.literals),
)


# --- prompts ---


_TURNS: Final = Turns(
    controls=_CONTROLS,
    head="«text|tools¦<|iquest_system|>$text«text tools¦\n\n»$tools<|iquest_end|>»",
    system="<|iquest_system|>$text<|iquest_end|>",
    user="<|iquest_user|>$text<|iquest_end|>",
    assistant="<|iquest_assistant|>«!thought¦<think></think>»$written<|iquest_end|>",
    written="«<think>$thought:trim</think>»$text$calls",
    outputs="<|iquest_user|>$each<|iquest_end|>",
    output="<tool_response>$text</tool_response>",
    answer="<|iquest_assistant|>«off¦<think></think>»«open¦<think>$thought»",
    calls=_TAGS.layout,
)


DIALECT = Dialect(
    name="iquest_q1",
    aliases=("iquest", "iquestq1"),
    model_families="IQuest Q1",
    model_globs=("iquest-q1",),
    template_markers=("<iquest_tool_call>",),
    source="SGLang's parser iquest_q1",
    tokenizers=("iquest",),
    stops=(_END,),
    options=OpenThinkingOptions,
    prompt=_TURNS,
    calls=KeyValueForm(_TAGS, ends=(_END,)),
)
