"""`callwright bulk`: parse, render, validate or convert a file of transcripts."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, Literal

import click

from callwright.bulk.convert import CHAT
from callwright.bulk.engines import ENGINES, Engine, run
from callwright.bulk.files import Part
from callwright.bulk.job import Done, Job
from callwright.bulk.rows import OPERATIONS, Operation, Work
from callwright.cli.options import TOOLS, dialect_option, named_value, read_json
from callwright.cli.progress import progress_bar
from callwright.cli.terminal import counted, shortened
from callwright.errors import ConfigError

__all__ = ["bulk"]

_FILE = click.Path(path_type=Path, dir_okay=False)
# So many of the reasons why rows have errors are told, each as far as that.
_REASONS: Final = 5
_REASON_CHARS: Final = 200


@click.command()
@click.argument("operation", type=click.Choice(OPERATIONS))
@click.argument("source", metavar="IN", type=_FILE)
@click.argument("target", metavar="OUT", type=_FILE)
@dialect_option("How the outputs are written (auto: found from each), or the prompts are to be; a row's own wins.")
@click.option("--tools", type=click.File("rb"), metavar="FILE", help="Tools for rows that have none: a JSON list.")
@click.option(
    "--from", "from_", default=CHAT, metavar="FORM", help="convert: chat, responses or a dialect.  [default: chat]"
)
@click.option("--to", default=CHAT, metavar="FORM", help="convert: the same.  [default: chat]")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the dialect, for prompts.")
@click.option("--engine", type=click.Choice(ENGINES), default="local", help="Where it is done.  [default: local]")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="How many at once.  [default: one for each CPU]")
@click.option(
    "--part-mb",
    type=click.FloatRange(0, min_open=True),
    metavar="MB",
    help="How much of a JSONL file is one part.  [default: a 32nd of it, 8 at most]",
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
    work = Work(operation, dialect, _tools(tools), dict(map(named_value, options)), from_, to)
    job = Job(work, source, target, int(part_mb * 1e6) if part_mb else None)
    parts, before = job.begin(overwrite=overwrite)
    if before:
        click.echo(f"Going on: {len(before)} of {counted(len(before) + len(parts), 'part')} are done.", err=True)
    began = time.monotonic()
    done = _watched(run(job, parts, engine, workers), parts)
    rate = _sum(done, "rows") / max(time.monotonic() - began, 1e-9)
    job.end()
    everything = [*before, *done]
    for line in _summary(everything, rate):
        click.echo(line, err=True)
    click.echo(f"Wrote {target}.", err=True)
    if 0 < _sum(everything, "rows") == _sum(everything, "errors"):
        click.get_current_context().exit(1)


def _watched(dones: Iterable[Done], parts: Sequence[Part]) -> list[Done]:
    """What became of the parts, told while it is done."""
    made: list[Done] = []
    sizes = {part.number: part.size for part in parts}
    with progress_bar(sum(sizes.values())) as told:
        for done in dones:
            made.append(done)
            errors = _sum(made, "errors")
            failed = f", {errors:,} with an error" if errors else ""
            told(sizes[done.number], counted(_sum(made, "rows"), "row") + failed)
    return made


def _sum(done: Iterable[Done], count: Literal["rows", "problems", "errors"]) -> int:
    return sum(getattr(each, count) for each in done)


def _summary(done: Sequence[Done], rate: float) -> Iterator[str]:
    """What became of all parts; why rows have errors, the commonest reasons first."""
    errors = _sum(done, "errors")
    problems = f"{_sum(done, 'problems'):,} with problems"
    yield f"{counted(_sum(done, 'rows'), 'row')}, {problems}, {errors:,} with an error; {rate:,.0f} rows/s."
    reasons = Counter[str]()
    for each in done:
        reasons.update(each.reasons)
    told = reasons.most_common(_REASONS)
    others = errors - sum(number for _, number in told)
    width = len(f"{max(others, *reasons.values(), 0):,}")
    for reason, number in told:
        yield f"  {number:{width},}  {shortened([reason], _REASON_CHARS)}"
    if others:
        yield f"  {others:{width},}  for other reasons"


def _tools(file: IO[bytes] | None) -> list[Any] | None:
    if file is None:
        return None
    tools = read_json(file, TOOLS)
    if not isinstance(tools, list):
        raise ConfigError(f"--tools: expected a JSON list of tools, got {type(tools).__name__}.")
    return tools
