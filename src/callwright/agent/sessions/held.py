"""A session held by a run: the earlier messages, and those that the run adds.

Only whole steps are stored: the calls of a turn before they run, and their outputs once all are there. So a session can
be continued even if the process is killed: a call without an output gets a placeholder that reports this.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from callwright.agent.events import RunResult
from callwright.agent.sessions import queries
from callwright.agent.state import INTERRUPTED, open_calls
from callwright.conversation import Call, Conversation, Item, Message, Reasoning
from callwright.database.makers import Maker
from callwright.database.transactions import Transactions
from callwright.errors import SessionError
from callwright.openai_format.messages import read_messages, write_messages
from callwright.tolerant_json.codec import encode
from callwright.wire.chat.mend_history import mend_messages

_FULL: Final = 0.75  # of its bytes: then old items are summarized, even if they have few tokens


class HeldSession:
    """The session of a run. `items` are those that it begins with."""

    def __init__(
        self,
        database: Transactions,
        id_: str,
        run: Maker,
        messages: Sequence[Mapping[str, Any]],
        size: int,
        most_bytes: int,
    ) -> None:
        self._database = database
        self._id = id_
        self._run = run
        self._messages = list(messages)
        self._size = size
        self._most_bytes = most_bytes
        self._count = 0  # number of stored items of the run
        self._is_anew = False
        self._writing = asyncio.Lock()
        self.items: tuple[Item, ...] = ()

    async def begin(self, pending: Sequence[Mapping[str, Any]] | None) -> None:
        """Read the stored messages. Raises `SessionError` if a waiting run cannot resume with them."""
        if pending is not None:
            count = len(self._messages)
            if list(pending[:count]) != self._messages:
                raise SessionError(
                    f"Session {self._id!r} has changed since this run began to wait: the run cannot be resumed.",
                    code="session_changed",
                )
            self._count = len(read_messages(pending[:count]))
            return
        left = [
            {"role": "tool", "tool_call_id": call.id, "content": INTERRUPTED}
            for call in open_calls(read_messages(self._messages))
        ]
        await self._write(left)
        self.items = read_messages(mend_messages([*self._messages, *left]))
        self._count = len(self.items)

    @property
    def is_nearly_full(self) -> bool:
        """Whether the session is close to its size limit."""
        return self._size > self._most_bytes * _FULL

    def begin_anew(self) -> None:
        """Make the next stored items replace all earlier ones."""
        self._is_anew = True

    async def keep(self, items: Sequence[Item]) -> None:
        """Store the new items of a run. Finishes even if the caller is cancelled."""
        await asyncio.shield(self._append_items(tuple(items)))

    async def keep_result(self, result: RunResult[Any]) -> None:
        """Store the result of a run. If it waits for a person, all but the waiting turn."""
        items = result.items
        if result.stop == "pending" and (waiting := open_calls(items)):
            begin = items.index(waiting[0])
            while begin and _is_models(items[begin - 1]):
                begin -= 1
            items = items[: max(begin, 0 if self._is_anew else self._count)]
        await self.keep(items)

    async def _append_items(self, items: tuple[Item, ...]) -> None:
        async with self._writing:
            begin = 0 if self._is_anew else self._count
            if begin < len(items) or self._is_anew:
                await self._write(write_messages(Conversation(items[begin:])))
                self._count = len(items)

    async def _write(self, messages: Sequence[Mapping[str, Any]]) -> None:
        bodies = [encode(message) for message in messages]
        if not bodies:
            return
        put = queries.replace if self._is_anew else queries.add
        await self._database.write(put, self._id, self._run, bodies, self._most_bytes)
        self._size = sum(map(len, bodies)) + (0 if self._is_anew else self._size)
        self._is_anew = False


def _is_models(item: Item) -> bool:
    return isinstance(item, Reasoning | Call) or (isinstance(item, Message) and item.role == "assistant")
