"""Numbers in words, the same in the terminal and on the page."""

from callwright.eval.stats import Interval
from callwright.eval.summary import PairSummary, WaySummary


def percent(share: float) -> str:
    """A share as `68.6 %`."""
    return f"{100 * share:.1f} %"


def told_share(interval: Interval) -> str:
    """A share with its interval: `68.6 % (60–76)`."""
    return f"{percent(interval.share)} ({100 * interval.low:.0f}–{100 * interval.high:.0f})"


def seconds(value: float | None) -> str:
    """`1.2 s`, `35 ms`; a dash for nothing."""
    if value is None:
        return "–"
    return f"{value:.1f} s" if value >= 1 else f"{1000 * value:.0f} ms"


def tokens(way: WaySummary) -> str:
    """Tokens of prompt and answer for a case; a dash if the server counts none."""
    if not way.cases or not way.prompt_tokens + way.completion_tokens:
        return "–"
    return f"{way.prompt_tokens / way.cases:,.0f} + {way.completion_tokens / way.cases:,.0f}"


def told_pair(pair: PairSummary) -> str:
    """Which of two ways is better, as far as the cases show it."""
    it = pair.comparison
    counts = f"{it.second} better, {it.first} worse, of {it.cases}; p = {it.p:.3f}"
    if it.cases == 0:
        return f"{pair.second} and {pair.first} have no case in common"
    if it.is_told:
        than = "better" if it.difference > 0 else "worse"
        return f"{pair.second} is {than} than {pair.first} by {100 * abs(it.difference):.1f} points ({counts})"
    more = f"; some {pair.needed:,} cases would show 5 points" if pair.needed and pair.needed > it.cases else ""
    return f"{pair.second} and {pair.first}: no significant difference ({counts}{more})"
