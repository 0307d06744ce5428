"""Parts of a prompt that are the same from one request to the next: the tools, and the turns that came before. Each is
kept as it was written last.
"""

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
    """Append what `write` writes of the tools. It may depend on them and on what is given, and on nothing else."""
    if not conversation.tools:
        write(out, conversation, *given, **named)
        return out
    make = partial(_written, write, conversation, *given, **named)
    return out.put(once(conversation.tools, "prompt", make, (write, given, named)))


class Apart(NamedTuple):
    """A turn of the user's with something in it that is not its own: its number, and what appends it, told what was
    left for it. It is written each time.
    """

    number: int
    write: Callable[[PromptBuilder, Any], object]


class _Part(NamedTuple):
    """A turn as it stands in a prompt, and what it leaves for the next one."""

    prompt: Collected
    left: Any


class _Row(Struct, frozen=True):
    """Turns as parts, and those to which no later item belongs as one part, `behind` the one that stands apart, and one
    before it.
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
    """The same for all turns of a conversation: `write` is given each, its number, and what is given here.

    `asked` is the number of the turn after which reasoning is shown: then it is also told whether a turn `reasons`.
    `leaves` says what a turn leaves for the next, of what was left for it (None for the first) and of itself: `write`
    is told what was `left`, and what the last one leaves is the answer. One turn may stand `apart`.
    """
    number_apart = -1 if apart is None else apart.number

    def part_of(turn: ConversationTurn, number: int, left: S | None) -> _Part:
        told = named
        if asked is not None:
            told = {**told, "reasons": number > asked}
        if leaves is not None:
            told = {**told, "left": left}
        prompt = _EMPTY if number == number_apart else _written(write, turn, number, *given, **told)
        return _Part(prompt, None if leaves is None else leaves(left, turn))

    def more(before: _Row, items: Sequence[Item], _: int) -> _Row:
        closed = before.turns.closed
        left: S | None = before.turns.made[closed - 1].left if closed else None

        def made(turn: ConversationTurn, number: int) -> Sequence[_Part]:
            nonlocal left
            part = part_of(turn, number, left)
            left = part.left
            return [part]

        turns = before.turns.more(items, made)
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


def _written(write: Callable[..., object], *given: Any, **named: Any) -> Collected:
    part = PromptBuilder()
    write(part, *given, **named)
    return part.collected()
