"""Solar Open 2: `<|tool_call:start|>f` and lines of `<|tool_arg:start|>k<|tool_arg:value|>v<|tool_arg:end|>`.

All tags are tokens. Values are text, all of it. Source: vLLM's and SGLang's parsers `solar_open2`, and turns as engines
that serve the model write them. Nothing says how its template shows tools: they stand in words in the system turn.
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

_END: Final = "<|im:end|>"
_THOUGHT: Final = ("<|think:start|>", "<|think:end|>")
_RESPONSE: Final = ("<|tool_response:start|>", "<|tool_response:end|>")
_TAGS: Final = KeyValueTags(
    call="<|tool_call:start|>",
    call_end="<|tool_call:end|>",
    key="<|tool_arg:start|>",
    key_end="<|tool_arg:value|>",
    value="",
    value_end="<|tool_arg:end|>",
    gaps=("\n", "", "\n"),
    between="\n",
)
_CONTROLS: Final = (
    *("<|im:start|>", "<|im:content|>", _END, "<|tool:start|>", "<|tool:end|>"),
    *(*_THOUGHT, *_RESPONSE, *_TAGS.literals),
)


class Options(ThinkingOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, `model` leaves it to the model, `off` begins it with a closed,
    empty one.
    """

    thinking: Literal["model", "open", "off"] = "open"


# --- prompts ---


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to `<|im:start|>assistant<|im:content|>` and the begin of its thought."""
    return _FRAME.render(conversation, options)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: a block for each call."""
    return _FRAME.write(turn)


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls as the format's text."""
    return _FRAME.messages(conversation, options)


def _calls(out: PromptBuilder, calls: Sequence[Call], _: int) -> None:
    put_calls(out, _TAGS, calls)


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    for result in results:
        out.control(_RESPONSE[0]).text(result.text).control(_RESPONSE[1]).text("\n")


def _turn(role: str) -> tuple[str, str]:
    return f"<|im:start|>{role}<|im:content|>", f"{_END}\n"


_FRAME: Final = Frame(
    controls=_CONTROLS,
    system=_turn("system"),
    user=_turn("user"),
    assistant=_turn("assistant"),
    tool=_turn("tool"),
    preamble="## System Prompt\n\n",
    calls=_calls,
    results=_results,
    gap="\n",
    thought=_THOUGHT,
    no_thought="".join(_THOUGHT),
)


# --- output ---


def parse(source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
    """Events of an output. `start`: `reasoning` when the prompt left a thought open."""
    return KeyValueReader(source, tools, _TAGS, thoughts=(_THOUGHT,), ends=(_END,)).read(start)


DIALECT = Dialect(
    name="solar_open2",
    aliases=("solar_open_2", "solar2"),
    model_families="Solar Open 2",
    model_globs=("solar-open-2*", "solar-open2*"),
    template_markers=("<|tool_arg:value|>",),
    source="parsers solar_open2 of vLLM and SGLang",
    tokenizers=("solar",),
    stops=(_END,),
    options=Options,
    prompt=PromptBy(render=render, messages=messages, write=write),
    calls=ReadBy(parse),
)
