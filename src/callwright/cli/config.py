"""`callwright config`: a configuration checked without starting anything, and its schema for editors."""

import json
import time
from pathlib import Path

import click

from callwright.database.engine import Database
from callwright.errors import ConfigError
from callwright.gateway.config.build_models import build_models
from callwright.gateway.config.config import load_config
from callwright.gateway.config.schema import config_schema
from callwright.gateway.server_tools.mcp_servers import McpServers
from callwright.gateway.server_tools.search_engine import search_engine


@click.command()
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the file, with what each setting means.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
def config(schema: bool, file: Path | None) -> None:
    """Check the configuration FILE, as `callwright serve --config FILE` would: no server is asked.

    \b
    Examples:
      callwright config callwright.toml
      callwright config --schema > callwright.schema.json
    """
    if schema == (file is not None):
        raise ConfigError("Expected either a FILE to check or --schema.")
    if file is None:
        click.echo(json.dumps(config_schema(), ensure_ascii=False, indent=2))
        return
    read = load_config(file)
    if read.store is not None and read.store.url != "none":
        Database.parse(read.store.url)
    models = build_models(read)
    servers = McpServers(read.mcp)
    if read.search is not None:
        search_engine(read.search, servers, [server.label for server in read.mcp])
    for key in read.keys:
        if key.expires is not None and key.expires.is_over(time.time()):
            click.echo(f"Warning: key {key.name!r} expired at {key.expires}.", err=True)
    click.echo(f"{file} is right. Models: {', '.join(models)}.")
