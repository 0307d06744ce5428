"""What the store costs along one conversation of 1,000 turns: milliseconds, and bytes of the database for each turn.

    python bench/store.py [--turns 1000]

A turn is a response that continues from the one before, with one item in, one out, and a body of some 300 bytes
each. `history` reads all of them at the last turn; `put` stores a turn after the tenth, and after the last. `puts a
second` stores 32 at once. Best of some runs, each a transaction that is synced to the disk. PostgreSQL is started for
this from the wheel `pgserver`, where that is installed; a server elsewhere adds its network.
"""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from callwright.gateway.store.store import Store, StoredResponse
from callwright.tolerant_json.codec import encode
from timing import best

_RUNS = 50
_AT_ONCE = 32
_TABLES = "('responses', 'items')"
_numbers = count()


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--turns", type=int, default=1_000)
    given = options.parse_args()
    one = turn(new_id(), new_id())
    parts = ", ".join(f"{name} {len(encode(getattr(one, name)))}" for name in ("body", "input", "output"))
    print(f"one conversation of {given.turns} turns; bytes of JSON: {parts}\n")
    heads = (f"history of {given.turns}", "put after 10", f"put after {given.turns}", "puts a second", "bytes per turn")
    print(f"  {'':20}" + "".join(f"{head:>18}" for head in heads))
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="callwright-bench-"))
        path = Path(directory) / "store.db"
        row("SQLite, file", f"sqlite:///{path}", given.turns, lambda: path.stat().st_size)
        row("SQLite, memory", "sqlite://", given.turns, None)
        server = stack.enter_context(postgres(Path(directory)))
        if server is None:
            print("  PostgreSQL: pgserver or psycopg is not installed")
        else:
            row("PostgreSQL, local", server, given.turns, lambda: table_bytes(server))


def row(name: str, url: str, turns: int, size: Callable[[], int] | None) -> None:
    """One line."""
    with asyncio.Runner() as runner:
        store = Store(url)
        runner.run(store.open())
        ids = [f"resp_{number:048}" for number in range(turns)]
        for id_, parent in zip(ids, [None, *ids], strict=False):
            runner.run(store.put(turn(id_, parent)))
        if size is None:
            bytes_each = "-"
        else:
            runner.run(store.close())  # SQLite moves what was written into the file
            bytes_each = f"{size() / turns:.0f}"
            runner.run(store.open())
        history = best(lambda: runner.run(store.history(ids[-1])), _RUNS)
        early, late = (
            best(lambda parent=parent: runner.run(store.put(turn(new_id(), parent))), _RUNS)  # type: ignore[misc]
            for parent in (ids[9], ids[-1])
        )
        times = "".join(f"{seconds * 1e3:18.2f}" for seconds in (history, early, late))
        at_once = _AT_ONCE / best(lambda: runner.run(puts(store, ids[9])), _RUNS)
        print(f"  {name:20}{times}{at_once:18,.0f}{bytes_each:>18}", flush=True)
        runner.run(store.close())


async def puts(store: Store, parent: str) -> None:
    """Turns that are stored at once."""
    await asyncio.gather(*(store.put(turn(new_id(), parent)) for _ in range(_AT_ONCE)))


def turn(id_: str, parent: str | None) -> StoredResponse:
    """A response of two short items."""
    body = {
        "id": id_,
        "object": "response",
        "created_at": 1_790_000_000,
        "status": "completed",
        "model": "a-model",
        "previous_response_id": parent,
        "metadata": {},
        "tools": [],
        "usage": {"input_tokens": 1_234, "output_tokens": 56, "total_tokens": 1_290},
    }
    asked = {"id": f"msg_i{id_}", "type": "message", "role": "user", "content": "How are the beds? " * 11}
    said = {"id": f"msg_o{id_}", "type": "message", "role": "assistant", "content": "Bed 7 is dry. " * 14}
    return StoredResponse(id=id_, created_at=1_790_000_000, body=body, input=(asked,), output=(said,), parent=parent)


def new_id() -> str:
    """Of a fork."""
    return f"resp_f{next(_numbers):047}"


@contextmanager
def postgres(directory: Path) -> Iterator[str | None]:
    """The URL of a server of our own; None where there are no programs for it."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(directory))
    try:
        pgserver: Any = import_module("pgserver")
        import_module("psycopg")
    except ImportError:
        yield None
        return
    server = pgserver.get_server(directory / "postgres", cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


def table_bytes(url: str) -> int:
    """What the tables of a PostgreSQL database take, indexes included."""
    psycopg: Any = import_module("psycopg")
    query = f"SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relname IN {_TABLES}"
    with psycopg.connect(url) as connection:
        return int(connection.execute(query).fetchone()[0])


if __name__ == "__main__":
    main()
