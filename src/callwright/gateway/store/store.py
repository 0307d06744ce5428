"""The store: answers of the Responses API and conversations, stored so that clients can continue from them.

Several gateways may share one database: a store holds no state but its connections. Writes are durable when the call
returns: they survive a crash of the process or a power failure.

The store knows nothing of the API: the meaning of an item, how references are resolved, the errors clients get.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from callwright.database.makers import is_dead, this_process
from callwright.database.transactions import StoreDownError, StoreError, Transactions
from callwright.gateway.store import kept_items, limits, queries
from callwright.gateway.store.kept_items import KeptItems
from callwright.gateway.store.limits import Spent
from callwright.gateway.store.queries import ENDED, StoredConversation, StoredResponse
from callwright.gateway.store.spending import SpendingTable
from callwright.settings import bounds

__all__ = ["ENDED", "KeptItems", "Store", "StoreDownError", "StoreError", "StoredConversation", "StoredResponse"]

_DAY_S = 86_400
_CHECKED_FOR_S = 1.0
# The error of a response whose process has died.
_GONE = {"code": "server_error", "message": "The gateway that made this response has ended before it was finished."}
_ERASED_AT_ONCE = 100  # small batches, so that a long prune does not delay writers


class Store:
    """A database of responses and conversations; one per process.

    Every method raises `StoreError` when the database fails. A method runs to completion even if its caller is
    cancelled, so a client that disconnects interrupts no transaction.
    """

    def __init__(
        self,
        url: str,
        retention_days: float | None = None,
        owner: Callable[[], str] = lambda: "",
        *,
        told: Callable[..., None] | None = None,
    ) -> None:
        """`retention_days`: the age at which `prune` erases responses; None: never. `owner` returns the owner on whose
        behalf a method is called: it stores for that owner, and sees only that owner's data. The callback
        `told(operation, seconds, failed=…)` is called after each transaction.
        """
        self._most_kept = (bounds.MAX_KEPT_REASONING, bounds.MAX_KEPT_REASONING_BYTES)
        self._database = Transactions(url, told)
        self.spending = SpendingTable(self._database)
        self._retention_days = retention_days
        self._owner = owner
        self._missing = KnownKeys()  # keys that are absent and that only this process can add
        self._keeps = 0  # a lookup that began before this changed may be stale
        self._bare = KnownKeys()  # keys of turns that have left nothing
        self._seen = KnownKeys()  # keys by which something was there
        self._maker = this_process()
        self._silent: set[str] = set()  # makers that were found so
        self._fine_until = self._down_until = 0.0  # by the clock of `time.monotonic`

    async def open(self) -> None:
        """Connect, and bring the tables up to date. Raises `ConfigError` if the database cannot be used."""
        await self._database.open()

    async def close(self) -> None:
        """Finish the running transactions and disconnect."""
        await self._database.close()

    async def put(self, response: StoredResponse) -> None:
        """Store a response; one in a conversation appends its items to it, if that still exists.

        Putting it again replaces its body and items, also in the conversation, moving them to its end; its time and
        its parent stay. Does nothing when it was deleted and others still continue from it. Raises `StoreError` when
        its parent was erased: its history would be incomplete.
        """
        await self._database.write(queries.put_response, response, self._owner(), self._maker)

    async def replace(self, response: StoredResponse) -> bool:
        """`put` for an answer in the background, put before: False when it was deleted or has ended meanwhile, which
        another gateway may have done: then it stays so.
        """
        return await self._database.write(queries.replace_response, response, self._owner(), self._maker)

    async def check(self) -> None:
        """Check that the database answers, unless it did within the last second. Raises `StoreError`: immediately, if
        the last check has just failed.
        """
        now = time.monotonic()
        if now < self._down_until:
            raise StoreDownError("The store did not answer just now.")
        if now < self._fine_until:
            return
        try:
            await self._database.read(queries.ping)
        except StoreDownError:
            self._down_until = time.monotonic() + _CHECKED_FOR_S
            raise
        self._fine_until = time.monotonic() + _CHECKED_FOR_S

    async def beat(self) -> None:
        """Record a heartbeat of this process while it runs a background response."""
        await self._database.write(queries.heard_of, self._maker)

    async def end_left(self) -> int:
        """Mark as failed the responses that dead processes were running. Returns their number.

        A process on another machine counts as dead when it is found silent twice in a row: while the database did not
        answer, it could not send a heartbeat either.
        """
        before, self._silent = self._silent, set()
        makers = [one for one in await self._database.read(queries.get_makers) if one[0] != self._maker]
        found = [one for one, silent_s in makers if is_dead(one, silent_s)]
        self._silent = {one.id for one in found}
        dead = [one.id for one in found if one.place == self._maker.place or one.id in before]
        return await self._database.write(queries.end_left, dead, _GONE) if dead else 0

    async def status(self, id_: str) -> str | None:
        """The status of a response; None when it is unknown or deleted."""
        return await self._database.read(queries.get_status, id_, self._owner())

    async def get(self, id_: str) -> StoredResponse | None:
        """The response; None when it is unknown or deleted."""
        return await self._database.read(queries.get_response, id_, self._owner())

    async def history(self, id_: str) -> list[dict[str, Any]] | None:
        """The items of the whole chain up to and including this response, oldest first, each one's input before its
        output. None when it is unknown or deleted; those that it continues from may be deleted.
        """
        return await self._database.read(queries.get_history, id_, self._owner())

    async def delete(self, id_: str) -> bool:
        """Delete a response. Its items stay in the history of those that continue from it, as long as there are any."""
        return await self._database.write(queries.delete_response, id_, self._owner())

    async def item(self, id_: str) -> dict[str, Any] | None:
        """The latest stored item of this id; None when all that held it were deleted."""
        return await self._database.read(queries.get_item, id_, self._owner())

    async def prune(self, now: int) -> int:
        """Erase the responses that are older than the retention, except those that a younger one continues from.

        `now` is in seconds since the epoch. Returns the number of erased responses. Conversations are not erased.
        """
        if self._retention_days is None:
            return 0
        before = int(now - self._retention_days * _DAY_S)
        erased = 0
        while some := await self._database.write(queries.erase_old, before, _ERASED_AT_ONCE):
            erased += some
        return erased

    # --- conversations ---

    async def create_conversation(
        self, conversation: StoredConversation, items: Iterable[Mapping[str, Any]] = ()
    ) -> None:
        """Store a conversation of a new id, with its first items."""
        await self._database.write(queries.create_conversation, conversation, items, self._owner())

    async def conversation(self, id_: str) -> StoredConversation | None:
        """The conversation; None when it is unknown or deleted."""
        return await self._database.read(queries.get_conversation, id_, self._owner())

    async def update_conversation(self, id_: str, metadata: Mapping[str, Any]) -> bool:
        """Replace the metadata. False when there is no such conversation."""
        return await self._database.write(queries.update_conversation, id_, metadata, self._owner())

    async def delete_conversation(self, id_: str) -> bool:
        """Erase a conversation with its items. Its responses stay. False if it does not exist."""
        return await self._database.write(queries.delete_conversation, id_, self._owner())

    async def conversation_items(self, id_: str) -> list[dict[str, Any]] | None:
        """The items, oldest first; None when there is no such conversation."""
        return await self._database.read(queries.get_conversation_items, id_, self._owner())

    async def add_items(self, id_: str, items: Iterable[Mapping[str, Any]]) -> bool:
        """Append items. False when there is no such conversation."""
        return await self._database.write(queries.add_items, id_, tuple(items), self._owner())

    async def delete_item(self, conversation_id: str, item_id: str) -> bool:
        """Erase an item from a conversation; responses that contain it are unchanged. False if it does not exist."""
        return await self._database.write(queries.delete_item, conversation_id, item_id, self._owner())

    # --- what clients do not send back ---

    async def keep(self, model: str, kept: Mapping[str, bytes], now: float, before: float) -> None:
        """Store items of a model's turns by their keys; erase items last used earlier than `before`. A key stored twice
        with different items, or once without items, is no longer found.
        """
        owner = self._owner()
        bare = self._bare.among(owner, model, kept, before)
        kept = {key: b"" if key in bare else items for key, items in kept.items()}
        await self._database.write(kept_items.keep, owner, model, kept, now, before, self._most_kept)
        self._seen.add(owner, model, kept)
        self._missing.remove(owner, model, kept)
        self._keeps += 1

    async def note_bare(self, model: str, keys: Collection[str], now: float) -> None:
        """Note that the turns with these keys have no items, so that no lookup is needed. Items that other processes
        stored under these keys are no longer found: by any process if this one has seen them, else by this one.
        """
        owner = self._owner()
        self._bare.add(owner, model, keys, now)
        if mixed_up := self._seen.among(owner, model, keys):
            await self.check()
            await self._database.write(kept_items.empty_kept, owner, model, [*mixed_up])

    async def find_kept(
        self, model: str, keys: Collection[str], since: float, comes_once: Callable[[str], bool]
    ) -> dict[str, KeptItems]:
        """The items stored by these keys and used since a time. A missing key is not looked up again if no other
        process can add it: nothing is stored later under a key that `comes_once`, and an in-memory database is private.
        """
        owner = self._owner()
        known = self._missing.among(owner, model, keys)
        known |= self._bare.among(owner, model, [key for key in keys if key not in known], since)
        asked = [key for key in keys if key not in known]
        if not asked:
            return {}
        keeps = self._keeps
        found = await self._database.read(kept_items.find_kept, owner, model, asked, since)
        if keeps == self._keeps:
            not_there = [key for key in asked if key not in found]
            surely = not_there if self._database.in_memory else filter(comes_once, not_there)
            self._missing.add(owner, model, surely)
        self._seen.add(owner, model, found)
        return found

    async def use_kept(self, model: str, keys: Sequence[str], now: float) -> None:
        """Record the time at which these items were last used."""
        await self._database.write(kept_items.use_kept, self._owner(), model, keys, now)

    async def forget_kept(self, before: float) -> None:
        """Erase the items of all owners that were last used earlier than `before`."""
        await self._database.write(kept_items.forget_kept, before)

    # --- limits that several gateways share ---

    async def spend(self, gateway: str, spent: Sequence[Spent]) -> tuple[list[float], list[bool], int]:
        """Add a gateway's usage to shared limits. Returns the total usage of each, whether each wanted amount was
        available, and the number of gateways. PostgreSQL only.
        """
        return await self._database.write(limits.spend, gateway, spent)

    async def leave_limits(self, gateway: str) -> None:
        """A gateway shares no limits any more."""
        await self._database.write(limits.leave_limits, gateway)


# Each takes some 200 bytes. A history of 1,000 turns has two keys for each.
_MOST_KNOWN: Final = 32_768
_LEFT_OF_FULL: Final = 0.75  # so that not every turn has to make room


class KnownKeys:
    """A bounded set of keys, each of an owner and a model. Evicts the oldest."""

    def __init__(self) -> None:
        self._added: dict[tuple[str, str, str], float] = {}

    def among(self, owner: str, model: str, keys: Iterable[str], since: float = -math.inf) -> set[str]:
        """Those of the keys that were added since a time."""
        return {key for key in keys if self._added.get((owner, model, key), -math.inf) > since}

    def remove(self, owner: str, model: str, keys: Iterable[str]) -> None:
        """Take keys out."""
        for key in keys:
            self._added.pop((owner, model, key), None)

    def add(self, owner: str, model: str, keys: Iterable[str], now: float = 0.0) -> None:
        """Add keys, or add them anew."""
        for key in keys:
            known = owner, model, key
            self._added.pop(known, None)
            self._added[known] = now
        if len(self._added) > _MOST_KNOWN:
            left = list(self._added.items())[-int(_MOST_KNOWN * _LEFT_OF_FULL) :]
            self._added = dict(left)
