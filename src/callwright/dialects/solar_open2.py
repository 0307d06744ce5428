"""Solar Open 2: `<|tool_call:start|>f` and lines of `<|tool_arg:start|>k<|tool_arg:value|>v<|tool_arg:end|>`.

All tags are tokens. Values are text, all of it. Source: vLLM's and SGLang's parsers `solar_open2`, and turns as engines
that serve the model write them. How its template shows tools is unknown: here the system turn describes them in words.
"""

from typing import Final

from callwright.dialects.base import Dialect
from callwright.dialects.prompts.options import OpenThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.key_values import KeyValueTags
from callwright.reading.tagged.key_values import KeyValueForm

_END: Final = "<|im:end|>"
_THOUGHT: Final = ("<|think:start|>", "<|think:end|>")
_RESPONSE: Final = ("<|tool_response:start|>", "<|tool_response:end|>")
_TAGS: Final = KeyValueTags(
    call="<|tool_call:start|>",
    call_end="<|tool_call:end|>",
    key="<|tool_arg:start|>",
    key_end="<|tool_arg:value|>",
    value="",
    value_end="<|tool_arg:end|>",
    gaps=("\n", "", "\n"),
    between="\n",
)
_CONTROLS: Final = (
    *("<|im:start|>", "<|im:content|>", _END, "<|tool:start|>", "<|tool:end|>"),
    *(*_THOUGHT, *_RESPONSE, *_TAGS.literals),
)


# --- prompts ---


_TURNS: Final = Turns(
    controls=_CONTROLS,
    head="<|im:start|>system<|im:content|>## System Prompt\n\n$text«tools¦\n\n»$tools<|im:end|>\n",
    system="<|im:start|>system<|im:content|>$text<|im:end|>\n",
    user="<|im:start|>user<|im:content|>$text<|im:end|>\n",
    assistant="<|im:start|>assistant<|im:content|>«!thought¦<|think:start|><|think:end|>»$written<|im:end|>\n",
    written="«<|think:start|>$thought:trim<|think:end|>»$text«text calls¦\n»$calls",
    outputs="<|im:start|>tool<|im:content|>$each<|im:end|>\n",
    output="<|tool_response:start|>$text<|tool_response:end|>\n",
    answer=("<|im:start|>assistant<|im:content|>«off¦<|think:start|><|think:end|>»«open¦<|think:start|>$thought»"),
    calls=_TAGS.layout,
)


DIALECT = Dialect(
    name="solar_open2",
    aliases=("solar_open_2", "solar2"),
    model_families="Solar Open 2",
    model_globs=("solar-open-2",),
    template_markers=("<|tool_arg:value|>",),
    source="parsers solar_open2 of vLLM and SGLang",
    tokenizers=("solar",),
    stops=(_END,),
    options=OpenThinkingOptions,
    prompt=_TURNS,
    calls=KeyValueForm(_TAGS, thoughts=(_THOUGHT,), ends=(_END,)),
)
