"""Timeouts for incoming requests: a client that sends one byte a minute must not hold a place for ever (slowloris)."""

from typing import Any, Final

from callwright.settings import bounds

_SWEPT_EVERY_S: Final = 1.0


class HeaderTimeout:
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
