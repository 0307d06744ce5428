"""How one generation fared on its way to a server and back, for those who watch: noted where it happens."""

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

__all__ = ["RequestTimings", "ServerState", "States"]


class ServerState(Struct, frozen=True):
    """One of several servers of a model. One that is not `well` rests, or is on trial."""

    name: str
    is_well: bool
    in_flight: int


States: TypeAlias = Callable[[], Sequence[ServerState]]


class RequestTimings(Struct):
    """Times are those of `time.monotonic`, in seconds; None where it did not come so far.

    `begun_s`: it was asked for; `sent_s`: it went to the server, when what is ours to do was done; `first_s`: its first
    piece came; `ended_s`: its last one, or what failed. `queued_s` of it waited for a place. `is_constrained`: the
    server was sent a grammar. `dropped`: fields of the request that were not sent, because this way of asking does not
    know them. `servers` of a pool were asked, whose `states` tells how they are.
    """

    begun_s: float = msgspec.field(default_factory=time.monotonic)
    sent_s: float | None = None
    first_s: float | None = None
    ended_s: float | None = None
    queued_s: float = 0.0
    is_constrained: bool = False
    dropped: frozenset[str] = frozenset()
    servers: int = 0
    states: States | None = None

    def sends(self, *, is_constrained: bool = False) -> None:
        """It goes to the server now, again or for the first time."""
        self.sent_s = self.sent_s or time.monotonic()
        self.is_constrained = is_constrained

    @property
    def waited_s(self) -> float:
        """How long it was the server's turn: from when it was sent to its end."""
        sent_s = self.begun_s + self.queued_s if self.sent_s is None else self.sent_s
        return max(0.0, (sent_s if self.ended_s is None else self.ended_s) - sent_s)
