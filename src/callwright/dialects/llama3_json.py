"""Llama 3.1: an answer that is `{"name": …, "parameters": {…}}`, perhaps behind `<|python_tag|>`.

The JSON form of Llama 3.1, 3.2, 3.3 and 4 and of their fine-tunes. An answer that begins with the call of a known tool
is one; JSON between words is weighed as in any text. Source: the chat template of Llama-3.1-8B-Instruct: the tools
stand in the first user turn. Several calls, which the template refuses, are written with `; ` between them.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from callwright.calls.history import HistoryRules
from callwright.conversation import Conversation
from callwright.dialects.base import Dialect, PromptBy, RenderOptions
from callwright.dialects.call_layout import CallLayout, in_json
from callwright.dialects.prompts.template import Frame, Result
from callwright.dialects.readers.marked import CallMarks
from callwright.prompt import Prompt, PromptBuilder

__all__ = ["DIALECT"]


class Options(RenderOptions, frozen=True, kw_only=True):
    """`current_date`: the date in the system turn, as in `26 Jul 2024`."""

    current_date: str = "26 Jul 2024"


_CALLS: Final = CallLayout(begin=in_json(arguments="parameters"), end="}", between="; ", variants=("<|python_tag|>",))
_MARKS: Final = CallMarks(layout=_CALLS, opens=("<|python_tag|>",), bare=True)


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    out.text(
        "Given the following functions, please respond with a JSON for a function call with its proper arguments that "
        'best answers the given prompt.\n\nRespond in the format {"name": function name, "parameters": dictionary of '
        "argument name and its value}.Do not use variables.\n\n"
    )
    for tool in conversation.tools:
        out.text(json.dumps(tool.as_openai(), indent=4, ensure_ascii=False), "\n\n")


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    for result in results:
        out.json(json.dumps(result.text, ensure_ascii=False))


def _turn(role: str) -> tuple[str, str]:
    return f"<|start_header_id|>{role}<|end_header_id|>\n\n", "<|eot_id|>"


_FRAME: Final = Frame(
    controls=(
        *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>"),
        "<|python_tag|>",
    ),
    begin="<|begin_of_text|>",
    thoughts="none",
    system=_turn("system"),
    user=_turn("user"),
    assistant=_turn("assistant"),
    tool=_turn("ipython"),
    place="in first user",
    tools=_tools,
    calls=_CALLS,
    results=_results,
    gap="\n",
    each=True,
    trims=True,
)


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to where the model's answer begins."""
    return _dated(options.current_date).render(conversation, options)


@lru_cache(maxsize=8)
def _dated(today: str) -> Frame:
    dates = f"Cutting Knowledge Date: December 2023\nToday Date: {today}\n\n"
    return msgspec.structs.replace(_FRAME, preamble=dates, preamble_tools=f"Environment: ipython\n{dates}")


DIALECT = Dialect(
    name="llama3_json",
    aliases=("llama3", "llama4_json", "llama_json"),
    model_families="Llama 3.1, 3.2, 3.3, Llama 4 in its JSON form",
    model_globs=("llama-3.1", "llama-3.2", "llama-3.3", "nemotron-70b", "arcee-supernova-v1"),
    template_markers=("<|python_tag|>", "Environment: ipython"),
    history_rules=HistoryRules(single_calls=True),
    source="chat template of Llama-3.1-8B-Instruct",
    tokenizers=("llama3", "llama4"),
    stops=("<|eot_id|>", "<|eom_id|>"),
    stop_token_ids=(128009, 128008),
    options=Options,
    prompt=PromptBy(render=render, messages=_FRAME.messages, write=_FRAME.write, marks=_FRAME.marks),
    calls=_MARKS,
)
