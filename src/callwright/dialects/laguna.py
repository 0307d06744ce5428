"""Laguna: `<tool_call>f` and lines of `<arg_key>k</arg_key>`, `<arg_value>v</arg_value>`, as GLM 4.5 writes it.

Poolside's models. JSON between the tags is read as well, as in vLLM's parser `poolside_v1` and Ollama's of Laguna, and
some checkpoints open a call with the tag of a turn. Prompts are checked against the chat templates of Laguna-XS.2,
XS-2.1 and S-2.1, which has no line feeds within turns and calls and has no example of a call.
"""

from typing import Any, Final, Literal, assert_never

from callwright.calls.toolset import Toolset
from callwright.conversation import AssistantTurn, Conversation, ConversationTurn, Message, ToolTurn
from callwright.dialects.base import Dialect, PromptBy, ReadBy, RenderOptions, TurnMarks
from callwright.dialects.prompts.chat_messages import format_note, plain_text, split_instructions
from callwright.dialects.prompts.kept_parts import put_tools, put_turns
from callwright.dialects.prompts.key_value_tags import LINES, KeyValueTags, put_calls, said, told
from callwright.dialects.readers.key_values import KeyValueReader
from callwright.prompt import Prompt, PromptBuilder, own_words
from callwright.stream_reader import Parse, StreamReader

__all__ = ["DIALECT"]

_STOPS: Final = ("</assistant>",)

_TAGS: Final = KeyValueTags(gaps=LINES, between="\n")
_DENSE: Final = KeyValueTags()
_IN_TURN: Final = KeyValueTags(call="<user>", call_end="</user>")
_ROLES: Final = ("system", "user", "assistant")
_BEGIN: Final = "〈|EOS|〉"
_CONTROLS: Final = (
    _BEGIN,
    *(tag for role in _ROLES for tag in (f"<{role}>", f"</{role}>")),
    *(*_TAGS.literals, "<tool_response>", "</tool_response>", "<think>", "</think>"),
)


_THINK_FIRST: Final = "Wrap your thinking in '<think>', '</think>' tags, followed by a function call. "
_THOUGHT: Final = "<think> your thoughts here </think>\n"
_HOW_TO: Final = (
    "{first}For each function call, return an unescaped XML-like object with function name and arguments within "
    "'<tool_call>' and '</tool_call>' tags, like here:\n{thought}<tool_call>function-name\n"
    "<arg_key>argument-key</arg_key>\n<arg_value>value-of-argument-key</arg_value>\n</tool_call>"
)


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, `off` after an empty one. `flavour`: the model whose template
    is followed.
    """

    thinking: Literal["open", "off"] = "open"
    flavour: Literal["xs", "s-2.1"] = "xs"


# --- prompts ---


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to `<assistant>` and the begin of its thought."""
    out = PromptBuilder().control(_BEGIN)
    instructions, items = split_instructions(conversation.items)
    instructions = [*filter(None, instructions), *format_note(conversation)]
    thinks = options.thinking == "open"
    dense = options.flavour == "s-2.1"
    edge = "" if dense else "\n"
    if instructions or conversation.tools or (dense and thinks):
        out.control("<system>").text(edge, edge if instructions else "", "\n\n".join(instructions))
        if conversation.tools:
            put_tools(out.text("\n\n" if instructions else ""), conversation, _tools, thinks=thinks, dense=dense)
        out.text(edge).control("</system>").text("\n")
    put_turns(out, items, _turn, dense=dense, thinks=thinks)
    begins = options.add_generation_prompt
    if begins:
        out.control("<assistant>").text(edge).control("<think>" if thinks else "</think>")
    return Prompt(out.pieces(), _CONTROLS, start="reasoning" if begins and thinks else "assistant")


def _turn(out: PromptBuilder, turn: ConversationTurn, number: int, *, dense: bool, thinks: bool) -> None:
    """Append a turn of the history."""
    edge = "" if dense else "\n"
    match turn:
        case Message(role, parts):
            begin, end = ("<user>", "</user>") if role == "user" else ("<system>", "</system>")
            out.control(begin).text(edge, plain_text(parts, number), edge).control(end).text("\n")
        case AssistantTurn(reasoning, message, calls):
            said = plain_text(message.parts, number) if message else ""
            out.control("<assistant>").text(edge)
            if thinks if dense else reasoning:
                out.control("<think>").text(edge, (reasoning or "") if dense else (reasoning or "").strip(), edge)
            out.control("</think>").text(edge)
            if text := said if dense else said.strip():
                out.text(text, edge)
            if calls:
                put_calls(out, _DENSE if dense else _TAGS, calls)
                out.text(edge)
            out.control("</assistant>").text("\n")
        case ToolTurn(outputs):
            for _, output in outputs:
                out.control("<tool_response>").text(edge, plain_text(output.parts, number), edge)
                out.control("</tool_response>").text("\n")
        case _:
            assert_never(turn)


def _tools(out: PromptBuilder, conversation: Conversation, *, thinks: bool, dense: bool) -> None:
    shown = "".join(tool.openai_json + "\n" for tool in conversation.tools)
    out.text(
        "### Tools\n\nYou may call functions to assist with the user query.\nAll available function signatures are "
        "listed below:\n<available_tools>\n",
        shown,
        "</available_tools>",
    )
    if not dense:
        how_to = _HOW_TO.format(first=_THINK_FIRST if thinks else "", thought=_THOUGHT if thinks else "")
        own_words(out.text("\n\n"), how_to, _CONTROLS)


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    return told(conversation, _TAGS, _CONTROLS)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one block for each call."""
    return said(turn, _TAGS).text


# --- output ---


def parse(source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
    """Events of an output. `start`: `reasoning` when the prompt left `<think>` open."""
    return _Reader(source, tools, _TAGS, ends=_STOPS, also=(_IN_TURN.call,)).read(start)


class _Reader(KeyValueReader):
    """Calls in their own tags, and those in the tags of a user's turn."""

    def _spelling(self, opener: str) -> Parse[tuple[str, KeyValueTags] | None]:
        yield from ()
        return "", _IN_TURN


DIALECT = Dialect(
    name="laguna",
    aliases=("poolside_v1", "poolside"),
    model_families="Poolside Laguna",
    model_globs=("laguna",),
    model_options={"laguna-s-2.1": {"flavour": "s-2.1"}},
    template_markers=("<assistant> + </assistant> + <arg_key> + <arg_value>",),
    source="chat templates of Laguna-XS.2, XS-2.1 and S-2.1",
    tokenizers=("laguna",),
    stops=_STOPS,
    options=Options,
    prompt=PromptBy(
        render=render,
        messages=messages,
        write=write,
        marks=TurnMarks(thought=("<think>", "</think>\n"), controls=_CONTROLS),
    ),
    calls=ReadBy(_TAGS.layout, parse),
)
