"""`callwright render`: the prompt of a chat request, as the library renders it."""

import json
from collections.abc import Sequence
from typing import IO, Final

import click

from callwright.cli.options import dialect_option, named_value, read_json
from callwright.dialects.base import get_dialect, read_options
from callwright.errors import RequestError
from callwright.openai_format.messages import read_conversation

_REQUEST: Final = 'a request as JSON, such as {"messages": [{"role": "user", "content": "hi"}]}'


@click.command()
@dialect_option("The format to render; see `callwright dialects`.", required=True)
@click.option("--option", "-o", "options", multiple=True, metavar="NAME=VALUE", help="An option of the dialect.")
@click.option(
    "--messages", "as_messages", is_flag=True, help="The chat messages of mode prompt instead of a raw prompt."
)
@click.argument("request", type=click.File("rb"), default="-")
def render(dialect: str, options: Sequence[str], as_messages: bool, request: IO[bytes]) -> None:
    """Print the prompt of a chat request (messages, tools, tool_choice), from REQUEST or standard input.

    \b
    Example:
      echo '{"messages": [{"role": "user", "content": "hi"}]}' \\
        | callwright render --dialect harmony -o reasoning_effort=low
    """
    given = read_json(request, _REQUEST)
    if not isinstance(given, dict) or "messages" not in given:
        raise RequestError(f"Expected {_REQUEST}, got no messages.")
    conversation = read_conversation(given["messages"], given.get("tools"), given.get("tool_choice"))
    chosen = read_options(dialect, dict(map(named_value, options)))
    if as_messages:
        messages = get_dialect(dialect).messages(conversation, chosen)
        click.echo(json.dumps(messages, ensure_ascii=False, indent=2))
    else:
        click.echo(get_dialect(dialect).render(conversation, chosen).text)
