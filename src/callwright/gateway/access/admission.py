"""Admission control: how many requests are in flight, and how they end when the gateway shuts down.

A gateway is in one of three states. It serves; it drains: no new request is admitted, running requests continue; it is
over: every generation is stopped, so that each answer still ends with its last event.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from msgspec import Struct

from callwright.errors import RequestError, UpstreamError
from callwright.gateway.access.clients import Client, Clients, served
from callwright.settings.bounds import Bounds

T = TypeVar("T")


def busy(message: str, wait_s: int = 1) -> RequestError:
    """The 429 error for a request above a limit; `wait_s` becomes its `Retry-After`."""
    return RequestError(
        message,
        status=429,
        type_="rate_limit_error",
        code="rate_limit_exceeded",
        headers={"retry-after": str(wait_s)},
    )


def shutting_down() -> RequestError:
    """The 503 error for requests during a shutdown."""
    return RequestError(
        "This gateway is shutting down. Please try again, it may be another one that answers.",
        status=503,
        type_="server_error",
        code="shutting_down",
        headers={"retry-after": "1", "connection": "close"},
    )


def _too_many(client: Client, what: str, instead: str = "") -> RequestError:
    who = f"The key '{client.name}'" if client.is_key else "This address"
    most = client.requests if what.startswith("requests") else client.connections
    return busy(f"{who} has {most} {what} already, which is its limit. Please try again when one has ended{instead}.")


class AdmissionControl:
    """Limits the requests in flight: at most `most`, and for each client as many as `clients` allows."""

    def __init__(self, most: int, clients: Clients | None = None) -> None:
        self._most = most
        self._clients = clients or Clients(Bounds())
        self.running = 0
        self.sockets = 0  # WebSockets that are open; the turns on them are requests
        self.drained = asyncio.Event()  # set once nothing new is admitted
        self.is_over = False
        self.generations: set[Callable[[], None]] = set()  # what stops each that runs

    def under_way(self, *, limited: bool = True) -> "_UnderWay":
        """Counts a request from here on, until what this answers is left.

        Raises `RequestError`: 429 above the limit, 503 when the gateway shuts down. Not `limited` is what belongs to a
        request that was admitted before.
        """
        if limited and self.drained.is_set():
            raise shutting_down()
        if limited and self.running >= self._most:
            raise busy(f"The gateway answers {self._most} requests already, which is its limit. Please try again.")
        client = served()
        if not self._clients.take(client, "requests", limited=limited):
            instead = ", or raise max_requests of the key, or max_requests_per_key, in the gateway's configuration"
            raise _too_many(client, "requests under way", instead)
        self.running += 1
        return _UnderWay(self, self._clients, client)

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Counts a WebSocket while it is open.

        Raises `RequestError`: 429 above the client's limit, 503 when the gateway shuts down.
        """
        if self.drained.is_set():
            raise shutting_down()
        client = served()
        with self._clients.place(client, "connections") as is_taken:
            if not is_taken:
                raise _too_many(client, "WebSockets open")
            self.sockets += 1
            try:
                yield
            finally:
                self.sockets -= 1

    @property
    def remaining(self) -> int:
        """The number of requests, and of WebSockets waiting for their last events, that must still end."""
        return self.running + self.sockets

    def change(self, most: int) -> None:
        """Apply another limit to requests from now on."""
        self._most = most

    def drain(self) -> None:
        """Admit nothing new."""
        self.drained.set()

    def end(self) -> None:
        """Stop every generation: who waits for one gets the `UpstreamError` of `stopped`."""
        self.drain()
        self.is_over = True
        for stop in [*self.generations]:
            stop()


class _UnderWay(Struct):
    """A request that is counted. No generator: it is entered for each."""

    admission: AdmissionControl
    clients: Clients
    client: Client

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.admission.running -= 1
        self.clients.give_back(self.client, "requests")


def stopped(name: str) -> UpstreamError:
    """The error of an answer that ends because the gateway shuts down."""
    message = "The gateway is shutting down: the answer ends here. Please try again."
    return UpstreamError(message, fault="stopped", upstream=name, retry_after_s="1")
