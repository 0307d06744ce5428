"""Plain JSON calls, for any model: the tools are described in words, and a call is a fenced block of JSON.

For servers without tool support, with a broken parser, or without a template for the model. The forms of
replies vary; `callwright.free_text.recover` reads them. Text before the first thing that may be a call flows; from
there on the reply is held, because the text after it (a question, a record's output) may still make it text. Source of
the forms: docs/dialects.md.
"""

from collections.abc import Sequence
from typing import Any, Final, assert_never

from msgspec import Struct

from callwright.conversation import (
    AssistantTurn,
    Conversation,
    ConversationTurn,
    FunctionTool,
    Item,
    Message,
    ToolTurn,
)
from callwright.dialects.base import Dialect, ReadBy, RenderOptions, TurnMarks
from callwright.dialects.prompts.chat_messages import (
    chat_message,
    choice_note,
    format_note,
    plain_text,
    split_instructions,
)
from callwright.dialects.prompts.examples import example_turns
from callwright.dialects.prompts.kept_parts import put_tools, put_turns
from callwright.dialects.prompts.told import told_messages, told_system
from callwright.dialects.tokenizers import TOKENIZERS
from callwright.layout.calls import CallLayout, in_json
from callwright.memo.prefixes import once
from callwright.prompt import Prompt, PromptBuilder
from callwright.reading.text.call_reader import CallReader
from callwright.schema.typescript_whole import whole_declaration

_FORM: Final = '```json\n{"tool": "tool_name", "arguments": {"parameter": "value"}}\n```'
_CALLS: Final = CallLayout(begin="```json\n" + in_json("tool"), end="}\n```", between="\n")
_HEADINGS: Final = ("### System", "### User", "### Assistant")


class Options(RenderOptions, frozen=True, kw_only=True):
    """`examples`: calls of two tools are shown, as an earlier conversation."""

    examples: bool = False


# --- prompts ---


def _turn_messages(turn: ConversationTurn, number: int) -> list[dict[str, Any]]:
    match turn:
        case Message():
            return [chat_message(turn, None)]
        case AssistantTurn(_, message, calls):
            # Reasoning is dropped on purpose: the server's template has its own place for it, or none.
            return [{"role": "assistant", "content": _PROMPT.write(AssistantTurn(None, message, calls))}]
        case ToolTurn(outputs):
            texts = [f"Result of {name or 'the tool'}:\n{plain_text(output.parts, number)}" for name, output in outputs]
            return [{"role": "user", "content": "\n\n".join(texts)}]
        case _:
            assert_never(turn)


def _example_messages(conversation: Conversation) -> list[dict[str, Any]]:
    """The messages of an earlier conversation with calls. They depend only on the tools."""

    def make() -> list[dict[str, Any]]:
        return [message for turn in example_turns(conversation.tools) for message in _turn_messages(turn, 0)]

    return [*once(conversation.tools, "examples", make)]


def _turn(out: PromptBuilder, turn: ConversationTurn, number: int) -> None:
    if isinstance(turn, Message):
        plain_text(turn.parts, number)  # raises for other parts than text
    for message in _turn_messages(turn, number):
        _headed(out, message["role"], message["content"])


def _headed(out: PromptBuilder, role: str, text: str) -> None:
    out.control(f"### {role.capitalize()}").text("\n", text, "\n\n")


def _put_system(out: PromptBuilder, conversation: Conversation, *told: Any, examples: bool) -> None:
    text = _system(conversation, *told)
    if text is not None:
        _headed(out, "system", text)
    for message in _example_messages(conversation) if examples else ():
        _headed(out, message["role"], message["content"])


def _split_inputs(conversation: Conversation) -> tuple[tuple[bool, list[str]], tuple[Item, ...]]:
    """The inputs of the system message apart from the tools, and the items after it."""
    instructions, items = split_instructions(conversation.items)
    notes = [*choice_note(conversation), *instructions, *format_note(conversation)]
    return (conversation.parallel_tool_calls, notes), items


def _system(conversation: Conversation, parallel: bool, notes: Sequence[str]) -> str | None:
    tools = [_section(conversation.tools, parallel=parallel)] if conversation.tools else []
    texts = [*tools, *notes]
    return "\n\n".join(texts) if texts else None


def _section(tools: Sequence[FunctionTool], *, parallel: bool) -> str:
    """The tools in words. Always the same text for the same tools: the prefix cache of the server lives on it."""
    several = "use several by writing several blocks" if parallel else "use one at a time"
    return (
        "# Tools\n\nYou can use the tools below where they help. To use one, write a block of exactly this form:\n\n"
        f"{_FORM}\n\n"
        "The tools and their parameters (? marks those that may be left out):\n\n"
        f"```ts\n{_declarations(tools)}\n```\n\n"
        "- Write the block only when you really use the tool, and write nothing behind it: its result comes next.\n"
        f"- You may {several}.\n"
        "- Leave optional parameters out unless they are needed; never make up a value that you do not know.\n"
        "- When no tool is needed, answer in text."
    )


def _declarations(tools: Sequence[FunctionTool]) -> str:
    return "\n\n".join(whole_declaration(tool) for tool in tools)


class _InWords(Struct, frozen=True):
    """Tools and calls in words; `marks`: see `PromptFormat`."""

    marks: TurnMarks

    def messages(self, conversation: Conversation, options: Options) -> list[dict[str, Any]]:
        """Chat messages with the tools in the system message, calls as the taught form, outputs as user messages."""
        told, items = _split_inputs(conversation)
        shown = _example_messages(conversation) if options.examples else []
        return told_system(conversation, _system, *told) + shown + told_messages(items, _turn_messages)

    def render(self, conversation: Conversation, options: Options) -> Prompt:
        """The same as a plain text with headings, for completion endpoints of models without a chat format."""
        out = PromptBuilder()
        told, items = _split_inputs(conversation)
        put_tools(out, conversation, _put_system, *told, examples=options.examples)
        put_turns(out, items, _turn)
        if options.add_generation_prompt:
            out.control("### Assistant").text("\n")
        return Prompt(out.pieces(), _HEADINGS)

    def write(self, turn: AssistantTurn) -> str:
        """A turn as the model writes it: one fenced block for each call."""
        thought = f"<think>\n{turn.reasoning}\n</think>\n\n" if turn.reasoning else ""
        said = turn.text + "\n\n" if turn.text and turn.calls else turn.text
        return thought + said + _CALLS.text(turn.calls)


_PROMPT: Final = _InWords(TurnMarks(thought=("<think>\n", "\n</think>\n\n"), controls=_HEADINGS))


# --- output ---


DIALECT = Dialect(
    name="json",
    aliases=("prompt", "generic", "generic_json", "bare_json"),
    model_families="any model that follows instructions",
    source="no template: tools and calls are described in words",
    tokenizers=tuple(TOKENIZERS),  # any of them may read it
    stops=(),
    stop_texts=tuple([f"{heading}\n" for heading in _HEADINGS]),  # an answer may contain "### System requirements"
    options=Options,
    prompt=_PROMPT,
    calls=ReadBy(_CALLS, CallReader),
)
