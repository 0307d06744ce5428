"""`callwright config`: a configuration checked without starting anything, and its schema for editors."""

import json
import time
from pathlib import Path

import click

from callwright.errors import ConfigError
from callwright.gateway.check import check_config, explain_restart
from callwright.gateway.config.changes import applicable, differences, new_warning
from callwright.gateway.config.config import Config, load_config, name_file
from callwright.gateway.config.schema import config_schema
from callwright.gateway.hooks.build import idle_rules
from callwright.gateway.process.workers import check_workers


@click.command()
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the file, with what each setting means.")
@click.option(
    "--diff",
    "other",
    type=click.Path(path_type=Path),
    metavar="OTHER",
    help="Print what changes if a gateway of FILE reads OTHER, and which of it needs a restart.",
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
def config(schema: bool, other: Path | None, file: Path | None) -> None:
    """Check the configuration FILE, as `callwright serve --config FILE` would: no server is asked.

    \b
    Examples:
      callwright config callwright.toml
      callwright config --schema > callwright.schema.json
    """
    if schema == (file is not None):
        raise ConfigError("Expected either a FILE to check or --schema.")
    if file is None:
        if other is not None:
            raise ConfigError("--diff compares two files: give a FILE, too.")
        click.echo(json.dumps(config_schema(), ensure_ascii=False, indent=2))
        return
    read = load_config(file)
    if other is None:
        for key in read.keys:
            if key.expires is not None and key.expires.is_over(time.time()):
                click.echo(f"Warning: key {key.name!r} expired at {key.expires}.", err=True)
        for idle in idle_rules(read):
            click.echo(f"Warning: {idle}", err=True)
        with name_file(file):
            models = _check_as_serve(read)
        click.echo(f"{file} is right. Models: {', '.join(models)}.")
        return
    wanted = load_config(other)
    with name_file(other):
        _check_as_serve(wanted)
    click.echo("\n".join(map(str, differences(read, wanted))) or "No changes.")
    for warning in (new_warning(read, wanted), _obstacle(read, wanted)):
        if warning is not None:
            click.echo(f"Warning: {warning}", err=True)


def _check_as_serve(config: Config) -> list[str]:
    """The names of the models. Raises `ConfigError` if `callwright serve` would."""
    models = check_config(config)
    if config.store is not None:  # without one, serve names a file that workers can share
        check_workers(config)
    return models


def _obstacle(running: Config, wanted: Config) -> str | None:
    """Why a gateway cannot take a right configuration without a restart; None if it can."""
    try:
        with explain_restart(running, wanted):
            check_config(applicable(running, wanted))
    except ConfigError as error:
        return str(error)
    return None
