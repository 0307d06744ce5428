"""`callwright dialects`: the formats that are known, one of them, or the one of a model."""

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from callwright.chat_template.detect import detect
from callwright.chat_template.dialect import find_format
from callwright.chat_template.sources import ChatTemplate, read_template
from callwright.cli.options import complete_dialect
from callwright.cli.terminal import table, width
from callwright.conversation import Call
from callwright.dialects.base import TEMPLATE_PREFIX, dialect_names, get_dialect
from callwright.dialects.detect import by_name, options_by_name
from callwright.errors import ConfigError, RequestError

# The call that shows a form.
EXAMPLE: Final = Call("get_time", '{"zone": "UTC"}', id="call_1")


@click.command()
@click.argument("name", required=False, shell_complete=complete_dialect)
@click.option("--model", metavar="NAME", help="Say which dialect a model of this name speaks, and why.")
@click.option(
    "--template",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The same for a chat template (Jinja, tokenizer_config.json, a model's folder or GGUF), and what it does.",
)
def dialects(name: str | None, model: str | None, template: Path | None) -> None:
    """List the dialects, show the one called NAME in detail, or find the one that a model speaks.

    \b
    Examples:
      callwright dialects
      callwright dialects harmony
      callwright dialects --model Qwen/Qwen3-Coder-30B-A3B-Instruct
    """
    if (name is not None) + (model is not None) + (template is not None) > 1:
        raise ConfigError("NAME, --model and --template ask for different things: leave out all but one.")
    if template is not None:
        for line in _of_template(read_template(template)):
            click.echo(line)
        return
    if model is not None:
        found = by_name(model)
        if found is None:
            raise RequestError("Nothing is known of it. `callwright dialects` lists the dialects; json works with any.")
        options = [f" -o {key}={value}" for key, value in options_by_name(found.dialect, model).items()]
        click.echo(f"{found.dialect}{''.join(options)}  ({found.reason})")
        return
    for line in _list() if name is None else _whole(name):
        click.echo(line)


def _of_template(given: ChatTemplate) -> Iterator[str]:
    spoken = detect(given, [])
    own = spoken is None or spoken.dialect.startswith(TEMPLATE_PREFIX)
    yield "no declared dialect  (none fits)" if spoken is None or own else f"{spoken.dialect}  ({spoken.reason})"
    found = find_format(given)
    yield "template  (what rendering it shows)"
    turns = found.turns
    told = {
        "tools": "shown by the template" if found.shows_tools else "described in the system message",
        "calls": json.dumps(found.calls.layout.text([EXAMPLE]), ensure_ascii=False) if found.calls else "in words",
        "why": found.why,
        "differs": ", ".join(found.differs),
        "reasoning": " … ".join(mark.strip() for mark in turns.thought) if turns.thought else "",
        "answers": " … ".join(turns.answer) if turns.answer else "",
        "stops": " ".join(turns.stops),
        "system": "" if turns.system else "a system message is refused: it begins the first user's",
    }
    for title, text in told.items():
        if text:
            yield textwrap.fill(text, width(), initial_indent=f"  {title}  ".ljust(13), subsequent_indent=" " * 13)


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
