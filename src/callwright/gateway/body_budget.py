"""A limit on the total size of request bodies in memory, both while they are read and while they are answered.

The conversation parsed from a body lives as long as its request, so the bytes are counted until the request ends. Small
bodies are not counted: the number of requests limits them. A client may take half of the budget at most, so that it
cannot block all others. A single body is always admitted.
"""

from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar, Token

from msgspec import Struct

from callwright.errors import RequestError

# Bodies of at least this size are counted, and read in a thread.
LARGE = 65_536


class BodyBudget:
    """Room for `most` bytes; `told` is called with the bytes taken after each change."""

    def __init__(self, most: int, told: Callable[[int], None] = lambda _: None) -> None:
        self.most = most
        self.taken = 0
        self.of_clients: Counter[str] = Counter()
        self._told = told

    def change(self, client: str, by: int) -> None:
        """Take bytes, or release them if `by` is negative."""
        if not by:
            return
        self.taken += by
        self.of_clients[client] += by
        if not self.of_clients[client]:
            del self.of_clients[client]
        self._told(by)


class BodyRoom(Struct):
    """Room for the body of one request until its answer, `size` bytes now. A client without a name (`""`) may take all
    that there is.
    """

    budget: BodyBudget
    client: str
    size: int = 0
    token: Token["BodyRoom | None"] | None = None

    def __enter__(self) -> None:
        self.token = _room.set(self)

    def __exit__(self, *_: object) -> None:
        assert self.token is not None
        _room.reset(self.token)
        if self.size:
            self.clear()

    def maybe_full(self, size: int) -> RequestError | None:
        """Take room for the first `size` bytes of a body; returns the error (429) if it is full, else None."""
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
        self.budget.change(self.client, -self.size)
        self.size = 0


_room: ContextVar[BodyRoom | None] = ContextVar("callwright_body_room", default=None)


def body_room() -> BodyRoom | None:
    """The room of the running request; None if bodies are not counted."""
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
