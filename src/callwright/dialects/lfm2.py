"""LFM2: `<|tool_call_start|>[f(a="x"), g()]<|tool_call_end|>`, calls as Python.

The format of Liquid's LFM2 and LFM2.5. Source: the chat templates of LFM2-1.2B and LFM2.5-8B-A1B. The tools are
JSON after the system text, outputs have the role `tool`. The template of LFM2 drops the calls of history; here
they are written as in that of LFM2.5.
"""

import json
from typing import Any, Final, Literal

from callwright.dialects.base import Dialect, RenderOptions
from callwright.dialects.prompts.chat_messages import (
    spoken_instructions,
)
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout
from callwright.layout.literal import PythonArguments
from callwright.reading.literal.python import PythonForm

_OPEN: Final = "<|tool_call_start|>"
_CLOSE: Final = "<|tool_call_end|>"


def _calls(*in_json: type) -> CallLayout:
    """Calls as Python, with values of some types in JSON."""

    def literal(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False) if isinstance(value, in_json) else repr(value)

    arguments = PythonArguments(literal)
    return CallLayout(
        open=f"{_OPEN}[", begin="${name}(", arguments=arguments, end=")", between=", ", close=f"]{_CLOSE}"
    )


_CALLS: Final = _calls(dict)
_FORM: Final = PythonForm(_CALLS, ((_OPEN, _CLOSE),))
_LIST: Final = ("<|tool_list_start|>", "<|tool_list_end|>")
_RESULT: Final = ("<|tool_response_start|>", "<|tool_response_end|>")
_CONTROLS: Final = (
    *("<|startoftext|>", "<|im_start|>", "<|im_end|>", _OPEN, _CLOSE, *_LIST, *_RESULT, "<think>", "</think>"),
)


class Options(RenderOptions, frozen=True, kw_only=True):
    """`flavour`: in LFM2 the tools and outputs are between tokens of their own, and lists are JSON; not in LFM2.5."""

    flavour: Literal["lfm2", "lfm2.5"] = "lfm2"


_TURNS: Final = Turns(
    controls=_CONTROLS,
    head="<|startoftext|>«instructed|tools¦<|im_start|>system\n$text«instructed tools¦\n»$tools<|im_end|>\n»",
    gather=spoken_instructions,
    notes_choice=False,
    system="<|im_start|>system\n$text<|im_end|>\n",
    user="<|im_start|>user\n$text<|im_end|>\n",
    assistant="<|im_start|>assistant\n$written<|im_end|>\n",
    written="«<think>$thought</think>»$text$calls",
    outputs="$each",
    output="<|im_start|>tool\n<|tool_response_start|>$text<|tool_response_end|><|im_end|>\n",
    answer="<|im_start|>assistant\n",
    calls=_CALLS,
    past_calls=_calls(dict, list),
    tools="List of tools: <|tool_list_start|>$list<|tool_list_end|>",
    chat_tools="List of tools: <|tool_list_start|>$list<|tool_list_end|>",
    chat_output="<|tool_response_start|>$text<|tool_response_end|>",
    chat_between="\n",
    flavours={
        "lfm2.5": {
            "past_calls": _CALLS,
            "output": "<|im_start|>tool\n$text<|im_end|>\n",
            "tools": "List of tools: $list",
            "chat_tools": "List of tools: $list",
        }
    },
)


# --- output ---


DIALECT = Dialect(
    name="lfm2",
    aliases=("lfm2.5",),
    model_families="LFM2, LFM2.5",
    model_globs=("lfm-2*", "openpangu-2"),
    model_options={"lfm2.5": {"flavour": "lfm2.5"}, "lfm-2.5": {"flavour": "lfm2.5"}},
    template_markers=("<|tool_list_start|>", "<|tool_call_start|>", "List of tools: "),
    source="chat templates of LFM2-1.2B and LFM2.5-8B-A1B; parsers of openPangu-2.0",
    tokenizers=("lfm2", "openpangu"),
    stops=("<|im_end|>",),
    options=Options,
    prompt=_TURNS,
    calls=_FORM,
)
