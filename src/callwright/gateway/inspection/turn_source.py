"""The sources of turns for the pages: this process, the workers of a gateway together, or files of records."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from callwright.gateway.observability.inspector import Inspector
from callwright.inspection.quality import Bucket, QualityCounts
from callwright.inspection.summary import TurnSummary, summary_of_record
from callwright.inspection.turn_view import TurnView, turn_view
from callwright.turn.records import Record
from callwright.turn.reread import RecordError, read_record

Rows: TypeAlias = Sequence[TurnSummary]
# Rows are sent in batches: the seconds to wait for further rows.
_TOGETHER_S: Final = 0.1
_ROWS_AT_ONCE: Final = 500


class TurnSource(Protocol):
    """The turns for the pages."""

    async def rows(self) -> Rows:
        """All rows, oldest first."""
        ...

    def live(self) -> AsyncGenerator[Rows, None]:
        """The existing rows, then new or changed ones, without end."""
        ...

    async def view(self, id_: str) -> TurnView | None:
        """One turn; None for an unknown id."""
        ...

    async def buckets(self) -> Sequence[Bucket]:
        """Results of turns over time."""
        ...


class LocalTurns:
    """The turns of this process."""

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector

    async def rows(self) -> Rows:
        return self._inspector.turns.rows()

    async def live(self) -> AsyncGenerator[Rows, None]:
        listener = self._inspector.turns.listen()
        try:
            rows = self._inspector.turns.rows()
            for begin in range(0, len(rows), _ROWS_AT_ONCE):
                yield rows[begin : begin + _ROWS_AT_ONCE]
            while True:
                yield await listener.rows()
                await asyncio.sleep(_TOGETHER_S)
        finally:
            self._inspector.turns.leave(listener)

    async def view(self, id_: str) -> TurnView | None:
        return await asyncio.to_thread(self._inspector.view, id_)

    async def buckets(self) -> Sequence[Bucket]:
        return self._inspector.counts.buckets()


class _Place(Struct, frozen=True):
    """The position of a record's line."""

    path: Path
    begin: int
    size: int


class RecordedTurns:
    """The turns in files of `serve --record`, the latest `most`. Raises `RecordError` for an invalid line. A record
    is read from its file on demand.
    """

    def __init__(self, paths: Iterable[Path], most: int) -> None:
        self._rows: dict[str, TurnSummary] = {}
        self._places: dict[str, _Place] = {}
        self._counts = QualityCounts(kept_s=None)
        for number, (place, record) in enumerate(_records(paths), 1):
            try:
                row = summary_of_record(record, str(number))
            except (KeyError, TypeError, ValueError) as error:
                raise RecordError(f"{place.path}: the record at byte {place.begin} is none: {error!r}") from error
            self._rows[row.id], self._places[row.id] = row, place
            self._counts.add(row)
            if len(self._rows) > most:
                oldest = next(iter(self._rows))
                del self._rows[oldest], self._places[oldest]

    def __len__(self) -> int:
        return len(self._rows)

    async def rows(self) -> Rows:
        return sorted(self._rows.values(), key=lambda row: row.at)

    async def live(self) -> AsyncGenerator[Rows, None]:
        """See `TurnSource`: there are no later rows."""
        rows = await self.rows()
        for begin in range(0, len(rows), _ROWS_AT_ONCE):
            yield rows[begin : begin + _ROWS_AT_ONCE]
        await asyncio.Event().wait()

    async def view(self, id_: str) -> TurnView | None:
        row = self._rows.get(id_)
        return None if row is None else await asyncio.to_thread(self._view, row, self._places[id_])

    def _view(self, row: TurnSummary, place: _Place) -> TurnView:
        with place.path.open("rb") as file:
            file.seek(place.begin)
            return turn_view(row, read_record(file.read(place.size)), compares=True)

    async def buckets(self) -> Sequence[Bucket]:
        return self._counts.buckets()


def _records(paths: Iterable[Path]) -> Iterator[tuple[_Place, Record]]:
    """The records of files. A last line that was not written to its end is left out."""
    for path in paths:
        begin = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    record = read_record(line)
                except RecordError as error:
                    if line.endswith(b"\n"):
                        raise RecordError(f"{path}:{number}: {error}") from error
                else:
                    yield _Place(path, begin, len(line)), record
                begin += len(line)


async def no_rows() -> AsyncGenerator[Rows, None]:
    """A live source without rows."""
    await asyncio.Event().wait()
    yield ()


async def merged_rows(sources: Sequence[AsyncGenerator[Rows, None]]) -> AsyncGenerator[Rows, None]:
    """The rows of several live sources, as they come."""
    coming: asyncio.Queue[Rows] = asyncio.Queue(maxsize=len(sources))

    async def follow(source: AsyncGenerator[Rows, None]) -> None:
        async with aclosing(source):
            async for rows in source:
                await coming.put(rows)

    tasks = [asyncio.create_task(follow(source)) for source in sources]
    try:
        while True:
            yield await coming.get()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
