"""The gateway under uvicorn: how it listens, and how it ends when it is told to.

The first SIGTERM or Ctrl-C lets what is under way go on for `drain_s`, while `/healthz` says so and nothing new is
taken; then, or at the second one, every answer ends with its last event, and the process with it.
"""

import gc
import logging
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final

import uvicorn
from starlette.applications import Starlette

from toolwright.gateway.config import ServerConfig
from toolwright.gateway.receiving import HalfHeads
from toolwright.gateway.traffic import Traffic

__all__ = ["serve"]

log = logging.getLogger("toolwright.gateway")
# How long the last events may take to be written, and then what is left of the connections to close.
_LAST_WORDS_S: Final = 5.0
_CLOSING_S: Final = 2
# So many new objects before the young ones are looked at, and so many times that before the older ones are.
_COLLECTED_EVERY: Final = (20_000, 20, 20)


def serve(
    app: Starlette, server: ServerConfig, listener: socket.socket, ready: Callable[[], None] = lambda: None
) -> None:
    """Serve a gateway's application until the process is told to end; `ready` is called when it takes requests. Raises
    `SystemExit` when it cannot start.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # so that the system lets go, too, of a client that reads nothing
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(server.stall_s * 1_000))
    settings = uvicorn.Config(
        app,
        ws="websockets-sansio",
        ws_max_size=server.max_body_bytes,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_CLOSING_S,
    )
    _spare_collector()
    serving = _Server(settings, app.state.traffic, server, ready)
    with suppress(KeyboardInterrupt):  # uvicorn raises it again when it has ended all that was open
        serving.run(sockets=[listener])
    if not serving.started:
        raise SystemExit(1)


def _spare_collector() -> None:
    """Keep the garbage collector from what stays for good, and from looking at each request several times."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTED_EVERY)


class _Server(uvicorn.Server):
    """Says when it is ready, and drains before it ends."""

    def __init__(
        self, config: uvicorn.Config, traffic: Traffic, server: ServerConfig, ready: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._traffic = traffic
        self._drain_s = server.drain_s
        self._heads = HalfHeads(self.server_state.connections, server.receive_s)
        self._told: signal.Signals | None = None
        self._until = 0.0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn: opens what the application needs, then listens."""
        await super().startup(sockets=sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal: the first one begins the drain, another one ends it."""
        self._until = time.monotonic() + (self._drain_s if self._told is None else 0)
        self._told = signal.Signals(sig)

    async def on_tick(self, counter: int) -> bool:
        """See uvicorn: asked ten times a second whether it is time to end."""
        self._heads.sweep(time.monotonic())
        if self._told is not None and self._is_drained():
            super().handle_exit(self._told, None)
        return await super().on_tick(counter)

    def _is_drained(self) -> bool:
        traffic, now = self._traffic, time.monotonic()
        if not traffic.drained.is_set():
            traffic.drain()
            if traffic.running:
                log.info("%d requests may go on for %g s; another signal ends them", traffic.running, self._drain_s)
        if now >= self._until and not traffic.is_over:
            traffic.end()
            if traffic.running:
                log.info("%d requests are ended", traffic.running)
        return traffic.running == 0 or now >= self._until + _LAST_WORDS_S
