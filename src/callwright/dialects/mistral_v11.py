"""Mistral's newer form: `[TOOL_CALLS]NAME[ARGS]{…}`, once for each call.

The format of Mistral Small 3.2 (v11), of Magistral, Ministral 3, Large 3 and Devstral from 2507 on (v13), of Small 4
and Medium 3.5 (v15). v11 writes `[CALL_ID]` and an id before `[ARGS]`. Held against `mistral-common` 1.13.1.
"""

import json
from typing import Final, Literal

from msgspec.structs import replace

from callwright.conversation import Conversation
from callwright.dialects._mistral import HISTORY, MistralForm, marks
from callwright.dialects.base import Dialect
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.layout.calls import CallLayout
from callwright.prompt import Prompt, PromptBuilder


class Options(ThinkingOptions, frozen=True, kw_only=True):
    """`flavour`: `v11` (Small 3.2) has ids, and the tools before the last user turn; `v13` (Devstral, Magistral,
    Ministral 3, Large 3) has no ids, and the tools before the first; `v15` (Small 4, Medium 3.5) also shows the
    reasoning effort. `reasoning_effort`: in v15, of which the models know `none` and `high`; the other levels of the
    API are rounded. `thinking`: `model` leaves it to the model, `open` begins the answer in reasoning, `off` with a
    closed, empty one; in v15 `off` is the effort `none`.
    """

    flavour: Literal["v11", "v13", "v15"] = "v11"
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None


_CALLS: Final = CallLayout(begin="[TOOL_CALLS]${name}[CALL_ID]${id:9}[ARGS]")
_CALLS_WITHOUT_IDS: Final = CallLayout(begin="[TOOL_CALLS]${name}[ARGS]")


def _result(out: PromptBuilder, text: str, id_: str, space: str) -> None:
    out.text(id_).control("[TOOL_CONTENT]").text(text)


def _result_without_id(out: PromptBuilder, text: str, id_: str, space: str) -> None:
    out.text(text)


_V13: Final = MistralForm(calls=_CALLS_WITHOUT_IDS, result=_result_without_id, tools_at="first", thoughts="all")
_FORMS: Final = {
    "v11": MistralForm(
        calls=_CALLS, result=_result, tools_at="last", thoughts="running", thought=("<think>", "</think>")
    ),
    "v13": _V13,
    "v15": replace(_V13, joint=""),
}
_NO_EFFORT: Final = ("none", "minimal")
# The models whose prompt shows the reasoning effort.
_SETTINGS: Final = ("mistral-small-4", "mistral-small-2603", "mistral-medium-3.5", "mistral-medium-3-5", "leanstral")


class _Prompt(MistralForm, frozen=True, kw_only=True):
    """The form of `v11`; prompts are those of the flavour."""

    def render(self, conversation: Conversation, options: Options, settings: str = "") -> Prompt:
        """The whole prompt, which has no generation prompt except for the `thinking` option."""
        form = _FORMS[options.flavour]
        if options.flavour != "v15":
            return form.render(conversation, options)
        effort = options.reasoning_effort or ("high" if options.thinking == "open" else "none")
        if options.thinking == "off":
            effort, options = "none", replace(options, thinking="model")
        settings = json.dumps({"reasoning_effort": "none" if effort in _NO_EFFORT else "high"})
        return form.render(conversation, options, settings)


DIALECT = Dialect(
    name="mistral_v11",
    aliases=("ministral", "magistral", "devstral", "mistral_v13", "mistral_v15"),
    model_families="Mistral Small 3.2, Small 4, Medium 3.5, Large 3, Magistral, Ministral 3, Devstral 2507 and later",
    model_globs=(
        *("mistral-small-3.2", "mistral-small-2506", "mistral-small-*-2506", "mistral-medium-3*", "mistral-large-3"),
        *("mistral-large-2512", "magistral", "ministral-3", "devstral", "dolphin-mistral-24b", *_SETTINGS),
    ),
    model_options={
        **{name: {"flavour": "v13"} for name in ("magistral", "ministral-3", "ministral", "devstral", "mistral-large")},
        **{name: {"flavour": "v15"} for name in _SETTINGS},
        **{name: {"flavour": "v11"} for name in ("magistral-*-2506", "magistral-2506")},
        "mistral_v13": {"flavour": "v13"},
        "mistral_v15": {"flavour": "v15"},
    },
    template_markers=("[TOOL_CALLS] + [ARGS]",),
    history_rules=HISTORY,
    source="Mistral's own encoder, mistral-common 1.13.1: v11, v13 and v15",
    tokenizers=("tekken",),
    stops=("</s>",),
    stop_token_ids=(2,),
    options=Options,
    prompt=_Prompt(calls=_CALLS, result=_result, tools_at="last", thoughts="running"),
    calls=marks(_CALLS),
)
