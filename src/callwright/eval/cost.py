"""Estimates the cost of a run: before it begins requests, and roughly the tokens of their prompts; then its time."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from callwright.eval.case import Case
from callwright.tolerant_json.codec import encode

_CHARS_PER_TOKEN: Final = 4


class Cost(Struct, frozen=True):
    """The cost of one way. If cases take several steps a model may need more or fewer: `least` to `most` requests.
    Tokens are a quarter of the characters of the requests, those of the later steps like those of the first. Retries
    are not included.
    """

    cases: int
    least: int
    most: int
    prompt_tokens: int

    @property
    def summary(self) -> str:
        """For people."""
        requests = f"{self.least:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"
        return f"{self.cases:,} cases, {requests} requests, about {self.prompt_tokens:,} tokens of prompt at least"


def cost_of(cases: Sequence[Case]) -> Cost:
    """The cost of asking all of them once, in one way."""
    characters = sum(len(encode(case.request())) for case in cases)
    return Cost(len(cases), len(cases), sum(case.steps for case in cases), characters // _CHARS_PER_TOKEN)


def seconds_left(left: int, ended: int, spent_s: float, at_once: int) -> float:
    """The seconds until the end of a run in which this number of cases is left, and others `ended` in `spent_s`. Those
    that run now may take as long as the average of all. If none has ended, it is the least that it can be.
    """
    average_s = spent_s * at_once / ended if ended else spent_s
    return average_s * max(left / at_once, 1)
