"""Solar Open 2: `<|tool_call:start|>f` and lines of `<|tool_arg:start|>k<|tool_arg:value|>v<|tool_arg:end|>`.

All tags are tokens. Values are text, all of it. Source: vLLM's and SGLang's parsers `solar_open2`, and turns as engines
that serve the model write them. Nothing says how its template shows tools: they stand in words in the system turn.
"""

from collections.abc import Sequence
from typing import Final

from callwright.dialects.base import Dialect
from callwright.dialects.prompts.key_value_tags import KeyValueTags
from callwright.dialects.prompts.template import Frame, OpenThinkingOptions, Result
from callwright.dialects.readers.key_values import KeyValueForm
from callwright.prompt import PromptBuilder

__all__ = ["DIALECT"]

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


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    for result in results:
        out.control(_RESPONSE[0]).text(result.text).control(_RESPONSE[1]).text("\n")


def _turn(role: str) -> tuple[str, str]:
    return f"<|im:start|>{role}<|im:content|>", f"{_END}\n"


_FRAME: Final = Frame(
    controls=_CONTROLS,
    system=_turn("system"),
    user=_turn("user"),
    assistant=_turn("assistant"),
    tool=_turn("tool"),
    preamble="## System Prompt\n\n",
    calls=_TAGS.layout,
    results=_results,
    gap="\n",
    thought=_THOUGHT,
    no_thought="".join(_THOUGHT),
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
    prompt=_FRAME,
    calls=KeyValueForm(_TAGS, thoughts=(_THOUGHT,), ends=(_END,)),
)
