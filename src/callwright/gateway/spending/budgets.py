"""Budgets: how much a key, a team or a model may use in a day or a month, and the errors at their limits.

Periods are days and calendar months in UTC.
"""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Literal, TypeAlias

from msgspec import Struct

from callwright.errors import RequestError
from callwright.gateway.config.config import Config
from callwright.gateway.config.spending import BudgetConfig
from callwright.gateway.spending.prices import MILLION, millionths
from callwright.gateway.store.spending import Claim, Unit

Owner: TypeAlias = Literal["key", "team", "model"]
Period: TypeAlias = Literal["day", "month"]


class Budget(Struct, frozen=True):
    """A limit of the configuration, in tokens or in millionths of the `currency`. `keys`: those of a key or a team."""

    owner: Owner
    name: str
    unit: Unit
    period: Period
    limit: int
    currency: str
    keys: tuple[str, ...] | None = None

    @property
    def id(self) -> str:
        """Its name in the store."""
        return f"{self.owner} {self.name} {self.unit} {self.period}"

    def since(self, today: date) -> date:
        """The first day of its period."""
        return today if self.period == "day" else today.replace(day=1)

    def reset(self, today: date) -> datetime:
        """When its next period begins."""
        last = today if self.period == "day" else today.replace(day=28) + timedelta(days=4)
        first = last + timedelta(days=1) if self.period == "day" else last.replace(day=1)
        return datetime(first.year, first.month, first.day, tzinfo=UTC)

    def format_amount(self, amount: int) -> str:
        """An amount with its unit."""
        if self.unit == "tokens":
            return f"{amount} tokens"
        return f"{amount // MILLION}.{amount % MILLION:06} {self.currency}"

    def exhausted_error(self, used: int, now: datetime) -> RequestError:
        """The 429 error for a request after the last of the budget, in OpenAI's words for that."""
        reset = self.reset(now.date())
        return RequestError(
            f"You exceeded your current quota: the budget of the {self.owner} '{self.name}' per {self.period} is used "
            f"up. Limit {self.format_amount(self.limit)}, used {self.format_amount(used)}. It is reset at "
            f"{reset:%Y-%m-%d %H:%M} UTC. Please try again then, or raise {self.unit}_per_{self.period} of this "
            f"{self.owner} in the gateway's configuration.",
            status=429,
            type_="insufficient_quota",
            code="insufficient_quota",
            headers={"retry-after": str(max(1, -int((now - reset).total_seconds() // 1))), "x-should-retry": "false"},
        )

    def reserved_error(self) -> RequestError:
        """The 429 error if running requests may need the rest of the budget."""
        return RequestError(
            f"The rest of the budget of the {self.owner} '{self.name}' per {self.period} is reserved by running "
            "requests. Please try again when one has ended, or with a smaller max_tokens.",
            status=429,
            type_="insufficient_quota",
            code="rate_limit_exceeded",
            headers={"retry-after": "1"},
        )


def budgets_of(config: Config) -> Iterator[Budget]:
    """The budgets of a configuration."""
    given: list[tuple[Owner, str, BudgetConfig | None, tuple[str, ...] | None]] = [
        *(("key", key.name, key.budget, (key.name,)) for key in config.keys),
        *(
            ("team", team.name, team.budget, tuple(key.name for key in config.keys if key.team == team.name))
            for team in config.teams
        ),
        *(("model", model.name, model.budget, None) for model in config.models),
    ]
    units: Sequence[Unit] = ("cost", "tokens")
    periods: Sequence[Period] = ("day", "month")
    for owner, name, budget, keys in given:
        for unit in units:
            for period in periods:
                limit = getattr(budget, f"{unit}_per_{period}", None)
                if limit is not None:
                    exact = millionths(limit) if unit == "cost" else limit
                    yield Budget(owner, name, unit, period, exact, config.spending.currency, keys)


class Meter:
    """The present period of a budget, as this process knows it.

    `used` by all, as last read; by this process and not added there yet: `sending` in the present batch, and `unsent`.
    `running`: what running requests need at most. `granted`: what this process may use beyond `used`.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.since = date.min
        self.used = self.sending = self.unsent = self.running = self.granted = 0
        self.is_active = False  # a request was admitted since the last report
        self.turnstile = asyncio.Lock()  # held by the first request that waits for others
        self.has_ended = asyncio.Event()  # set if a request ends

    def begin(self, today: date) -> None:
        """Start the period of this day, if it is not the present one."""
        if (since := self.budget.since(today)) != self.since:
            self.since = since
            self.used = self.sending = self.unsent = self.granted = 0

    @property
    def total(self) -> int:
        """What is known to be used."""
        return self.used + self.sending + self.unsent

    @property
    def outstanding(self) -> int:
        """What this process has used or may use, beyond `used`."""
        return self.sending + self.unsent + self.running

    def fits_alone(self, wish: int) -> bool:
        """Whether a request fits by what this process knows: if the other gateways cannot be heard."""
        left = self.budget.limit - self.used - self.outstanding
        return wish <= left or (left > 0 and not self.running)

    def claim(self, wish: int, advance: int) -> Claim:
        """The claim to settle while the present batch is added."""
        budget = self.budget
        whose = {"model": budget.name} if budget.keys is None else {"keys": budget.keys}
        holds = self.unsent + self.running
        since = self.since.isoformat()
        return Claim(budget.id, budget.limit, budget.unit, since, **whose, holds=holds, wish=wish, advance=advance)
