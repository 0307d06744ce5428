"""Timings of one request to a server, noted by each layer on the way, for observers."""

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct


class ServerState(Struct, frozen=True):
    """The state of one server of a pool. One that is not `well` rests or is on trial."""

    name: str
    is_well: bool
    in_flight: int


States: TypeAlias = Callable[[], Sequence[ServerState]]


class RequestTimings(Struct):
    """Times are of `time.monotonic`, in seconds; None: did not happen.

    `begun_s`: the generation was requested; `sent_s`: the request was sent to the server; `first_s`: its first delta
    arrived; `ended_s`: the last one, or a failure. `queued_s`: how long it waited in the queue. `constraint`: the form
    that the answer was held to, as its kind and its text. `dropped`: request fields that this endpoint does not know
    and that were not sent. `servers`: how many servers of a pool were asked; `states` returns their state.
    """

    begun_s: float = msgspec.field(default_factory=time.monotonic)
    sent_s: float | None = None
    first_s: float | None = None
    ended_s: float | None = None
    queued_s: float = 0.0
    constraint: tuple[str, str] | None = None
    dropped: frozenset[str] = frozenset()
    servers: int = 0
    states: States | None = None
    cost: int | None = None

    def sends(self, constraint: tuple[str, str] | None = None) -> None:
        """The request goes to the server now, the first time or again."""
        self.sent_s = self.sent_s or time.monotonic()
        self.constraint = constraint

    @property
    def is_constrained(self) -> bool:
        """Whether a grammar was sent."""
        return self.constraint is not None

    @property
    def waited_s(self) -> float:
        """How long the server took, from sending to the end."""
        sent_s = self.begun_s + self.queued_s if self.sent_s is None else self.sent_s
        return max(0.0, (sent_s if self.ended_s is None else self.ended_s) - sent_s)
