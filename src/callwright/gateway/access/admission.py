"""What is under way in a gateway: how much of it there may be, and how it comes to its end when the gateway does.

A gateway that ends goes through three states: it serves; it drains, when it takes nothing new and what is under way
goes on; it is over, when every model is told to stop, so that each answer ends with its last event.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from callwright.errors import RequestError, UpstreamError

__all__ = ["AdmissionControl", "busy"]

T = TypeVar("T")


def busy(message: str, wait_s: int = 1) -> RequestError:
    """The error for a request that comes while there are too many."""
    return RequestError(
        message,
        status=429,
        type_="rate_limit_error",
        code="rate_limit_exceeded",
        headers={"retry-after": str(wait_s)},
    )


class AdmissionControl:
    """The requests of a gateway, at most so many at once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.running = 0
        self.drained = asyncio.Event()  # set when nothing new is taken
        self.is_over = False
        self.waiting: set[asyncio.Task[object]] = set()  # those that wait for a model just now

    @contextmanager
    def under_way(self, *, limited: bool = True) -> Iterator[None]:
        """A request, while it is answered. Raises `RequestError` when there are too many, or the gateway ends.

        `limited`: what goes on behind a request that was let in already is not.
        """
        if limited and self.drained.is_set():
            raise RequestError(
                "This gateway is shutting down. Please try again, it may be another one that answers.",
                status=503,
                type_="server_error",
                code="shutting_down",
                headers={"retry-after": "1", "connection": "close"},
            )
        if limited and self.running >= self._most:
            raise busy(f"The gateway answers {self._most} requests already, which is its limit. Please try again.")
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1

    def drain(self) -> None:
        """Take nothing new."""
        self.drained.set()

    def end(self) -> None:
        """Stop every model: whoever waits for one gets an `UpstreamError`, see `stopped`."""
        self.drain()
        self.is_over = True
        for task in self.waiting:
            task.cancel()


def stopped(name: str) -> UpstreamError:
    """The error of an answer of this upstream that ends because the gateway does."""
    message = "The gateway is shutting down: the answer ends here. Please try again."
    return UpstreamError(message, fault="stopped", upstream=name, retry_after_s="1")
