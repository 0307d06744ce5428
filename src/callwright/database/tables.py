"""The tables of the store. `migrate` creates them in a database.

A response holds a pointer to the response that it continues from and its own items, never the history again: a chain of
n turns takes n rows, and a fork costs nothing.

        responses ──parent_id──► responses           conversations ◄── conversation_items
            ▲
          items        which response holds the item of an id       makers    processes with unfinished work
        sessions ◄── session_messages                             kept_items    items that clients do not send back
        limits    each key's usage against its limits            limits_users  gateways that count it together
        spending  what each key used of each model on each day   spenders      processes that may use more of a budget

JSON is stored as the bytes that were encoded: PostgreSQL's own type would refuse U+0000 and round numbers.
"""

import hashlib
import time
from collections.abc import Sequence

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    extract,
    func,
    select,
)

_LONGEST_ID = 200  # PostgreSQL indexes values up to a third of a page: 2,704 bytes


class _Id(TypeDecorator[str]):
    """An id.

    Clients choose those of items that they send: an unusual one is stored as its hash, which any index accepts.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return value if value is None else as_kept([value])[0]


def as_kept(ids: Sequence[str]) -> list[str]:
    """Ids as columns of ids store them."""
    return [id_ if len(id_) <= _LONGEST_ID and id_.isascii() and id_.isprintable() else _hashed(id_) for id_ in ids]


def _hashed(id_: str) -> str:
    return "sha256:" + hashlib.sha256(id_.encode("utf-8", "surrogatepass")).hexdigest()


TABLES = MetaData()

RESPONSES = Table(
    "responses",
    TABLES,
    Column("id", _Id, primary_key=True),
    Column("owner", Text, nullable=False, server_default=""),  # who may see it; "" without separate users
    Column("parent_id", _Id, ForeignKey("responses.id")),
    Column("conversation_id", _Id),  # no foreign key: a response outlives its conversation
    Column("created_at", BigInteger, nullable=False),
    Column("hidden", Boolean, nullable=False),  # deleted, but what continues from it needs its items
    Column("body", LargeBinary, nullable=False),
    Column("input", LargeBinary, nullable=False),
    Column("output", LargeBinary, nullable=False),
    Column("maker", Text),  # which process makes it, as long as it is not finished
    Index("responses_maker", "maker"),
    Index("responses_parent", "parent_id"),
    Index("responses_created", "created_at"),
)

MAKERS = Table(
    "makers",
    TABLES,
    Column("id", Text, primary_key=True),
    Column("place", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("started", Text, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
)

ITEMS = Table(
    "items",
    TABLES,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),  # later is larger
    Column("item_id", _Id, nullable=False),
    Column("response_id", _Id, ForeignKey("responses.id", ondelete="CASCADE"), nullable=False),
    Index("items_item", "item_id"),
    Index("items_response", "response_id"),
)

CONVERSATIONS = Table(
    "conversations",
    TABLES,
    Column("id", _Id, primary_key=True),
    Column("owner", Text, nullable=False, server_default=""),
    Column("created_at", BigInteger, nullable=False),
    Column("metadata", LargeBinary, nullable=False),
)

CONVERSATION_ITEMS = Table(
    "conversation_items",
    TABLES,
    Column("conversation_id", _Id, ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("item_id", _Id),
    Column("response_id", _Id),  # no foreign key: a conversation outlives its responses
    Column("body", LargeBinary, nullable=False),
    Index("conversation_items_item", "item_id"),
)


KEPT_ITEMS = Table(
    "kept_items",
    TABLES,
    Column("owner", Text, primary_key=True),
    Column("model", _Id, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("used_at", BigInteger, nullable=False),  # in milliseconds since the epoch
    Column("size", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("kept_items_used", "used_at", "size"),  # both, so that sums are made without the items
)


SESSIONS = Table(
    "sessions",
    TABLES,
    Column("id", _Id, primary_key=True),
    Column("size", BigInteger, nullable=False),  # bytes of its messages
    Column("changed_at", BigInteger, nullable=False),
    Column("holder", Text),  # the run that continues it, and the process of that
    Column("place", Text),
    Column("pid", BigInteger),
    Column("started", Text),
    Column("seen_at", BigInteger),
    Index("sessions_changed", "changed_at"),
)

SESSION_MESSAGES = Table(
    "session_messages",
    TABLES,
    Column("session_id", _Id, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
)


LIMITS = Table(
    "limits",
    TABLES,
    Column("key", Text, primary_key=True),  # its name
    Column("kind", Text, primary_key=True),
    Column("used", Double, nullable=False),
    Column("at", BigInteger, nullable=False),  # in milliseconds since the epoch
)

LIMITS_USERS = Table(
    "limits_users",
    TABLES,
    Column("gateway", Text, primary_key=True),
    Column("seen_at", BigInteger, nullable=False),
)

SPENDING = Table(
    "spending",
    TABLES,
    Column("key", Text, primary_key=True),  # its name
    Column("day", Text, primary_key=True),  # in UTC, as YYYY-MM-DD
    Column("model", _Id, primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("cost", BigInteger, nullable=False),  # in millionths of the currency
    Index("spending_model", "model", "day"),
    Index("spending_day", "day"),
)

SPENDERS = Table(
    "spenders",
    TABLES,
    Column("process", Text, primary_key=True),
    Column("seen_at", BigInteger, nullable=False),
    Column("batch", BigInteger, nullable=False),  # the number of the last batch of usage that it has added
    Column("granted", LargeBinary, nullable=False),  # JSON: how much of each budget it may use until it reports
)


_CLOCK = extract("epoch", func.clock_timestamp())


def lock(connection: Connection, what: str, *, shared: bool = False) -> None:
    """Wait for this lock, and hold it until the transaction ends. `what`: up to eight ASCII characters.

    SQLite needs none: a writer has begun its transaction with `BEGIN IMMEDIATE` and is alone.
    """
    if connection.dialect.name == "postgresql":
        take = func.pg_advisory_xact_lock_shared if shared else func.pg_advisory_xact_lock
        connection.execute(select(take(int.from_bytes(what.encode(), "big"))))


def now(connection: Connection) -> int:
    """The time by the database's clock, which all its users share; a file's is this machine's."""
    if connection.dialect.name == "postgresql":
        return int(connection.scalar(select(_CLOCK)) or 0)
    return int(time.time())


def as_now(connection: Connection) -> ColumnElement[int] | int:
    """The same as a value that a statement writes: it is not asked for before."""
    return _CLOCK.cast(BigInteger) if connection.dialect.name == "postgresql" else int(time.time())
