"""Pythonic: `[f(a='x'), g()]` as the whole answer, or between `<|python_start|>` and `<|python_end|>`.

The format of Llama 3.2 and Llama 4. The tools stand as JSON in the system turn. Source: the chat templates of
Llama-3.2-3B-Instruct and Llama-4-Scout, and Meta's prompt guide for zero-shot function calling. Outputs come back in
the role `ipython`. The models do not think. Llama 4 has turn tokens of its own.
"""

import json
from typing import Any, Final, Literal, NamedTuple, assert_never

from callwright.calls.toolset import Toolset
from callwright.conversation import AssistantTurn, Conversation, ConversationTurn, Message, ToolTurn
from callwright.dialects.base import Dialect, PromptBy, ReadBy, RenderOptions, TurnMarks
from callwright.dialects.call_layout import CallLayout
from callwright.dialects.prompts.chat_messages import format_note, plain_text, split_instructions
from callwright.dialects.prompts.kept_parts import put_tools, put_turns
from callwright.dialects.prompts.literal_arguments import PythonArguments
from callwright.dialects.prompts.told import ToldTurns
from callwright.dialects.readers.python_calls import PythonForm, PythonReader
from callwright.dialects.readers.said_before import read_said_before
from callwright.prompt import Prompt, PromptBuilder
from callwright.stream_reader import Parse, StreamReader

__all__ = ["DIALECT"]

_STOPS: Final = ("<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>")

# Fine-tunes of other families write `<tool_code>` around their calls.
_BLOCKS: Final = (("<|python_start|>", "<|python_end|>"), ("<|python_tag|>", ""), ("<tool_code>", "</tool_code>"))
_CALLS: Final = CallLayout(
    open="[",
    begin="${name}(",
    arguments=PythonArguments(),
    end=")",
    between=", ",
    close="]",
    variants=("<|python_tag|>", "<|python_start|>"),
)
_FORM: Final = PythonForm(_CALLS, _BLOCKS, ends=_STOPS)
_CONTROLS: Final = (
    *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|header_start|>", "<|header_end|>", *_STOPS),
    *("<|python_start|>", "<|python_end|>", "<|python_tag|>"),
)
_HOW_TO: Final = """If you decide to invoke any of the functions, put them in the format of
[func_name1(params_name1=params_value1, params_name2=params_value2...), func_name2(params)]
You SHOULD NOT include any other text in the response.

Here is a list of functions in JSON format that you can invoke.

"""


class Options(RenderOptions, frozen=True, kw_only=True):
    """`flavour`: whose turn tokens."""

    flavour: Literal["llama3.2", "llama4"] = "llama3.2"


class _Turns(NamedTuple):
    """The tokens around the role of a turn, and at its end."""

    begin: str
    role_end: str
    end: str

    def put(self, out: PromptBuilder, role: str) -> PromptBuilder:
        return out.control(self.begin).text(role).control(self.role_end).text("\n\n")


_TURNS: Final = {
    "llama3.2": _Turns("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    "llama4": _Turns("<|header_start|>", "<|header_end|>", "<|eot|>"),
}


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to the assistant's header."""
    out, turns = PromptBuilder().control("<|begin_of_text|>"), _TURNS[options.flavour]
    instructions, items = split_instructions(conversation.items)
    notes = format_note(conversation)
    if instructions or conversation.tools or notes:
        turns.put(out, "system").text("\n\n".join(instructions))
        if conversation.tools:
            put_tools(out.text("\n\n" if instructions else ""), conversation, _tools)
        out.text("\n\n" if notes and (instructions or conversation.tools) else "", "\n\n".join(notes))
        out.control(turns.end)
    put_turns(out, items, _turn, turns)
    if options.add_generation_prompt:
        turns.put(out, "assistant")
    return Prompt(out.pieces(), _CONTROLS)


def _turn(out: PromptBuilder, turn: ConversationTurn, number: int, turns: _Turns) -> None:
    """Append a turn of the history."""
    match turn:
        case Message(role, parts):
            turns.put(out, "user" if role == "user" else "system").text(plain_text(parts, number).strip())
        case AssistantTurn():
            turns.put(out, "assistant").text(write(turn))
        case ToolTurn(outputs):
            for count, (_, output) in enumerate(outputs):
                if count:
                    out.control(turns.end)
                turns.put(out, "ipython").text(plain_text(output.parts, number))
        case _:
            assert_never(turn)
    out.control(turns.end)


_TOLD: Final = ToldTurns(
    _CONTROLS,
    lambda turn: _said(turn).wire_text,
    lambda outputs: "\n".join(f"[Output of {name}]\n{text}" for name, text in outputs),
)


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    return _TOLD.messages(conversation, _tools)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: all calls in one list."""
    return _said(turn).text


def _said(turn: AssistantTurn) -> Prompt:
    calls = _CALLS.text(turn.calls) if turn.calls else ""
    out = PromptBuilder().text("\n".join(filter(None, (turn.text, calls))))
    return Prompt(out.pieces(), _CONTROLS)


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    shown = [tool.openai["function"] for tool in conversation.tools]
    out.text(_HOW_TO, json.dumps(shown, ensure_ascii=False, indent=4))


def parse(source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
    """Events of an output."""
    return _Reader(source, tools, _FORM).read(start)


class _Reader(PythonReader):
    """Calls in Python, or as the chat template of Llama 4 has them."""

    def _answer(self, start: str) -> Parse[None]:
        """See `ProseReader`."""
        yield from read_said_before(self)
        yield from super()._answer(start)


DIALECT = Dialect(
    name="pythonic",
    aliases=("llama4_pythonic", "llama_pythonic"),
    model_families="Llama 4, ToolACE, watt-tool, fine-tunes that write Python lists",
    model_globs=("llama-4", "toolace", "watt-tool"),
    model_options={name: {"flavour": "llama4"} for name in ("llama-4", "llama4_pythonic")},
    template_markers=("<|python_start|> + <|python_end|>",),
    source="chat template of Llama 4; Meta's prompt guide for Llama 3.2; cards of ToolACE-2-8B and watt-tool-8B",
    tokenizers=("llama3", "llama4"),
    stops=_STOPS,
    options=Options,
    prompt=PromptBy(render=render, messages=messages, write=write, marks=TurnMarks(controls=_CONTROLS)),
    calls=ReadBy(_CALLS, parse),
)
