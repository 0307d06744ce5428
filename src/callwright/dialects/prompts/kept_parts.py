"""Parts of a prompt that are the same from one request to the next: the tools, and the turns that came before. Each is
kept as it was written last.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from msgspec import Struct

from callwright.conversation import (
    Conversation,
    ConversationTurn,
    Item,
    TurnsAlong,
    kept_with_tools,
    kept_with_turn,
)
from callwright.prompt import Collected, PromptBuilder
from callwright.shared import kept_along

__all__ = ["put_tools", "put_turn", "put_turns"]

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
    return out.put(_turn(turn, write, *given, **named))


class _Row(Struct, frozen=True):
    """Turns as parts, and those to which no later item belongs as one part."""

    turns: TurnsAlong
    closed: Collected


_NONE: Final = _Row(TurnsAlong(), Collected(()))


def put_turns(
    out: PromptBuilder,
    items: Sequence[Item],
    write: Callable[..., object],
    *given: Any,
    asked: int | None = None,
    **named: Any,
) -> PromptBuilder:
    """The same for all turns of a conversation: `write` is given each, its number, and what is given here. `asked` is
    the number of the turn after which reasoning is shown: then it is also told whether a turn `reasons`.
    """

    def make(turn: ConversationTurn, number: int) -> Sequence[Collected]:
        reasons = {} if asked is None else {"reasons": number > asked}
        return [_turn(turn, write, number, *given, **named, **reasons)]

    def more(before: _Row, items: Sequence[Item], _: int) -> _Row:
        turns = before.turns.more(items, make)
        return _Row(turns, before.closed.then(turns.made[before.turns.closed : turns.closed]))

    row = kept_along(items, (write, given, named, asked), _NONE, more, "prompt along")
    out.put(row.closed)
    for part in row.turns.made[row.turns.closed :]:
        out.put(part)
    return out


def _turn(turn: ConversationTurn, write: Callable[..., object], *given: Any, **named: Any) -> Collected:
    make = partial(_written, write, turn, *given, **named)
    return kept_with_turn(turn, "prompt", (write, given, named), make)


def _written(write: Callable[..., object], *given: Any, **named: Any) -> Collected:
    part = PromptBuilder()
    write(part, *given, **named)
    return part.collected()
