"""Plots as SVG: intervals, quality against cost, a small one for each group. Colours come from the page."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from msgspec import Struct

from callwright.eval.report.words import told_share
from callwright.eval.stats import Interval

_CHAR: Final = 7.2  # the width of one, about
_ROW: Final = 26
_TICKS: Final = 18
_LABEL: Final = 190
_WIDTH: Final = 300
_NUMBERS: Final = 150
_SIDE: Final = 320
_LEFT: Final = 46
_BELOW: Final = 40


class Point(Struct, frozen=True):
    """A way in a plot: its cost and its share."""

    name: str
    cost: float
    interval: Interval


def bars(intervals: Mapping[str, Interval], *, label: int = _LABEL, width: int = _WIDTH, told: bool = True) -> str:
    """A row for each name: a bar from nothing to its share, and its interval. Without `told` the share is only in the
    tooltip.
    """
    whole = label + width + (_NUMBERS if told else 8)
    rows = "".join(
        _bar(name, interval, number * _ROW, label, width, told=told)
        for number, (name, interval) in enumerate(intervals.items())
    )
    height = len(intervals) * _ROW
    grid = "".join(
        f'<line class="grid" x1="{label + width * tick:.1f}" x2="{label + width * tick:.1f}" y1="0" y2="{height}"/>'
        for tick in (0, 0.25, 0.5, 0.75, 1)
    )
    grid += "".join(
        f'<text x="{label + width * tick:.1f}" y="{height + 13}" text-anchor="{anchor}">{100 * tick:.0f} %</text>'
        for tick, anchor in ((0, "start"), (0.5, "middle"), (1, "end"))
    )
    return _svg(whole, height + _TICKS, grid + rows, "shares with their intervals")


def _bar(name: str, interval: Interval, top: int, label: int, width: int, *, told: bool) -> str:
    middle = top + _ROW / 2
    low, share, high = (label + width * value for value in (interval.low, interval.share, interval.high))
    size = f'width="{max(0.0, share - label):.1f}" height="{_ROW - 12}"'
    number = f'<text x="{label + width + 10}" y="{middle + 4}">{told_share(interval)}</text>' if told else ""
    return (
        f"<g><title>{escape(name)}: {told_share(interval)}</title>"
        f'<text class="name" x="{label - 8}" y="{middle + 4}" text-anchor="end">{escape(_short(name, label))}</text>'
        f'<rect class="bar" x="{label}" y="{top + 6}" {size} rx="2"/>'
        f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>{number}</g>'
    )


def scatter(points: Sequence[Point], axis: str) -> str:
    """Shares against cost, a point with its interval for each; `axis` names the cost."""
    ticks = ticks_of(max((point.cost for point in points), default=0.0))
    most = ticks[-1]

    def x(cost: float) -> float:
        return _LEFT + _SIDE * (cost / most if most else 0.5)

    def y(share: float) -> float:
        return 12 + _SIDE * (1 - share)

    grid = "".join(
        f'<line class="grid" x1="{_LEFT}" x2="{_LEFT + _SIDE}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
        f'<text x="{_LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{100 * tick:.0f} %</text>'
        for tick in (0, 0.25, 0.5, 0.75, 1)
    )
    grid += "".join(f'<text x="{x(tick):.1f}" y="{_SIDE + 30}" text-anchor="middle">{tick:g}</text>' for tick in ticks)
    dots = "".join(
        f"<g><title>{escape(point.name)}: {told_share(point.interval)}, {axis} {point.cost:.3g}</title>"
        f'<line class="range" x1="{x(point.cost):.1f}" x2="{x(point.cost):.1f}" y1="{y(point.interval.low):.1f}" '
        f'y2="{y(point.interval.high):.1f}"/>'
        f'<circle class="dot" cx="{x(point.cost):.1f}" cy="{y(point.interval.share):.1f}" r="5"/>'
        f'<text x="{x(point.cost) + 9:.1f}" y="{at:.1f}">{escape(_short(point.name, 170))}</text></g>'
        for point, at in _apart(points, y)
    )
    title = f'<text class="name" x="{_LEFT + _SIDE / 2}" y="{_SIDE + 50}" text-anchor="middle">{escape(axis)}</text>'
    return _svg(_LEFT + _SIDE + 190, _SIDE + 16 + _BELOW, grid + dots + title, "quality against cost")


def _apart(points: Sequence[Point], y: object) -> Iterator[tuple[Point, float]]:
    """The points, each with the height of its name, so that no two names overlap."""
    assert callable(y)
    last = -100.0
    for point in sorted(points, key=lambda one: -one.interval.share):
        last = max(y(point.interval.share) + 4, last + 14)
        yield point, last


def ticks_of(most: float) -> list[float]:
    """Up to six round numbers from 0 that reach `most`."""
    if most <= 0:
        return [0.0, 1.0]
    step = 10.0 ** _power(most)
    for factor in (0.1, 0.2, 0.5, 1.0, 2.0):
        if most / (step * factor) <= 5:
            step *= factor
            break
    ticks = [0.0]
    while ticks[-1] < most:
        ticks.append(round(len(ticks) * step, 12))
    return ticks


def _power(value: float) -> int:
    power = 0
    while 10.0 ** (power + 1) <= value:
        power += 1
    while 10.0**power > value:
        power -= 1
    return power


def _short(name: str, room: int) -> str:
    most = max(8, round((room - 8) / _CHAR))
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _svg(width: float, height: float, inner: str, about: str) -> str:
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
    return f'<svg {size} role="img" aria-label="{escape(about)}">{inner}</svg>'
