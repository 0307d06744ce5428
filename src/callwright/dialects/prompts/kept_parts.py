"""Parts of a prompt that are the same from one request to the next: the tools, and the turns that came before. Each is
kept as it was written last.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from callwright.conversation import Conversation, ConversationTurn, kept_with_tools, kept_with_turn
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
    make = partial(_written, write, conversation, *given, **named)
    return out.put(kept_with_tools(conversation.tools, "prompt", (write, given, named), make))


def put_turn(
    out: PromptBuilder,
    turn: Turn,
    write: Callable[Concatenate[PromptBuilder, Turn, P], object],
    *given: P.args,
    **named: P.kwargs,
) -> PromptBuilder:
    """The same for a turn."""
    make = partial(_written, write, turn, *given, **named)
    return out.put(kept_with_turn(turn, "prompt", (write, given, named), make))


def _written(write: Callable[..., object], *given: Any, **named: Any) -> Collected:
    part = PromptBuilder()
    write(part, *given, **named)
    return part.collected()
