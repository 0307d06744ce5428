"""`callwright keys`: the API keys of clients in a configuration file."""

import datetime
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from callwright.cli.config_file import change_config
from callwright.cli.key_tables import add_key, change_key, remove_key
from callwright.cli.terminal import table
from callwright.errors import ConfigError, did_you_mean
from callwright.gateway.access.keys import hash_of, new_key
from callwright.gateway.config.config import KEY_NAME, Config, KeyConfig, load_config
from callwright.gateway.config.spending import BudgetConfig
from callwright.settings.expiry import Expiry

_DAYS: Final = re.compile(r"(\d+)d")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_NAME: Final = re.compile(KEY_NAME)
_SHOWN: Final = 100
_NEVER: Final = "never"


def _when(text: str) -> datetime.date:
    """A date, a date-time with an offset, or days from now. Raises a usage error for anything else."""
    try:
        found: datetime.date
        if days := _DAYS.fullmatch(text):
            now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
            found = now + datetime.timedelta(days=int(days[1]))
        elif _DATE.fullmatch(text):
            found = datetime.date.fromisoformat(text)
        else:
            found = datetime.datetime.fromisoformat(text)
        Expiry.read(found)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            "expected a date such as 2027-01-31 (its end in UTC), a date-time with an offset such as "
            f"2027-01-31T18:00:00Z, or days from now such as 30d, got {text!r}."
        ) from error
    return found


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


_file = click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    required=True,
    help="The callwright.toml with the keys.",
)
_models = click.option("--models", type=_names, metavar="NAME,…", help="The models it may use; * for all, '' for none.")
_requests = click.option(
    "--requests-per-minute", type=click.IntRange(0), metavar="N", help="Requests per minute; 0 for no limit."
)
_tokens = click.option(
    "--tokens-per-minute", type=click.IntRange(0), metavar="N", help="Tokens in and out per minute; 0 for no limit."
)


@click.group()
def keys() -> None:
    """Add, list, limit, expire and revoke the API keys of clients in a configuration file. Comments and layout
    are preserved, except in a setting that changes, and the file is replaced only by one that is valid.
    """


@keys.command()
@click.argument("name")
@_models
@_requests
@_tokens
@click.option("--expires", type=_when, metavar="WHEN", help="A date (its end in UTC), a date-time, or days: 30d.")
@_file
def add(
    name: str,
    models: list[str] | None,
    requests_per_minute: int | None,
    tokens_per_minute: int | None,
    expires: datetime.date | None,
    file: Path,
) -> None:
    """Create a key for a client called NAME and print it, once. The file gets its hash only.

    \b
    Examples:
      callwright keys add anna --config callwright.toml
      callwright keys add ben --models simulated --requests-per-minute 60 --expires 30d --config callwright.toml
    """
    if expires is not None and Expiry.read(expires).is_over(time.time()):
        raise ConfigError(f"--expires: expected a time in the future, got {Expiry.read(expires)}.")
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"NAME: expected 1 to 64 of the characters A-Z, a-z, 0-9, '_', '.', '@' and '-', got {name[:_SHOWN]!r}."
        )
    key = new_key()
    settings = {
        "name": name,
        "sha256": hash_of(key),
        "models": models,
        "requests_per_minute": requests_per_minute or None,
        "tokens_per_minute": tokens_per_minute or None,
        "expires": expires,
    }
    change_config(file, lambda text, _: add_key(text, settings))
    click.echo(key)
    click.echo(f"Added the key {name!r} to {file}. It is shown only now: give it to the client.", err=True)


@keys.command("list")
@_file
def list_keys(file: Path) -> None:
    """List the keys with their models, limits and expiry.

    \b
    Example:
      callwright keys list --config callwright.toml
    """
    config = load_config(file)
    if not config.keys:
        click.echo(f"{file} has no keys: the gateway answers every client that can reach it.", err=True)
        return
    rows = [
        ((key.name,), key.models or ("none",), tuple(_limits(key)) or ("none",), (_expiry(key),)) for key in config.keys
    ]
    for line in table(("name", "models", "limits", "expires"), rows):
        click.echo(line)


def _limits(key: KeyConfig) -> Iterator[str]:
    for number, unit in (
        (key.requests_per_minute, "requests per minute"),
        (key.tokens_per_minute, "tokens per minute"),
        (key.max_requests, "at once"),
    ):
        if number is not None:
            yield f"{number} {unit}"
    for setting in BudgetConfig.__struct_fields__:
        if (limit := getattr(key.budget, setting, None)) is not None:
            yield f"{limit} {setting.replace('_', ' ')}"


def _expiry(key: KeyConfig) -> str:
    if key.expires is None:
        return _NEVER
    return f"{key.expires} (expired)" if key.expires.is_over(time.time()) else str(key.expires)


@keys.command()
@click.argument("name")
@_models
@_requests
@_tokens
@_file
def limit(
    name: str, models: list[str] | None, requests_per_minute: int | None, tokens_per_minute: int | None, file: Path
) -> None:
    """Change the models and limits of the key NAME: those that are given, the others stay.

    \b
    Example:
      callwright keys limit anna --tokens-per-minute 100000 --config callwright.toml
    """
    given = {"requests_per_minute": requests_per_minute, "tokens_per_minute": tokens_per_minute}
    settings: dict[str, Any] = {limit: number or None for limit, number in given.items() if number is not None}
    if models is not None:
        settings["models"] = models
    if not settings:
        raise ConfigError("Nothing to change: give --models, --requests-per-minute or --tokens-per-minute.")
    if _change(file, name, settings):
        click.echo(f"Changed the key {name!r} in {file}: {', '.join(settings)}.")
    else:
        click.echo(f"Nothing changed: the key {name!r} in {file} was so before.")


@keys.command()
@click.argument("name")
@click.argument("when")
@_file
def expire(name: str, when: str, file: Path) -> None:
    """Set when the key NAME expires. WHEN is a date (its end in UTC), a date-time with an offset, days from now such as
    30d (0d: now), or never.

    \b
    Examples:
      callwright keys expire anna 2027-01-31 --config callwright.toml
      callwright keys expire anna never --config callwright.toml
    """
    expires = None if when == _NEVER else _when(when)
    _change(file, name, {"expires": expires})
    told = "never expires" if expires is None else f"expires at {Expiry.read(expires)}"
    click.echo(f"The key {name!r} in {file} {told}.")


@keys.command()
@click.argument("name")
@_file
def revoke(name: str, file: Path) -> None:
    """Remove the key NAME from the file; comments above and below its table stay. The last key cannot be removed: a
    gateway without keys is open to everyone who can reach it.

    \b
    Example:
      callwright keys revoke ben --config callwright.toml
    """

    def without_key(text: str, config: Config) -> str:
        number = _number(config, name, file)
        if len(config.keys) == 1:
            raise ConfigError(
                f"{name!r} is the only key in {file}, and without keys the gateway is open to everyone who can reach "
                f"it. Add another key first, or let this one expire: callwright keys expire {name} 0d."
            )
        return remove_key(text, number)

    change_config(file, without_key)
    click.echo(f"Revoked the key {name!r} in {file}.")


def _change(file: Path, name: str, settings: Mapping[str, Any]) -> bool:
    """Change settings of a key. A value of None removes a setting. Returns whether the key is another one now."""
    before: list[KeyConfig] = []

    def with_settings(text: str, config: Config) -> str:
        number = _number(config, name, file)
        before.append(config.keys[number])
        return change_key(text, number, settings)

    after = change_config(file, with_settings)
    return after.keys[_number(after, name, file)] != before[0]


def _number(config: Config, name: str, file: Path) -> int:
    """The place of a key among the keys. Raises `ConfigError` if no key has this name."""
    names = [key.name for key in config.keys]
    if name not in names:
        known = f" Expected one of: {', '.join(names)}." if names else " It has no keys."
        raise ConfigError(f"{file} has no key {name!r}.{did_you_mean(name, names)}{known}")
    return names.index(name)
