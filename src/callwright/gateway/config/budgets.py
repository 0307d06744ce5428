"""Checks the budgets and prices of a configuration."""

from typing import Final

from callwright.errors import ConfigError, did_you_mean
from callwright.gateway.config.config import Config
from callwright.gateway.config.spending import BudgetConfig

_EXAMPLE: Final = "price = {input = 3.0, output = 15.0}"


def check_budgets(config: Config) -> None:
    """Raises `ConfigError` for a budget that could never work: without a limit, a price, a store or a key."""
    teams = [team.name for team in config.teams]
    for number, team in enumerate(teams):
        if team in teams[:number]:
            raise ConfigError(f"Two teams have the name {team!r}: each needs its own.")
    for key in config.keys:
        if key.team is not None and key.team not in teams:
            there = f"They are: {', '.join(teams)}." if teams else "There are none: add one under [[teams]]."
            raise ConfigError(
                f"Key {key.name!r}: no team is called {key.team!r}.{did_you_mean(key.team, teams)} {there}"
            )
    has_price = any(model.price for model in config.models)
    budgets = [
        *((f"Key {key.name!r}", key.budget, has_price) for key in config.keys),
        *((f"Team {team.name!r}", team.budget, has_price) for team in config.teams),
        *((f"Model {model.name!r}", model.budget, model.price is not None) for model in config.models),
    ]
    for who, budget, is_priced in budgets:
        if budget is not None:
            _check_budget(who, budget, is_priced, config)


def _check_budget(who: str, budget: BudgetConfig, is_priced: bool, config: Config) -> None:
    if budget == BudgetConfig():
        names = ", ".join(BudgetConfig.__struct_fields__)
        raise ConfigError(f"{who}: the budget has no limit. Give one of {names}, or leave the budget out.")
    if not is_priced and (budget.cost_per_day or budget.cost_per_month):
        raise ConfigError(
            f"{who}: a budget of money needs prices. Add {_EXAMPLE} to [[models]], or limit tokens_per_day or "
            "tokens_per_month."
        )
    if config.store is not None and config.store.url == "none":
        raise ConfigError(
            f"{who}: a budget needs a store that counts what was spent, got url = 'none'. Name a file or a database "
            "as the url of [store], such as sqlite:///callwright.db, or leave the budget out."
        )
