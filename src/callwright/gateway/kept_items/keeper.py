"""Caches the parts of turns that clients do not send back, and restores them: today the reasoning before calls.

It is cached in the store, so that every worker and every gateway of one database finds it, for the owner of the turn
and under the name of the model. A failure here fails nothing else: the request continues without it.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final, TypeVar

import msgspec

from callwright.calls.kept_items import comes_once, decode_items, encode_items, find_gaps, put_back
from callwright.conversation import Conversation
from callwright.gateway.http import off_loop
from callwright.gateway.kept_items.written_turn import CallId, FollowedTurn
from callwright.gateway.request_context import note_put_back
from callwright.gateway.store.store import Store, StoreError
from callwright.turn.fair_pool import SLOW
from callwright.turn.model import Model
from callwright.turn.past_reasoning import PastReasoning, past_reasoning
from callwright.turn.plan import is_slow
from callwright.wire.server_events import TurnEvent

log = logging.getLogger("callwright.gateway")
TurnEventT = TypeVar("TurnEventT", bound=TurnEvent)
# An agent asks again within minutes. An hour spans a build, or a user who reads first.
_LASTS_S: Final = 3_600.0
# Items in use stay: their time is renewed after this fraction of `_LASTS_S`.
_REFRESHED_AFTER: Final = 1 / 8
_FORGOTTEN_EVERY: Final = 1 / 4
_MANY_ITEMS: Final = 1_000  # a longer conversation is searched in a thread


class ItemKeeper:
    """Caches items until they have been unused for an hour. Needs a `store`; without one, `keeps` is False and nothing
    is cached. `now` returns the time in seconds since the epoch.
    """

    def __init__(self, store: Store | None, now: Callable[[], float] = time.time) -> None:
        self._store = store
        self.keeps = store is not None
        self._now = now

    async def put_back(self, conversation: Conversation, model: Model) -> Conversation:
        """The conversation with its missing reasoning restored, if cached and if the model's template shows it."""
        if self._store is None or (shown := await _shown_reasoning(model)) == "none":
            return conversation
        slow = len(conversation.items) > _MANY_ITEMS
        everywhere = shown == "all" or conversation.keeps_reasoning
        gaps = await off_loop(partial(find_gaps, conversation.items, everywhere=everywhere), slow=slow)
        if not gaps:
            return conversation
        now = self._now()
        try:
            await self._store.check()  # one that is down is not waited for again and again
            found = await self._store.find_kept(model.name, gaps, now - _LASTS_S, comes_once)
            old = [key for key, one in found.items() if one.used_at < now - _LASTS_S * _REFRESHED_AFTER]
            if old:
                await self._store.use_kept(model.name, old, now)
        except StoreError as error:
            log.warning("kept reasoning could not be looked for: %s", error)
            return conversation
        if not found:
            return conversation
        note_put_back(len(found))
        kept = {key: decode_items(one.items) for key, one in found.items()}
        return msgspec.structs.replace(conversation, items=put_back(conversation.items, gaps, kept))

    async def watch(
        self,
        events: AsyncGenerator[Sequence[TurnEventT], None],
        conversation: Conversation,
        model: Model,
        call_id: CallId,
    ) -> AsyncGenerator[Sequence[TurnEventT], None]:
        """The events of a followed turn: see `follow`. Nothing is cached of an interrupted turn."""
        turn = self.follow(conversation, model, call_id)
        async with aclosing(events):
            async for batch in events:
                yield turn.take(batch)
        await turn.end()

    def follow(self, conversation: Conversation, model: Model, call_id: CallId, *, keeps: bool = True) -> FollowedTurn:
        """Follow the turn that answers a conversation, whose calls get their ids from `call_id`. Parts
        that a later history may lack are cached at its end, if the request allows it (`keeps`).
        """
        return FollowedTurn(conversation.items, call_id, partial(self._keep, model) if keeps else None)

    async def _keep(self, model: Model, turn: FollowedTurn) -> None:
        """Cache the parts of a finished turn that a later history may lack."""
        if self._store is None or await _shown_reasoning(model) == "none":
            return
        now = self._now()
        try:
            if turn.bare:
                await self._store.note_bare(model.name, turn.bare, now)
            if turn.kept:
                kept = {key: encode_items(items) for key, items in turn.kept.items()}
                await self._store.check()
                await self._store.keep(model.name, kept, now, now - _LASTS_S)
        except StoreError as error:
            log.warning("reasoning could not be kept: %s", error)

    async def forget(self) -> None:
        """Periodically erase items unused for `_LASTS_S`."""
        while self._store is not None:
            try:
                await self._store.forget_kept(self._now() - _LASTS_S)
            except StoreError as error:
                log.warning("old reasoning could not be erased: %s", error)
            await asyncio.sleep(max(1.0, _LASTS_S * _FORGOTTEN_EVERY))


async def _shown_reasoning(model: Model) -> PastReasoning:
    """The turns whose reasoning a model sees. A server's own template is unknown here; if templates show any past
    reasoning, it is that of the running task.
    """
    if not model.keeps_reasoning:
        return "none"
    if model.mode_selector is not None:
        model = await model.mode_selector.choose(model)
    if model.mode == "native" or model.dialect is None:
        return "task"
    look = partial(past_reasoning, model.dialect, is_raw=model.mode == "raw")
    return await SLOW.run(look) if is_slow(model) else look()
