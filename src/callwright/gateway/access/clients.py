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
from typing import Final

from msgspec import Struct
from starlette.types import Scope

from callwright.gateway.access.key_counters import KINDS, KeyCounters, Kind
from callwright.gateway.access.keys import ApiKey
from callwright.gateway.config.config import KeyConfig
from callwright.gateway.config.hosts import is_loopback
from callwright.settings import bounds
from callwright.settings.bounds import Bounds
from callwright.turn.fair_pool import CLIENT

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
        counters: KeyCounters | None = None,
        worker: int = 0,
    ) -> None:
        """`counters` are those of all workers, of which this process is the one with the number `worker`."""
        self._rows = counters or KeyCounters()
        self._counters = self._rows.counters
        self._worker = worker
        self._addresses: dict[Kind, Counter[str]] = {kind: Counter() for kind in KINDS}
        self.change(limits, keys)
        with self._counters.locked() as numbers:
            for name in self._rows.names:
                for kind in KINDS:
                    numbers[self._rows.places(name, kind)[worker]] = 0

    def change(self, limits: Bounds, keys: Sequence[KeyConfig]) -> None:
        """Apply other limits to requests from now on. Places that were taken stay taken, also those of removed keys."""
        self._rows.add(key.name for key in keys)
        self._limits = limits
        self._of_keys = {key.name: key.max_requests or limits.max_requests_per_key for key in keys}

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
        places = self._rows.places(client.name, kind)
        with self._counters.locked() as numbers:
            if limited and most is not None and sum(numbers[place] for place in places) >= most:
                return False
            numbers[places[self._worker]] += 1
        return True

    def give_back(self, client: Client, kind: Kind) -> None:
        """Give a place back."""
        if client.is_key:
            with self._counters.locked() as numbers:
                numbers[self._rows.places(client.name, kind)[self._worker]] -= 1
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

    def _most(self) -> tuple[int, int]:
        return self._limits.max_requests_per_key, bounds.MAX_CONNECTIONS_PER_KEY

    def _share(self, most: int) -> int:
        return -(-most // self._rows.workers)


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
