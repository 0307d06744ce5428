"""How many bytes of request bodies are in memory at once: those that are read, and those whose requests are answered.

What is made of a body, the conversation, lives as long as its request, so the bytes are counted until that is over.
Small bodies are not counted: the number of requests bounds them. One client has half of the room at most, so that it
cannot take that of all. A body is always read where it is the only one.
"""

from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar, Token

from msgspec import Struct

from callwright.errors import RequestError

# A body from this size on is counted, and read beside the event loop.
LARGE = 65_536


class BodyBudget:
    """Room for `most` bytes; `told` is called with each change of what is taken."""

    def __init__(self, most: int, told: Callable[[int], None] = lambda _: None) -> None:
        self.most = most
        self.taken = 0
        self.of_clients: Counter[str] = Counter()
        self._told = told

    def request(self, client: str) -> "BodyRoom":
        """Room for the body of one request, to be entered until it is answered. Who has no name (`""`) may take all
        that there is.
        """
        return BodyRoom(self, client)

    def change(self, client: str, by: int) -> None:
        """Take so many bytes, or give them back."""
        if not by:
            return
        self.taken += by
        self.of_clients[client] += by
        if not self.of_clients[client]:
            del self.of_clients[client]
        self._told(by)


class BodyRoom(Struct):
    """What one request has taken: `size` bytes."""

    budget: BodyBudget
    client: str
    size: int = 0
    token: Token["BodyRoom | None"] | None = None

    def __enter__(self) -> None:
        self.token = _room.set(self)

    def __exit__(self, *_: object) -> None:
        assert self.token is not None
        _room.reset(self.token)
        self.clear()

    def maybe_full(self, size: int) -> RequestError | None:
        """Take room for a body of so many bytes by now; the error (429) where there is none."""
        more = size - self.size
        if size < LARGE or more <= 0:
            return None
        budget, others = self.budget, self.budget.taken - self.size
        own, share = budget.of_clients[self.client] - self.size if self.client else 0, budget.most // 2
        if others and others + size > budget.most:
            return _full("The gateway holds", others, budget.most)
        if own and own + size > share:
            return _full(f"Requests of '{self.client}' hold", own, share)
        budget.change(self.client, more)
        self.size = size
        return None

    def clear(self) -> None:
        """Give it back."""
        if self.size:
            self.budget.change(self.client, -self.size)
            self.size = 0


_room: ContextVar[BodyRoom | None] = ContextVar("callwright_body_room", default=None)


def body_room() -> BodyRoom | None:
    """The room of the request that this runs for; None where nobody counts."""
    return _room.get()


def _full(who: str, taken: int, most: int) -> RequestError:
    return RequestError(
        f"{who} {taken:,} bytes of request bodies already, and may hold {most:,}. Please try again when others "
        "have been answered, send less in one request, or raise max_bodies_bytes in [limits] of the configuration.",
        status=429,
        type_="rate_limit_error",
        code="rate_limit_exceeded",
        headers={"retry-after": "1"},
    )
