"""The summary as lines of a terminal."""

from collections.abc import Iterator, Mapping, Sequence

from callwright.eval.report.words import percent, seconds, tokens, told_pair, told_share
from callwright.eval.results import Result
from callwright.eval.summary import GroupSummary, PairSummary, Summary

_FAILING = 10


def lines_of(summary: Summary) -> Iterator[str]:
    """Ways, groups, repairs, and the best way compared with the others."""
    heads = "way cases right as_written false lost wrong invalid again failed requests tokens first whole".split()
    rows = [
        [
            way.way,
            str(way.cases),
            told_share(way.interval),
            percent(way.clean / way.cases if way.cases else 0.0),
            *(str(count) for count in (way.false, way.lost, way.wrong, way.invalid, way.asked_again, way.errors)),
            str(way.requests),
            tokens(way),
            seconds(way.first_s),
            seconds(way.seconds),
        ]
        for way in summary.ways
    ]
    yield from _table([head.replace("_", " ") for head in heads], rows)
    yield ""
    groups = list(dict.fromkeys(group for way in summary.ways for group in way.groups))
    cells = [[group, *(_of_group(way.groups.get(group)) for way in summary.ways)] for group in groups]
    yield from _table(["group", *(way.way for way in summary.ways)], cells)
    mended = [(way.way, way.problems) for way in summary.ways if way.problems]
    if mended:
        yield ""
        yield from _table(["way", "problems"], [[way, _counts(problems)] for way, problems in mended])
    if pairs := _against_best(summary):
        yield ""
        yield from (told_pair(pair) for pair in pairs)


def _against_best(summary: Summary) -> list[PairSummary]:
    """The pairs of the best way with each other one."""
    best = summary.best
    return [pair for pair in summary.pairs if best is not None and best.way in (pair.first, pair.second)]


def failing_lines(results: Sequence[Result]) -> Iterator[str]:
    """The first cases that were not right, with why, and in which ways."""
    ways = len({result.way for result in results})
    failing: dict[tuple[str, str], list[str]] = {}
    for one in results:
        if not one.right:
            why = one.error or (one.verdict.why if one.verdict else "")
            failing.setdefault((one.case, _line(why)), []).append(one.way)
    rows = [
        [case, "all" if len(found) == ways > 1 else ", ".join(found), why]
        for (case, why), found in sorted(failing.items())[:_FAILING]
    ]
    if rows:
        yield from _table(["not right", "way", "why"], rows)
    if len(failing) > _FAILING:
        yield f"… and {len(failing) - _FAILING:,} more"


def comparison_lines(summary: Summary) -> Iterator[str]:
    """Two runs: the ways of both, who is better, and the cases that changed."""
    yield from lines_of(summary)
    for pair in summary.pairs:
        for told, ids in (("better now", pair.better), ("worse now", pair.worse)):
            if ids:
                yield f"  {told}: {', '.join(ids)}"


def _of_group(found: GroupSummary | None) -> str:
    return f"{found.right} of {found.cases}" if found is not None else "–"


def _counts(problems: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in problems.items())


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else f"{line[:119]}…"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[place]) for row in (heads, *rows)) for place in range(len(heads))]
    for row in (heads, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
