"""How well models call tools, over time: counts of turns by outcome, of problems by kind, of times, for a day, in
spans of one minute for the last hour and of five minutes before, in bounded memory.
"""

from bisect import bisect_left
from typing import Final

from msgspec import Struct, field

from callwright.inspection.summary import TurnSummary

BUCKET_S: Final = 60
_FINE_S: Final = 3_600
_COARSE_S: Final = 300
# Upper bounds of the counts of times, in seconds; one more count is for the rest.
BOUNDS: Final = tuple(round(0.001 * 2**step, 3) for step in range(18))
_KEPT_S: Final = 86_400
# Clients may choose names freely: limit of distinct models in one span.
_MAX_MODELS: Final = 64
_OTHERS: Final = "(others)"


class Bucket(Struct):
    """The turns of one model that ended in the span that begins `at` (Unix seconds)."""

    at: int
    model: str
    turns: int = 0
    outcomes: dict[str, int] = {}
    problems: dict[str, int] = {}
    first: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))

    def add(self, other: "Bucket") -> None:
        """Add the counts of another one."""
        self.turns += other.turns
        for mine, theirs in ((self.outcomes, other.outcomes), (self.problems, other.problems)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        self.first = [one + two for one, two in zip(self.first, other.first, strict=True)]
        self.seconds = [one + two for one, two in zip(self.seconds, other.seconds, strict=True)]


class Quality(Struct):
    """All of it, as the page gets it."""

    buckets: list[Bucket]
    bucket_s: int = BUCKET_S
    bounds: tuple[float, ...] = BOUNDS


class QualityCounts:
    """Counts ended turns. `kept_s`: retention in seconds; None: no limit."""

    def __init__(self, kept_s: float | None = _KEPT_S) -> None:
        self._kept_s = kept_s
        self._spans: dict[int, dict[str, Bucket]] = {}

    def add(self, row: TurnSummary) -> None:
        """A turn is over."""
        at = int((row.at + (row.seconds or 0.0)) // BUCKET_S) * BUCKET_S
        if at not in self._spans:
            self._age(at)
        bucket = self._bucket(at, row.model)
        bucket.turns += 1
        bucket.outcomes[row.outcome] = bucket.outcomes.get(row.outcome, 0) + 1
        for kind, count in row.problems.items():
            bucket.problems[kind] = bucket.problems.get(kind, 0) + count
        if row.first_s is not None:
            bucket.first[bisect_left(BOUNDS, row.first_s)] += 1
        if row.seconds is not None:
            bucket.seconds[bisect_left(BOUNDS, row.seconds)] += 1

    def _age(self, now: int) -> None:
        """A span begins: add up those of the hours before the last, and drop those that are too old."""
        for at in sorted(self._spans):
            if self._kept_s is not None and at < now - self._kept_s:
                del self._spans[at]
            elif at < now - _FINE_S and at % _COARSE_S:
                for name, bucket in self._spans.pop(at).items():
                    self._bucket(at - at % _COARSE_S, name).add(bucket)

    def _bucket(self, at: int, model: str) -> Bucket:
        models = self._spans.setdefault(at, {})
        name = model if model in models or len(models) < _MAX_MODELS else _OTHERS
        if name not in models:
            models[name] = Bucket(at, name)
        return models[name]

    def buckets(self) -> list[Bucket]:
        """The counts, the oldest first."""
        return [bucket for _, models in sorted(self._spans.items()) for bucket in models.values()]


def merged(buckets: list[Bucket]) -> Quality:
    """The counts of several processes as one."""
    found: dict[tuple[int, str], Bucket] = {}
    for bucket in buckets:
        found.setdefault((bucket.at, bucket.model), Bucket(bucket.at, bucket.model)).add(bucket)
    return Quality([found[key] for key in sorted(found)])
