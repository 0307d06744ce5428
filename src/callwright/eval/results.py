"""The result of each case in each way, as lines of JSON in a folder: cases with a result are not asked again.

`results.jsonl` begins with the plan of the run. `turns.jsonl` has the turns of cases that were not right, as
`callwright replay` reads them.
"""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Protocol, Self

import msgspec
from msgspec import Struct

from callwright.errors import ConfigError
from callwright.eval.judge import Verdict
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.turn.records import Record

RESULTS: Final = "results.jsonl"
TURNS: Final = "turns.jsonl"
_VERSION: Final = 1


class Plan(Struct, frozen=True):
    """The plan of a run. `target`: the model, as people call it; `cases`: the digest of all cases; `size`, `seed`: how
    they were generated, or the file that they are from.
    """

    target: str
    cases: str
    size: str
    seed: int = 0
    callwright: str = ""
    version: int = _VERSION


class Result(Struct, frozen=True, omit_defaults=True):
    """One case in one way. `error`: why there is no verdict, because the server failed. Times are in seconds; `first_s`
    is that of the first answer.
    """

    way: str
    case: str
    digest: str
    group: str
    verdict: Verdict | None = None
    error: str = ""
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    first_s: float | None = None
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """Whether the answer was right; False for a failed case."""
        return self.verdict is not None and self.verdict.right

    @property
    def key(self) -> tuple[str, str, str]:
        """The way, the case and its digest."""
        return self.way, self.case, self.digest


class Results(Protocol):
    """Stores results. `done` are the stored ones without those of failures."""

    done: dict[tuple[str, str, str], Result]

    def add(self, result: Result, records: Iterable[Record] = ()) -> None:
        """Store a result, with the turns of its case."""
        ...


class ResultFile:
    """The results in a folder, to which more are added. Raises `ConfigError` if it holds those of another run."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self._files = ExitStack()
        path = folder / RESULTS
        try:
            folder.mkdir(parents=True, exist_ok=True)
            is_new = not path.exists() or not path.stat().st_size
            self.done = {} if is_new else self._earlier(path, plan)
            self._results: IO[bytes] = self._files.enter_context(path.open("ab"))
            self._turns: IO[bytes] = self._files.enter_context((folder / TURNS).open("ab"))
        except OSError as error:
            raise ConfigError(f"Cannot write in {folder}: {error.strerror}.") from error
        if is_new:
            _append(self._results, plan)

    def _earlier(self, path: Path, plan: Plan) -> dict[tuple[str, str, str], Result]:
        _end_in_line(path)
        earlier, results = read_results(path)
        if (earlier.target, earlier.cases) != (plan.target, plan.cases):
            raise ConfigError(
                f"{path} holds another run: {earlier.target}, {earlier.size} cases of seed {earlier.seed}. Name "
                "another folder with --out, or remove it."
            )
        return {result.key: result for result in results if not result.error}

    def add(self, result: Result, records: Iterable[Record] = ()) -> None:
        """Write a result, with the turns of one that is not right, and have it done."""
        if not result.right:
            for record in records:
                _append(self._turns, record)
        _append(self._results, result)
        if not result.error:
            self.done[result.key] = result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._files.close()


def read_results(path: Path) -> tuple[Plan, list[Result]]:
    """Read the plan and the results of a file, or of its folder; of each case the last. Skips a truncated line. Raises
    `ConfigError`.
    """
    path = path / RESULTS if path.is_dir() else path
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from error
    try:
        plan = decode(lines[0], Plan)
    except (IndexError, NotJsonError) as error:
        raise ConfigError(f"{path}: expected the results of `callwright eval`, got something else.") from error
    if plan.version != _VERSION:
        raise ConfigError(f"{path}: expected results of version {_VERSION}, got version {plan.version}.")
    found: dict[tuple[str, str, str], Result] = {}
    for number, line in enumerate(lines[1:], 2):
        try:
            result = decode(line, Result)
        except NotJsonError as error:
            if line.endswith(b"\n"):
                raise ConfigError(f"{path}:{number}: not a result: {error}.") from error
        else:
            found[result.key] = result
    return plan, list(found.values())


def read_records(folder: Path) -> Mapping[str, list[Record]]:
    """The turns in a folder, by their label, `WAY CASE`."""
    found: dict[str, list[Record]] = {}
    path = folder / TURNS
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            record = decode(line, Record)
        except NotJsonError:
            continue  # the last one, which is truncated
        found.setdefault(record.request_id or "", []).append(record)
    return found


def _append(file: IO[bytes], value: Struct) -> None:
    file.write(encode(msgspec.to_builtins(value)) + b"\n")
    file.flush()


def _end_in_line(path: Path) -> None:
    """Remove a truncated last line, so that added lines begin on a line of their own."""
    text = path.read_bytes()
    whole = text.rfind(b"\n") + 1
    if whole != len(text):
        with path.open("r+b") as file:
            file.truncate(whole)
