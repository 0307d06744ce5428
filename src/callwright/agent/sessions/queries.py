"""The database queries of a session: each function is one transaction, on the given connection.

A run holds the session that it changes: the session's row names the run and its process. A holder that is dead, or
silent for too long, loses the session, and its later writes are refused.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, select, update

from callwright.database.makers import Maker, is_dead
from callwright.database.tables import SESSION_MESSAGES, SESSIONS, as_now, lock, now
from callwright.errors import SessionError

# Seconds of silence after which a run loses its session, even if its process lives.
LOST_S: Final = 60
_NEW: Final = "cw-sess"
_FREE: Final = {"holder": None, "place": None, "pid": None, "started": None, "seen_at": None}


def hold(connection: Connection, id_: str, run: Maker) -> tuple[list[bytes], int]:
    """Acquire a session. Returns its messages and their size in bytes. Raises `SessionError` if another run has it."""
    _hold(connection, id_, run)
    messages = latest(connection, id_, None)
    return messages, sum(map(len, messages))


def _hold(connection: Connection, id_: str, run: Maker) -> None:
    row = _row(connection, id_)
    if row is None:
        lock(connection, _NEW)  # another run may create it at the same time
        row = _row(connection, id_)
    if row is None:
        connection.execute(insert(SESSIONS), {"id": id_, "size": 0, "changed_at": now(connection)})
    elif row.holder is not None and row.holder != run.id:
        silent_s = now(connection) - row.seen_at
        if silent_s <= LOST_S and not is_dead(Maker(row.holder, row.place, row.pid, row.started), silent_s):
            raise SessionError(
                f"Session {id_!r} is busy: another run in process {row.pid} uses it. Wait until it has ended, or "
                "give the session a wait_s.",
                code="session_busy",
            )
    held = {"holder": run.id, "place": run.place, "pid": run.pid, "started": run.started}
    connection.execute(update(SESSIONS).where(SESSIONS.c.id == id_).values(**held, seen_at=as_now(connection)))


def free(connection: Connection, id_: str, run: Maker) -> None:
    """Release the session, if this run still holds it."""
    connection.execute(update(SESSIONS).where(_is_held_by(id_, run)).values(_FREE))


def touch(connection: Connection, id_: str, run: Maker) -> None:
    """Record that the run that holds the session is alive."""
    connection.execute(update(SESSIONS).where(_is_held_by(id_, run)).values(seen_at=as_now(connection)))


def add(connection: Connection, id_: str, run: Maker, messages: Sequence[bytes], most_bytes: int) -> None:
    """Append messages. Raises `SessionError` if the session was lost, or has no room."""
    more = sum(map(len, messages))
    at = as_now(connection)
    room = update(SESSIONS).where(_is_held_by(id_, run), SESSIONS.c.size + more <= most_bytes)
    if not connection.execute(room.values(size=SESSIONS.c.size + more, changed_at=at, seen_at=at)).rowcount:
        row = _row(connection, id_)
        if row is None or row.holder != run.id:
            raise SessionError(
                f"Session {id_!r} was lost: this run was silent for too long, and another took it over. The messages "
                "of this run are not in it.",
                code="session_lost",
            )
        raise SessionError(
            f"Session {id_!r} is full: {row.size + more:,} bytes are more than {most_bytes:,}. Clear it, take messages "
            "out with pop_item, or give it more max_bytes.",
            code="session_full",
        )
    if not messages:
        return
    ours = SESSION_MESSAGES.c.session_id == id_
    last = connection.scalar(select(func.max(SESSION_MESSAGES.c.position)).where(ours))
    begin = 0 if last is None else last + 1
    rows = [{"session_id": id_, "position": begin + n, "body": body} for n, body in enumerate(messages)]
    connection.execute(insert(SESSION_MESSAGES), rows)


def replace(connection: Connection, id_: str, run: Maker, messages: Sequence[bytes], most_bytes: int) -> None:
    """Replace all messages. Raises as `add` does."""
    _empty(connection, id_, run)
    add(connection, id_, run, messages, most_bytes)


def latest(connection: Connection, id_: str, limit: int | None) -> list[bytes]:
    """The last messages, or all, the oldest first."""
    query = select(SESSION_MESSAGES.c.body).where(SESSION_MESSAGES.c.session_id == id_)
    newest = query.order_by(SESSION_MESSAGES.c.position.desc())
    return list(connection.scalars(newest if limit is None else newest.limit(limit)).all())[::-1]


def pop(connection: Connection, id_: str, run: Maker) -> bytes | None:
    """Remove and return the last message, or None. Raises `SessionError` if another run has the session."""
    _hold(connection, id_, run)
    ours = SESSION_MESSAGES.c.session_id == id_
    newest = select(SESSION_MESSAGES).where(ours).order_by(SESSION_MESSAGES.c.position.desc()).limit(1)
    row = connection.execute(newest).first()
    if row is not None:
        connection.execute(delete(SESSION_MESSAGES).where(ours, SESSION_MESSAGES.c.position == row.position))
        less = SESSIONS.c.size - len(row.body)
        connection.execute(
            update(SESSIONS).where(SESSIONS.c.id == id_).values(size=less, changed_at=as_now(connection))
        )
    free(connection, id_, run)
    return None if row is None else row.body


def clear(connection: Connection, id_: str, run: Maker) -> None:
    """Erase the session. Raises `SessionError` if another has it."""
    _hold(connection, id_, run)
    connection.execute(delete(SESSIONS).where(SESSIONS.c.id == id_))


def _empty(connection: Connection, id_: str, run: Maker) -> None:
    emptied = update(SESSIONS).where(_is_held_by(id_, run)).values(size=0)
    if connection.execute(emptied).rowcount:
        connection.execute(delete(SESSION_MESSAGES).where(SESSION_MESSAGES.c.session_id == id_))


def _row(connection: Connection, id_: str) -> "Row[tuple[object, ...]] | None":
    return connection.execute(select(SESSIONS).where(SESSIONS.c.id == id_).with_for_update()).first()


def _is_held_by(id_: str, run: Maker) -> ColumnElement[bool]:
    return (SESSIONS.c.id == id_) & (SESSIONS.c.holder == run.id)
