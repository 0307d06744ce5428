"""K2 Horizon: `<ifm|tool_calls>` around calls with `<ifm|arg_key>` and `<ifm|arg_value>`, or with JSON.

A request chooses one of three forms: elements, elements with an `<ifm|arg_type>` between key and value, or a JSON
object in `<ifm|tool_call>`; all are read, the first is written. Source: vLLM's parser `k2_horizon`, the model card. The
prompt leaves `<ifm|think>` open; the roles are not published, so the rest of it is plain ChatML.
"""

from typing import Final, Literal

from msgspec.structs import replace

from callwright.dialects.base import Dialect, RenderOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.key_values import LINES, KeyValueTags, show_tools, write_turns
from callwright.reading.tagged.key_values import KeyValueForm

_STOPS: Final = ("<|im_end|>",)

_TAGS: Final = KeyValueTags(
    call="<ifm|tool_call>",
    call_end="</ifm|tool_call>",
    key="<ifm|arg_key>",
    key_end="</ifm|arg_key>",
    value="<ifm|arg_value>",
    value_end="</ifm|arg_value>",
    types=("<ifm|arg_type>", "</ifm|arg_type>"),
    blocks=(("<ifm|tool_calls>", "</ifm|tool_calls>"),),
    gaps=LINES,
    between="\n",
)
_THINK: Final = "ifm|think"
_EFFORTS: Final = {"high": _THINK, "medium": "ifm|think_fast", "low": "ifm|think_faster"}
_ROUNDED: Final = {"minimal": "low", "xhigh": "high", "max": "high"}
_THOUGHTS: Final = tuple((f"<{tag}>", f"</{tag}>") for tag in _EFFORTS.values())
# Which of the thoughts is open is not known: the end of any is the end.
_ENDS: Final = (*_STOPS, *(end for _, end in _THOUGHTS[1:]))
_CONTROLS: Final = (
    *("<|im_start|>", "<|im_end|>", *_TAGS.literals, *(tag for pair in _THOUGHTS for tag in pair)),
    *("<tool_response>", "</tool_response>"),
)


class Options(RenderOptions, frozen=True, kw_only=True):
    """`reasoning_effort`: with which of the three thoughts the answer begins, or `none`."""

    reasoning_effort: Literal["high", "medium", "low", "none"] = "high"

    def with_effort(self, level: str) -> "Options":
        """See `RenderOptions`: other levels are rounded."""
        return replace(self, reasoning_effort=_ROUNDED.get(level, level))


_TURNS: Final = Turns(
    controls=_CONTROLS,
    head="«instructed|tools¦<|im_start|>system\n$text«instructed tools¦\n\n»$tools<|im_end|>\n»",
    system="<|im_start|>system\n$text<|im_end|>\n",
    user="<|im_start|>user\n$text<|im_end|>\n",
    assistant="<|im_start|>assistant\n$written<|im_end|>\n",
    thoughts="all",
    outputs="$each",
    output="<|im_start|>tool\n$text<|im_end|>\n",
    answer=(
        "<|im_start|>assistant\n"
        "«high¦<ifm|think>$thought»«medium¦<ifm|think_fast>$thought»«low¦<ifm|think_faster>$thought»"
    ),
    tools=show_tools(_TAGS),
    **write_turns(_TAGS, _THINK),
)


DIALECT = Dialect(
    name="k2_horizon",
    aliases=("k2_v3", "k2horizon"),
    model_families="K2 Horizon",
    model_globs=("k2-horizon",),
    template_markers=("<ifm|tool_call",),
    source="vLLM's parser k2_horizon; model card of K2-Horizon",
    tokenizers=("k2_horizon",),
    stops=_STOPS,
    options=Options,
    prompt=_TURNS,
    calls=KeyValueForm(_TAGS, thoughts=_THOUGHTS, ends=_ENDS),
)
