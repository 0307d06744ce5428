"""`callwright parse`: parses a model's output as the library does."""

import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any, Final

import click
import msgspec

from callwright.api import Parser
from callwright.cli.options import TOOLS, dialect_option, read_json, told_of
from callwright.dialects.auto import AUTO
from callwright.errors import ConfigError, RequestError
from callwright.events import FinishReason
from callwright.reading.collect import collect
from callwright.response_template.template import ResponseTemplate

# Characters that an output has, and hardly a name of a file.
_IS_TEXT: Final = re.compile(r"[<>{}\[\]\n|]")
# By the field of a request that an error names.
_OPTIONS: Final = {"dialect": "--dialect", "tool_choice": "--tool-choice", "tools": "--tools"}


class _OutputFile(click.File):
    """A file; who gives the text itself is shown the way to do so."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            if not (isinstance(value, str) and _IS_TEXT.search(value)):
                raise
            way_out = "OUTPUT is a file. For the text itself: printf %s '…' | callwright parse"
            self.fail(f"{error.message}. {way_out}", param, ctx)


@click.command()
@dialect_option("How the model writes calls; see `callwright dialects`.  [default: auto, by the output's markup]")
@click.option(
    "--response-template",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The declaration of the model's checkpoint instead, also in its tokenizer_config.json.",
)
@click.option("--tools", type=click.File("rb"), metavar="FILE", help="JSON list of tools in OpenAI's shape.")
@click.option("--tool-choice", metavar="CHOICE", help="none, auto, required, or the name of a tool.")
@click.option("--start", type=click.Choice(["assistant", "reasoning", "message"]), help="Where the output begins.")
@click.option("--finish-reason", type=click.Choice(["stop", "length"]), default="stop", help="How the output ended.")
@click.option("--events", is_flag=True, help="Print the events, one JSON object a line, instead of the result.")
@click.argument("output", type=_OutputFile("rb"), default="-")
def parse(
    dialect: str | None,
    response_template: Path | None,
    tools: IO[bytes] | None,
    tool_choice: str | None,
    start: str | None,
    finish_reason: FinishReason,
    events: bool,
    output: IO[bytes],
) -> None:
    """Read what a model wrote, from OUTPUT or standard input, and print it as one JSON object.

    \b
    Example:
      echo '<tool_call>{"name": "get_time", "arguments": {"tz": "UTC"}}</tool_call>' \\
        | callwright parse --tools tools.json
    """
    choice: Any = tool_choice
    if tool_choice not in (None, "none", "auto", "required"):
        choice = {"type": "function", "function": {"name": tool_choice}}
    reads = _reads(dialect, response_template)
    given = read_json(tools, TOOLS) if tools else None
    if given is None and choice not in (None, "none", "auto"):
        raise ConfigError(f"--tool-choice {tool_choice} is among tools: add --tools FILE.")
    try:
        parser = Parser(reads, tools=given, tool_choice=choice, start=start)
    except RequestError as error:
        param = (error.param or "").partition("[")[0].partition(".")[0]
        with told_of(_OPTIONS[param]) if param in _OPTIONS else nullcontext():
            raise
    text = output.read().decode(errors="replace")  # its line ends are the model's, as all of it
    found = parser.finish(finish_reason, text)
    if events:
        for event in found:
            click.echo(json.dumps({"event": type(event).__name__, **msgspec.to_builtins(event)}, ensure_ascii=False))
        return
    turn = collect(found)
    calls = [{"name": call.name, "arguments": call.arguments, "complete": call.complete} for call in turn.calls]
    result = {
        "content": turn.content,
        "reasoning": turn.reasoning,
        "calls": calls,
        "finish_reason": turn.finish_reason,
        "problems": msgspec.to_builtins(turn.problems),
    }
    click.echo(json.dumps(result, ensure_ascii=False, indent=2))


def _reads(dialect: str | None, response_template: Path | None) -> str | ResponseTemplate:
    if dialect is not None and response_template is not None:
        raise ConfigError("--dialect and --response-template both say how the output reads: leave out one of them.")
    if response_template is not None:
        return ResponseTemplate.load(response_template)
    return dialect or AUTO
