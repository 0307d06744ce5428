"""Estimates the cost of a run before it begins: requests, and roughly the tokens of their prompts."""

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
