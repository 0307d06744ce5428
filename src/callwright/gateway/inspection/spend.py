"""The usage and costs of keys for the page, by key, model and day, without contents. An operator sees all keys."""

from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct

from callwright.gateway.access.keys import ApiKey
from callwright.gateway.spending.budgets import Meter, Owner, Period
from callwright.gateway.spending.ledger import Ledger
from callwright.gateway.store.spending import Spending, Unit


class BudgetView(Struct):
    """A budget in its present period. `limit` and `used` are tokens or millionths of the currency; `reset` is a time in
    UTC.
    """

    owner: Owner
    name: str
    unit: Unit
    period: Period
    limit: int
    used: int
    reset: str


class SpendView(Struct):
    """The usage of the last days, the latest first, and the budgets. Costs are in millionths of the `currency`."""

    currency: str
    today: str
    rows: Sequence[Spending]
    budgets: Sequence[BudgetView]


async def spend_view(ledger: Ledger, currency: str, who: ApiKey, days: int) -> SpendView:
    """The part that a caller may see, of a number of days with today. A key sees its usage, its budgets and its team's.
    Raises `StoreError`.
    """
    now = ledger.now
    rows = await ledger.spending(now.date() - timedelta(days=days - 1), None if who.is_operator else who.name)
    meters = [meter for meter in ledger.meters if who.is_operator or who.name in (meter.budget.keys or ())]
    used = await ledger.usage_of(meters)
    return SpendView(
        currency,
        now.date().isoformat(),
        rows,
        [_budget_view(meter, amount, ledger) for meter, amount in zip(meters, used, strict=True)],
    )


def _budget_view(meter: Meter, used: int, ledger: Ledger) -> BudgetView:
    budget = meter.budget
    reset = budget.reset(ledger.now.date()).isoformat()
    return BudgetView(budget.owner, budget.name, budget.unit, budget.period, budget.limit, used, reset)
