"""The workers of a gateway as one: each answers the others over a socket in their shared folder.

One question a connection, one JSON object a line: `{"ask": "rows"}`, `{"ask": "buckets"}`, `{"ask": "view", "id": …}`
and `{"ask": "again", "id": …}` are answered with one line, `{"ask": "live"}` with a line for each batch of rows, until
the asker hangs up. The folder is the gateway's own (0700), so no other user can connect. A worker
that has ended is skipped.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from callwright.errors import RequestError, UpstreamError
from callwright.gateway.http import cancel_quietly
from callwright.gateway.inspection.run_again import Again, RunAgain
from callwright.gateway.inspection.turn_source import Rows, TurnSource, merged_rows, no_rows
from callwright.inspection.quality import Bucket
from callwright.inspection.summary import TurnSummary
from callwright.inspection.turn_view import TurnView
from callwright.tolerant_json.codec import decode, encode

T = TypeVar("T")
# A turn with its contents may be several times as large as its recorded form.
_LINE_BYTES: Final = 268_435_456
_ANSWER_S: Final = 10.0
# Errors from a worker that ends during its answer.
_UNREADABLE: Final = (asyncio.IncompleteReadError, asyncio.LimitOverrunError, msgspec.DecodeError)
_AGAIN_S: Final = 1.0


class _Question(Struct, omit_defaults=True):
    ask: Literal["rows", "view", "buckets", "live", "again"]
    id: str = ""
    how: Again = Again()


class _Asked(Struct):
    """The result of repeating a turn: the new turn's id, or the error; neither if the turn is not recorded here."""

    id: str | None = None
    error: str | None = None
    status: int = 400
    code: str | None = None
    param: str | None = None


class SharedTurns:
    """The turns of all workers, of which this process is the one with the number `worker` of `workers`."""

    def __init__(self, folder: Path, worker: int, workers: int) -> None:
        self._own: TurnSource | None = None
        self._again: RunAgain | None = None
        self._path = _path(folder, worker)
        self._others = [_path(folder, number) for number in range(workers) if number != worker]
        self._server: asyncio.Server | None = None
        self._asked: set[asyncio.Task[None]] = set()
        self._following: set[asyncio.Task[None]] = set()

    def change(self, own: TurnSource | None, again: RunAgain | None) -> None:
        """Show other turns of this process from now on, None if none are recorded; `again` asks one of them again."""
        self._own, self._again = own, again
        for task in self._following:  # who follows the earlier ones connects again
            task.cancel()

    async def open(self) -> None:
        """Begin to answer the others."""
        self._path.unlink(missing_ok=True)  # of a worker that was killed
        self._server = await asyncio.start_unix_server(self._answer, self._path, limit=65_536)

    async def close(self) -> None:
        """Stop answering."""
        if self._server is not None:
            self._server.close()
        for task in [*self._asked]:
            await cancel_quietly(task)

    async def rows(self) -> Rows:
        found = await asyncio.gather(
            *(_ask_worker(path, _Question("rows"), list[TurnSummary]) for path in self._others)
        )
        rows = [*(await self._own.rows() if self._own else ()), *(row for rows in found for row in rows or ())]
        return sorted(rows, key=lambda row: row.at)

    def live(self) -> AsyncGenerator[Rows, None]:
        own = [self._own.live()] if self._own else []
        return merged_rows([*own, *(_followed(path) for path in self._others)])

    async def view(self, id_: str) -> TurnView | None:
        view = await self._own.view(id_) if self._own else None
        for path in self._others:
            if view is not None:
                return view
            view = await _ask_worker(path, _Question("view", id_), TurnView)
        return view

    async def buckets(self) -> Sequence[Bucket]:
        found = await asyncio.gather(*(_ask_worker(path, _Question("buckets"), list[Bucket]) for path in self._others))
        own = await self._own.buckets() if self._own else ()
        return [*own, *(bucket for buckets in found for bucket in buckets or ())]

    async def again(self, id_: str, how: Again) -> str | None:
        """Repeat a turn of any worker; see `RunAgain.run`. None if no worker has recorded it."""
        if self._again is not None and (found := await self._again.run(id_, how)) is not None:
            return found
        for path in self._others:
            asked = await _ask_worker(path, _Question("again", id_, how), _Asked, patience_s=None)
            if asked is not None and asked.error is not None:
                raise RequestError(asked.error, status=asked.status, code=asked.code, param=asked.param)
            if asked is not None and asked.id is not None:
                return asked.id
        return None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._asked.add(task)
        gone: asyncio.Future[None] | None = None
        try:
            question = decode(await reader.readline(), _Question)
            if question.ask in ("live", "again"):
                gone = asyncio.ensure_future(_gone(reader))
                gone.add_done_callback(lambda _: task.cancel())
            if question.ask == "live":
                self._following.add(task)
                async with aclosing(self._own.live() if self._own else no_rows()) as live:
                    async for rows in live:
                        await _write(writer, rows)
                return
            await _write(writer, await self._find(question))
        except (OSError, asyncio.CancelledError, ValueError):
            pass  # who asked is gone
        finally:
            if gone is not None:
                await cancel_quietly(gone)
            self._asked.discard(task)
            self._following.discard(task)
            writer.close()

    async def _find(self, question: _Question) -> Any:
        if self._own is None or self._again is None:
            return _Asked() if question.ask == "again" else None
        if question.ask == "view":
            return await self._own.view(question.id)
        if question.ask == "again":
            try:
                return _Asked(await self._again.run(question.id, question.how))
            except RequestError as error:
                return _Asked(error=error.message, status=error.status, code=error.code, param=error.param)
            except UpstreamError as error:
                return _Asked(error=error.message, status=502, code=f"upstream_{error.fault}")
        return await (self._own.rows() if question.ask == "rows" else self._own.buckets())


def _path(folder: Path, worker: int) -> Path:
    return folder / f"turns-{worker}"


async def _write(writer: asyncio.StreamWriter, value: object) -> None:
    writer.write(encode(value) + b"\n")
    await writer.drain()


async def _gone(reader: asyncio.StreamReader) -> None:
    while await reader.read(1_024):
        pass


@asynccontextmanager
async def _connected(path: Path, question: _Question) -> AsyncGenerator[asyncio.StreamReader, None]:
    reader, writer = await asyncio.open_unix_connection(path, limit=_LINE_BYTES)
    try:
        await _write(writer, question)
        yield reader
    finally:
        writer.close()


async def _ask_worker(path: Path, question: _Question, kind: type[T], patience_s: float | None = _ANSWER_S) -> T | None:
    """The answer of another worker; None if it has ended or does not know."""
    with suppress(OSError, TimeoutError, *_UNREADABLE):
        async with asyncio.timeout(patience_s), _connected(path, question) as reader:
            line = await reader.readuntil(b"\n")
            return None if line == b"null\n" else msgspec.json.decode(line, type=kind)
    return None


async def _followed(path: Path) -> AsyncGenerator[Rows, None]:
    """The live rows of another worker, of that too which takes its place."""
    while True:
        with suppress(OSError, msgspec.DecodeError):  # half a line is one of a worker that was killed
            async with _connected(path, _Question("live")) as reader:
                while line := await reader.readline():
                    yield msgspec.json.decode(line, type=list[TurnSummary])
        await asyncio.sleep(_AGAIN_S)
