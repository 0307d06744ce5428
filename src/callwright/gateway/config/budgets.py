"""Checks the budgets and prices of a configuration."""

from typing import Final

import msgspec

from callwright.errors import ConfigError, did_you_mean
from callwright.gateway.config.config import ALL_MODELS, Config, ModelConfig
from callwright.gateway.config.spending import LEAST, BudgetConfig

_EXAMPLE: Final = "price = {input = 3.0, output = 15.0}"


def check_budgets(config: Config) -> None:
    """Raises `ConfigError` for a budget that could never work: without a limit, a price, a store or a key."""
    teams = [team.name for team in config.teams]
    for number, name in enumerate(teams):
        if name in teams[:number]:
            raise ConfigError(f"Two teams have the name {name!r}: each needs its own.")
    for key in config.keys:
        if key.team is not None and key.team not in teams:
            there = f"They are: {', '.join(teams)}." if teams else "There are none: add one under [[teams]]."
            raise ConfigError(
                f"Key {key.name!r}: no team is called {key.team!r}.{did_you_mean(key.team, teams)} {there}"
            )
    priced = {model.name for model in config.models if _is_priced(model)}
    may_pay = {key.name: bool(priced if ALL_MODELS in key.models else priced & {*key.models}) for key in config.keys}
    budgets: list[tuple[str, BudgetConfig | None, bool]] = [
        *((f"Key {key.name!r}", key.budget, may_pay[key.name]) for key in config.keys),
        *((f"Model {model.name!r}", model.budget, model.name in priced) for model in config.models),
    ]
    for team in config.teams:
        members = [may_pay[key.name] for key in config.keys if key.team == team.name]
        budgets.append((f"Team {team.name!r}", team.budget, any(members) if members else bool(priced)))
    for who, budget, is_priced in budgets:
        if budget is not None:
            _check_budget(who, budget, is_priced, config)


def _is_priced(model: ModelConfig) -> bool:
    """Whether requests to a model can cost anything. Raises `ConfigError` for a price that rounds to nothing."""
    if model.price is None:
        return False
    prices = {name: amount for name, amount in msgspec.structs.asdict(model.price).items() if amount}
    for name, amount in prices.items():
        if amount < LEAST:
            raise ConfigError(f"Model {model.name!r}: price.{name}: expected 0 or at least {LEAST:f}, got {amount}.")
    return bool(prices)


def _check_budget(who: str, budget: BudgetConfig, is_priced: bool, config: Config) -> None:
    if budget == BudgetConfig():
        names = ", ".join(BudgetConfig.__struct_fields__)
        raise ConfigError(f"{who}: the budget has no limit. Give one of {names}, or leave the budget out.")
    if not is_priced and (budget.cost_per_day or budget.cost_per_month):
        raise ConfigError(
            f"{who}: a budget of money needs prices. Add {_EXAMPLE} to [[models]] that it limits, or limit "
            "tokens_per_day or tokens_per_month."
        )
    for unit in ("cost", "tokens"):
        day, month = getattr(budget, f"{unit}_per_day"), getattr(budget, f"{unit}_per_month")
        if day is not None and month is not None and day > month:
            raise ConfigError(
                f"{who}: budget: expected {unit}_per_day of at most {unit}_per_month = {month}, got {day}, which can "
                "never be reached. Lower it, or leave it out."
            )
    if config.store is not None and config.store.url == "none":
        raise ConfigError(
            f"{who}: a budget needs a store that counts what was spent, got url = 'none'. Name a file or a database "
            "as the url of [store], such as sqlite:///callwright.db, or leave the budget out."
        )
