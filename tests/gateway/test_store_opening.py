"""The store among others: calls and processes at the same time, databases that are old, new, gone or wrong."""

import asyncio
import logging
import sqlite3
import stat
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from callwright.database import engine
from callwright.database.migrate import SCHEMA, VERSIONS
from callwright.database.tables import TABLES
from callwright.errors import ConfigError
from callwright.gateway.store.store import Store, StoredConversation, StoreDownError, StoreError
from tests.support.servers import ClosedPort
from tests.support.store_helpers import Story, ids, message, put_chain, response, run, sql, turns, with_store
from tests.support.waiting import PATIENCE_S

pytest_plugins = ["tests.support.databases"]


# --- at the same time ---


def test_forks_and_appends_at_the_same_time_lose_nothing(kept_url: str) -> None:
    async def prepare(store: Store) -> None:
        await put_chain(store, "root")
        await store.create_conversation(StoredConversation(id="c", created_at=1), [])

    def replica(which: str) -> Story:
        async def story(store: Store) -> None:
            three = [
                response(f"{which}{n}", "root", conversation="c", output=(message(f"o1_{n}"), message(f"o2_{n}")))
                for n in range(20)
            ]
            await asyncio.gather(*(store.put(one) for one in three))

        return story

    async def check(store: Store) -> None:
        for which in ("p", "q"):
            for n in range(20):
                assert ids(await store.history(f"{which}{n}")) == [
                    *turns("root"),
                    f"in_{which}{n}",
                    f"o1_{n}",
                    f"o2_{n}",
                ]
        items = ids(await store.conversation_items("c")) or []
        assert len(items) == 120
        triples = [tuple(items[at : at + 3]) for at in range(0, 120, 3)]
        assert set(triples) == {(f"in_{which}{n}", f"o1_{n}", f"o2_{n}") for which in ("p", "q") for n in range(20)}

    run(kept_url, prepare)
    run(kept_url, replica("p"), replica("q"))
    run(kept_url, check)


@with_store
async def test_one_store_takes_many_calls_at_once(store: Store) -> None:
    await put_chain(store, "root")
    await asyncio.gather(*(store.put(response(f"r{n}", "root")) for n in range(40)))
    histories = await asyncio.gather(*(store.history(f"r{n}") for n in range(40)))
    assert [ids(history) for history in histories] == [turns("root", f"r{n}") for n in range(40)]


@with_store
async def test_a_process_may_begin_several_at_once(store: Store) -> None:
    begun = [response(f"r{n}", body={"status": "queued"}) for n in range(16)]
    await asyncio.gather(*(store.put(one) for one in begun))
    assert [await store.status(one.id) for one in begun] == ["queued"] * 16


def test_a_response_that_is_deleted_while_others_continue_from_it_breaks_none_of_them(kept_url: str) -> None:
    names = [f"r{n}" for n in range(20)]
    refused: dict[str, str] = {}

    async def prepare(store: Store) -> None:
        for name in names:
            await put_chain(store, name)

    async def deletes(store: Store) -> None:
        assert all(await asyncio.gather(*(store.delete(name) for name in names)))

    async def continues(store: Store) -> None:
        async def put(name: str) -> None:
            try:
                await store.put(response(f"{name}_child", name))
            except StoreError as error:
                refused[name] = str(error)

        await asyncio.gather(*map(put, names))

    async def check(store: Store) -> None:
        for name in names:
            assert await store.get(name) is None
            history = ids(await store.history(f"{name}_child"))
            assert history == (None if name in refused else turns(name, f"{name}_child"))
        assert all("which is gone" in message for message in refused.values())

    run(kept_url, prepare)
    run(kept_url, deletes, continues)
    run(kept_url, check)


def test_children_that_are_deleted_at_the_same_time_leave_no_hidden_parent(kept_url: str) -> None:
    async def prepare(store: Store) -> None:
        for n in range(20):
            await put_chain(store, f"p{n}", f"a{n}")
            await put_chain(store, f"b{n}", parent=f"p{n}")
            await store.delete(f"p{n}")

    async def first(store: Store) -> None:
        await asyncio.gather(*(store.delete(f"a{n}") for n in range(20)))

    async def second(store: Store) -> None:
        await asyncio.gather(*(store.delete(f"b{n}") for n in range(20)))

    run(kept_url, prepare)
    run(kept_url, first, second)
    assert sql(kept_url, "SELECT id FROM responses") == []


def test_a_put_whose_caller_is_cancelled_is_finished(url: str) -> None:
    async def story(store: Store) -> None:
        await put_chain(store, "before")
        for n in range(10):
            task = asyncio.create_task(store.put(response(f"r{n}", "before")))
            for _ in range(n):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await put_chain(store, "after", parent="before")
        assert ids(await store.history("after")) == turns("before", "after")

    async def check(store: Store) -> None:
        for n in range(1, 10):  # the first was cancelled before it began
            assert ids(await store.history(f"r{n}")) == turns("before", f"r{n}")

    run(url, story)
    if url != "sqlite://":
        run(url, check)


def test_it_runs_on_uvloop(url: str) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def told() -> None:
        store = Store(url)
        await store.open()
        await put_chain(store, "a", "b")
        assert ids(await store.history("b")) == turns("a", "b")
        await store.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(told())


# --- opening ---


def test_what_was_stored_is_there_after_a_restart(kept_url: str) -> None:
    async def before(store: Store) -> None:
        await put_chain(store, "a", "b")
        await store.create_conversation(StoredConversation(id="c", created_at=1), [message("1")])

    async def after(store: Store) -> None:
        assert await store.get("b") == response("b", "a")
        assert ids(await store.history("b")) == turns("a", "b")
        assert ids(await store.conversation_items("c")) == ["1"]

    run(kept_url, before)
    run(kept_url, after)


def test_a_store_in_memory_is_empty_when_it_is_opened_again() -> None:
    async def story(store: Store) -> None:
        assert await store.get("a") is None
        await put_chain(store, "a")

    run("sqlite://", story)
    run("sqlite://", story)


_PUTS_UNTIL_KILLED = """
import asyncio, itertools, sys
from callwright.gateway.store.store import Store, StoredResponse

async def main():
    store = Store(sys.argv[1])
    await store.open()
    parent = None
    for number in itertools.count():
        item = {"id": f"m{number}", "text": "x" * 3000}
        name = f"r{number}"
        await store.put(StoredResponse(id=name, created_at=1, body={}, input=(item,), output=(), parent=parent))
        parent = name
        print(name, flush=True)

asyncio.run(main())
"""


@pytest.mark.processes
def test_what_was_stored_outlives_a_process_that_is_killed(kept_url: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", _PUTS_UNTIL_KILLED, kept_url], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    told = [child.stdout.readline().strip() for _ in range(25)]
    child.kill()
    told += child.stdout.read().split()
    child.stdout.close()
    assert child.wait(PATIENCE_S) < 0
    assert told[:25] == [f"r{number}" for number in range(25)]

    async def story(store: Store) -> None:
        history = ids(await store.history(told[-1]))
        assert history == [f"m{number}" for number in range(len(told))]

    run(kept_url, story)


_OPENS_WHEN_TOLD = """
import asyncio, sys
from callwright.gateway.store.store import Store, StoredResponse

async def main():
    store = Store(sys.argv[1])
    print("ready", flush=True)
    sys.stdin.readline()
    await store.open()
    await store.put(StoredResponse(id=sys.argv[2], created_at=1, body={}, input=(), output=()))
    await store.close()

asyncio.run(main())
"""


@pytest.mark.processes
def test_processes_that_open_a_new_database_at_the_same_time_all_can(kept_url: str) -> None:
    names = ["a", "b", "c"]
    children = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", _OPENS_WHEN_TOLD, kept_url, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    for child in children:
        _, said = child.communicate(timeout=PATIENCE_S)
        assert (child.returncode, said) == (0, "")
    assert sorted(sql(kept_url, "SELECT id FROM responses")) == [(name,) for name in names]
    assert len(sql(kept_url, "SELECT * FROM callwright_schema")) == 1


def test_many_threads_that_open_a_new_database_at_the_same_time_all_can(new_kept_url: Callable[[], str]) -> None:
    failed: list[BaseException] = []

    def opens(url: str, name: str, barrier: threading.Barrier) -> None:
        barrier.wait(PATIENCE_S)
        try:
            run(url, lambda store: put_chain(store, name))
        except Exception as error:
            failed.append(error)

    for _ in range(8):
        url = new_kept_url()
        barrier = threading.Barrier(6)
        threads = [threading.Thread(target=opens, args=(url, f"r{n}", barrier)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert not failed
        assert len(sql(url, "SELECT id FROM responses")) == 6


async def nothing(store: Store) -> None:
    assert await store.get("a") is None


@pytest.fixture
def place(kept_url: str) -> str:
    """The URL of a database that a test fills before a store opens it."""
    if kept_url.startswith("sqlite"):
        Path(kept_url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    return kept_url


def test_a_database_with_tables_of_others_gets_ours_beside_them(place: str) -> None:
    sql(place, "CREATE TABLE theirs (number INTEGER)")
    run(place, nothing)
    assert sql(place, "SELECT number FROM theirs") == []


def test_a_database_with_a_table_of_others_that_is_called_as_ours_is_refused(place: str) -> None:
    sql(place, "CREATE TABLE responses (number INTEGER)")
    with pytest.raises(ConfigError, match="responses"):
        run(place, nothing)


@pytest.mark.processes
def test_a_store_in_a_file_starts_without_the_event_loop_of_postgresql() -> None:
    code = """
import asyncio, sys
from callwright.gateway.store.store import Store

async def main():
    store = Store("sqlite://")
    await store.open()
    await store.close()

asyncio.run(main())
assert "sqlalchemy.ext.asyncio" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_that_was_taken_away_is_made_anew_when_it_is_opened_again(tmp_path: Path) -> None:
    """The next store uses the compiled statements of an engine again, not its connections."""
    path = tmp_path / "store.db"
    for _ in range(2):
        run(f"sqlite:///{path}", lambda store: put_chain(store, "a"))
        assert path.exists()
        path.unlink()


def fill(url: str, since: int = 0) -> None:
    """Make the store of an older version. `since`: its schema, if not the newest. The file has types of SQLite."""
    script = (Path(__file__).parent / "store_0007.sql").read_text(encoding="utf-8")
    if url.startswith("postgresql"):
        script = script.replace("BLOB", "BYTEA").replace("DOUBLE", "DOUBLE PRECISION")
        script = script.replace("number INTEGER", "number BIGSERIAL")
    changes = [change for schema, changes in ADDED.items() if 0 < since < schema for change in changes]
    if since:
        changes.append(f"UPDATE callwright_schema SET version_num = '{since:04}'")
    for statement in (*script.split(";\n"), *changes):
        if statement.strip():
            sql(url, statement)


# Undoes the additions of each schema.
ADDED = {
    7: ["DROP TABLE spending", "DROP TABLE spenders"],
    6: ["DROP TABLE limits", "DROP TABLE limits_users"],
    5: ["DROP TABLE session_messages", "DROP TABLE sessions"],
    4: ["DROP TABLE kept_items"],
    3: ["DROP TABLE makers", "DROP INDEX responses_maker", "ALTER TABLE responses DROP COLUMN maker"],
    2: [f"ALTER TABLE {table} DROP COLUMN owner" for table in ("responses", "conversations")],
}


@pytest.mark.parametrize("since", [None, 0, *range(1, 7)])
def test_a_store_of_each_older_schema_opens_and_is_read_and_written(place: str, since: int | None) -> None:
    if since is not None:
        fill(place, since)

    async def story(store: Store) -> None:
        if since is None:
            await put_chain(store, "a")
        assert ids(await store.history("a")) == turns("a")
        await put_chain(store, "b", parent="a")
        assert ids(await store.history("b")) == turns("a", "b")

    run(place, story)
    run(place, nothing, owner=lambda: "somebody")
    engine = sqlalchemy.create_engine(
        place.replace("postgresql://", "postgresql+psycopg://"), poolclass=sqlalchemy.NullPool
    )
    with engine.connect() as connection:
        opts = {"version_table": VERSIONS.name}
        assert compare_metadata(MigrationContext.configure(connection, opts=opts), TABLES) == []
    assert sql(place, "SELECT * FROM callwright_schema") == [(SCHEMA,)]


def test_a_store_of_0_1_0_is_read_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as connection:
        connection.executescript((Path(__file__).parent / "store_0_1_0.sql").read_text(encoding="utf-8"))
    connection.close()

    async def story(store: Store) -> None:
        first = await store.get("resp_a")
        assert first is not None
        assert (first.body["status"], first.input[0]["content"][0]["text"]) == ("completed", "Hello")
        assert ids(await store.history("resp_b")) == ["m1", "m2", "m3", "m4"]
        assert ids(await store.conversation_items("conv_c")) == ["m5"]
        await put_chain(store, "new", parent="resp_b")
        assert ids(await store.history("new")) == ["m1", "m2", "m3", "m4", *turns("new")]
        await store.put(response("kept", conversation="conv_c"))
        assert len(ids(await store.conversation_items("conv_c")) or ()) > 1

    run(f"sqlite:///{path}", story)


def test_a_database_of_a_newer_schema_is_refused_and_left_alone(kept_url: str) -> None:
    run(kept_url, nothing)
    sql(kept_url, "UPDATE callwright_schema SET version_num = '9999'")
    with pytest.raises(ConfigError, match="it has schema 9999, this Callwright knows up to 0007"):
        run(kept_url, nothing)
    assert sql(kept_url, "SELECT * FROM callwright_schema") == [("9999",)]


def test_a_database_with_other_tables_of_these_names_is_refused_and_left_alone(kept_url: str) -> None:
    if kept_url.startswith("sqlite"):
        Path(kept_url.removeprefix("sqlite:///")).parent.mkdir()
    sql(kept_url, "CREATE TABLE items (a INTEGER)")
    with pytest.raises(ConfigError, match=r"items.* already exists"):
        run(kept_url, nothing)
    with pytest.raises(Exception, match="responses"):
        sql(kept_url, "SELECT * FROM responses")


def test_opening_leaves_logging_alone(url: str) -> None:
    logger = logging.getLogger("somebody.else")
    before = (list(logging.root.handlers), logging.root.level, logging.root.manager.disable)
    run(url, nothing)
    assert (list(logging.root.handlers), logging.root.level, logging.root.manager.disable) == before
    assert not logger.disabled


def test_the_files_are_for_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "store.db"

    async def story(store: Store) -> None:
        await put_chain(store, "a")
        files = list(path.parent.iterdir())
        assert {file.name for file in files} == {"store.db", "store.db-shm", "store.db-wal"}
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}

    run(f"sqlite:///{path}", story)
    path.chmod(0o640)
    run(f"sqlite:///{path}", nothing_but_a)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


async def nothing_but_a(store: Store) -> None:
    assert await store.get("a") is not None


def test_a_relative_path_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        run("sqlite:///here/store.db", nothing)
        run("sqlite:///here/store.db", lambda store: put_chain(store, "a"))
        assert (tmp_path / name / "here" / "store.db").exists()


def test_a_commit_is_on_the_disk(tmp_path: Path) -> None:
    """What cannot be tried without cutting the power: that the setting for it is in force."""

    def in_force(connection: sqlalchemy.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]

    async def story(store: Store) -> None:
        assert await store._database.read(in_force) == ["wal", 2, 1]

    run(f"sqlite:///{tmp_path}/store.db", story)


# --- what goes wrong ---


def test_who_waits_too_long_for_others_is_told_that_the_store_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_BUSY_TIMEOUT_S", 0.05)
    begun, ends = threading.Event(), threading.Event()

    def slow(_: sqlalchemy.Connection) -> bool:
        begun.set()
        return ends.wait(PATIENCE_S)

    async def story(store: Store) -> None:
        first = asyncio.create_task(store._database.write(slow))
        await asyncio.to_thread(begun.wait, PATIENCE_S)
        with pytest.raises(StoreDownError, match=r"no turn within 0\.05 s"):
            await store.get("a")
        ends.set()
        assert await first
        assert await store.get("a") is None

    run(f"sqlite:///{tmp_path}/store.db", story)


SECRET = "s3cr%2Fet"
SHOWN = ("s3cr/et", "s3cr%2Fet", "s3cr")

BAD_URLS = [
    ("", "Store: expected sqlite:///file.db or postgresql://user:password@host/name, got no :// in it."),
    ("store.db", "got no :// in it."),
    (f"mysql://u:{SECRET}@h/db", "got 'mysql'."),
    (f"postgres://u:{SECRET}@h/db", "got 'postgres'. Did you mean 'postgresql'?"),
    (f"postgresql+asyncpg://u:{SECRET}@h/db", "got 'postgresql+asyncpg'. Did you mean 'postgresql'?"),
    (f"postgresql://u:{SECRET}@h:port/db", "got a postgresql URL that cannot be read."),
    (f"postgresql://u:pass@{SECRET}@h/db", "more than one @. Within a user's name or a password write %40."),
    ("sqlite://store.db", "three slashes before a relative path, four before an absolute one."),
    ("sqlite:///", "sqlite:/// names no file. Write sqlite:///file.db, or sqlite:// for one in memory."),
    ("sqlite:///a.db?mode=ro&cache=shared", "a SQLite URL takes no parameters, got cache, mode."),
    ("sqlite:////dev/null/store.db", "Store sqlite:////dev/null/store.db: File exists: /dev/null."),
    ("sqlite:////tmp", "Store sqlite:////tmp: unable to open database file."),
    (f"postgresql://u:{SECRET}@127.0.0.1:CLOSED/db", "Store postgresql://u:***@127.0.0.1:CLOSED/db: connection"),
    (f"postgresql://u@127.0.0.1/db?password={SECRET}&nonsense=1", 'invalid connection option "nonsense".'),
    (f"postgresql://u:{SECRET}@{'h' * 70}.invalid/db", "Store postgresql://u:***@hhh"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_URLS, ids=[url for url, _ in BAD_URLS])
def test_a_url_that_cannot_be_used_is_refused(bad: str, message: str) -> None:
    if bad.startswith("postgresql:"):
        pytest.importorskip("psycopg", reason="psycopg is not installed")
    port = ClosedPort()
    closed = port.url.split(":")[2].split("/")[0]
    with pytest.raises(ConfigError) as caught:
        run(bad.replace("CLOSED", closed), nothing)
    port.close()
    assert message.replace("CLOSED", closed) in str(caught.value)
    text = "".join(traceback.format_exception(caught.value))
    chain = text + repr(caught.value.__cause__) + repr(caught.value.__context__)
    assert not [shown for shown in SHOWN if shown in told_by_errors(chain)]


def told_by_errors(text: str) -> str:
    """A traceback without the lines of our own source."""
    return "\n".join(line for line in text.splitlines() if "run(" not in line)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Not a database, and not empty either.\n" * 100)
    with pytest.raises(ConfigError, match=r"notes\.txt: file is not a database"):
        run(f"sqlite:///{path}", nothing)
    assert path.read_text().startswith("Not a database")


@pytest.mark.postgres
def test_an_unknown_database_is_refused_without_the_password(postgres: Callable[[], str]) -> None:
    url = postgres().replace("postgres:@", "postgres:s3cret@").replace("/test_", "/nowhere_")
    with pytest.raises(ConfigError) as caught:
        run(url, nothing)
    assert str(caught.value).startswith("Store postgresql://postgres:***@/nowhere_")
    assert " does not exist" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_without_the_driver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError) as caught:
        run("postgresql://u:s3cret@h/db", nothing)
    assert "Store postgresql://u:***@h/db: psycopg is missing. Install it: " in str(caught.value)
    assert "python -m pip install '" in str(caught.value)


def test_a_database_that_fails_is_a_store_error_that_tells_no_content(kept_url: str) -> None:
    async def story(store: Store) -> None:
        sql(kept_url, "ALTER TABLE items RENAME TO gone")
        with pytest.raises(StoreError, match=r"^The store failed: .*items") as caught:
            await store.put(response("a", input=(message("m", "a private word"),)))
        text = "".join(traceback.format_exception(caught.value))
        assert "private" not in "\n".join(line for line in text.splitlines() if "await store.put" not in line)
        assert await store.get("a") is None  # all of it or nothing
        sql(kept_url, "ALTER TABLE gone RENAME TO items")
        await store.put(response("a"))
        assert ids(await store.history("a")) == turns("a")

    run(kept_url, story)


@pytest.mark.postgres
def test_a_server_that_closes_connections_is_asked_again(postgres: Callable[[], str]) -> None:
    url = postgres()
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

    async def story(store: Store) -> None:
        await put_chain(store, "a")
        assert sql(url, f"SELECT pg_terminate_backend(pid) {others}") == [(True,)]
        assert ids(await store.history("a")) == turns("a")

    run(url, story)
