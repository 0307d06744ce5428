"""Llama 3.1: an answer that is `{"name": …, "parameters": {…}}`, optionally after `<|python_tag|>`.

The JSON form of Llama 3.1, 3.2, 3.3 and 4 and of their fine-tunes. An answer that begins with the call of a known tool
is one; JSON between words is weighed as in any text. Source: the chat template of Llama-3.1-8B-Instruct: the tools
are in the first user turn. Several calls, which the template refuses, are written with `; ` between them.

The template of Llama 4 puts text before calls between `<|python_start|>` and `<|python_end|>`, which it writes even
without text; calls follow each other without a gap.
"""

import json
from functools import partial
from typing import Final, Literal

from msgspec.structs import replace

from callwright.calls.history import HistoryRules
from callwright.conversation import Conversation
from callwright.dialects.base import Dialect, ReadBy, RenderOptions
from callwright.dialects.prompts.chat_messages import split_instructions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, in_json
from callwright.prompt import PromptBuilder
from callwright.reading.json.marked import CallMarks, MarkedCalls
from callwright.reading.text.said_before import SAID, read_said_before
from callwright.streaming.reader import Parse


class Options(RenderOptions, frozen=True, kw_only=True):
    """`current_date`: the date in the system turn of Llama 3, as in `26 Jul 2024`. `flavour`: whose template is
    followed.
    """

    current_date: str = "26 Jul 2024"
    flavour: Literal["llama3", "llama4"] = "llama3"


_CALLS: Final = CallLayout(begin=in_json(arguments="parameters"), end="}", between="; ", variants=("<|python_tag|>",))
_MARKS: Final = CallMarks(layout=_CALLS, opens=("<|python_tag|>",), bare=True, ends=("<|eot|>", "<|eom|>"))


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    out.text(
        "Given the following functions, please respond with a JSON for a function call with its proper arguments that "
        'best answers the given prompt.\n\nRespond in the format {"name": function name, "parameters": dictionary of '
        "argument name and its value}.Do not use variables.\n\n"
    )
    for tool in conversation.tools:
        out.text(json.dumps(tool.as_openai(), indent=4, ensure_ascii=False), "\n\n")


_TURNS: Final = Turns(
    controls=(
        *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>"),
        "<|python_tag|>",
    ),
    head=(
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n«tools¦Environment: ipython\n»"
        "Cutting Knowledge Date: December 2023\nToday Date: $current_date\n\n$text<|eot_id|>«tools !asked¦$tools»"
    ),
    system="<|start_header_id|>system<|end_header_id|>\n\n$text<|eot_id|>",
    user="<|start_header_id|>user<|end_header_id|>\n\n$text<|eot_id|>",
    first_user="<|start_header_id|>user<|end_header_id|>\n\n$tools$text<|eot_id|>",
    assistant="<|start_header_id|>assistant<|end_header_id|>\n\n$written<|eot_id|>",
    written="«<think>\n$thought:trim\n</think>\n\n»$text«text calls¦\n»$calls",
    thoughts="none",
    outputs="$each",
    output="<|start_header_id|>ipython<|end_header_id|>\n\n$text:json<|eot_id|>",
    answer="<|start_header_id|>assistant<|end_header_id|>\n\n",
    trims=("system", "user"),
    calls=_CALLS,
    tools=_tools,
    flavours={
        "llama4": {
            "controls": ("<|begin_of_text|>", "<|header_start|>", "<|header_end|>", "<|eot|>", "<|eom|>", *SAID),
            "head": (
                "<|begin_of_text|>«text|told text|tools¦<|header_start|>system<|header_end|>\n\n"
                "«told tools¦Environment: ipython\n»$text<|eot|>»«tools !asked¦$tools»"
            ),
            "more": lambda conversation: {"told": bool(split_instructions(conversation.items)[0])},
            "system": "<|header_start|>system<|header_end|>\n\n$text<|eot|>",
            "user": "<|header_start|>user<|header_end|>\n\n$text<|eot|>",
            "first_user": "<|header_start|>user<|header_end|>\n\n$tools$text<|eot|>",
            "assistant": (
                "<|header_start|>assistant<|header_end|>\n\n"
                "«calls¦<|python_start|>$text<|python_end|>$calls¦$text»<|eot|>"
            ),
            "past_calls": replace(_CALLS, between=""),
            "trims": (),
            "output": "<|header_start|>ipython<|header_end|>\n\n$text:json<|eot|>",
            "answer": "<|header_start|>assistant<|header_end|>\n\n",
        }
    },
)


class _Calls(MarkedCalls):
    """Calls in JSON, optionally after text as Llama 4 writes it."""

    def begin(self, start: str) -> Parse[None]:
        """Read the words before calls."""
        return read_said_before(self.text)


DIALECT = Dialect(
    name="llama3_json",
    aliases=("llama3", "llama4_json", "llama_json"),
    model_families="Llama 3.1, 3.2, 3.3, Llama 4 in its JSON form",
    model_options={"llama4_json": {"flavour": "llama4"}},
    model_globs=("llama-3.1", "llama-3.2", "llama-3.3", "nemotron-70b", "arcee-supernova-v1"),
    template_markers=("<|python_tag|>", "Environment: ipython"),
    history_rules=HistoryRules(single_calls=True),
    source="chat templates of Llama-3.1-8B-Instruct and Llama 4",
    tokenizers=("llama3", "llama4"),
    stops=("<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>"),
    stop_token_ids=(128009, 128008),
    options=Options,
    prompt=_TURNS,
    calls=ReadBy(_CALLS, partial(_Calls, form=_MARKS)),
)
