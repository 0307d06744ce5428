"""Ling 3: `<tool_call>f<arg_key>k</arg_key>` and `<arg_value>v</arg_value>`, as GLM 4.5 writes it.

Source: the chat template of Ling-3.0, as inclusionAI's models and the engines that serve them show it. Turns are
`<role>NAME</role> … <|role_end|>`; the last line of the system turn switches reasoning, which the prompt leaves open.
"""

from typing import Final, Literal

from callwright.dialects.base import Dialect, RenderOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.key_values import LINES, KeyValueTags, show_tools, write_turns
from callwright.reading.tagged.key_values import KeyValueForm

_STOPS: Final = ("<|role_end|>",)

_TAGS: Final = KeyValueTags(gaps=LINES, between="\n")
# As the template shows earlier calls.
_HISTORY: Final = KeyValueTags(gaps=("", "\n", "\n"), name_gap="\n", between="\n")
_CONTROLS: Final = (
    *("<role>", "</role>", *_STOPS, *_TAGS.literals),
    *("<tool_response>", "</tool_response>", "<think>", "</think>"),
)
_WHEN: Final = (
    "If none of the functions can be used, point it out. If the given question lacks the parameters required by the "
    "function, also point it out.\nIf you need to use a function, for each function call, output"
)


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, `off` after an empty one."""

    thinking: Literal["open", "off"] = "open"


_TURNS: Final = Turns(
    controls=_CONTROLS,
    head=("<role>SYSTEM</role>$text«$tools\n»detailed thinking «open¦on¦off»<|role_end|>"),
    instruction="$text\n",
    system="<role>SYSTEM</role>$text<|role_end|>",
    user="<role>HUMAN</role>$text<|role_end|>",
    assistant="<role>ASSISTANT</role>\n<think>$thought:lines</think>$text«text calls¦\n»$calls<|role_end|>",
    past_calls=_HISTORY.layout,
    thoughts="all",
    outputs="<role>OBSERVATION</role>$each<|role_end|>",
    output="\n<tool_response>\n$text\n</tool_response>",
    answer="<role>ASSISTANT</role>\n<think>«open¦$thought¦</think>»",
    tools=show_tools(_TAGS, _WHEN),
    **write_turns(_TAGS),
)


DIALECT = Dialect(
    name="ling3",
    aliases=("ling", "bailing"),
    model_families="Ling 3, Ring 2.6",
    model_globs=("ling-3*", "ring-2.6"),
    template_markers=("<arg_key> + <role_end>", "<arg_key> + <|role_end|>"),
    source="chat template of Ling-3.0",
    tokenizers=("ling",),
    stops=_STOPS,
    options=Options,
    prompt=_TURNS,
    calls=KeyValueForm(_TAGS, ends=_STOPS),
)
