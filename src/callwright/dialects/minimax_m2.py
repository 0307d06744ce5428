"""MiniMax M2: `<minimax:tool_call>` around `<invoke name="f">` and `<parameter name="k">v</parameter>`.

Values are text, all of it: white space at their ends is theirs. Source: the chat template of MiniMax-M2 (as Unsloth
mends it, in llama.cpp); M2.1 to M2.7 have the same calls.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, Literal

from callwright.calls.toolset import Toolset
from callwright.conversation import AssistantTurn, Call, Conversation
from callwright.dialects._minimax import END, minimax_frame, with_system
from callwright.dialects.base import Dialect, PromptBy, ReadBy, RenderOptions
from callwright.dialects.prompts.chat_messages import arguments_object
from callwright.dialects.prompts.template import ThinkingOptions
from callwright.dialects.readers.parameters import ParameterReader
from callwright.dialects.readers.tagged_values import ParameterTags
from callwright.prompt import Prompt, PromptBuilder
from callwright.stream_reader import Parse, StreamReader

__all__ = ["DIALECT"]


_OPEN: Final = "<minimax:tool_call>"
_CLOSE: Final = "</minimax:tool_call>"
_TAGS: Final = ParameterTags(
    call="<invoke name=",
    call_end="</invoke>",
    parameter="<parameter name=",
    parameter_end="</parameter>",
    blocks=((_OPEN, _CLOSE),),
)
_HOW_TO: Final = """When making tool calls, use XML format to invoke tools and pass parameters:

<minimax:tool_call>
<invoke name="tool-name-1">
<parameter name="param-key-1">param-value-1</parameter>
<parameter name="param-key-2">param-value-2</parameter>
...
</invoke>
</minimax:tool_call>"""


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, as the template does, `model` leaves it to the model, `off`
    begins it with a closed, empty one.
    """

    thinking: Literal["open", "model", "off"] = "open"


# --- prompts ---


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt up to `]~b]ai` and the thought that it leaves open."""
    frame_options = ThinkingOptions(add_generation_prompt=options.add_generation_prompt, thinking=options.thinking)
    return _FRAME.render(with_system(conversation), frame_options)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one block for all calls."""
    return _FRAME.write(turn)


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls as the format's text."""
    return _FRAME.messages(conversation, options)


def _calls(out: PromptBuilder, calls: Sequence[Call], _: int) -> None:
    out.text("\n").control(_OPEN).text("\n")
    for call in calls:
        out.text(f'<invoke name="{call.name}">\n')
        for key, value in arguments_object(call).items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            out.text(f'<parameter name="{key}">{text}</parameter>\n')
        out.text("</invoke>\n")
    out.control(_CLOSE)


_FRAME: Final = minimax_frame(
    (_OPEN, _CLOSE, "<think>", "</think>"),
    system="system",
    how_to=_HOW_TO,
    thought=("<think>\n", "\n</think>\n\n"),
    calls=_calls,
)


# --- output ---


def parse(source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
    """Events of an output. `start`: `reasoning` when the prompt left `<think>` open."""
    return ParameterReader(source, tools, _TAGS, ends=(END,)).read(start)


DIALECT = Dialect(
    name="minimax_m2",
    aliases=("minimax",),
    model_families="MiniMax M2 to M2.7",
    model_globs=("minimax-m2*",),
    template_markers=("<minimax:tool_call>",),
    source="chat template of MiniMax-M2 (llama.cpp models/templates/unsloth-MiniMax-M2.jinja)",
    tokenizers=("minimax",),
    stops=(END,),
    options=Options,
    prompt=PromptBy(render=render, messages=messages, write=write),
    calls=ReadBy(parse),
)
