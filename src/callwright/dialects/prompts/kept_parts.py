"""Caches the parts of a prompt that repeat from one request to the next: the tools, and the earlier turns."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from msgspec import Struct

from callwright.conversation import (
    Conversation,
    ConversationTurn,
    Item,
    TurnsAlong,
)
from callwright.memo.prefixes import fold, once
from callwright.prompt import Collected, PromptBuilder

P = ParamSpec("P")
S = TypeVar("S")


def put_tools(
    out: PromptBuilder,
    conversation: Conversation,
    write: Callable[Concatenate[PromptBuilder, Conversation, P], object],
    *given: P.args,
    **named: P.kwargs,
) -> PromptBuilder:
    """Append what `write` writes of the tools. It may depend only on them and on the given arguments."""
    if not conversation.tools:
        write(out, conversation, *given, **named)
        return out
    make = partial(_write_part, write, conversation, *given, **named)
    return out.put(once(conversation.tools, "prompt", make, (write, given, named)))


class Apart(NamedTuple):
    """A user turn with additional text: its number, and the function that appends it, which is given the state `left`
    by the turn before. It is never cached.
    """

    number: int
    write: Callable[[PromptBuilder, Any], object]


class _Part(NamedTuple):
    """A rendered turn, and the state that it leaves for the next one."""

    prompt: Collected
    left: Any


class _Row(Struct, frozen=True):
    """Turns as parts. The final ones, which no later item can change, are also concatenated: those `before` the
    separate turn and those `behind` it.
    """

    turns: TurnsAlong
    before: Collected
    behind: Collected


_EMPTY: Final = Collected(())
_NONE: Final = _Row(TurnsAlong(), _EMPTY, _EMPTY)


def put_turns(
    out: PromptBuilder,
    items: Sequence[Item],
    write: Callable[..., object],
    *given: Any,
    asked: int | None = None,
    leaves: Callable[[Any, ConversationTurn], S] | None = None,
    apart: Apart | None = None,
    **named: Any,
) -> S | None:
    """Append all turns of a conversation: `write` is given each turn, its number, and the arguments given here.

    `asked` is the number of the turn after which reasoning is shown; with it, `write` is given `reasons`. `leaves`
    computes the state after a turn from the state before it (None for the first) and the turn: `write` is given the
    state before as `left`, and the state after the last turn is returned. One turn may be `apart`.
    """
    number_apart = -1 if apart is None else apart.number

    def part_of(turn: ConversationTurn, number: int, left: S | None) -> _Part:
        told = named
        if asked is not None:
            told = {**told, "reasons": number > asked}
        if leaves is not None:
            told = {**told, "left": left}
        prompt = _EMPTY if number == number_apart else _write_part(write, turn, number, *given, **told)
        return _Part(prompt, None if leaves is None else leaves(left, turn))

    def more(before: _Row, items: Sequence[Item], _: int) -> _Row:
        closed = before.turns.closed
        left: S | None = before.turns.made[closed - 1].left if closed else None

        def make_part(turn: ConversationTurn, number: int) -> Sequence[_Part]:
            nonlocal left
            part = part_of(turn, number, left)
            left = part.left
            return [part]

        turns = before.turns.more(items, make_part)
        prompts = [part.prompt for part in turns.made[closed : turns.closed]]
        new = max(0, number_apart - closed)  # of these before the one apart
        return _Row(turns, before.before.then(prompts[:new]), before.behind.then(prompts[new:]))

    row = fold(items, _NONE, more, (write, given, named, asked, leaves, number_apart), "prompt")
    made = row.turns.made
    out.put(row.before)
    if apart is not None:
        apart.write(out, made[number_apart - 1].left if number_apart else None)
    out.put(row.behind)
    for part in made[row.turns.closed :]:
        out.put(part.prompt)
    return made[-1].left if made else None


def _write_part(write: Callable[..., object], *given: Any, **named: Any) -> Collected:
    part = PromptBuilder()
    write(part, *given, **named)
    return part.collected()
