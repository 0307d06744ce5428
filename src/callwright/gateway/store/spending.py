"""The part of the store for spending. Each function is one transaction, run on the given connection.

Usage is added up by key, day and model. For budgets, each process has a grant: the amount that it may use until it
reports again. All grants and all usage together stay within a budget. A grant expires when its process is silent, so a
killed process blocks nothing for long.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select, update

from callwright.database.tables import SPENDERS, SPENDING, lock, now
from callwright.database.transactions import Transactions

_LOCK: Final = "cw-spend"
# The grants of a process that has not reported for this long do not count.
LIVE_S: Final = 10
# After this its number of batches is forgotten: no report is repeated so late.
_FORGOTTEN_S: Final = 86_400
# Of the rest, a process gets this part in advance at most.
_SHARE: Final = 8

Unit: TypeAlias = Literal["tokens", "cost"]
Grants: TypeAlias = Mapping[str, int]
_GRANTS: Final = msgspec.json.Decoder(dict[str, int])


class Spending(Struct):
    """The usage of a model by a key on a day (UTC, YYYY-MM-DD). `input_tokens` include `cached_tokens`; `cost` is in
    millionths of the currency.
    """

    key: str
    day: str
    model: str
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: int = 0


class Claim(Struct, frozen=True):
    """The part of a budget that a process holds and wants. `since`: the first day of its period. The budget is of these
    `keys`, or of a `model`. `holds`: used but not reported, or needed by running requests; `wish`: for one more
    request; `advance`: granted in addition, as far as there is enough left.
    """

    budget: str
    limit: int
    unit: Unit
    since: str
    keys: Sequence[str] | None = None
    model: str | None = None
    holds: int = 0
    wish: int = 0
    advance: int = 0


class BudgetState(Struct, frozen=True):
    """How much of a budget is used by all, and how much this process may use beyond that."""

    used: int
    granted: int


def settle(
    connection: Connection,
    process: str,
    batch: int,
    added: Sequence[Spending],
    claims: Sequence[Claim],
    granted: Grants,
) -> tuple[list[BudgetState], bool]:
    """Add usage to the totals, and renew the grants of a process. `granted` are its grants that stay as they are.

    A `batch` is added once: the same number again adds nothing. Returns the state of each claimed budget, and
    whether all wishes fit; otherwise none is granted. A wish that is larger than the rest fits if there is a
    rest, and no other request may use it.
    """
    lock(connection, _LOCK)
    at = now(connection)
    others: dict[str, int] = {}
    ours: int | None = None
    for row in connection.execute(select(SPENDERS)).all():
        if row.process == process:
            ours = row.batch
        elif row.seen_at >= at - LIVE_S:
            for budget, amount in _GRANTS.decode(row.granted).items():
                others[budget] = others.get(budget, 0) + amount
    if ours is None or ours < batch:
        for one in added:
            _add(connection, one)
    used = [used_of(connection, claim) for claim in claims]
    left = [claim.limit - used[i] - claim.holds - others.get(claim.budget, 0) for i, claim in enumerate(claims)]
    fits = all(
        claim.wish <= rest or (rest > 0 and not claim.holds and not others.get(claim.budget))
        for claim, rest in zip(claims, left, strict=True)
    )
    states = [
        BudgetState(spent, claim.holds + (claim.wish + _advance(claim, rest) if fits else 0))
        for claim, spent, rest in zip(claims, used, left, strict=True)
    ]
    grants = {**granted, **{claim.budget: one.granted for claim, one in zip(claims, states, strict=True)}}
    known = {"seen_at": at, "batch": batch, "granted": msgspec.json.encode(grants)}
    if ours is None:
        connection.execute(delete(SPENDERS).where(SPENDERS.c.seen_at < at - _FORGOTTEN_S))
        connection.execute(insert(SPENDERS), {"process": process, **known})
    else:
        connection.execute(update(SPENDERS).where(SPENDERS.c.process == process).values(**known))
    return states, fits


def _advance(claim: Claim, left: int) -> int:
    return max(0, min(claim.advance, (left - claim.wish) // _SHARE))


def _add(connection: Connection, one: Spending) -> None:
    ours = and_(SPENDING.c.key == one.key, SPENDING.c.day == one.day, SPENDING.c.model == one.model)
    numbers = ("requests", "input_tokens", "output_tokens", "cached_tokens", "cost")
    more = {name: SPENDING.c[name] + getattr(one, name) for name in numbers}
    if not connection.execute(update(SPENDING).where(ours).values(**more)).rowcount:
        connection.execute(insert(SPENDING), msgspec.structs.asdict(one))


def used_of(connection: Connection, claim: Claim) -> int:
    """How much of a budget is used in its period."""
    amount = SPENDING.c.cost if claim.unit == "cost" else SPENDING.c.input_tokens + SPENDING.c.output_tokens
    whose: ColumnElement[bool]
    whose = SPENDING.c.model == claim.model if claim.keys is None else SPENDING.c.key.in_(claim.keys)
    return int(connection.scalar(select(func.sum(amount)).where(whose, SPENDING.c.day >= claim.since)) or 0)


def all_used(connection: Connection, claims: Sequence[Claim]) -> list[int]:
    """How much of each budget is used in its period."""
    return [used_of(connection, claim) for claim in claims]


def get_spending(connection: Connection, since: str, key: str | None) -> list[Spending]:
    """The usage since a day, of all keys or of one, the latest day first."""
    whose = () if key is None else (SPENDING.c.key == key,)
    order = (SPENDING.c.day.desc(), SPENDING.c.key, SPENDING.c.model)
    rows = connection.execute(select(SPENDING).where(SPENDING.c.day >= since, *whose).order_by(*order)).mappings()
    return [Spending(**row) for row in rows.all()]


def leave_spenders(connection: Connection, process: str) -> None:
    """A process has ended: it has reported all its usage."""
    connection.execute(delete(SPENDERS).where(SPENDERS.c.process == process))


class SpendingTable:
    """Usage and budgets in a database. Its methods raise `StoreError`."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    async def settle(
        self, process: str, batch: int, added: Sequence[Spending], claims: Sequence[Claim], granted: Grants
    ) -> tuple[list[BudgetState], bool]:
        """See `settle`."""
        return await self._database.write(settle, process, batch, added, claims, granted)

    async def rows(self, since: str, key: str | None) -> list[Spending]:
        """The usage since a day, of all keys or of one, the latest day first."""
        return await self._database.read(get_spending, since, key)

    async def budget_usage(self, claims: Sequence[Claim]) -> list[int]:
        """The amount used of each budget in its period."""
        return await self._database.read(all_used, claims)

    async def leave(self, process: str) -> None:
        """Delete the entry of a process that has ended, and has reported all its usage."""
        await self._database.write(leave_spenders, process)
