"""Background responses: starts, watches and cancels them, and buffers their events.

They run independently of clients: a disconnect changes nothing, and a client that reconnects resumes its stream.
Knows the store and the turn, not the transport.
"""

import asyncio
import logging
from contextlib import ExitStack, aclosing, suppress
from typing import Final

import msgspec

from callwright.errors import RequestError
from callwright.gateway.access.admission import AdmissionControl
from callwright.gateway.http import cancel_quietly
from callwright.gateway.responses.event_log import EventLog, EventLogs
from callwright.gateway.responses.service import PreparedResponse, ResponseService, replace_at_last
from callwright.gateway.store.store import ENDED, Store, StoredResponse, StoreError
from callwright.settings.bounds import MAX_KEPT_EVENT_BYTES
from callwright.wire.responses.event_types import ResponseFailedEvent, numbered

logger = logging.getLogger("callwright.gateway")

# How often to check whether another gateway has cancelled or deleted a response that runs here.
_ASKED_EVERY_S: Final = 1.0
# How long responses in the background may take to be stored as failed when the gateway ends.
_FAILING_S: Final = 5.0


class BackgroundResponses:
    """The background responses of this process. `logs` are their events."""

    def __init__(self, store: Store | None, admission: AdmissionControl) -> None:
        self._store = store
        self._admission = admission
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()  # cancelled, which is not stored yet
        self.logs = EventLogs(MAX_KEPT_EVENT_BYTES)

    @property
    def makes_some(self) -> bool:
        """Whether a response is made now, or is still to be stored."""
        return bool(self._tasks or self._ending)

    async def close(self) -> None:
        """End the running responses: wait until they fail by themselves, then cancel the rest."""
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=_FAILING_S)
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for task in [*self._ending]:
            await cancel_quietly(task)

    async def begin(self, turns: ResponseService, prepared: PreparedResponse) -> tuple[StoredResponse, EventLog]:
        """Store a response as queued, and start it: `turns` makes it. Raises `RequestError` if there is no store."""
        if self._store is None:
            raise RequestError(
                "Background mode needs a store, and this gateway has none: leave out 'background', or configure "
                "[store].",
                param="background",
                code="unsupported_parameter",
            )
        await prepared.check_budgets()
        prepared.writer.response.status = "queued"
        prepared.queued = True
        stored = prepared.stored()
        await self._store.put(stored)
        log = self.logs.begin(prepared.id)
        task = self._tasks[prepared.id] = asyncio.create_task(self._make(turns, prepared, stored, log))
        use = ExitStack()
        use.enter_context(turns.uses)
        task.add_done_callback(lambda _: use.close())
        return stored, log

    async def cancel(self, id_: str) -> None:
        """End one that is made here, if it is; it is stored as cancelled then."""
        if (task := self._tasks.get(id_)) is not None:
            await cancel_quietly(task)

    async def forget(self, id_: str) -> None:
        """End one, and let its events go: it is to be deleted."""
        await self.cancel(id_)
        self.logs.forget(id_)

    async def set_status(self, stored: StoredResponse, status: str) -> bool:
        """Whether it has this status now: not, when it has ended or was deleted."""
        assert self._store is not None
        return await self._store.replace(msgspec.structs.replace(stored, body={**stored.body, "status": status}))

    async def _make(
        self, turns: ResponseService, prepared: PreparedResponse, stored: StoredResponse, log: EventLog
    ) -> None:
        making = asyncio.current_task()
        assert making is not None
        watching = asyncio.create_task(self._cancel_when_ended(stored.id, making))
        try:
            with self._admission.under_way(limited=False):
                if await self._is_wanted(stored):
                    prepared.writer.response.status = "in_progress"
                    await self._make_to_its_end(turns, prepared, log)
        except asyncio.CancelledError:
            await self._end_cancelled(stored)
            ended = msgspec.structs.replace(prepared.writer.response, status="cancelled", output=[])
            log.add(numbered([ResponseFailedEvent(response=ended)], log.next))
            raise
        finally:
            log.end()
            await cancel_quietly(watching)
            self._tasks.pop(prepared.id, None)

    async def _is_wanted(self, stored: StoredResponse) -> bool:
        """Set the status to in progress; False if it has ended or was deleted. True if the store does not answer:
        whether it is still wanted is checked again at its end.
        """
        try:
            return await self.set_status(stored, "in_progress")
        except StoreError as error:
            logger.error("%s is made, though that could not be stored: %s", stored.id, error)
            return True

    async def _end_cancelled(self, stored: StoredResponse) -> None:
        """Store that it was cancelled; in the background if the store does not answer, as a client waits for this."""
        assert self._store is not None
        cancelled = msgspec.structs.replace(stored, body={**stored.body, "status": "cancelled"})
        try:
            await self._store.replace(cancelled)
        except StoreError:
            task = asyncio.create_task(replace_at_last(self._store, cancelled))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _cancel_when_ended(self, id_: str, making: asyncio.Task[None]) -> None:
        """Cancel what makes a response when another gateway has cancelled or deleted that."""
        assert self._store is not None
        while True:
            await asyncio.sleep(_ASKED_EVERY_S)
            with suppress(StoreError):
                status = await self._store.status(id_)
                if status is None or status in ENDED:
                    making.cancel()
                    return

    async def _make_to_its_end(self, turns: ResponseService, prepared: PreparedResponse, log: EventLog) -> None:
        """Run the response; streamed from the model if the request is for a stream."""
        turn = turns.ask(prepared, streamed=bool(prepared.request.stream))
        async with aclosing(turns.streamed(prepared, *turn)) as events:
            async for batch in events:
                if isinstance(batch[-1], ResponseFailedEvent) and self._store is not None:
                    await replace_at_last(self._store, prepared.stored())
                log.add(numbered(batch, log.next))
