"""`callwright bulk`: parse, render, validate or convert a file of transcripts."""

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import click

from callwright.bulk.convert import CHAT
from callwright.bulk.engines import ENGINES, Engine, run
from callwright.bulk.job import PART_BYTES, Done, Job
from callwright.bulk.rows import OPERATIONS, Operation, Work
from callwright.cli.options import dialect_option
from callwright.errors import ConfigError
from callwright.tolerant_json.codec import NotJsonError, decode

__all__ = ["bulk"]

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("operation", type=click.Choice(OPERATIONS))
@click.argument("source", metavar="IN", type=_FILE)
@click.argument("target", metavar="OUT", type=_FILE)
@dialect_option("How the outputs are written, or the prompts are to be; a row's own wins.")
@click.option("--tools", type=click.File("rb"), metavar="FILE", help="Tools for rows that have none: a JSON list.")
@click.option(
    "--from", "from_", default=CHAT, metavar="FORM", help="convert: chat, responses or a dialect.  [default: chat]"
)
@click.option("--to", default=CHAT, metavar="FORM", help="convert: the same.  [default: chat]")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the dialect, for prompts.")
@click.option("--engine", type=click.Choice(ENGINES), default="local", help="Where it is done.  [default: local]")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="How many at once.  [default: one for each CPU]")
@click.option(
    "--part-mb", type=click.FloatRange(0, min_open=True), metavar="MB", help="How much of a JSONL file is one part."
)
@click.option("--overwrite", is_flag=True, help="Write over OUT.")
def bulk(
    operation: Operation,
    source: Path,
    target: Path,
    dialect: str | None,
    tools: IO[bytes] | None,
    from_: str,
    to: str,
    options: tuple[str, ...],
    engine: Engine,
    workers: int | None,
    part_mb: float | None,
    overwrite: bool,
) -> None:
    """Work on a file of transcripts: JSONL or Parquet in, the same out, row by row in the same order.

    Rows keep their fields and get new ones. When it is stopped, the same command goes on where it was. The exit status
    is 1 when no row could be read.

    \b
    Examples:
      callwright bulk parse outputs.jsonl parsed.jsonl --dialect hermes --tools tools.json
      callwright bulk render chats.parquet prompts.parquet --dialect harmony
      callwright bulk validate chats.jsonl report.jsonl
      callwright bulk convert chats.jsonl items.jsonl --to responses
      callwright bulk convert sets.jsonl chats.jsonl --from hermes
    """
    work = Work(operation, dialect, _tools(tools), _options(options), from_, to)
    job = Job(work, source, target, int(part_mb * 1e6) if part_mb else PART_BYTES)
    parts, before = job.begin(overwrite=overwrite)
    if before:
        click.echo(f"Going on: {len(before)} of {len(before) + len(parts)} parts are done.", err=True)
    began = time.monotonic()
    done = _watched(run(job, parts, engine, workers), len(parts))
    took = time.monotonic() - began
    job.end()
    rows = sum(each.rows for each in done)
    everything = [*before, *done]
    click.echo(
        f"{sum(each.rows for each in everything):,} rows, {sum(each.problems for each in everything):,} with problems, "
        f"{sum(each.errors for each in everything):,} with an error; {rows / max(took, 1e-9):,.0f} rows/s. "
        f"Wrote {target}.",
        err=True,
    )
    if everything and all(each.errors == each.rows for each in everything):
        raise SystemExit(1)


def _watched(dones: Iterable[Done], count: int) -> list[Done]:
    """What became of the parts, behind a progress bar."""
    made: list[Done] = []
    if not count:
        return made
    with click.progressbar(length=count, file=sys.stderr, show_pos=True) as bar:
        for done in dones:
            made.append(done)
            bar.update(1)
    return made


def _tools(file: IO[bytes] | None) -> list[Any] | None:
    if file is None:
        return None
    try:
        tools = decode(file.read())
    except NotJsonError as error:
        raise ConfigError(f"--tools: expected a JSON list of tools: {error}.") from error
    if not isinstance(tools, list):
        raise ConfigError(f"--tools: expected a JSON list of tools, got {type(tools).__name__}.")
    return tools


def _options(given: tuple[str, ...]) -> dict[str, Any]:
    """Options as `name=value`, values in JSON or as texts."""
    options: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise ConfigError(f"--option {each}: expected name=value.")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options
