"""`callwright replay`: recorded outputs of models, read again by the parser and the check of today."""

import difflib
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import click
import msgspec
from msgspec import Struct

from callwright.chat_template.dialect import template_dialect
from callwright.cli.options import dialect_option
from callwright.cli.terminal import count_noun
from callwright.dialects.base import get_dialect
from callwright.errors import RequestError
from callwright.reading.collect import Turn
from callwright.turn.records import Record
from callwright.turn.reread import RecordError, Reread, read_record, reread


class _Counts(Struct):
    turns: int = 0
    outputs: int = 0
    differing: int = 0
    skipped: int = 0


@click.command()
@dialect_option("Read the outputs as this dialect, but for those that a server has read.")
@click.option(
    "--template",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The chat template of outputs that were read by it.",
)
@click.option("--diff", is_flag=True, help="Show what differs, line by line.")
@click.option("--json", "as_json", is_flag=True, help="Print an object for each that differs, and one at the end.")
@click.option("--page", is_flag=True, help="Show the turns as web pages instead, until Ctrl-C.")
@click.argument("files", type=click.File("rb"), nargs=-1, required=True, metavar="FILE…")
@click.pass_context
def replay(
    ctx: click.Context,
    dialect: str | None,
    template: Path | None,
    diff: bool,
    as_json: bool,
    page: bool,
    files: tuple[IO[bytes], ...],
) -> None:
    """Read what models wrote in recorded turns (FILE of `serve --record`) again, and print what is read differently.

    Ends with 1 when something differs.

    \b
    Example:
      callwright serve --record turns
      callwright replay turns/*.jsonl --diff
      callwright replay turns/*.jsonl --page
    """
    if template is not None:
        template_dialect(template)  # from here on known by its name
    if page:
        _show([Path(file.name) for file in files])
        return
    if dialect is not None:
        get_dialect(dialect)
    counts = _Counts()
    for file in files:
        for place, record in _records(file, counts):
            try:
                found = reread(record, dialect)
            except (RecordError, RequestError) as error:
                raise RequestError(f"{place}: {error}") from error
            counts.turns += 1
            for number, one in enumerate(found, 1):
                if one is None:
                    counts.skipped += 1
                    continue
                counts.outputs += 1
                if one.differing:
                    counts.differing += 1
                    _tell(f"{place}, output {number}", record, one, diff=diff, as_json=as_json)
    if as_json:
        click.echo(json.dumps(msgspec.structs.asdict(counts)))
    else:
        skipped = f", {counts.skipped} left out because they are not there in full" if counts.skipped else ""
        turns, outputs = count_noun(counts.turns, "turn"), count_noun(counts.outputs, "output")
        click.echo(f"{turns}, {outputs}, {counts.differing:,} read differently{skipped}")
    ctx.exit(1 if counts.differing else 0)


def _show(paths: list[Path]) -> None:
    """Serve the pages, on this machine only."""
    from callwright.gateway.app import create_app  # here, so that the other commands start without it
    from callwright.gateway.config.config import Config, ServerConfig, StoreConfig
    from callwright.gateway.inspection.turn_source import RecordedTurns
    from callwright.gateway.observability.logs import configure
    from callwright.gateway.process.serving import serve
    from callwright.gateway.process.sockets import listen_for_each
    from callwright.settings.bounds import MAX_INSPECTED_TURNS

    config = Config(server=ServerConfig(port=0, inspect="off", drain_s=0), store=StoreConfig(url="none"))
    try:
        turns = RecordedTurns(paths, MAX_INSPECTED_TURNS)
    except RecordError as error:
        raise RequestError(f"{error}. Expected a line that `serve --record` has written.") from error
    configure("warning", "plain")
    with ExitStack() as when_it_ends:
        listener = next(when_it_ends.enter_context(one) for one in listen_for_each(config.server.host, 0, 1))
        told = f"{count_noun(len(turns), 'turn')} at http://{config.server.host}:{listener.getsockname()[1]}/ui"
        serve(create_app(config, records=turns), config, listener, lambda: click.echo(told))


def _records(file: IO[bytes], counts: _Counts) -> Iterator[tuple[str, Record]]:
    """The records of a file, with their places. A last line that was not written to its end is left out."""
    for number, line in enumerate(file, 1):
        place = f"{file.name}:{number}"
        try:
            record = read_record(line)
        except RecordError as error:
            if line.endswith(b"\n"):
                raise RequestError(f"{place}: {error}. Expected a line that `serve --record` has written.") from error
            counts.skipped += 1
        else:
            yield place, record


def _tell(place: str, record: Record, one: Reread, *, diff: bool, as_json: bool) -> None:
    if as_json:
        told = {"place": place, "request_id": record.request_id, "model": record.model, "differing": one.differing}
        click.echo(
            json.dumps({**told, "then": _to_builtins(one.then), "now": _to_builtins(one.now)}, ensure_ascii=False)
        )
        return
    click.echo(f"{place}: {record.model} {record.request_id or ''}: {', '.join(one.differing)}")
    if diff:
        then, now = (
            json.dumps(_to_builtins(turn), ensure_ascii=False, indent=2).split("\n") for turn in (one.then, one.now)
        )
        for line in difflib.unified_diff(then, now, f"then ({record.callwright})", "now", lineterm=""):
            click.echo(f"  {line}")


def _to_builtins(turn: Turn) -> Any:
    return msgspec.to_builtins(turn)
