"""Follows the events of a turn on their way to the client: its calls get the ids that the client sees, and the
reasoning before them is recorded under these ids.

It knows no API: each passes the rule for its ids. If the gateway runs tools itself a turn has several rounds, and
each its own reasoning.
"""

from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from callwright.calls.custom_tools import input_arguments
from callwright.calls.kept_items import call_keys, task_of
from callwright.conversation import Call, Item, Reasoning
from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Problem,
    ReasoningDelta,
)
from callwright.reading.collect import settle_events
from callwright.wire.server_events import McpEnded, McpStarted, ToolsSearched, TurnEvent

# From the id that a model's server gave a call, if it did, to the one that the client gets.
CallId: TypeAlias = Callable[[str | None], str]
T = TypeVar("T")
# A round with more characters than this before its calls, or in the first of them, is not cached. Some models are
# found to have reasoned only when the reasoning ends, so until then text counts, too.
_MOST_CHARS: Final = 262_144


class FollowedTurn:
    """A turn on its way to a client, as the answer to the items that are `asked`. Batches that are all text and
    arguments can be put into `flowing`, to be taken together. `kept` are the items before its calls, by the key of the
    first call of a round, `bare` the keys of rounds without any; both are complete at the end, when `keep` caches them.
    """

    def __init__(
        self, asked: Sequence[Item], call_id: CallId, keep: Callable[["FollowedTurn"], Awaitable[None]] | None
    ) -> None:
        self.flowing: list[Sequence[Any]] = []
        self.kept: dict[str, tuple[Item, ...]] = {}
        self.bare: tuple[str, ...] = ()
        self._asked = asked
        self._call_id = call_id
        self._keep = keep
        self._said: list[ContentDelta | ReasoningDelta | Problem] = []
        self._first: CallStarted | McpStarted | None = None
        self._arguments: list[str] = []
        self._room = _MOST_CHARS
        self._has_own_id = True  # unique, since it was created here
        self._is_open = False
        self._is_complete = False

    def take(self, batch: Sequence[T]) -> Sequence[T]:
        """Take events. Returns them with the ids of calls."""
        if self.flowing:
            flowing, self.flowing = [*chain.from_iterable(self.flowing)], []
            self.take(flowing)
        taken: list[Any] | None = None
        event: Any  # a `TurnEvent`, or an event of one API
        for number, event in enumerate(batch):
            if type(event) is ArgumentsDelta:  # by far the most frequent
                if self._is_open and self._first is not None and event.index == self._first.index:
                    self._arguments.append(event.text)
                    self._room -= len(event.text)
            elif type(event) is ContentDelta or type(event) is ReasoningDelta:
                self._said.append(event)
                self._room -= len(event.text)
            elif type(event) is CallStarted:
                taken = [*batch] if taken is None else taken
                given, event = event.id, msgspec.structs.replace(event, id=self._call_id(event.id))
                if self._first is None:
                    self._first, self._is_open, self._has_own_id = event, True, event.id != given
                taken[number] = event
            else:
                self._note(event)
        if self._room < 0:
            self._said, self._arguments = [], []
        return batch if taken is None else taken

    async def end(self) -> None:
        """End the turn, and cache the parts that a later history may lack."""
        if self.flowing:
            self.take(())
        self._end_round()
        if self._keep is not None:
            await self._keep(self)

    def _note(self, event: TurnEvent) -> None:
        if type(event) is Problem:
            if event.kind == "unopened_reasoning":
                self._said.append(event)
        elif type(event) is McpStarted:
            if self._first is None:
                self._first, self._is_open = event, True
        elif type(event) is CallEnded:
            if self._is_open and self._first is not None and event.index == self._first.index:
                self._is_open, self._is_complete = False, event.complete
        elif type(event) is McpEnded or type(event) is ToolsSearched:
            self._end_round()

    def _end_round(self) -> None:
        first, arguments = self._first, "".join(self._arguments)
        said = settle_events(self._said) if self._said else ()
        reasoning = "".join([event.text for event in said if type(event) is ReasoningDelta])
        is_whole, has_own_id = self._is_complete and self._room >= 0, self._has_own_id
        self._said, self._first, self._arguments, self._room = [], None, [], _MOST_CHARS
        self._is_open, self._is_complete, self._has_own_id = False, False, True
        if first is None or not is_whole:
            return
        if isinstance(first, CallStarted) and first.kind == "custom":
            arguments = input_arguments(arguments)
        plain, of_task = call_keys(Call(first.name, arguments, id=first.id or ""), task_of(self._asked)) or ("", "")
        if not plain:
            return
        if reasoning.strip():
            self.kept[plain if has_own_id else of_task] = (Reasoning(reasoning),)
        else:
            self.bare += (plain, of_task)
