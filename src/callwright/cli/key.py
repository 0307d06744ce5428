"""`callwright key`: a key for a client."""

import json

import click

from callwright.errors import ConfigError
from callwright.gateway.access.keys import hash_of, new_key


@click.command()
@click.argument("name")
def key(name: str) -> None:
    """Make a key for a client called NAME, and print it, once, with what the configuration says of it.

    \b
    Example:
      callwright key anna
    """
    if not name or not name.isprintable():
        raise ConfigError(f"NAME: expected a name in printable characters, got {name!r}.")
    made = new_key()
    click.echo(f"{made}\n\nThe client sends it; it is written down nowhere else. For the configuration:\n")
    click.echo(f'[[keys]]\nname = {json.dumps(name, ensure_ascii=False)}\nsha256 = "{hash_of(made)}"')
