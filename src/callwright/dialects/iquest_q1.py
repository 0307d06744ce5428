"""IQuest Q1: `<iquest_tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></iquest_tool_call>`, as GLM 4.7.

Values are text, typed by the schema; the answer begins in `<think>`. Source: SGLang's parser `iquest_q1`, and turns as
engines that serve the model write them. Nothing says how its template shows tools and outputs: the tools stand in words
in the system turn, outputs in a turn of the user.
"""

from collections.abc import Sequence
from typing import Final

from callwright.dialects.base import Dialect
from callwright.dialects.prompts.key_value_tags import KeyValueTags
from callwright.dialects.prompts.template import Frame, OpenThinkingOptions, Result
from callwright.dialects.readers.key_values import KeyValueForm
from callwright.prompt import PromptBuilder

__all__ = ["DIALECT"]

_END: Final = "<|iquest_end|>"
_THOUGHT: Final = ("<think>", "</think>")
_TAGS: Final = KeyValueTags(call="<iquest_tool_call>", call_end="</iquest_tool_call>")
_CONTROLS: Final = (
    *("<|iquest_system|>", "<|iquest_developer|>", "<|iquest_user|>", "<|iquest_assistant|>", _END),
    *("<tool_response>", "</tool_response>", *_THOUGHT, *_TAGS.literals),
)


# --- prompts ---


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    for result in results:
        out.control("<tool_response>").text(result.text).control("</tool_response>")


_FRAME: Final = Frame(
    controls=_CONTROLS,
    system=("<|iquest_system|>", _END),
    user=("<|iquest_user|>", _END),
    assistant=("<|iquest_assistant|>", _END),
    tool=("<|iquest_user|>", _END),
    calls=_TAGS.layout,
    results=_results,
    thought=_THOUGHT,
    no_thought="".join(_THOUGHT),
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
    prompt=_FRAME,
    calls=KeyValueForm(_TAGS, ends=(_END,)),
)
