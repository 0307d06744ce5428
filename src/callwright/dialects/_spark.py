"""The prompts of Spark 2.5: turns between tokens of sentences, the calls of GLM 4.7."""

from collections.abc import Mapping
from typing import Any, Final

from callwright.dialects.prompts.chat_messages import split_instructions
from callwright.layout.key_values import KeyValueTags

_BEGIN: Final = "<｜start▁of▁sentence｜>"
_END: Final = "<｜end▁of▁sentence｜>"
SPARK_ENDS: Final = (_END,)
_DEFAULT: Final = "you are a helpful assistant."
# What differs from the table of GLM.
SPARK: Final[Mapping[str, Any]] = {
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
