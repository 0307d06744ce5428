"""`callwright dialects`: the formats that are known, one of them, or the one of a model."""

import textwrap
from collections.abc import Iterator
from typing import IO

import click

from callwright.cli.options import complete_dialect
from callwright.cli.terminal import table, width
from callwright.dialects.base import dialect_names, get_dialect
from callwright.dialects.detect import by_name, by_template
from callwright.errors import ConfigError, RequestError

__all__ = ["dialects"]


@click.command()
@click.argument("name", required=False, shell_complete=complete_dialect)
@click.option("--model", metavar="NAME", help="Say which dialect a model of this name speaks, and why.")
@click.option("--template", type=click.File(encoding="utf-8"), metavar="FILE", help="The same for a chat template.")
def dialects(name: str | None, model: str | None, template: IO[str] | None) -> None:
    """List the dialects; tell all of the one called NAME; or say which one a model speaks.

    \b
    Examples:
      callwright dialects
      callwright dialects harmony
      callwright dialects --model Qwen/Qwen3-Coder-30B-A3B-Instruct
    """
    if (name is not None) + (model is not None) + (template is not None) > 1:
        raise ConfigError("NAME, --model and --template ask for different things: leave out all but one.")
    if model is not None or template is not None:
        found = by_template(template.read()) if template is not None else by_name(model or "")
        if found is None:
            raise RequestError("Nothing is known of it. `callwright dialects` lists the dialects; json works with any.")
        click.echo(f"{found.dialect}  ({found.reason})")
        return
    for line in _list() if name is None else _whole(name):
        click.echo(line)


def _list() -> Iterator[str]:
    known = [(name, get_dialect(name)) for name in dialect_names()]
    rows = [([name], dialect.aliases, dialect.model_families.split(", ")) for name, dialect in known]
    return table(("DIALECT", "OTHER NAMES", "MODELS"), rows)


def _whole(name: str) -> Iterator[str]:
    dialect = get_dialect(name)
    yield next(own for own in dialect_names() if get_dialect(own) is dialect)
    told = {
        "models": dialect.model_families,
        "source": dialect.source,
        "aliases": ", ".join(dialect.aliases) or "none",
        "options": ", ".join(dialect.options.__struct_fields__),
    }
    for title, text in told.items():
        yield textwrap.fill(text, width(), initial_indent=f"  {title}  ".ljust(11), subsequent_indent=" " * 11)
