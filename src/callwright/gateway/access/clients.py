"""The client a place is counted for: the key, or the address if there are no keys.

So one client cannot take all places. Without keys, clients on this machine are not counted: the gateway is theirs.
Keys are counted for all processes of a gateway together, each process in its own column, which it clears when it
starts, so a killed process leaves no stale counts. Addresses are counted by each process.
"""

import ipaddress
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from starlette.types import Scope

from callwright.gateway.access.keys import ApiKey
from callwright.gateway.access.shared_counters import SharedCounters
from callwright.gateway.config.config import KeyConfig
from callwright.gateway.config.hosts import is_loopback
from callwright.settings import bounds
from callwright.settings.bounds import Bounds
from callwright.turn.fair_pool import CLIENT

# The kinds of places: running requests, open connections.
Kind: TypeAlias = Literal["requests", "connections"]
_KINDS: Final[tuple[Kind, ...]] = ("requests", "connections")
_NETWORK_V6: Final = 64  # bits: what one owner of an IPv6 address has anyway


class Client(Struct, frozen=True):
    """Whom places are counted for, and how many it may have; None is any number."""

    name: str
    is_key: bool
    requests: int | None
    connections: int | None


EVERYBODY: Final = Client("", False, None, None)
_SERVED: Final[ContextVar[Client]] = ContextVar("callwright_client", default=EVERYBODY)


# The client that this runs for. A context variable, so every task of a request knows it.
served: Final[Callable[[], Client]] = _SERVED.get


def for_client(client: Client) -> None:
    """From here on, this task and those that it starts run for this client."""
    _SERVED.set(client)
    CLIENT.set(client.name)


class Clients:
    """How many places each client has taken."""

    def __init__(
        self,
        limits: Bounds,
        keys: Sequence[KeyConfig] = (),
        counters: SharedCounters | None = None,
        begin: int = 0,
        worker: int = 0,
        workers: int = 1,
    ) -> None:
        """`counters` holds `size` numbers of these keys from `begin` on, a column for each worker."""
        self._limits = limits
        self._workers = workers
        self._of_keys = {key.name: key.max_requests or limits.max_requests_per_key for key in keys}
        self._place = {name: number * len(_KINDS) for number, name in enumerate(self._of_keys)}
        column = len(keys) * len(_KINDS)
        self._counters = counters or SharedCounters(begin + self.size(keys, workers))
        self._columns = [begin + number * column for number in range(workers)]
        self._own = self._columns[worker]
        self._addresses: dict[Kind, Counter[str]] = {kind: Counter() for kind in _KINDS}
        with self._counters.locked() as numbers:
            for place in range(self._own, self._own + column):
                numbers[place] = 0

    @staticmethod
    def size(keys: Sequence[KeyConfig], workers: int) -> int:
        """How many counters these keys need."""
        return len(keys) * len(_KINDS) * workers

    def client(self, who: ApiKey, scope: Scope) -> Client:
        """Whom a request is counted for."""
        if who.name:
            return Client(who.name, True, self._of_keys[who.name], bounds.MAX_CONNECTIONS_PER_KEY)
        address = scope.get("client")
        if address is None or not (network := _network(address[0])):
            return EVERYBODY
        return Client(network, False, *map(self._share, self._most()))

    def take(self, client: Client, kind: Kind, *, limited: bool = True) -> bool:
        """Take a place for a client; False if it has reached its limit. If not `limited`, it is always taken."""
        most = client.requests if kind == "requests" else client.connections
        if not client.is_key:
            taken = self._addresses[kind]
            if limited and most is not None and taken[client.name] >= most:
                return False
            taken[client.name] += 1
            return True
        offset = self._offset(client, kind)
        with self._counters.locked() as numbers:
            if limited and most is not None and sum(numbers[column + offset] for column in self._columns) >= most:
                return False
            numbers[self._own + offset] += 1
        return True

    def give_back(self, client: Client, kind: Kind) -> None:
        """Give a place back."""
        if client.is_key:
            with self._counters.locked() as numbers:
                numbers[self._own + self._offset(client, kind)] -= 1
            return
        taken = self._addresses[kind]
        taken[client.name] -= 1
        if taken[client.name] <= 0:
            del taken[client.name]

    @contextmanager
    def place(self, client: Client, kind: Kind, *, limited: bool = True) -> Iterator[bool]:
        """Take a place for the duration of the context; yields False if all are taken."""
        if not self.take(client, kind, limited=limited):
            yield False
            return
        try:
            yield True
        finally:
            self.give_back(client, kind)

    def _offset(self, client: Client, kind: Kind) -> int:
        return self._place[client.name] + _KINDS.index(kind)

    def _most(self) -> tuple[int, int]:
        return self._limits.max_requests_per_key, bounds.MAX_CONNECTIONS_PER_KEY

    def _share(self, most: int) -> int:
        return -(-most // self._workers)


def _network(address: str) -> str:
    """The address that is counted; empty for this machine's own, and for invalid ones."""
    if is_loopback(address):
        return ""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv6Address):
        if (mapped := found.ipv4_mapped) is not None:
            return "" if mapped.is_loopback else str(mapped)
        return str(ipaddress.ip_network((int(found), _NETWORK_V6), strict=False))
    return address
