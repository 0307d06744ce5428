"""The queries of the store for limits shared by several gateways: each function is one transaction.

A limit is a token bucket: the amount used, at a time of the database's clock. PostgreSQL only.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from sqlalchemy import Connection, delete, extract, func, insert, select, text, update

from callwright.database.tables import LIMITS, LIMITS_USERS, lock, now

_NEW: Final = "cw-limit"
_USERS: Final = "cw-users"
# A gateway that has not reported for this long counts as gone.
_GONE_S: Final = 30
_NOTED_EVERY_S: Final = 5
_NOW_MS: Final = extract("epoch", func.clock_timestamp()) * 1_000
_MINUTE_MS: Final = 60_000


class Spent(Struct, frozen=True):
    """A gateway's usage of the limit `kind` of a key, and whether it `wants` one more unit if available."""

    key: str
    kind: str
    per_minute: int
    number: float
    wants: bool = False


def spend(connection: Connection, gateway: str, spent: Sequence[Spent]) -> tuple[list[float], list[bool], int]:
    """Add usage. Returns the total usage of each limit by all gateways, whether each wanted unit was available, and
    the number of gateways.
    """
    connection.execute(text("SET LOCAL synchronous_commit = off"))  # worthless after a minute
    used: dict[Spent, tuple[float, bool]] = {}
    for one in sorted(spent, key=lambda one: (one.key, one.kind)):  # in a fixed order, to avoid deadlocks
        used[one] = _spend(connection, one)
    return [used[one][0] for one in spent], [used[one][1] for one in spent], _users(connection, gateway)


def _spend(connection: Connection, one: Spent) -> tuple[float, bool]:
    ours = (LIMITS.c.key == one.key) & (LIMITS.c.kind == one.kind)
    query = select(LIMITS.c.used, LIMITS.c.at, _NOW_MS.label("now")).where(ours).with_for_update()
    row = connection.execute(query).first()
    if row is None:
        lock(connection, _NEW)  # another may make it, too
        row = connection.execute(query).first()
    used = max(0.0, row.used - (int(row.now) - row.at) * one.per_minute / _MINUTE_MS) if row is not None else 0.0
    used += one.number
    granted = one.wants and used + 1 <= one.per_minute
    used += granted
    if row is None:
        begun = {"key": one.key, "kind": one.kind, "used": used, "at": int(connection.scalar(select(_NOW_MS)) or 0)}
        connection.execute(insert(LIMITS), begun)
    else:
        connection.execute(update(LIMITS).where(ours).values(used=used, at=int(row.now)))
    return used, granted


def _users(connection: Connection, gateway: str) -> int:
    """Note that a gateway is there; answers how many there are."""
    at = now(connection)
    seen = {row.gateway: row.seen_at for row in connection.execute(select(LIMITS_USERS)).all()}
    if seen.get(gateway, 0) < at - _NOTED_EVERY_S:
        lock(connection, _USERS)
        gone = (LIMITS_USERS.c.seen_at < at - _GONE_S) | (LIMITS_USERS.c.gateway == gateway)
        connection.execute(delete(LIMITS_USERS).where(gone))
        connection.execute(insert(LIMITS_USERS), {"gateway": gateway, "seen_at": at})
        seen[gateway] = at
    return sum(one >= at - _GONE_S for one in seen.values())


def leave_limits(connection: Connection, gateway: str) -> None:
    """A gateway is there no more."""
    connection.execute(delete(LIMITS_USERS).where(LIMITS_USERS.c.gateway == gateway))
