"""The part of the configuration about spending: prices of models, budgets of keys, teams and models."""

from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

LEAST: Final = 0.000001  # counts are in millionths
_Price: TypeAlias = Annotated[float, Meta(ge=0, le=1_000_000)]
_Cost: TypeAlias = Annotated[float, Meta(ge=LEAST, le=1_000_000_000)]
_Tokens: TypeAlias = Annotated[int, Meta(ge=1)]


class PriceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[models.price]`: the price of a million tokens, in the `currency` of `[spending]`."""

    input: _Price
    """Price of a million tokens of prompts."""
    output: _Price = 0.0
    """Price of a million tokens of answers, reasoning included."""
    cached_input: _Price | None = None
    """Price of a million tokens of prompts that the server had in its cache; by default that of `input`."""


class BudgetConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[keys.budget]`, also of `[[teams]]` and `[[models]]`: limits per day and month (UTC). Above them requests get a
    429.
    """

    cost_per_day: _Cost | None = None
    """Money per day, by the `price` of the models."""
    cost_per_month: _Cost | None = None
    """Money per calendar month."""
    tokens_per_day: _Tokens | None = None
    """Tokens of prompts and answers per day, as the model's server counts them."""
    tokens_per_month: _Tokens | None = None
    """The same per calendar month."""


class TeamConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[teams]]`: keys that share a budget."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9_.@-]{1,64}$")]
    """The name that its keys have as their `team`."""
    budget: BudgetConfig
    """The [budget](spending.md#budgets) of its keys together."""


class SpendingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[spending]`: how costs are shown."""

    currency: Annotated[str, Meta(pattern="^[A-Za-z]{1,16}$")] = "USD"
    """The currency of all prices and budgets."""
