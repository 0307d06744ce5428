"""IQuest Q1: `<iquest_tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></iquest_tool_call>`, as GLM 4.7.

Values are text, typed by the schema; the answer begins in `<think>`. Source: SGLang's parser `iquest_q1`, and turns as
engines that serve the model write them. Nothing says how its template shows tools and outputs: the tools stand in words
in the system turn, outputs in a turn of the user.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

from callwright.calls.toolset import Toolset
from callwright.conversation import AssistantTurn, Call, Conversation
from callwright.dialects.base import Dialect, PromptBy, ReadBy
from callwright.dialects.prompts.key_value_tags import KeyValueTags, put_calls
from callwright.dialects.prompts.template import Frame, Result, ThinkingOptions
from callwright.dialects.readers.key_values import KeyValueReader
from callwright.prompt import Prompt, PromptBuilder
from callwright.stream_reader import Parse, StreamReader

__all__ = ["DIALECT"]

_END: Final = "<|iquest_end|>"
_THOUGHT: Final = ("<think>", "</think>")
_TAGS: Final = KeyValueTags(call="<iquest_tool_call>", call_end="</iquest_tool_call>")
_CONTROLS: Final = (
    *("<|iquest_system|>", "<|iquest_developer|>", "<|iquest_user|>", "<|iquest_assistant|>", _END),
    *("<tool_response>", "</tool_response>", *_THOUGHT, *_TAGS.literals),
)


class Options(ThinkingOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, `model` leaves it to the model, `off` begins it with a closed,
    empty one.
    """

    thinking: Literal["model", "open", "off"] = "open"


# --- prompts ---


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to `<|iquest_assistant|>` and the begin of its thought."""
    return _FRAME.render(conversation, options)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one block for each call."""
    return _FRAME.write(turn)


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls as the format's text."""
    return _FRAME.messages(conversation, options)


def _calls(out: PromptBuilder, calls: Sequence[Call], _: int) -> None:
    put_calls(out, _TAGS, calls)


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    for result in results:
        out.control("<tool_response>").text(result.text).control("</tool_response>")


_FRAME: Final = Frame(
    controls=_CONTROLS,
    system=("<|iquest_system|>", _END),
    user=("<|iquest_user|>", _END),
    assistant=("<|iquest_assistant|>", _END),
    tool=("<|iquest_user|>", _END),
    calls=_calls,
    results=_results,
    thought=_THOUGHT,
    no_thought="".join(_THOUGHT),
)


# --- output ---


def parse(source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
    """Events of an output. `start`: `reasoning` when the prompt left `<think>` open."""
    return KeyValueReader(source, tools, _TAGS, ends=(_END,)).read(start)


DIALECT = Dialect(
    name="iquest_q1",
    aliases=("iquest", "iquestq1"),
    model_families="IQuest Q1",
    model_globs=("iquest-q1*",),
    template_markers=("<iquest_tool_call>",),
    source="SGLang's parser iquest_q1",
    tokenizers=("iquest",),
    stops=(_END,),
    options=Options,
    prompt=PromptBy(render=render, messages=messages, write=write),
    calls=ReadBy(parse),
)
