"""Llama 3.1: an answer that is `{"name": …, "parameters": {…}}`, perhaps behind `<|python_tag|>`.

The JSON form of Llama 3.1, 3.2, 3.3 and 4 and of their fine-tunes. An answer that begins with the call of a known tool
is one; JSON between words is weighed as in any text. Source: the chat template of Llama-3.1-8B-Instruct: the tools
stand in the first user turn. Several calls, which the template refuses, are written with `; ` between them.

The template of Llama 4 puts what is said before calls between `<|python_start|>` and `<|python_end|>`, which stand
there without words, too; calls follow each other without a gap.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal

import msgspec

from callwright.calls.history import HistoryRules
from callwright.calls.toolset import Toolset
from callwright.conversation import AssistantTurn, Conversation
from callwright.dialects.base import Dialect, PromptBy, ReadBy, RenderOptions
from callwright.dialects.call_layout import CallLayout, in_json
from callwright.dialects.prompts.chat_messages import split_instructions
from callwright.dialects.prompts.template import Frame, Result
from callwright.dialects.readers.marked import CallMarks, MarkedReader
from callwright.dialects.readers.said_before import SAID, read_said_before
from callwright.prompt import Prompt, PromptBuilder
from callwright.stream_reader import Parse, StreamReader

__all__ = ["DIALECT"]


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


class _Frame4(Frame, frozen=True):
    """Llama 4, in which what is said before calls stands between tokens."""

    def _turn(self, out: PromptBuilder, turn: AssistantTurn) -> None:
        if turn.calls:
            out.control(SAID[0]).text(turn.text).control(SAID[1])
            self.calls.put(out, turn.calls, turn.calls_before, self.controls)
        else:
            super()._turn(out, turn)


def _turn_4(role: str) -> tuple[str, str]:
    return f"<|header_start|>{role}<|header_end|>\n\n", "<|eot|>"


_FRAME_4: Final = _Frame4(
    controls=("<|begin_of_text|>", "<|header_start|>", "<|header_end|>", "<|eot|>", "<|eom|>", *SAID),
    begin="<|begin_of_text|>",
    thoughts="none",
    system=_turn_4("system"),
    user=_turn_4("user"),
    assistant=_turn_4("assistant"),
    tool=_turn_4("ipython"),
    place="in first user",
    tools=_tools,
    calls=msgspec.structs.replace(_CALLS, between=""),
    results=_results,
    each=True,
)
_FRAME_4_TOLD: Final = msgspec.structs.replace(_FRAME_4, preamble_tools="Environment: ipython\n")


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to where the model's answer begins."""
    if options.flavour == "llama4":
        instructions, _ = split_instructions(conversation.items)
        return (_FRAME_4_TOLD if instructions else _FRAME_4).render(conversation, options)
    return _dated(options.current_date).render(conversation, options)


@lru_cache(maxsize=8)
def _dated(today: str) -> Frame:
    dates = f"Cutting Knowledge Date: December 2023\nToday Date: {today}\n\n"
    return msgspec.structs.replace(_FRAME, preamble=dates, preamble_tools=f"Environment: ipython\n{dates}")


def parse(source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
    """Events of an output."""
    return _Reader(source, tools, _MARKS).read(start)


class _Reader(MarkedReader):
    """Calls in JSON, perhaps behind what Llama 4 says before them."""

    def _answer(self, start: str) -> Parse[None]:
        """See `ProseReader`."""
        yield from read_said_before(self)
        yield from super()._answer(start)


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
    prompt=PromptBy(render=render, messages=_FRAME.messages, write=_FRAME.write, marks=_FRAME.marks),
    calls=ReadBy(_CALLS, parse),
)
