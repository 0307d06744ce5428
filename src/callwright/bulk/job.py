"""One piece of work on one file: in parts, each of which is done wholly or not at all, so that it can be gone on with.

Beside the output stands a folder of done parts until all are there; then they become the output. The same work, started
again after it was stopped, goes on with the parts that are missing.
"""

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

import callwright
from callwright.bulk.files import (
    BadLine,
    Part,
    format_of,
    half_of,
    has_field,
    joined,
    part_bytes_of,
    parts_of,
    read_part,
    write_part,
)
from callwright.bulk.rows import Batch, Work
from callwright.errors import ConfigError

__all__ = ["Done", "Job", "JobPlan"]

# So many reasons why rows have an error are kept of a part, the commonest ones.
_REASONS: Final = 20
_DOES: Final[Mapping[str, str]] = {"parse": "the outputs are written", "render": "the prompts are to be"}


class Done(Struct, frozen=True):
    """What became of a part: how many rows it has, and how many of them have an error, or problems. `reasons` counts
    the commonest errors.
    """

    number: int
    rows: int = 0
    errors: int = 0
    problems: int = 0
    reasons: Mapping[str, int] = {}


class JobPlan(Struct, frozen=True):
    """What a job is, as far as its parts depend on it."""

    work: Work
    source: str
    size: int
    changed_ns: int
    part_bytes: int
    version: str = callwright.__version__


class Job(Struct, frozen=True):
    """Some work on the file `source`, written to `target`. It can be pickled: parts may be done anywhere. `part_bytes`
    is how large they are in JSONL; without it, as the file asks.
    """

    work: Work
    source: Path
    target: Path
    part_bytes: int | None = None

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
        part_bytes = self.part_bytes or part_bytes_of(self.source)
        parts = parts_of(self.source, part_bytes)
        if parts:
            self._check_dialect(parts[0])
        self._claim(part_bytes)
        before = [done for part in parts if (done := self._done(part)) is not None]
        numbers = {done.number for done in before}
        return [part for part in parts if part.number not in numbers], before

    def do(self, part: Part) -> Done:
        """Do one part."""
        found = read_part(self.source, part)
        made = iter(Batch(self.work)([row for row in found if not isinstance(row, BadLine)]))
        rows = [msgspec.structs.asdict(row) if isinstance(row, BadLine) else next(made) for row in found]
        write_part(self._path(part.number), rows, self.source, self.work.adds)
        errors = [str(row["error"]) for row in rows if row.get("error")]
        done = Done(
            part.number,
            rows=len(rows),
            errors=len(errors),
            problems=sum(bool(row.get("problems")) for row in rows),
            reasons=dict(Counter(errors).most_common(_REASONS)),
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

    def _check_dialect(self, first: Part) -> None:
        """Raise `ConfigError` where no row could be done, as nothing says its dialect."""
        does = _DOES.get(self.work.operation)
        if does and self.work.dialect is None and not has_field(self.source, first, "dialect"):
            raise ConfigError(
                f"{self.work.operation}: nothing says how {does}: add --dialect hermes, or another one (`callwright "
                "dialects` lists them), or give the rows a field `dialect`."
            )

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}{self.target.suffix}"

    def _done(self, part: Part) -> Done | None:
        path = self._path(part.number).with_suffix(".done")
        return msgspec.json.decode(path.read_bytes(), type=Done) if path.exists() else None

    def _claim(self, part_bytes: int) -> None:
        """Make the folder of parts this job's. Raises `ConfigError` where it is another's."""
        found = self.source.stat()
        plan = JobPlan(self.work, str(self.source.resolve()), found.st_size, found.st_mtime_ns, part_bytes)
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
