"""The queries of the store for cached items: each function is one transaction, run on the given connection.

Times are in seconds since the epoch, stored in milliseconds. Everything has an owner and the name of a model.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, literal, select, update

from callwright.database.tables import KEPT_ITEMS, lock

_KEPT: Final = "cw-kept"
_ASKED_AT_ONCE: Final = 500  # databases limit the number of parameters
_LEFT_OF_FULL: Final = 0.9  # so that not every turn has to make room


class KeptItems(Struct, frozen=True):
    """Items as they were encoded, and when they were last used."""

    items: bytes
    used_at: float


def keep(
    connection: Connection,
    owner: str,
    model: str,
    kept: Mapping[str, bytes],
    now: float,
    before: float,
    most: tuple[int, int],
) -> None:
    """Store items by their keys, and erase items last used earlier than `before`. `most`: the maximum number of items
    and of bytes; the least recently used are evicted.

    A key stored twice with different items is empty from then on: it is ambiguous.
    """
    lock(connection, _KEPT)
    forget_kept(connection, before)
    for key, items in kept.items():
        ours = _of(owner, model, [key])
        there = connection.scalar(select(KEPT_ITEMS.c.body).where(ours))
        if there is None:
            row = {"owner": owner, "model": model, "key": key, "used_at": _ms(now), "size": len(items), "body": items}
            connection.execute(insert(KEPT_ITEMS), row)
        else:
            same = items if there == items else b""
            connection.execute(update(KEPT_ITEMS).where(ours).values(used_at=_ms(now), body=same, size=len(same)))
    _make_room(connection, *most)


def _make_room(connection: Connection, most: int, most_bytes: int) -> None:
    size_of_all = func.coalesce(func.sum(KEPT_ITEMS.c.size), literal(0))
    count, size = connection.execute(select(func.count(), size_of_all).select_from(KEPT_ITEMS)).one()
    if count <= most and size <= most_bytes:
        return
    newest = select(KEPT_ITEMS.c.used_at, KEPT_ITEMS.c.size).order_by(KEPT_ITEMS.c.used_at.desc())
    count = size = 0
    for row in connection.execute(newest).all():
        count, size = count + 1, size + row.size
        if count > max(1, most * _LEFT_OF_FULL) or size > most_bytes * _LEFT_OF_FULL:
            connection.execute(delete(KEPT_ITEMS).where(KEPT_ITEMS.c.used_at <= row.used_at))
            return


def find_kept(
    connection: Connection, owner: str, model: str, keys: Sequence[str], since: float
) -> dict[str, KeptItems]:
    """The items stored by these keys and used since a time."""
    columns = (KEPT_ITEMS.c.key, KEPT_ITEMS.c.body, KEPT_ITEMS.c.used_at)
    rows = (
        row
        for some in _some(keys)
        for row in connection.execute(
            select(*columns).where(_of(owner, model, some), KEPT_ITEMS.c.used_at >= _ms(since), KEPT_ITEMS.c.size > 0)
        )
    )
    return {row.key: KeptItems(row.body, row.used_at / 1_000) for row in rows}


def empty_kept(connection: Connection, owner: str, model: str, keys: Sequence[str]) -> None:
    """Empty the items stored by these keys."""
    lock(connection, _KEPT)
    for some in _some(keys):
        connection.execute(update(KEPT_ITEMS).where(_of(owner, model, some)).values(body=b"", size=0))


def use_kept(connection: Connection, owner: str, model: str, keys: Sequence[str], now: float) -> None:
    """Note that this was used now."""
    for some in _some(keys):
        connection.execute(update(KEPT_ITEMS).where(_of(owner, model, some)).values(used_at=_ms(now)))


def forget_kept(connection: Connection, before: float) -> None:
    """Erase items last used earlier than `before`."""
    connection.execute(delete(KEPT_ITEMS).where(KEPT_ITEMS.c.used_at < _ms(before)))


def _of(owner: str, model: str, keys: Sequence[str]) -> ColumnElement[bool]:
    return and_(KEPT_ITEMS.c.owner == owner, KEPT_ITEMS.c.model == model, KEPT_ITEMS.c.key.in_(keys))


def _some(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[begin : begin + _ASKED_AT_ONCE] for begin in range(0, len(keys), _ASKED_AT_ONCE))


def _ms(time_s: float) -> int:
    return int(time_s * 1_000)
