"""Summarizes the results by way and by group: counts, shares with their intervals, medians, comparisons of ways."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

from msgspec import Struct

from callwright.eval.results import Result
from callwright.eval.stats import Comparison, Interval, cases_for, compare, median, wilson

# The difference for which the report has the number of cases needed.
_POINTS: Final = 0.05


class GroupSummary(Struct, frozen=True):
    """The cases of one group in one way."""

    cases: int
    right: int
    interval: Interval


class WaySummary(Struct, frozen=True):
    """All cases in one way. `clean`: right as the model wrote it. `false` to `invalid` count calls, `asked_again` and
    `requests` requests, `errors` cases in which the server failed, which were not right. `problems`: by kind, in how
    many cases. Medians are of cases, in seconds.
    """

    way: str
    cases: int
    right: int
    interval: Interval
    clean: int
    errors: int
    wanted: int
    made: int
    false: int
    lost: int
    wrong: int
    invalid: int
    asked_again: int
    problems: Mapping[str, int]
    requests: int
    prompt_tokens: int
    completion_tokens: int
    first_s: float | None
    seconds: float | None
    groups: Mapping[str, GroupSummary]


class PairSummary(Struct, frozen=True):
    """Two ways on the same cases, with the ids of those that only one got right. `needed`: the number of cases that
    would show a difference of five points if these are typical; None if the two ways never differed.
    """

    first: str
    second: str
    comparison: Comparison
    better: list[str]
    worse: list[str]
    needed: int | None


class Summary(Struct, frozen=True):
    """The summary of a run."""

    ways: list[WaySummary]
    pairs: list[PairSummary]

    @property
    def best(self) -> WaySummary | None:
        """The way with most right answers; of equals the one with fewer repairs, fewer requests, fewer tokens."""
        return max(
            self.ways,
            key=lambda way: (way.interval.share, way.clean, -way.requests, -way.completion_tokens),
            default=None,
        )


def summary_of(results: Sequence[Result]) -> Summary:
    """Summarize results, with ways in order of first appearance."""
    by_way: dict[str, list[Result]] = {}
    for result in results:
        by_way.setdefault(result.way, []).append(result)
    pairs = [paired(one, by_way[one], two, by_way[two]) for one, two in combinations(by_way, 2)]
    return Summary([_way(name, found) for name, found in by_way.items()], pairs)


def paired(first: str, ones: Sequence[Result], second: str, twos: Sequence[Result]) -> PairSummary:
    """Two ways on the cases that both were asked, by what each of them is."""
    others = {(two.case, two.digest): two for two in twos}
    both = [(one, others[one.case, one.digest]) for one in ones if (one.case, one.digest) in others]
    comparison = compare((one.right, two.right) for one, two in both)
    differing = (comparison.first + comparison.second) / comparison.cases if comparison.cases else 0.0
    return PairSummary(
        first,
        second,
        comparison,
        better=[two.case for one, two in both if two.right and not one.right],
        worse=[one.case for one, two in both if one.right and not two.right],
        needed=cases_for(_POINTS, max(differing, _POINTS)) if differing else None,
    )


def _way(name: str, results: Sequence[Result]) -> WaySummary:
    verdicts = [result.verdict for result in results if result.verdict is not None]
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.group, []).append(result)
    right = sum(result.right for result in results)
    return WaySummary(
        way=name,
        cases=len(results),
        right=right,
        interval=wilson(right, len(results)),
        clean=sum(verdict.clean for verdict in verdicts),
        errors=len(results) - len(verdicts),
        wanted=sum(verdict.wanted for verdict in verdicts),
        made=sum(verdict.made for verdict in verdicts),
        false=sum(verdict.false for verdict in verdicts),
        lost=sum(verdict.lost for verdict in verdicts),
        wrong=sum(verdict.wrong for verdict in verdicts),
        invalid=sum(verdict.invalid for verdict in verdicts),
        asked_again=sum(verdict.asked_again for verdict in verdicts),
        problems=dict(Counter(kind for verdict in verdicts for kind in verdict.problems).most_common()),
        requests=sum(result.requests for result in results),
        prompt_tokens=sum(result.prompt_tokens for result in results),
        completion_tokens=sum(result.completion_tokens for result in results),
        first_s=median(result.first_s for result in results if result.first_s is not None),
        seconds=median(result.seconds for result in results if not result.error),
        groups={group: _group(found) for group, found in groups.items()},
    )


def _group(results: Sequence[Result]) -> GroupSummary:
    right = sum(result.right for result in results)
    return GroupSummary(len(results), right, wilson(right, len(results)))
