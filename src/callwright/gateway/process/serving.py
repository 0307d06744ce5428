"""The gateway under uvicorn: start, and graceful shutdown.

After the first SIGTERM or Ctrl-C, running requests continue for `drain_s` seconds, while `/healthz` reports the
shutdown and no new request is admitted. Then, or at a second signal, every answer ends with its last event, and the
process ends.
"""

import asyncio
import gc
import logging
import socket
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partial
from types import FrameType
from typing import Any, Final, TypeAlias

import uvicorn
from starlette.applications import Starlette

from callwright.gateway.access.admission import AdmissionControl
from callwright.gateway.config.config import Config
from callwright.gateway.connections import Connections
from callwright.gateway.http import cancel_quietly
from callwright.gateway.process.descriptors import allow_requests
from callwright.gateway.process.protocols.http import HttpProtocol
from callwright.gateway.process.protocols.websocket import BoundedWebSocket
from callwright.gateway.running import RunningGateway
from callwright.settings import bounds

log = logging.getLogger("callwright.gateway")
# Seconds to wait without any answer ending, after all were cancelled; then seconds for the connections to close.
_LAST_WORDS_S: Final = 5.0
_CLOSING_S: Final = 2
_SWEPT_EVERY_S: Final = 1.0
# Thresholds of the garbage collector, see `gc.set_threshold`. A failed stream leaves old objects in cycles: with higher
# thresholds for these, the waves of bench/soak.py took ever more memory.
_COLLECTED_EVERY: Final = (20_000, 10, 3)


# Runs until the server ends.
Follows: TypeAlias = Callable[[RunningGateway], Coroutine[None, None, None]]


def serve(
    app: Starlette,
    config: Config,
    listener: socket.socket,
    ready: Callable[[], None] = lambda: None,
    follow: Follows | None = None,
) -> None:
    """Serve an application until the process is signalled to stop; `ready` is called once it accepts requests, and
    `follow` changes its configuration from then on. Raises `SystemExit` if it cannot start.
    """
    server, connections = config.server, app.state.connections
    connections.most = allow_requests(server.max_requests, connections.most)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # so that the system, too, drops a client that reads nothing
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(bounds.STALL_S * 1_000))
    settings = ProtocolSettings(app, config, log_level="warning", timeout_graceful_shutdown=_CLOSING_S)
    _spare_collector()
    following = None if follow is None else partial(follow, app.state.running)
    serving = _Server(settings, Drain(app.state.admission, server.drain_s), ready, following)
    serving.run(sockets=[listener])
    if not serving.started:
        raise SystemExit(1)


def _spare_collector() -> None:
    """Exempt the objects loaded at the start from garbage collection, and collect less often than by default."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTED_EVERY)


class Drain:
    """The graceful shutdown, from the first signal on. `clock` returns seconds.

    Running requests continue for `drain_s`, then they are ended. As long as some of them finish, the others have time
    for their last events: thousands take a while.
    """

    def __init__(
        self, admission: AdmissionControl, drain_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._admission = admission
        self._drain_s = drain_s
        self._clock = clock
        self._until: float | None = None
        self._left = 0  # requests in flight, and since when there are that few
        self._since = 0.0

    def tell(self) -> None:
        """Handle a signal: the first begins the drain, another one ends it."""
        self._until = self._clock() + (self._drain_s if self._until is None else 0)

    def is_over(self) -> bool:
        """Whether the process can end. Call it repeatedly: it takes the steps that are due."""
        if self._until is None:
            return False
        admission, now = self._admission, self._clock()
        if not admission.drained.is_set():
            admission.drain()
            if admission.running:
                log.info(
                    "requests in progress: %d; waiting up to %g s for them, another signal ends them",
                    admission.running,
                    self._drain_s,
                )
        if now >= self._until and not admission.is_over:
            admission.end()
            self._left, self._since = admission.remaining, now
            if admission.running:
                log.info("requests that are ended: %d", admission.running)
        if admission.remaining < self._left:
            self._left, self._since = admission.remaining, now
        return admission.remaining == 0 or (admission.is_over and now >= self._since + _LAST_WORDS_S)


class _Server(uvicorn.Server):
    """A uvicorn server that reports when it is ready, and drains before it ends."""

    def __init__(
        self,
        config: uvicorn.Config,
        drain: Drain,
        ready: Callable[[], None],
        follow: Callable[[], Coroutine[None, None, None]] | None,
    ) -> None:
        super().__init__(config)
        self._follow = follow
        self._following: asyncio.Task[None] | None = None
        self._drain = drain
        self._heads = _HeaderTimeout(self.server_state.connections)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn: opens the application's resources, then listens."""
        # The loop would track all async generators, to close unclosed ones at its end. Here their owners close them,
        # and each request has several.
        sys.set_asyncgen_hooks(firstiter=None)
        await super().startup(sockets=sockets)
        if self.started:
            if self._follow is not None:
                self._following = asyncio.create_task(self._follow())
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn."""
        if self._following is not None:
            await cancel_quietly(self._following)
        await super().shutdown(sockets=sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """See uvicorn."""
        self._drain.tell()

    async def on_tick(self, counter: int) -> bool:
        """See uvicorn: called ten times a second, to find out whether to end."""
        self._heads.sweep(time.monotonic())
        if self._drain.is_over():
            self.should_exit = True  # not by uvicorn's own handler, which would raise the signal again at the end
        return await super().on_tick(counter)


class ProtocolSettings(uvicorn.Config):
    """uvicorn's settings for an application of `create_app`, with the bounds that its protocols hold to."""

    def __init__(self, app: Starlette, config: Config, *, http: type[asyncio.Protocol] | None = None, **more: Any):
        """`http`: another protocol; `more`: for uvicorn."""
        self.connections: Connections = app.state.connections
        super().__init__(
            app,
            http=http or HttpProtocol,
            ws=BoundedWebSocket,
            ws_max_size=config.server.max_body_bytes,
            ws_per_message_deflate=False,  # a small frame must not expand to a large one
            access_log=False,
            **more,
        )


class _HeaderTimeout:
    """Has connections close whose request headers, or whose message over WebSocket, are not complete after `RECEIVE_S`,
    and those that are idle for too long. `connections` are of our own protocols.
    """

    def __init__(self, connections: set[Any]) -> None:
        self._connections = connections
        self._swept_s = 0.0

    def sweep(self, now_s: float) -> None:
        """Look at all connections, at most once a second."""
        if now_s - self._swept_s < _SWEPT_EVERY_S:
            return
        self._swept_s = now_s
        for one in [*self._connections]:
            one.sweep(now_s, bounds.RECEIVE_S)
