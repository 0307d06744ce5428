"""Writes a configuration file. It never replaces a file."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from callwright.cli.served_table import Looked
from callwright.doctor.recommend import Advice, advice, toml_table
from callwright.errors import ConfigError
from callwright.gateway.config.config import ANY_MODEL, ModelConfig, servers_of
from callwright.upstreams.base_urls import without_credentials


def refuse_existing(file: Path) -> None:
    """Raises `ConfigError` if the file of `--write` exists. Called before any server is asked."""
    if os.path.lexists(file):
        raise ConfigError(f"--write: {file} exists already. Name another file, or move it away.")


def write_config(file: Path, lines: Sequence[str]) -> None:
    """Write the lines to a new file and print the command that uses it. Raises `ConfigError`."""
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write("\n".join((*lines, "")))
    except OSError as error:
        raise ConfigError(f"Cannot write {file}: {error.strerror}.") from error
    click.echo(f"Wrote {file}. Start the gateway with:\n  callwright serve --config {shlex.quote(str(file))}", err=True)


def advised_table(advised: Advice) -> Iterator[str]:
    """The `[[models]]` table that is recommended, after its reasons as comments."""
    yield from (f"# {name}: {it.value}: {' '.join(it.reason.split())}" for name, it in advised.choices.items())
    yield advised.toml


def served_config(
    models: Sequence[ModelConfig], looked: Looked, tables: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """The lines of a configuration for what `callwright serve` was given and found out. `tables` are its other tables,
    such as `server`; settings without a value are left out.
    """
    for name, table in tables.items():
        if settings := {key: value for key, value in table.items() if value not in (None, "")}:
            yield from (toml_table(f"[{name}]", settings), "")
    for given in models:
        if any(url != without_credentials(url) for url in servers_of(given)):
            raise ConfigError("--write: the URL has a password, which no file should have. Give the key by --key-env.")
        advised = [advice(found, api_key_env=given.api_key_env) for found, _ in looked.get(given.name, ())]
        pinned = [one for one in advised if one.toml] if given.template is None else []
        for one in pinned:
            yield from (*advised_table(one), "")
        if not pinned or given.name == ANY_MODEL:
            if pinned:
                yield "# Every other model of this server: chosen when it is first used."
            yield from (toml_table("[[models]]", _settings(given)), "")


def _settings(given: ModelConfig) -> dict[str, Any]:
    """The settings that differ from the defaults."""
    defaults = msgspec.to_builtins(ModelConfig(name=given.name, upstream=given.upstream))
    settings = msgspec.to_builtins(given)
    return {name: value for name, value in settings.items() if name in ("name", "upstream") or value != defaults[name]}
