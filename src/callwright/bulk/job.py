"""A resumable job on one or several files, done in atomic parts.

Finished parts are stored in a folder next to the output and joined once all are there. The same job, started again
after it was stopped, continues with the missing parts.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

import callwright
from callwright.bulk import parquet
from callwright.bulk.columns import ColumnKind, Row, kinds_of, merged_kinds
from callwright.bulk.convert import RESPONSES
from callwright.bulk.files import (
    BadLine,
    Part,
    check_lines,
    format_of,
    half_of,
    has_field,
    is_packed,
    joined,
    part_bytes_of,
    parts_of,
    read_rows,
    rows_writer,
    unpack,
)
from callwright.bulk.rows import Batch, Work
from callwright.bulk.shapes import describe
from callwright.bulk.tally import RowCounts, Tallies
from callwright.errors import ConfigError

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

# Number of rows from which the shape of an input is described.
_SAMPLE: Final = 100


class Done(Struct, frozen=True):
    """The outcome of a part: the number of rows, and of those with an error or problems. `reasons` counts the
    commonest errors, `kinds` the problems by kind. `columns`: the types of the fields, if they are not known before.
    """

    number: int
    rows: int = 0
    errors: int = 0
    problems: int = 0
    reasons: Tallies = {}
    kinds: Tallies = {}
    columns: Mapping[str, ColumnKind] = {}


class Source(Struct, frozen=True):
    """The properties of an input that its parts depend on."""

    path: str
    size: int
    changed_ns: int


class JobPlan(Struct, frozen=True):
    """The properties of a job that its parts depend on."""

    work: Work
    sources: tuple[Source, ...]
    part_bytes: int
    version: str = callwright.__version__


class Job(Struct, frozen=True):
    """Some work on the files `sources`, written to `target` in order. It can be pickled, so that other processes can
    do parts. `part_bytes` is their approximate size; by default it depends on the files. `known_as` identifies the
    input if its path and modification time do not.
    """

    work: Work
    sources: tuple[Path, ...]
    target: Path
    part_bytes: int | None = None
    known_as: Source | None = None

    @property
    def folder(self) -> Path:
        """The folder of finished parts."""
        return self.target.with_name(f"{self.target.name}.parts")

    @contextmanager
    def claimed(self, *, overwrite: bool = False) -> Iterator[tuple[list[Part], list[Done]]]:
        """The parts to do and those already done. Locks the output against other processes meanwhile. Raises
        `ConfigError`.
        """
        self.work.check()
        for path in (*self.sources, self.target):
            format_of(path)
        self._check_paths(overwrite=overwrite)
        part_bytes_of([path for path in self.sources if not is_packed(path)])  # raises if one is missing
        made = not self.folder.exists()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"Cannot write {self.target}: {error.strerror}: {error.filename}") from error
        try:
            with hold_lock(self.folder / "lock", str(self.target)):
                yield self._begin()
        finally:
            if made and self.folder.exists() and not (self.folder / "plan.json").exists():
                shutil.rmtree(self.folder, ignore_errors=True)  # no work was begun

    def _check_paths(self, *, overwrite: bool) -> None:
        if self.target.resolve() in {path.resolve() for path in self.sources}:
            raise ConfigError(f"{self.target} is the input itself: name another file for the output.")
        if self.target.exists() and not overwrite:
            raise ConfigError(f"{self.target} is there already: remove it, name another, or give --overwrite.")

    def _begin(self) -> tuple[list[Part], list[Done]]:
        if not (self.folder / "plan.json").exists():
            self._unpack()
            for number, path in enumerate(self.sources):
                if format_of(path) == "jsonl":
                    check_lines(path, self._readable(number))
            self._check_dialect()
        part_bytes = self.part_bytes or part_bytes_of([self._readable(number) for number in range(len(self.sources))])
        schema = self._schema()
        self._claim(part_bytes)
        parts = parts_of([self._readable(number) for number in range(len(self.sources))], part_bytes)
        if schema is not None:
            _write_whole(self.folder / "schema", schema.serialize().to_pybytes())
        before = [done for part in parts if (done := self._done(part)) is not None]
        numbers = {done.number for done in before}
        return [part for part in parts if part.number not in numbers], before

    def batch(self) -> Callable[[Sequence[Row]], list[Row]]:
        """The function that processes rows."""
        return Batch(self.work)

    def do(self, part: Part) -> Done:
        """Do one part."""
        batch = self.batch()
        path = self._path(part.number)
        half = half_of(path)
        writer = rows_writer(half, path, self._read_schema())
        columns: dict[str, ColumnKind] = {}
        counts = RowCounts(self.work.fields.get("output", "output"))
        try:
            for found in read_rows(self._readable(part.source), part):
                rows = _done_rows(batch, found)
                writer.write(rows)
                counts.add(rows)
                if self._waits:
                    columns = merged_kinds([columns, kinds_of(rows)])
        finally:
            writer.close()
        half.replace(path)
        done = Done(part.number, counts.rows, counts.errors, counts.problems, counts.reasons, counts.kinds, columns)
        _write_whole(path.with_suffix(".done"), msgspec.json.encode(done))
        return done

    def end(self, done: Sequence[Done]) -> None:
        """Join the parts, all of which are done, into the output."""
        paths = [self._path(each.number) for each in sorted(done, key=lambda each: each.number)]
        columns = merged_kinds(each.columns for each in done) if self._waits else None
        joined(paths, self.target, self._read_schema(), columns)
        shutil.rmtree(self.folder)

    @property
    def _waits(self) -> bool:
        """Whether the columns of the output are known only when all rows are done."""
        return format_of(self.target) == "parquet" and any(format_of(path) != "parquet" for path in self.sources)

    def _schema(self) -> Any:
        """The columns of the output, if they are known in advance."""
        if format_of(self.target) != "parquet" or self._waits:
            return None
        columns = {name for path in self.sources for name in parquet.schema_of(path).names}
        return parquet.schema_with(self.sources, self.work.adds(columns))

    def _read_schema(self) -> Any:
        path = self.folder / "schema"
        if not path.exists():
            return None
        import pyarrow

        return pyarrow.ipc.read_schema(pyarrow.py_buffer(path.read_bytes()))

    def _readable(self, source: int) -> Path:
        """The path of this input, or of its unpacked copy."""
        path = self.sources[source]
        return self.folder / f"input-{source:04d}.jsonl" if is_packed(path) else path

    def _unpack(self) -> None:
        for number, path in enumerate(self.sources):
            if is_packed(path):
                unpack(path, self._readable(number))

    def describe_inputs(self) -> Iterator[tuple[str, str]]:
        """Describe the first rows of each input: its name and the description."""
        if self.work.source == RESPONSES:
            return  # named by the user, and no conversation
        for number, path in enumerate(self.sources):
            words = describe(row for row in self._sample(number))
            yield ("standard input" if self.known_as else str(path)), words

    def _sample(self, number: int) -> list[Row]:
        """The first rows of an input, with the standard field names."""
        path = self._readable(number)
        parts = parts_of([path], self.part_bytes or part_bytes_of([path]))
        rows = next((rows for part in parts[:1] for rows in read_rows(path, part)), ())
        return [self.work.standard_row(row) for row in rows[:_SAMPLE] if not isinstance(row, BadLine)]

    def _check_dialect(self) -> None:
        """Raise `ConfigError` if no prompt can be rendered because no dialect is given."""
        if self.work.operation != "render" or self.work.dialect is not None:
            return
        for number in range(len(self.sources)):
            path = self._readable(number)
            parts = parts_of([path], self.part_bytes or part_bytes_of([path]))
            if not parts or has_field(path, parts[0], self.work.fields.get("dialect", "dialect")):
                return
        raise ConfigError(
            "render: no dialect is given: add --dialect hermes, or another one (`callwright dialects` lists them), or "
            "give the rows a field `dialect`."
        )

    def _path(self, number: int) -> Path:
        """The path of a finished part: in the format of the output, or JSONL if the columns are not known yet."""
        suffix = "".join(self.target.suffixes[-2:] if is_packed(self.target) else self.target.suffixes[-1:])
        return self.folder / f"{number:08d}{'.jsonl' if self._waits else suffix}"

    def _done(self, part: Part) -> Done | None:
        path = self._path(part.number).with_suffix(".done")
        return msgspec.json.decode(path.read_bytes(), type=Done) if path.exists() else None

    def _claim(self, part_bytes: int) -> None:
        """Claim the folder of parts for this job. Raises `ConfigError` if it belongs to another."""
        known = [self.known_as] if self.known_as else [_told_apart(path) for path in self.sources]
        plan = JobPlan(self.work, tuple(known), part_bytes)
        path = self.folder / "plan.json"
        if not path.exists():
            _write_whole(path, msgspec.json.encode(plan))
        elif path.read_bytes() != msgspec.json.encode(plan):
            raise ConfigError(
                f"{self.folder} holds parts of other work, or of an input that has changed since. Continue it, or "
                "remove the folder."
            )


def _done_rows(batch: Callable[[Sequence[Row]], list[Row]], found: Sequence[Row | BadLine]) -> list[Row]:
    """The processed rows, with bad lines in their places."""
    made = iter(batch([row for row in found if not isinstance(row, BadLine)]))
    return [msgspec.structs.asdict(row) if isinstance(row, BadLine) else next(made) for row in found]


def _told_apart(path: Path) -> Source:
    found = path.stat()
    return Source(str(path.resolve()), found.st_size, found.st_mtime_ns)


def _write_whole(path: Path, content: bytes) -> None:
    half = half_of(path)
    half.write_bytes(content)
    half.replace(path)


# --- one command at a time works on an output; the lock goes with its process, however that ends ---


@contextmanager
def hold_lock(path: Path, what: str) -> Iterator[None]:
    """Hold the lock of this file while the block runs. Raises `ConfigError` if another process holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if fcntl is not None and not _is_ours(descriptor, path):
            raise ConfigError(f"Another command is at work on {what}. Wait for it, or name another output.")
        yield
    finally:
        os.close(descriptor)


def _is_ours(descriptor: int, path: Path) -> bool:
    """Whether this process holds the lock of the file now at the path: a finished process removes it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(descriptor).st_ino == path.stat().st_ino
    except OSError:
        return False
