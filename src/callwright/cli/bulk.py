"""`callwright bulk`: parse, render, validate or convert a file of transcripts."""

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, Literal, TypeAlias, assert_never, get_args

import click

from callwright.bulk.convert import CHAT
from callwright.bulk.engines import ENGINES, Engine, check_engine, run
from callwright.bulk.files import Part
from callwright.bulk.job import Done, Job
from callwright.bulk.rows import FIELDS, OPERATIONS, Operation, Work
from callwright.bulk.tally import Tally, merged
from callwright.cli.bulk_streams import STREAM, streams
from callwright.cli.options import TOOLS, dialect_option, named_value, read_json
from callwright.cli.progress import progress_bar
from callwright.cli.terminal import count_noun, shortened
from callwright.errors import ConfigError, reason_of
from callwright.tolerant_json.codec import encode

_FILE = click.Path(path_type=Path, dir_okay=False)
# The number of reasons shown for errors in rows, and the characters of each.
_REASONS: Final = 5
_REASON_CHARS: Final = 200
# The characters shown of an example.
_DETAIL_CHARS: Final = 80
_EXCERPT_CHARS: Final = 60
# The exit status of a command that was interrupted.
_STOPPED: Final = 130
# The number of reasons in the counts for machines.
_COUNTED_REASONS: Final = 100

FailOn: TypeAlias = Literal["all", "error", "problem"]


@click.command()
@click.argument("operation", type=click.Choice(OPERATIONS))
@click.argument("sources", metavar="IN...", type=_FILE, nargs=-1, required=True)
@click.argument("target", metavar="OUT", type=_FILE)
@dialect_option("How the outputs, or the prompts, are written; a row's own wins.  [default of parse: auto, by markup]")
@click.option("--tools", type=click.File("rb"), metavar="FILE", help="Tools for rows that have none: a JSON list.")
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="OURS=THEIRS",
    help=f"Where rows have {', '.join(FIELDS[:-1])} or {FIELDS[-1]}: a name, or a path with dots.",
)
@click.option(
    "--from", "from_", default=CHAT, metavar="FORM", help="convert: chat, responses or a dialect.  [default: chat]"
)
@click.option("--to", default=CHAT, metavar="FORM", help="convert: the same.  [default: chat]")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the dialect, for prompts.")
@click.option("--engine", type=click.Choice(ENGINES), default="local", help="Where it is done.  [default: local]")
@click.option(
    "--workers", type=click.IntRange(1), metavar="N", help="How many at once (local, ray).  [default: one for each CPU]"
)
@click.option(
    "--part-mb",
    type=click.FloatRange(0, min_open=True),
    metavar="MB",
    help="How much of the input is one part.  [default: a 32nd of it, 8 at most]",
)
@click.option(
    "--fail-on",
    type=click.Choice(get_args(FailOn)),
    default="all",
    help="When the exit status is 1: a row with an error, one with a problem or an error, or errors in all rows.  "
    "[default: all]",
)
@click.option("--summary", type=_FILE, metavar="FILE", help="Write the counts as JSON; - is standard output.")
@click.option("--overwrite", is_flag=True, help="Write over OUT.")
def bulk(
    operation: Operation,
    sources: tuple[Path, ...],
    target: Path,
    dialect: str | None,
    tools: IO[bytes] | None,
    fields: tuple[str, ...],
    from_: str,
    to: str,
    options: tuple[str, ...],
    engine: Engine,
    workers: int | None,
    part_mb: float | None,
    fail_on: FailOn,
    summary: Path | None,
    overwrite: bool,
) -> None:
    """Work on files of transcripts: JSONL (.jsonl, .ndjson, .jsonl.gz) or Parquet in, any of them out, row by row in
    the same order. - is standard input or output, JSONL.

    Texts of a model in `output`, conversations of ShareGPT, OpenAI and Anthropic and the output of their batches are
    found by themselves; --field names what is called otherwise.

    Rows keep their fields and get new ones. After an interruption the same command continues. The exit status
    is 1 when no row could be read, or as --fail-on says.

    \b
    Examples:
      callwright bulk parse outputs.jsonl parsed.jsonl --tools tools.json
      callwright bulk parse rows.jsonl answers.jsonl --field output=completion
      callwright bulk parse day1.jsonl.gz day2.jsonl.gz parsed.parquet --dialect hermes
      callwright bulk render chats.parquet prompts.parquet --dialect harmony
      callwright bulk validate chats.jsonl report.jsonl --fail-on problem --summary counts.json
      callwright bulk convert chats.jsonl items.jsonl --to responses
      callwright bulk convert sets.jsonl chats.jsonl --from hermes
    """
    if summary == target == STREAM:
        raise ConfigError("--summary and OUT are both standard output: name a file for one of them.")
    check_engine(engine, workers)
    work = Work(operation, dialect, _tools(tools), dict(map(named_value, options)), from_, to, _fields(fields))
    with streams(sources, target) as (inputs, output, known_as):
        job = Job(work, inputs, output, int(part_mb * 1e6) if part_mb else None, known_as)
        began = time.monotonic()
        with job.claimed(overwrite=overwrite) as (parts, before):
            for name, words in job.describe_inputs():
                click.echo(f"{name}: {words}.", err=True)
            if before:
                click.echo(
                    f"Going on: {len(before)} of {count_noun(len(before) + len(parts), 'part')} are done.", err=True
                )
            worked = time.monotonic()
            done: list[Done] = []
            try:
                _watch(run(job, parts, engine, workers), parts, done)
            except KeyboardInterrupt:
                _say_stopped(len(before) + len(done), len(before) + len(parts), target)
                click.get_current_context().exit(_STOPPED)
            rate = _sum(done, "rows") / max(time.monotonic() - worked, 1e-9)
            everything = sorted([*before, *done], key=lambda each: each.number)
            job.end(everything)
    for line in _summary(everything, rate):
        click.echo(line, err=True)
    click.echo(f"Wrote {'standard output' if target == STREAM else target}.", err=True)
    if summary is not None:
        counts = _counts(operation, everything, rate, time.monotonic() - began, len(before))
        _write_counts(summary, encode(counts) + b"\n")
    if _has_failed(fail_on, everything):
        click.get_current_context().exit(1)


def _has_failed(fail_on: FailOn, done: Sequence[Done]) -> bool:
    rows, errors = _sum(done, "rows"), _sum(done, "errors")
    match fail_on:
        case "all":
            return 0 < rows == errors
        case "error":
            return errors > 0
        case "problem":
            return errors + _sum(done, "problems") > 0
    assert_never(fail_on)


def _counts(operation: Operation, done: Sequence[Done], rate: float, took_s: float, before: int) -> dict[str, Any]:
    """The counts for machines."""
    reasons, kinds = _tallies(done)
    shown = {**dict(list(reasons.items())[:_REASONS]), **kinds}
    return {
        "operation": operation,
        "rows": _sum(done, "rows"),
        "rows_with_errors": _sum(done, "errors"),
        "rows_with_problems": _sum(done, "problems"),
        "errors": {name: tally.count for name, tally in list(reasons.items())[:_COUNTED_REASONS]},
        "problems": {name: tally.count for name, tally in kinds.items()},
        "examples": {name: _example(tally) for name, tally in shown.items()},
        "parts": len(done),
        "parts_done_before": before,
        "rows_per_second": round(rate, 1),
        "seconds": round(took_s, 3),
    }


def _write_counts(path: Path, text: bytes) -> None:
    try:
        if path == STREAM:
            click.echo(text.decode(), nl=False)
        else:
            path.write_bytes(text)
    except OSError as error:
        raise ConfigError(f"--summary: cannot write {path}: {reason_of(error)}.") from error


def _watch(dones: Iterable[Done], parts: Sequence[Part], made: list[Done]) -> None:
    """Add what became of the parts to `made`, and show it while it is done."""
    sizes = {part.number: part.size for part in parts}
    with progress_bar(sum(sizes.values())) as told:
        for done in dones:
            made.append(done)
            errors = _sum(made, "errors")
            failed = f", {errors:,} with an error" if errors else ""
            told(sizes[done.number], count_noun(_sum(made, "rows"), "row") + failed)


def _say_stopped(done: int, parts: int, target: Path) -> None:
    if target == STREAM:
        click.echo("Stopped. Nothing was written: standard output gets the rows when all are done.", err=True)
    else:
        click.echo(
            f"Stopped: run the same command to continue. {done} of {count_noun(parts, 'part')} are done.", err=True
        )


def _tallies(done: Sequence[Done]) -> tuple[dict[str, Tally], dict[str, Tally]]:
    """The errors and the problems of all parts."""
    return merged((each.rows, each.reasons) for each in done), merged((each.rows, each.kinds) for each in done)


def _example(tally: Tally) -> dict[str, Any]:
    texts = {"detail": tally.detail, "excerpt": tally.excerpt}
    return {"row": tally.row, **{name: text for name, text in texts.items() if text}}


def _sum(done: Iterable[Done], count: Literal["rows", "problems", "errors"]) -> int:
    return sum(getattr(each, count) for each in done)


def _summary(done: Sequence[Done], rate: float) -> Iterator[str]:
    """What became of all parts: errors and problems, the commonest first, each with a row that has it."""
    errors = _sum(done, "errors")
    problems = f"{_sum(done, 'problems'):,} with problems"
    yield f"{count_noun(_sum(done, 'rows'), 'row')}, {problems}, {errors:,} with an error; {rate:,.0f} rows/s."
    reasons, kinds = _tallies(done)
    told = dict(list(reasons.items())[:_REASONS])
    others = errors - sum(tally.count for tally in told.values())
    width = len(f"{max(others, *(tally.count for tally in (*told.values(), *kinds.values())), 0):,}")
    for reason, tally in told.items():
        yield f"  {tally.count:{width},}  {shortened([reason], _REASON_CHARS)} (row {tally.row:,})"
    if others:
        yield f"  {others:{width},}  for other reasons"
    longest = max(map(len, kinds), default=0)
    for kind, tally in kinds.items():
        example = f"row {tally.row:,}: {shortened([tally.detail], _DETAIL_CHARS)}"
        excerpt = f"  {shortened([tally.excerpt], _EXCERPT_CHARS)}" if tally.excerpt else ""
        yield f"  {tally.count:{width},}  {kind:{longest}}  {example}{excerpt}"


def _fields(given: Sequence[str]) -> dict[str, str]:
    """Our names of fields with those of the rows. `Work` checks ours."""
    found = {}
    for text in given:
        ours, equals, theirs = text.partition("=")
        if not (equals and ours and theirs):
            raise ConfigError(f"--field {text}: expected OURS=THEIRS, such as output=completion.")
        found[ours] = theirs
    return found


def _tools(file: IO[bytes] | None) -> list[Any] | None:
    if file is None:
        return None
    tools = read_json(file, TOOLS)
    if not isinstance(tools, list):
        raise ConfigError(f"--tools: expected a JSON list of tools, got {type(tools).__name__}.")
    return tools
