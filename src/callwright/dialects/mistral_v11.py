"""Mistral's newer form: `[TOOL_CALLS]NAME[ARGS]{…}`, once for each call.

The format of Mistral Small 3.2, Magistral, Ministral 3 and Devstral from 2507 on. v11 may write `[CALL_ID]` and an id
before `[ARGS]`. Checked against the chat templates of Mistral-Small-3.2-24B-Instruct-2506, Devstral-Small-2507 and
Ministral-3-14B-Reasoning-2512.
"""

from collections.abc import Sequence
from typing import Final, Literal

from callwright.conversation import Conversation
from callwright.dialects._mistral import HISTORY, call_id, frame, marks
from callwright.dialects.base import Dialect, PromptBy
from callwright.dialects.call_layout import CallLayout
from callwright.dialects.prompts.template import Result, ThinkingOptions
from callwright.prompt import Prompt, PromptBuilder

__all__ = ["DIALECT"]


class Options(ThinkingOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the model, `open` begins the answer in reasoning, `off` with a closed, empty
    one. `flavour`: `v11` (Small 3.2) has ids, and the tools before the last user turn; `v13` (Devstral, Magistral,
    Ministral 3) has no ids, and the tools before all turns.
    """

    flavour: Literal["v11", "v13"] = "v11"


_CALLS: Final = CallLayout(begin="[TOOL_CALLS]${name}[CALL_ID]call${number:5}[ARGS]")
_CALLS_WITHOUT_IDS: Final = CallLayout(begin="[TOOL_CALLS]${name}[ARGS]")


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    for result in results:
        out.text(call_id(result.number)).control("[TOOL_CONTENT]").text(result.text)


def _results_without_ids(out: PromptBuilder, results: Sequence[Result]) -> None:
    for result in results:
        out.text(result.text)


_FRAMES: Final = {
    "v11": frame(_CALLS, _results, system=True, place="before last user", reasons=True),
    "v13": frame(_CALLS_WITHOUT_IDS, _results_without_ids, system=True, place="after system", reasons=True),
}


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt: nothing stands where the answer begins."""
    return _FRAMES[options.flavour].render(conversation, options)


DIALECT = Dialect(
    name="mistral_v11",
    aliases=("ministral", "magistral", "devstral", "mistral_v13"),
    model_families="Mistral Small 3.2, Magistral, Ministral 3, Devstral 2507 and later",
    model_globs=(
        "mistral-small-3.2",
        "mistral-small-4",
        "mistral-small-*-2506",
        "magistral",
        "ministral-3",
        "devstral",
        "leanstral",
        "mistral-medium-3*",
        "mistral-large-3",
    ),
    template_markers=("[TOOL_CALLS] + [ARGS]",),
    history_rules=HISTORY,
    source="chat templates of Mistral-Small-3.2-24B-Instruct-2506 and Ministral-3-14B-Reasoning-2512",
    tokenizers=("tekken",),
    stops=("</s>",),
    stop_token_ids=(2,),
    options=Options,
    prompt=PromptBy(
        render=render, messages=_FRAMES["v11"].messages, write=_FRAMES["v11"].write, marks=_FRAMES["v11"].marks
    ),
    calls=marks(_CALLS),
)
