"""Counts of errors and problems by their name, each with its first row as an example."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct, structs

from callwright.bulk.columns import Row
from callwright.bulk.shapes import value_at
from callwright.tolerant_json.codec import encode

# The commonest reasons for errors that a part counts: they are texts, so that there may be as many as rows.
_REASONS: Final = 20
_EXCERPT_CHARS: Final = 160


class Tally(Struct, frozen=True):
    """The number of equal ones, and the first of them: the number of its row, the problem in words and the start of the
    text that has it.
    """

    count: int
    row: int
    detail: str = ""
    excerpt: str = ""


Tallies: TypeAlias = Mapping[str, Tally]


class RowCounts:
    """Counts the rows of a part, numbered from 0, while they are done. `output`: the path to the text of a model."""

    def __init__(self, output: str = "output") -> None:
        self._output = output
        self.rows = 0
        self.errors = 0
        self.problems = 0
        self.kinds: dict[str, Tally] = {}
        self._reasons: dict[str, Tally] = {}

    def add(self, rows: Iterable[Row]) -> None:
        """Count more rows, as they are written."""
        for row in rows:
            error = row.get("error")
            if isinstance(error, str):
                self.errors += 1
                self._count(self._reasons, error, "", str(row.get("line", "")))
            problems = row.get("problems")
            if problems:
                self.problems += 1
                for problem in problems:
                    if isinstance(problem, Mapping):
                        self._count(self.kinds, str(problem["kind"]), str(problem.get("detail", "")), row, problem)
            self.rows += 1

    @property
    def reasons(self) -> dict[str, Tally]:
        """The commonest errors."""
        return dict(sorted(self._reasons.items(), key=lambda one: -one[1].count)[:_REASONS])

    def _count(self, into: dict[str, Tally], name: str, detail: str, text: str | Row, problem: Any = None) -> None:
        known = into.get(name)
        if known is not None:
            into[name] = structs.replace(known, count=known.count + 1)
            return
        shown = text if isinstance(text, str) else _text(text, problem, self._output)
        into[name] = Tally(1, self.rows, detail, " ".join(shown.split())[:_EXCERPT_CHARS])


def merged(parts: Iterable[tuple[int, Tallies]]) -> dict[str, Tally]:
    """The counts of all parts, each with its number of rows, in their order: the commonest first. Rows count from 1."""
    found: dict[str, Tally] = {}
    before = 0
    for rows, tallies in parts:
        for name, tally in tallies.items():
            if name in found:
                found[name] = structs.replace(found[name], count=found[name].count + tally.count)
            else:
                found[name] = structs.replace(tally, row=before + tally.row + 1)
        before += rows
    return dict(sorted(found.items(), key=lambda one: -one[1].count))


def _text(row: Row, problem: Mapping[str, Any], output: str) -> str:
    """The text in which a problem is: that which was taken out, or the answer."""
    if problem.get("text"):
        return str(problem["text"])
    if isinstance(text := value_at(row, output), str):
        return text
    number, answers = problem.get("answer"), row.get("answers")
    if isinstance(number, int) and isinstance(answers, list):
        return encode(answers[number]["message"]).decode()
    place, messages = problem.get("message"), row.get("messages")
    if isinstance(place, int) and isinstance(messages, list) and place < len(messages):
        return encode(messages[place]).decode()
    return encode(row["message"]).decode() if "message" in row else ""
