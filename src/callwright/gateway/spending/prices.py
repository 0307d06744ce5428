"""Prices of models. Amounts of money are whole millionths of the currency, never floats, so sums are exact."""

from decimal import Decimal
from typing import Final

from callwright.events import Usage
from callwright.gateway.config.spending import PriceConfig

MILLION: Final = 1_000_000


def millionths(amount: float) -> int:
    """An amount of money in millionths, as it is written in the configuration."""
    return int((Decimal(str(amount)) * MILLION).to_integral_value())


class Price:
    """What the tokens of a model cost. A price per million tokens is one per token in millionths."""

    def __init__(self, given: PriceConfig) -> None:
        self._input = millionths(given.input)
        self._output = millionths(given.output)
        self._cached = self._input if given.cached_input is None else millionths(given.cached_input)

    def cost(self, usage: Usage) -> int:
        """The cost of one generation in millionths, rounded up."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        fresh = usage.prompt_tokens - cached
        total = fresh * self._input + cached * self._cached + usage.completion_tokens * self._output
        return -(-total // MILLION)
