"""One piece of work on one file: in parts, each of which is done wholly or not at all, so that it can be gone on with.

Beside the output stands a folder of done parts until all are there; then they become the output. The same work, started
again after it was stopped, goes on with the parts that are missing.
"""

import shutil
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

import callwright
from callwright.bulk.files import BadLine, Part, format_of, half_of, joined, parts_of, read_part, write_part
from callwright.bulk.rows import Batch, Work
from callwright.errors import ConfigError

__all__ = ["Done", "Job", "Plan"]

# How much of a JSONL file is one part, unless it is told.
PART_BYTES: Final = 8_000_000


class Done(Struct, frozen=True):
    """What became of a part: how many rows it has, and how many of them have an error, or problems."""

    number: int
    rows: int = 0
    errors: int = 0
    problems: int = 0


class Plan(Struct, frozen=True):
    """What a job is, as far as its parts depend on it."""

    work: Work
    source: str
    size: int
    changed_ns: int
    part_bytes: int
    version: str = callwright.__version__


class Job(Struct, frozen=True):
    """Some work on the file `source`, written to `target`. It can be pickled: parts may be done anywhere."""

    work: Work
    source: Path
    target: Path
    part_bytes: int = PART_BYTES

    @property
    def folder(self) -> Path:
        """Where done parts are."""
        return self.target.with_name(f"{self.target.name}.parts")

    def begin(self, *, overwrite: bool = False) -> tuple[list[Part], list[Done]]:
        """The parts that are to be done, and what was done before. Raises `ConfigError`."""
        self.work.check()
        formats = format_of(self.source), format_of(self.target)
        if formats == ("jsonl", "parquet"):
            raise ConfigError("Rows of JSONL may have any fields, columns of Parquet not: write to a .jsonl file.")
        if self.source.resolve() == self.target.resolve():
            raise ConfigError(f"{self.target} is the input itself: name another file for the output.")
        if self.target.exists() and not overwrite:
            raise ConfigError(f"{self.target} is there already: remove it, name another, or give --overwrite.")
        parts = parts_of(self.source, self.part_bytes)
        self._claim()
        before = [done for part in parts if (done := self._done(part)) is not None]
        numbers = {done.number for done in before}
        return [part for part in parts if part.number not in numbers], before

    def do(self, part: Part) -> Done:
        """Do one part."""
        found = read_part(self.source, part)
        made = iter(Batch(self.work)([row for row in found if not isinstance(row, BadLine)]))
        rows = [msgspec.structs.asdict(row) if isinstance(row, BadLine) else next(made) for row in found]
        write_part(self._path(part.number), rows, self.source, self.work.adds)
        done = Done(
            part.number,
            rows=len(rows),
            errors=sum(bool(row.get("error")) for row in rows),
            problems=sum(bool(row.get("problems")) for row in rows),
        )
        _write_json(self._path(part.number).with_suffix(".done"), done)
        return done

    def end(self) -> None:
        """All parts are done: make them the output."""
        paths = sorted(self.folder.glob(f"*{self.target.suffix}"))
        if paths:
            joined(paths, self.target)
        else:
            self.target.write_bytes(b"")
        shutil.rmtree(self.folder)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}{self.target.suffix}"

    def _done(self, part: Part) -> Done | None:
        path = self._path(part.number).with_suffix(".done")
        return msgspec.json.decode(path.read_bytes(), type=Done) if path.exists() else None

    def _claim(self) -> None:
        """Make the folder of parts this job's. Raises `ConfigError` where it is another's."""
        found = self.source.stat()
        plan = Plan(self.work, str(self.source.resolve()), found.st_size, found.st_mtime_ns, self.part_bytes)
        path = self.folder / "plan.json"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            _write_json(path, plan)
        elif path.read_bytes() != msgspec.json.encode(plan):
            raise ConfigError(
                f"{self.folder} holds parts of other work, or of an input that has changed since. Go on with that, or "
                "remove the folder."
            )


def _write_json(path: Path, value: Struct) -> None:
    half = half_of(path)
    half.write_bytes(msgspec.json.encode(value))
    half.replace(path)
