"""Chat messages of mode prompt: the tools in the system message, calls and outputs as text in a format's form."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeAlias, assert_never

import msgspec

from callwright.conversation import (
    AssistantTurn,
    Call,
    Conversation,
    ConversationTurn,
    Item,
    Message,
    TextPart,
    ToolTurn,
    TurnsAlong,
)
from callwright.dialects.prompts.chat_messages import (
    chat_message,
    choice_note,
    format_note,
    plain_text,
    split_instructions,
)
from callwright.memo.prefixes import fold, intern, once
from callwright.prompt import Prompt, PromptBuilder, neutralise, neutralise_json

P = ParamSpec("P")
WriteOutputs: TypeAlias = Callable[[Sequence[tuple[str, str]]], str]


class ToldTurns(msgspec.Struct, frozen=True):
    """Writes the turns of a conversation as text in one format, whose control tokens are `controls`.

    `write` writes the text and the calls of an assistant's turn, `results` the outputs of tools, pairs of tool name and
    text, as a user message. Both must depend only on their arguments: see `told_messages`.
    """

    controls: tuple[str, ...]
    write: Callable[[AssistantTurn], str]
    results: WriteOutputs

    def messages(
        self,
        conversation: Conversation,
        tools: Callable[Concatenate[PromptBuilder, Conversation, P], object],
        *given: P.args,
        **named: P.kwargs,
    ) -> list[dict[str, Any]]:
        """Chat messages. `tools` writes the text of the system message after the instructions: it may depend only on
        the tools and the given arguments.
        """
        instructions, items = split_instructions(conversation.items)
        notes = [*choice_note(conversation), *format_note(conversation)]
        system = told_system(conversation, _system, self.controls, tools, given, named, instructions, notes)
        return system + told_messages(items, _turn_messages, self)


def told_system(conversation: Conversation, tell: Callable[..., str | None], *given: Any) -> list[dict[str, Any]]:
    """The system message whose text `tell` returns, or no message for None; an empty text counts. `tell` is called with
    the conversation and the given arguments, and may depend only on the tools and these: the message is cached and
    shared.
    """

    def make_system() -> list[dict[str, Any]]:
        text = tell(conversation, *given)
        return [] if text is None else [{"role": "system", "content": text}]

    return [*once(conversation.tools, "told", make_system, (tell, given))]


def _system(
    conversation: Conversation,
    controls: tuple[str, ...],
    tools: Callable[..., object],
    given: Sequence[Any],
    named: Mapping[str, Any],
    instructions: Sequence[str],
    notes: Sequence[str],
) -> str | None:
    """`tools` breaks look-alikes itself."""
    before, behind = ([neutralise(text, controls) for text in texts] for texts in (instructions, notes))
    shown = []
    if conversation.tools:
        out = PromptBuilder()
        tools(out, conversation, *given, **named)
        shown = [Prompt(out.pieces(), controls).wire_text.strip("\n")]
    texts = [*before, *shown, *behind]
    return "\n\n".join(texts) if texts else None


def told_messages(items: Sequence[Item], tell: Callable[..., Sequence[dict[str, Any]]], *given: Any) -> list[Any]:
    """The messages for each turn of a conversation. `tell` is called with the turn, its number and the given arguments,
    and must depend only on these: messages are cached and shared.
    """

    def more(before: TurnsAlong, items: Sequence[Item], _: int) -> TurnsAlong:
        return before.more(items, lambda turn, number: [*map(_shared_message, tell(turn, number, *given))])

    return [*fold(items, TurnsAlong(), more, (tell, given), "told").made]


def _shared_message(message: dict[str, Any]) -> dict[str, Any]:
    """The one object for all messages with this role and text: so the beginning of a later request is known by it."""
    match message:
        case {"role": str(role), "content": str(text)} if len(message) == 2:
            return intern(message, (role, text), len(text))
    return message


def _turn_messages(turn: ConversationTurn, number: int, told: ToldTurns) -> list[dict[str, Any]]:
    controls = told.controls
    match turn:
        case Message():
            return [chat_message(turn, controls)]
        case AssistantTurn(_, message, calls):
            # Reasoning is dropped on purpose: the server's template has its own place for it, or none.
            said = neutralise(message.text, controls) if message else ""
            safe = [_safe(call, controls) for call in calls]
            text = told.write(AssistantTurn(message=Message("assistant", (TextPart(said),)), calls=safe))
            return [{"role": "assistant", "content": text}]
        case ToolTurn(outputs):
            texts = [
                (neutralise(name, controls), neutralise(plain_text(output.parts, number), controls))
                for name, output in outputs
            ]
            return [{"role": "user", "content": told.results(texts)}]
        case _:
            assert_never(turn)


def _safe(call: Call, controls: tuple[str, ...]) -> Call:
    """The call for a prompt: look-alikes of control tokens in its name are broken, those in its arguments escaped."""
    name, arguments = neutralise(call.name, controls), neutralise_json(call.arguments, controls)
    return msgspec.structs.replace(call, name=name, arguments=arguments)
