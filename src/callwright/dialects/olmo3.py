"""Olmo 3: `<function_calls>f(a="x")` and further calls, one on each line, up to `</function_calls>`.

Calls are Python, with `null`, `true` and `false` as well as Python's words. The functions are JSON in the system turn,
outputs have the role `environment`. Source: the chat template of Olmo-3-7B-Instruct. Olmo-3-Think leaves
`<think>` open.
"""

from typing import Final, Literal

from callwright.dialects.base import Dialect, RenderOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout
from callwright.layout.literal import PythonArguments
from callwright.reading.literal.python import PythonForm

_STOPS: Final = ("<|im_end|>", "<|endoftext|>")

_OPEN: Final = "<function_calls>"
_CLOSE: Final = "</function_calls>"
_CALLS: Final = CallLayout(
    open=_OPEN, begin="${name}(", arguments=PythonArguments(), end=")", between="\n", close=_CLOSE
)
_FORM: Final = PythonForm(_CALLS, ((_OPEN, _CLOSE),), control=False)
_CONTROLS: Final = (*("<|im_start|>", *_STOPS, _OPEN, _CLOSE, "<functions>", "</functions>", "<think>", "</think>"),)
_IDENTITY: Final = "You are a helpful function-calling AI assistant."
_WITH_TOOLS: Final = (
    "You are provided with function signatures within <functions></functions> XML tags. You may call one or more "
    "functions to assist with the user query. Output any function calls within <function_calls></function_calls> XML "
    "tags. Do not make assumptions about what values to plug into functions."
)


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the model, `open` begins the answer in reasoning, as Olmo-3-Think has it."""

    thinking: Literal["model", "open"] = "model"


_TURNS: Final = Turns(
    controls=_CONTROLS,
    head="«instructed|tools¦<|im_start|>system\n«text¦$text¦" + _IDENTITY + "»« $tools»<|im_end|>\n»",
    notes_choice=False,
    system="<|im_start|>system\n$text<|im_end|>\n",
    user="<|im_start|>user\n$text<|im_end|>\n",
    # Reasoning is dropped on purpose: the template shows none.
    assistant="<|im_start|>assistant\n$text$calls<|im_end|>\n",
    written="«<think>$thought</think>\n»$text$calls",
    thoughts="none",
    outputs="$each",
    output="<|im_start|>environment\n$text<|im_end|>\n",
    answer="<|im_start|>assistant\n«open¦<think>$thought»",
    calls=_CALLS,
    tools=_WITH_TOOLS + "\n\n<functions>$list</functions>",
    chat_tools=_WITH_TOOLS + "\n\n<functions>$list</functions>",
    chat_output="$text",
    chat_between="\n\n",
)


# --- output ---


DIALECT = Dialect(
    name="olmo3",
    aliases=("olmo",),
    model_families="Olmo 3",
    model_globs=("olmo-3", "olmo-3.*", "olmo-hybrid"),
    template_markers=("<function_calls> + <functions>",),
    source="chat template of Olmo-3-7B-Instruct",
    tokenizers=("dolma2",),
    stops=_STOPS,
    options=Options,
    prompt=_TURNS,
    calls=_FORM,
)
