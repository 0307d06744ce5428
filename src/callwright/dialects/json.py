"""Plain JSON calls, for any model: the tools are told in words, and a call is a fenced block of JSON.

For servers without tool support, with a broken parser, or without a template for the model. What a reply may look
like is wide; `callwright.free_text.recover` reads it. Text before the first thing that may be a call flows; from there
on the reply is held, because what follows (a question, a record's output) may still make it text. Source of the forms:
docs/dialects.md.
"""

from collections.abc import Sequence
from typing import Any, Final, assert_never

import msgspec

from callwright.calls.toolset import Toolset
from callwright.conversation import AssistantTurn, Conversation, FunctionTool, Message, ToolTurn
from callwright.dialects.base import Dialect, PromptBy, ReadBy, RenderOptions, TurnMarks
from callwright.dialects.call_layout import CallLayout, in_json
from callwright.dialects.prompts.chat_messages import (
    chat_message,
    choice_note,
    format_note,
    plain_text,
    split_instructions,
)
from callwright.dialects.readers.prose import ProseReader
from callwright.dialects.tokenizers import TOKENIZERS
from callwright.prompt import Prompt, PromptBuilder
from callwright.schema.typescript import declaration
from callwright.stream_reader import Parse, StreamReader

__all__ = ["DIALECT"]


_FORM: Final = '```json\n{"tool": "tool_name", "arguments": {"parameter": "value"}}\n```'
_CALLS: Final = CallLayout(begin="```json\n" + in_json("tool"), end="}\n```", between="\n")
_HEADINGS: Final = ("### System", "### User", "### Assistant")


class Options(RenderOptions, frozen=True, kw_only=True):
    """No options of its own."""


# --- prompts ---


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls as the taught form, outputs as user messages."""
    return _messages(conversation)


def _messages(conversation: Conversation, *, text_only: bool = False) -> list[dict[str, Any]]:
    """`text_only`: other parts than text raise `RequestError`."""
    instructions, items = split_instructions(conversation.items)
    system = [*_tool_section(conversation), *instructions, *format_note(conversation)]
    chat: list[dict[str, Any]] = [{"role": "system", "content": "\n\n".join(system)}] if system else []
    for number, turn in enumerate(msgspec.structs.replace(conversation, items=items).turns()):
        match turn:
            case Message(_, parts):
                if text_only:
                    plain_text(parts, number)
                chat.append(chat_message(turn, None))
            case AssistantTurn(_, message, calls):
                # Reasoning is dropped on purpose: the server's template has its own place for it, or none.
                chat.append({"role": "assistant", "content": write(AssistantTurn(None, message, calls))})
            case ToolTurn(outputs):
                texts = [
                    f"Result of {name or 'the tool'}:\n{plain_text(output.parts, number)}" for name, output in outputs
                ]
                chat.append({"role": "user", "content": "\n\n".join(texts)})
            case _:
                assert_never(turn)
    return chat


def render(conversation: Conversation, options: Options) -> Prompt:
    """The same as a plain text with headings, for completion endpoints of models without a chat format."""
    out = PromptBuilder()
    for message in _messages(conversation, text_only=True):
        out.control(f"### {message['role'].capitalize()}").text("\n", message["content"], "\n\n")
    if options.add_generation_prompt:
        out.control("### Assistant").text("\n")
    return Prompt(out.pieces(), _HEADINGS)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one fenced block for each call."""
    thought = f"<think>\n{turn.reasoning}\n</think>\n\n" if turn.reasoning else ""
    said = turn.text + "\n\n" if turn.text and turn.calls else turn.text
    return thought + said + _CALLS.text(turn.calls)


def _tool_section(conversation: Conversation) -> list[str]:
    """The tools in words. Always the same text for the same tools: the prefix cache of the server lives on it."""
    if not conversation.tools:
        return []
    several = "use several by writing several blocks" if conversation.parallel_tool_calls else "use one at a time"
    section = (
        "# Tools\n\nYou can use the tools below where they help. To use one, write a block of exactly this form:\n\n"
        f"{_FORM}\n\n"
        "The tools and their parameters (? marks those that may be left out):\n\n"
        f"```ts\n{_declarations(conversation.tools)}\n```\n\n"
        "- Write the block only when you really use the tool, and write nothing behind it: its result comes next.\n"
        f"- You may {several}.\n"
        "- Leave optional parameters out unless they are needed; never make up a value that you do not know.\n"
        "- When no tool is needed, answer in text."
    )
    return [section, *choice_note(conversation)]


def _declarations(tools: Sequence[FunctionTool]) -> str:
    return "\n\n".join(declaration(tool) for tool in tools)


# --- output ---


def parse(source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
    """Events of a reply. `start`: `reasoning` when the prompt left `<think>` open."""
    return ProseReader(source, tools).read(start)


DIALECT = Dialect(
    name="json",
    aliases=("prompt", "generic", "generic_json", "bare_json"),
    model_families="any model that follows instructions",
    source="no template: tools and calls are told in words",
    tokenizers=tuple(TOKENIZERS),  # any of them may read it
    stops=("### User", "### System"),
    options=Options,
    prompt=PromptBy(
        render=render,
        messages=messages,
        write=write,
        marks=TurnMarks(thought=("<think>\n", "\n</think>\n\n"), controls=_HEADINGS),
    ),
    calls=ReadBy(_CALLS, parse),
)
