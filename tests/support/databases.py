"""Databases for the tests of the store: SQLite in a file and in memory, and a PostgreSQL that is started for them.

A test module asks for these fixtures with `pytest_plugins`. PostgreSQL comes from the wheel `pgserver`. Run as root, it
adds a system user of that name, since PostgreSQL refuses to be root, and lets others enter the directories above its
own.
"""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.store_helpers import sql

_POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)
_numbers = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Callable[[], str]]:
    """Makes a new database of a PostgreSQL server and answers its URL."""
    # Not pytest's own directory: another session may close that to the user that PostgreSQL runs as.
    with tempfile.TemporaryDirectory(prefix="callwright-pg-", ignore_cleanup_errors=True) as directory:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", directory)
            pgserver = pytest.importorskip("pgserver", reason="pgserver is not installed", exc_type=ImportError)
            pytest.importorskip("psycopg", reason="psycopg is not installed", exc_type=ImportError)
            try:
                server = pgserver.get_server(f"{directory}/data", cleanup_mode="delete")
            except (OSError, RuntimeError, AssertionError, subprocess.SubprocessError) as error:
                pytest.skip(f"PostgreSQL does not start here: {error}")
        sql(server.get_uri(), "ALTER SYSTEM SET fsync = off")  # no test cuts the power
        sql(server.get_uri(), "SELECT pg_reload_conf()")

        def new() -> str:
            name = f"test_{next(_numbers)}"
            sql(server.get_uri(), f"CREATE DATABASE {name}")
            return str(server.get_uri(database=name))

        yield new
        server.cleanup()


@pytest.fixture(params=["file", _POSTGRES])
def new_kept_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Makes a new database that outlives its store, and that several can open, and answers its URL."""
    if request.param == "file":
        return lambda: f"sqlite:///{tmp_path}/{next(_numbers)}/store.db"
    new: Callable[[], str] = request.getfixturevalue("postgres")
    return new


@pytest.fixture
def kept_url(new_kept_url: Callable[[], str]) -> str:
    """The URL of such a database."""
    return new_kept_url()


@pytest.fixture(params=["file", "memory", _POSTGRES])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new database."""
    if request.param == "memory":
        return "sqlite://"
    return f"sqlite:///{tmp_path}/store.db" if request.param == "file" else request.getfixturevalue("postgres")()
