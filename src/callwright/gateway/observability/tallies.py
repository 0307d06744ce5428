"""Numbers of metrics that wait to be added to Prometheus' own: a request increases some thirty, and few ask for them.

Of one process, and of its event loop: numbers that several processes share are shared immediately, without this.
"""

from bisect import bisect_left
from typing import Any

from prometheus_client import Histogram


class Tallies(dict[tuple[Any, ...], Any]):
    """A number by `(metric, *labels)`: the child of the metric with these labels, or if `deferred`, one that has the
    same methods and waits for `add`.
    """

    def __init__(self, *, deferred: bool) -> None:
        super().__init__()
        self.deferred = deferred

    def __missing__(self, key: tuple[Any, ...]) -> Any:
        metric, *labels = key
        child = metric.labels(*labels) if labels else metric
        if self.deferred:
            child = _Observed(child) if isinstance(metric, Histogram) else _Counted(child)
        self[key] = child
        return child

    def add(self) -> None:
        """Add what waits to the metrics."""
        if self.deferred:
            for tally in self.values():
                tally.add()


class _Counted:
    __slots__ = ("_child", "_waits")

    def __init__(self, child: Any) -> None:
        self._child = child
        self._waits = 0.0

    def inc(self, by: float = 1) -> None:
        self._waits += by

    def add(self) -> None:
        if self._waits:
            self._child.inc(self._waits)
            self._waits = 0.0


class _Observed:
    __slots__ = ("_buckets", "_child", "_total", "_upper")

    def __init__(self, child: Any) -> None:
        self._child = child
        self._upper: list[float] = child._upper_bounds
        self._buckets = [0] * len(self._upper)
        self._total = 0.0

    def observe(self, value: float) -> None:
        self._buckets[bisect_left(self._upper, value)] += 1
        self._total += value

    def add(self) -> None:
        # Does the same as `observe` of the library, for many observations together.
        for bucket, number in zip(self._child._buckets, self._buckets, strict=True):
            if number:
                bucket.inc(number)
        if self._total:
            self._child._sum.inc(self._total)
        self._buckets, self._total = [0] * len(self._upper), 0.0
