"""Statistics of a run: intervals of a share, comparison of two ways on the same cases, cases a difference takes.

Pure functions of counts. The interval is Wilson's score interval (Wilson 1927), the comparison McNemar's test in its
exact form, and the number of cases the usual one for paired shares (Connor 1987).
"""

from collections.abc import Iterable
from math import ceil, comb, sqrt
from statistics import NormalDist
from typing import Final

from msgspec import Struct

# Confidence level of intervals and differences.
LEVEL: Final = 0.95
_NORMAL: Final = NormalDist()


class Interval(Struct, frozen=True):
    """A share with its confidence interval, which without any case is 0 to 1."""

    share: float
    low: float
    high: float


class Comparison(Struct, frozen=True):
    """Two ways on the same cases: how many were right in both, in one only, in the other only, in none. `p` is the
    probability of a split at least as uneven if both ways are equally good.
    """

    both: int
    first: int
    second: int
    none: int
    p: float

    @property
    def cases(self) -> int:
        """The number of cases."""
        return self.both + self.first + self.second + self.none

    @property
    def difference(self) -> float:
        """The share of the second way minus that of the first."""
        return (self.second - self.first) / self.cases if self.cases else 0.0

    @property
    def is_told(self) -> bool:
        """Whether the difference is statistically significant."""
        return self.p < 1 - LEVEL


def wilson(right: int, cases: int, level: float = LEVEL) -> Interval:
    """The interval of the share of `right` among `cases`."""
    if cases == 0:
        return Interval(0.0, 0.0, 1.0)
    share, z = right / cases, _NORMAL.inv_cdf((1 + level) / 2)
    spread = z * sqrt(share * (1 - share) / cases + z * z / (4 * cases * cases))
    centre, scale = share + z * z / (2 * cases), 1 + z * z / cases
    low = 0.0 if right == 0 else (centre - spread) / scale
    high = 1.0 if right == cases else (centre + spread) / scale
    return Interval(share, low, high)


def mcnemar(first: int, second: int) -> float:
    """The two-sided, exact p-value of McNemar's test. `first` and `second` count the cases that only that way got
    right.
    """
    differing = first + second
    if differing == 0:
        return 1.0
    tail = sum(comb(differing, k) for k in range(min(first, second) + 1))
    return min(1.0, float(2 * tail / 2**differing))


def compare(pairs: Iterable[tuple[bool, bool]]) -> Comparison:
    """Compare two ways by the outcome of each case in the first and in the second."""
    counts = {(one, two): 0 for one in (True, False) for two in (True, False)}
    for pair in pairs:
        counts[pair] += 1
    first, second = counts[True, False], counts[False, True]
    return Comparison(counts[True, True], first, second, counts[False, False], mcnemar(first, second))


def cases_for(difference: float, differing: float, *, power: float = 0.8, level: float = LEVEL) -> int:
    """The number of cases needed to distinguish two ways with this power.

    `difference`: of their shares, above 0; `differing`: the share of the cases that only one of them gets right, which
    is no less.
    """
    if not 0 < difference <= differing <= 1:
        raise ValueError(f"expected 0 < difference <= differing <= 1, got {difference} and {differing}")
    z_level, z_power = _NORMAL.inv_cdf((1 + level) / 2), _NORMAL.inv_cdf(power)
    root = z_level * sqrt(differing) + z_power * sqrt(max(0.0, differing - difference * difference))
    return ceil((root / difference) ** 2)


def median(values: Iterable[float]) -> float | None:
    """The median of some values, or None without any."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if not ordered:
        return None
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
