"""A gateway that runs: its present configuration, and how it changes to another without losing a request.

Who closes what:
- `Lasting` is closed by `RunningGateway.close`, at the end of the process.
- A `Revision` is closed after it was replaced and its last request is over, or at the end of the process.
- A part (see `parts`) is closed by the last revision that has it.
"""

import asyncio
import logging

from starlette.types import Receive, Scope, Send

from callwright.gateway.check import explain_restart
from callwright.gateway.config.changes import applicable
from callwright.gateway.config.config import Config
from callwright.gateway.endpoints.websocket import ResponsesSocket
from callwright.gateway.lasting import Lasting
from callwright.gateway.revision import Revision

log = logging.getLogger("callwright.gateway")


class RunningGateway:
    """Serves requests by the present revision of its configuration."""

    def __init__(self, lasting: Lasting, revision: Revision) -> None:
        self.lasting = lasting
        self.revision = revision
        server, admission, contexts = revision.config.server, lasting.admission, lasting.watch.contexts
        self.socket = ResponsesSocket(lambda: self.revision.turns, lasting.access, server, admission, contexts)
        self._changing = asyncio.Lock()
        self._replaced: dict[Revision, asyncio.Task[None]] = {}
        revision.apply()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI. Serves a request over HTTP."""
        revision = self.revision
        with revision.uses:
            await revision.serve(scope, receive, send)

    async def open(self) -> None:
        """Open everything. Raises `ConfigError`."""
        await self.revision.open()
        await self.lasting.open()

    async def change(self, wanted: Config) -> None:
        """Serve new requests by this configuration, as far as it needs no restart. Raises `ConfigError` if it cannot
        work; then nothing has changed.
        """
        async with self._changing:
            before = self.revision
            config = applicable(before.config, wanted)
            if config == before.config:
                return
            # In a thread: templates and files of models are read, which would hold up the streams.
            revision = await asyncio.to_thread(self._build, before.config, wanted)
            try:
                await revision.open()
            except BaseException:
                await revision.close()
                raise
            revision.apply()
            self.revision = revision
            before.uses.replace()
            self._replaced[before] = asyncio.create_task(self._close_unused(before))

    async def close(self) -> None:
        """End the requests that still run, and close everything."""
        await self.lasting.end_requests()
        for revision in self._replaced:
            revision.uses.is_over.set()
        await asyncio.gather(*self._replaced.values())
        await self.revision.close()
        await self.lasting.close()

    def _build(self, running: Config, wanted: Config) -> Revision:
        with explain_restart(running, wanted):
            return Revision(applicable(running, wanted), self.lasting)

    async def _close_unused(self, revision: Revision) -> None:
        await revision.uses.is_over.wait()
        async with self._changing:  # a revision that is built now may take over its parts
            try:
                await revision.close()
            except Exception:
                log.exception("what the earlier configuration alone had could not be closed")
        del self._replaced[revision]
