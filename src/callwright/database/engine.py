"""From the URL of a database to connections.

    sqlite:///relative.db    sqlite:////absolute.db    sqlite://    (in memory: gone when it is closed)
    postgresql://user:password@host:5432/name

No message names a password: neither ours nor a driver's.
"""

import os
import sqlite3
from pathlib import Path
from typing import Any, NoReturn, Self

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import StaticPool

from callwright.database.connections import READING, Connections, ThreadConnections
from callwright.errors import ConfigError, did_you_mean, reason_of
from callwright.settings.extras import missing_package

_SCHEMES = ("sqlite", "postgresql")
_EXPECTED = "expected sqlite:///file.db or postgresql://user:password@host/name"
# How long a process waits for another that writes to the same file, and a transaction for those before it. One takes
# milliseconds.
_BUSY_TIMEOUT_S = 30
_WAL_TRIES = 100


class Database:
    """A database that was named by a URL. `name` is that URL without passwords."""

    def __init__(self, url: URL) -> None:
        self.name = url.set(query={}).render_as_string(hide_password=True)
        self._url = url
        self._secrets = [url.password, *(v for k, v in url.query.items() if "password" in k)]

    @property
    def in_memory(self) -> bool:
        """Whether no other process can open it."""
        return self._url.drivername == "sqlite" and self._url.database in (None, "", ":memory:")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises `ConfigError` for a URL that names no database."""
        scheme, slashes, rest = text.partition("://")
        if not slashes:
            raise ConfigError(f"Store: {_EXPECTED}, got no :// in it.")
        if scheme not in _SCHEMES:
            raise ConfigError(f"Store: {_EXPECTED}, got {scheme!r}.{did_you_mean(scheme, _SCHEMES)}")
        if rest.count("@") > 1:  # anything after the first would be taken for the host, and shown
            raise ConfigError("Store: the URL has more than one @. Within a user's name or a password write %40.")
        try:
            url = make_url(text)
        except (ArgumentError, ValueError):
            raise ConfigError(f"Store: {_EXPECTED}, got a {scheme} URL that cannot be read.") from None
        if scheme == "sqlite":
            _check_sqlite(url)
        return cls(url)

    def connections(self) -> Connections:
        """Connections, none made yet. Raises `ConfigError` for a path or a driver that is not there."""
        return self._sqlite() if self._url.drivername == "sqlite" else self._postgresql()

    def describe_error(self, error: BaseException) -> str:
        """The driver's message, on one line, without a password."""
        said = str(error.orig if isinstance(error, DBAPIError) else error)
        if isinstance(error, OSError) and error.filename is not None:
            said = f"{reason_of(error)}: {error.filename}"
        for secret in self._secrets:
            for text in (secret,) if isinstance(secret, str) else secret or ():
                said = said.replace(text, "***") if text else said
        return " ".join(said.split()).rstrip(".") or type(error).__name__

    def refuse(self, error: BaseException) -> NoReturn:
        """Raise `ConfigError` for a database that cannot be used, because of this."""
        raise ConfigError(f"Store {self.name}: {self.describe_error(error)}.") from error

    def _sqlite(self) -> Connections:
        path = self._url.database
        if path is not None and path != ":memory:":
            path = os.path.abspath(os.path.expanduser(path))  # of an engine that rests, too
            try:
                _create(Path(path))
            except OSError as error:
                self.refuse(error)
        url = self._url.set(database=path or ":memory:")
        try:
            engine = _resting[url].pop()
        except (KeyError, IndexError):
            engine = _sqlite_engine(url)
        return ThreadConnections(engine, _BUSY_TIMEOUT_S, _rest)

    def _postgresql(self) -> Connections:
        try:
            from callwright.database.postgresql import AsyncConnections

            return AsyncConnections(self._url)
        except ImportError as error:
            raise missing_package("psycopg", f"Store {self.name}") from error


# Engines without connections: each knows the statements that it has compiled, which takes longer than to run them.
_resting: dict[URL, list[Engine]] = {}
_MOST_RESTING = 8


def _rest(engine: Engine) -> None:
    if sum(map(len, [*_resting.values()])) >= _MOST_RESTING:
        _resting.clear()
    _resting.setdefault(engine.url, []).append(engine)


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(
        url,
        # One connection: SQLite has one writer anyway, waiting for it here is fair, and a database in memory lasts as
        # long as its connection.
        poolclass=StaticPool,
        connect_args={"timeout": _BUSY_TIMEOUT_S, "isolation_level": None},
        hide_parameters=True,
    )
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin)
    return engine


def _check_sqlite(url: URL) -> None:
    if url.host is not None or url.username is not None:
        raise ConfigError("Store: a SQLite URL has three slashes before a relative path, four before an absolute one.")
    if "\0" in (url.database or ""):
        raise ConfigError("Store: the file's name has a NUL character in it. Name a file.")
    if url.database == "":
        raise ConfigError("Store: sqlite:/// names no file. Write sqlite:///file.db, or sqlite:// for one in memory.")
    if url.query:
        raise ConfigError(f"Store: a SQLite URL takes no parameters, got {', '.join(sorted(url.query))}.")


def _create(path: Path) -> None:
    """An empty file that only its owner reads, as the database's other files will be after it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:  # its mode is its owner's choice, and to open and close it would give up SQLite's locks
        return


def _set_pragmas(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    _use_wal(cursor)
    # With NORMAL, usual under WAL, a power cut reverts all commits since the last checkpoint: answers whose ids clients
    # already have. FULL syncs at every commit: a fraction of a millisecond to some, once per answer.
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _use_wal(cursor: Any) -> None:
    """Switch to WAL: SQLite refuses this statement without waiting while another process opens the new file."""
    for _ in range(_WAL_TRIES):
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            cursor.execute("BEGIN IMMEDIATE")  # this waits
            cursor.execute("ROLLBACK")
        else:
            return
    raise sqlite3.OperationalError("the file is opened by too many at once")


def _begin(connection: Connection) -> None:
    # A transaction that reads first and then writes is refused if another wrote in between, and no timeout helps: so
    # writing ones begin with `IMMEDIATE`.
    reading = connection.get_execution_options().get(READING, False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
