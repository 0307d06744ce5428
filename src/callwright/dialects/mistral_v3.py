"""Mistral's older form: `[TOOL_CALLS]` and a list of `{"name": …, "arguments": {…}, "id": …}`.

The format of Mistral 7B v0.3, Nemo, Large 2407 and Mixtral 8x22B (v3), of Large 2411, Small 2501 and Small 3.1 (v7).
The tools precede the last user turn, which in v3 begins with the system text. Checked against `mistral-common`
1.13.1.
"""

import json
from functools import cache
from typing import Final, Literal

from callwright.conversation import Conversation
from callwright.dialects._mistral import HISTORY, MistralForm, marks
from callwright.dialects.base import Dialect, RenderOptions
from callwright.layout.calls import CallLayout, in_json
from callwright.prompt import Prompt, PromptBuilder


class Options(RenderOptions, frozen=True, kw_only=True):
    """`flavour`: `v3`, or `v7` with turns of its own for system texts and with ids before results. `spaces`: a space
    before each text, as tokenizers of SentencePiece put it there (7B v0.3, Large, Mixtral); those of Tekken put none.
    """

    flavour: Literal["v3", "v7"] = "v3"
    spaces: bool = False


def _calls(space: str = "") -> CallLayout:
    return CallLayout(
        open=f"[TOOL_CALLS]{space}[",
        begin=in_json(),
        end=', "id": "${id:9}"}',
        between=", ",
        close="]",
    )


def _json_result(out: PromptBuilder, text: str, id_: str, space: str) -> None:
    """A result as JSON: its text if it is JSON, empty text as an empty object, else a JSON string."""
    try:
        content = json.loads(text or "{}")
        written = json.dumps({"content": content, "call_id": id_}, ensure_ascii=False, allow_nan=False)
        written.encode()  # raises for half of a surrogate pair
    except (ValueError, RecursionError):
        written = json.dumps({"content": text, "call_id": id_}, ensure_ascii=False)
    out.text(space).json(written)


def _named_result(out: PromptBuilder, text: str, id_: str, space: str) -> None:
    out.text(space, id_).control("[TOOL_CONTENT]").text(space if text else "", text)


@cache
def _form(flavour: str, space: str) -> MistralForm:
    is_v7 = flavour == "v7"
    return MistralForm(
        calls=_calls(space),
        result=_named_result if is_v7 else _json_result,
        tools_at="last",
        system=is_v7,
        space=space,
    )


class _Prompt(MistralForm, frozen=True, kw_only=True):
    """The form of `v3`; prompts are those of the flavour."""

    def render(self, conversation: Conversation, options: Options, settings: str = "") -> Prompt:
        """The whole prompt, which has no generation prompt."""
        return _form(options.flavour, " " if options.spaces else "").render(conversation, options)


# The third 7B: as such it is named, and without a version where names have none.
_7B: Final = (
    *("mistral-7b-instruct-v0.3", "mistral-7b-v0.3", "^-mistral-v0.3", "^-mistral-7b-$", "^-mistral-7b-instruct-$"),
    *("^-mistral-$", "^-mistral-latest-$", "^-mistral-instruct-$"),
)
# Models whose tokenizer puts a space before each text, those of them in the newer form, and the newer form without.
_SENTENCE_PIECE: Final = (
    *_7B,
    "mixtral",
    "mistral-large",
    "mistral-small-22b",
    "mistral-small-*-2409",
)
_LARGE_2: Final = ("mistral-large-*-2411", "mistral-large-2411", "mistral-large-123b", "mistral-large-latest")
_OF_V7: Final = (
    *("mistral-small", "mistral-small-24b", "mistral-small-2501", "mistral-small-2503", "mistral-small-3"),
    *("mistral-small-3.0", "mistral-small-3.1"),
)

DIALECT = Dialect(
    name="mistral_v3",
    aliases=("mistral", "mistral_nemo", "mistral_v7"),
    model_families="Mistral 7B v0.3, Nemo, Mixtral, Large 2407 and 2411, Small 2409, 2501 and 3.1, Ministral 8B 2410",
    model_globs=(
        *(*_7B, "mistral-nemo", "mixtral", "mistral-large", "pixtral", "ministral-8b", "ministral-*-2410"),
        *("devstral-*-2505", "voxtral-*-*-2507", *_OF_V7, "mistral-small-22b", "mistral-small-*-2409"),
    ),
    model_options={
        **{name: {"spaces": True} for name in _SENTENCE_PIECE},
        **{name: {"flavour": "v7", "spaces": True} for name in (*_LARGE_2, "pixtral-large")},
        **{name: {"flavour": "v7"} for name in (*_OF_V7, "voxtral", "devstral", "mistral_v7")},
    },
    template_markers=("[TOOL_CALLS]",),
    history_rules=HISTORY,
    source="Mistral's own encoder, mistral-common 1.13.1: v3 and v7",
    tokenizers=("mistral_v1", "mistral_v3", "tekken"),
    stops=("</s>",),
    stop_token_ids=(2,),
    options=Options,
    prompt=_Prompt(calls=_calls(), result=_json_result, tools_at="last", system=False),
    calls=marks(_calls()),
)
