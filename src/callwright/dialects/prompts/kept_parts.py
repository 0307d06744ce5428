"""Parts of a prompt that are the same from one request to the next: the tools, and the turns that came before. Each is
kept with what it shows, as it was written last.
"""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from callwright.conversation import Conversation, ConversationTurn, kept_with_turn
from callwright.events import kept_with
from callwright.prompt import Collected, PromptBuilder

__all__ = ["put_tools", "put_turn"]

P = ParamSpec("P")
Turn = TypeVar("Turn", bound=ConversationTurn)


def put_tools(
    out: PromptBuilder,
    conversation: Conversation,
    write: Callable[Concatenate[PromptBuilder, Conversation, P], object],
    *given: P.args,
    **named: P.kwargs,
) -> PromptBuilder:
    """Append what `write` writes of the tools. It may depend on them and on what is given, and on nothing else."""

    def written() -> Collected:
        part = PromptBuilder()
        write(part, conversation, *given, **named)
        return part.collected()

    tools = conversation.tools
    return out.put(kept_with(tools, "prompt", (write, given, named), written) if tools else written())


def put_turn(
    out: PromptBuilder,
    turn: Turn,
    write: Callable[Concatenate[PromptBuilder, Turn, P], object],
    *given: P.args,
    **named: P.kwargs,
) -> PromptBuilder:
    """The same for a turn."""

    def written() -> Collected:
        part = PromptBuilder()
        write(part, turn, *given, **named)
        return part.collected()

    return out.put(kept_with_turn(turn, "prompt", (write, given, named), written))
