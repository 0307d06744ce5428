"""The report: a table for people, one JSON object, a badge."""

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from callwright.conform.check import STATUSES, Status
from callwright.conform.run import Result


class Report(Struct, frozen=True):
    """The results for one server. `when`: date and time in UTC; `version`: Callwright's."""

    url: str
    model: str
    when: str
    version: str
    results: Sequence[Result]

    @property
    def counts(self) -> dict[Status, int]:
        """The number of results of each status."""
        found = Counter(result.status for result in self.results)
        return {status: found[status] for status in STATUSES}

    def as_json(self) -> dict[str, Any]:
        """The report as an object."""
        return {**asdict(self), "results": [asdict(one) for one in self.results], "counts": self.counts}


def lines_of(results: Sequence[Result]) -> Iterator[tuple[Status, str]]:
    """The lines of the table with their status: one for each check, if whole and streamed agree."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.id, []).append(result)
    width = max(map(len, groups), default=0)
    for id_, group in groups.items():
        first = group[0]
        agree = len({(one.status, one.expected, one.got) for one in group}) == 1
        for one in group[:1] if agree else group:
            where = f" ({one.variant})" if not agree else ""
            yield one.status, f"{id_.ljust(width)}  {one.status.ljust(11)}  {first.title}{where}"
            if one.status != "holds":
                told = [f"expected {one.expected}" if one.expected else "", one.got and f"got {one.got}"]
                yield one.status, f"{' ' * width}  {' ' * 11}  {'; '.join(filter(None, told))}"


def summary(report: Report) -> str:
    """The counts as a sentence."""
    return ", ".join(f"{number} {status}" for status, number in report.counts.items())


_LEFT, _CHAR, _PAD = 86, 7, 12


def badge(report: Report) -> str:
    """An SVG image with the share of what holds, of all that is offered and was shown."""
    counts = report.counts
    judged = counts["holds"] + counts["does not"]
    text = f"{counts['holds']} of {judged}"
    colour: Final = "#1a7f37" if judged and not counts["does not"] else "#8a5a00" if counts["holds"] else "#6e7781"
    right = len(text) * _CHAR + _PAD
    width = _LEFT + right
    label = escape(f"tool calling: {text} checks hold")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{label}">'
        f"<title>{label}</title>"
        f'<rect width="{_LEFT}" height="20" rx="3" fill="#444c56"/>'
        f'<rect x="{_LEFT - 3}" width="{right + 3}" height="20" rx="3" fill="{colour}"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{_LEFT / 2:g}" y="14">tool calling</text>'
        f'<text x="{_LEFT + right / 2:g}" y="14">{escape(text)}</text></g></svg>\n'
    )
