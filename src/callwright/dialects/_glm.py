"""Shared parts of the prompts of GLM: tools as JSON lines in a system turn of their own, roles as tokens.

GLM 4.5 and 4.6 put a line feed after each role and between the elements of a call, later models nothing.
"""

from typing import Any, Final

from callwright.dialects.prompts.turns import Turns
from callwright.layout.key_values import KeyValueTags, show_tools, write_turns

GLM_ENDS: Final = ("<|user|>", "<|observation|>", "<|endoftext|>")
CONTROLS: Final = (
    *("[gMASK]", "<sop>", "<|system|>", "<|assistant|>", *GLM_ENDS, *KeyValueTags().literals),
    *("<tool_response>", "</tool_response>", "<think>", "</think>"),
)


def glm_turns(tags: KeyValueTags, **own: Any) -> Turns:
    """The table of one version. The gap between tags also follows roles."""
    between = tags.between
    no_thought = "<think></think>" if between else "</think>"
    return Turns(
        controls=CONTROLS,
        head="[gMASK]<sop>«tools¦<|system|>\n$tools»$text",
        instruction=f"<|system|>{between}$text",
        system=f"<|system|>{between}$text",
        assistant=(
            f"<|assistant|>{between}«thought¦<think>$thought:trim</think>¦{no_thought}»"
            f"«{between}$text»«{between}$calls»"
        ),
        trims=("assistant",),
        outputs="<|observation|>$each",
        output=f"{between}<tool_response>{between}$text{between}</tool_response>",
        tools=show_tools(tags),
        **write_turns(tags),
        **own,
    )
