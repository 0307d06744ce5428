"""GLM 4.7 and later: `<tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>`, without line feeds.

Values are text, typed by the schema. GLM-5.3-Flash also writes `f>{"k": "v"}` and `<arg_key>k=v</arg_value>`, which are
read. Source: the chat templates of GLM-4.7, GLM-5 and Spark 2.5, which leave reasoning open or closed at the begin of
the answer. Spark shows its tools and turns in its own way, and the reasoning of each turn.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from callwright.dialects._glm import GLM_ENDS, glm_turns
from callwright.dialects.base import Dialect, RenderOptions
from callwright.dialects.prompts.chat_messages import split_instructions
from callwright.layout.key_values import KeyValueTags
from callwright.reading.tagged.key_values import KeyValueForm

_TAGS: Final = KeyValueTags()


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, `off` after it. `flavour`: whose turns."""

    thinking: Literal["open", "off"] = "open"
    flavour: Literal["glm", "spark2.5"] = "glm"


_BEGIN: Final = "<｜start▁of▁sentence｜>"
_END: Final = "<｜end▁of▁sentence｜>"
_SPARK_ENDS: Final = (_END,)
_DEFAULT: Final = "you are a helpful assistant."
# What differs from the table of GLM.
_SPARK: Final[Mapping[str, Any]] = {
    "controls": (
        *(_BEGIN, _END, "<|System|>", "<|User|>", "<|Bot|>", "<|Tool|>"),
        *("<think>", "</think>", "<tool_response>", "</tool_response>", *KeyValueTags().literals),
    ),
    "head": f"{_BEGIN}<|System|>\n«tools¦$tools«text¦\n\n»¦{_DEFAULT}«text¦\n\n»»$text{_END}",
    "instruction": "$text",
    "gather": split_instructions,
    "notes_choice": True,
    "system": f"{_BEGIN}<|System|>\n$text{_END}",
    "user": f"{_BEGIN}<|User|>$text{_END}",
    "assistant": f"{_BEGIN}<|Bot|>«thought¦<think>$thought:trim</think>¦</think>»$text$calls{_END}",
    "trims": (),
    "thoughts": "all",
    "outputs": f"{_BEGIN}<|Tool|>$each{_END}",
    "output": "<tool_response>$text</tool_response>",
    "answer": f"{_BEGIN}<|Bot|>«open¦<think>$thought¦</think>»",
    "tools": f"{_DEFAULT}## Tools\nYou have access to the following functions:\n<tools>$each\n</tools>",
    "tool": "\n$function",
}


_TURNS: Final = glm_turns(
    _TAGS,
    user="<|user|>$text",
    answer="<|assistant|>«open¦<think>$thought¦</think>»",
    flavours={"spark2.5": _SPARK},
)


DIALECT = Dialect(
    name="glm47",
    aliases=("glm5", "spark25", "spark3"),
    model_families="GLM-4.7, GLM-5, Spark-2.5, Spark-3",
    model_globs=("glm-4.7*", "glm-5*", "macaron-v1", "spark-2.5", "spark-3"),
    model_options={name: {"flavour": "spark2.5"} for name in ("spark-2.5", "spark-3", "spark25", "spark3")},
    template_markers=("<arg_key> + <arg_value>",),
    source="chat templates of GLM-4.7, GLM-5 and Spark 2.5; engines' parser spark3",
    tokenizers=("glm4", "spark"),
    stops=(*GLM_ENDS, *_SPARK_ENDS),
    options=Options,
    prompt=_TURNS,
    calls=KeyValueForm(_TAGS, ends=(*GLM_ENDS, *_SPARK_ENDS)),
)
