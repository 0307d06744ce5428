"""Mistral's older form: `[TOOL_CALLS]` and a list of `{"name": …, "arguments": {…}, "id": …}`.

The format of Mistral 7B v0.3, Nemo, Large 2407 and Mixtral. The tools stand before the last user turn, which begins
with the system text. Checked against the chat templates of Mistral-Nemo-Instruct-2407 and of Mistral's v3 tokenizer.
"""

from collections.abc import Sequence
from typing import Final

from callwright.conversation import Conversation
from callwright.dialects._mistral import HISTORY, call_id, frame, marks
from callwright.dialects.base import Dialect, PromptBy, RenderOptions
from callwright.dialects.call_layout import CallLayout, in_json
from callwright.dialects.prompts.template import Result
from callwright.prompt import Prompt, PromptBuilder

__all__ = ["DIALECT"]


class Options(RenderOptions, frozen=True, kw_only=True):
    """`spaces`: a space behind the tokens of turns and calls, as in 7B v0.3, Large 2407 and Mixtral; Nemo has none."""

    spaces: bool = False


def _calls(space: str) -> CallLayout:
    tokens = f"[TOOL_CALLS]{space}["
    return CallLayout(open=tokens, begin=in_json(), end=', "id": "call${number:5}"}', between=", ", close="]")


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    for result in results:
        out.text(f'{{"content": {result.text}, "call_id": "{call_id(result.number)}"}}')


_FRAME: Final = frame(_calls(""), _results, system=False, place="before last user", reasons=False)
_SPACED: Final = frame(_calls(" "), _results, system=False, place="before last user", reasons=False, space=" ")


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt: nothing stands where the answer begins."""
    return (_SPACED if options.spaces else _FRAME).render(conversation, options)


DIALECT = Dialect(
    name="mistral_v3",
    aliases=("mistral", "mistral_nemo"),
    model_families="Mistral 7B v0.3, Nemo, Large 2407, Mixtral",
    model_globs=(
        "mistral-7b-instruct-v0.3",
        "mistral-7b-v0.3",
        "mistral-nemo",
        "mistral-large",
        "mixtral",
        "mistral-small-24b",
        "mistral-small-22b",
        "mistral-small-3.1",
        "ministral-8b",
    ),
    template_markers=("[TOOL_CALLS]",),
    history_rules=HISTORY,
    source="chat template of Mistral-Nemo-Instruct-2407",
    tokenizers=("mistral_v1", "mistral_v3", "tekken"),
    stops=("</s>",),
    stop_token_ids=(2,),
    options=Options,
    prompt=PromptBy(render=render, messages=_FRAME.messages, write=_FRAME.write, marks=_FRAME.marks),
    calls=marks(_calls("")),
)
