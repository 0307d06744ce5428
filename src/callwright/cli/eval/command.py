"""`callwright eval`: measure the accuracy of a model in each way of asking it, and compare."""

import asyncio
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, get_args

import click
import msgspec
from msgspec import Struct

import callwright
from callwright.cli.eval.chosen import chosen_toml
from callwright.cli.eval.on_ray import measured as on_ray
from callwright.cli.eval.on_ray import parts_of
from callwright.cli.eval.target import Asked, Target, config_target, file_target, simulated_target, url_target
from callwright.cli.options import dialect_option, named_value
from callwright.cli.progress import live
from callwright.cli.weights import install_weights
from callwright.errors import ConfigError, UpstreamError
from callwright.eval.case import Case
from callwright.eval.cost import cost_of, seconds_left
from callwright.eval.own_cases import read_cases
from callwright.eval.report.page import page
from callwright.eval.report.table import comparison_lines, failing_lines, lines_of
from callwright.eval.results import Plan, Result, ResultFile, read_records, read_results
from callwright.eval.run import missing, run
from callwright.eval.suite import GROUPS, Size, digest_of, suite
from callwright.eval.summary import Summary, summary_of
from callwright.eval.ways import read_way
from callwright.gateway.config.config import SIMULATED_UPSTREAM
from callwright.upstreams.embedded.gguf import is_file
from callwright.upstreams.simulated.faults import Faults

_COMPARE: Final = "compare"
_REPORT: Final = "report.html"
_CHOSEN: Final = "callwright.toml"
# Ten minutes for one case: a dialogue of a dozen answers, on a machine that writes ten tokens a second.
_TIMEOUT_S: Final = 600.0


@click.command("eval")
@click.argument("targets", nargs=-1, metavar="[URL | FILE.gguf | compare A B]")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The models of a callwright.toml, with their settings there.",
)
@click.option("--model", metavar="NAME", help="The model; without it the first that the server lists.")
@dialect_option("How the model writes calls, if its name does not show it.")
@click.option("--way", "ways", multiple=True, metavar="WAY", help="A way of asking; without it those that make sense.")
@click.option("--key-env", "api_key_env", metavar="VAR", help="Environment variable that holds the server's API key.")
@click.option("--field", "fields", multiple=True, metavar="NAME=VALUE", help="A field for each request: temperature=0.")
@click.option("--size", type=click.Choice(get_args(Size)), default="normal", show_default=True, help="How many cases.")
@click.option("--group", "groups", multiple=True, type=click.Choice(tuple(GROUPS)), help="Only cases of this group.")
@click.option(
    "--cases",
    "own",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Your own cases instead: YAML, TOML or JSONL; files of BFCL.",
)
@click.option("--faults", default="", metavar="SPEC", help="Let the simulated model misbehave, e.g. all:0.3.")
@click.option(
    "--at-once", type=click.IntRange(1, 256), default=4, show_default=True, metavar="N", help="Cases at once."
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where: in this process, or with --config on Ray, a task for each server.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("eval-results"),
    show_default=True,
    metavar="DIR",
    help="Folder of the results; requests that have one are not sent again.",
)
@click.option("--dry-run", is_flag=True, help="Say what it would cost, and ask nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
@click.option("--fail-under", type=click.FloatRange(0, 1), metavar="SHARE", help="Exit with 1 if no way reaches it.")
@click.pass_context
def measure(ctx: click.Context, /, targets: Sequence[str], **given: Any) -> None:
    """Measure the tool-calling accuracy of a model: a server, a model in a file, or without one the simulated model.

    `compare A B` compares two folders of results, case by case. After an interruption, run the same
    command to continue.

    \b
    Examples:
      callwright eval --size quick --out before
      callwright eval --size quick --out after
      callwright eval compare before after
      callwright eval http://localhost:8000/v1 --dry-run
      callwright eval http://localhost:8000/v1 --way native --way raw:hermes --fail-under 0.8
      callwright eval http://localhost:8000/v1 --way direct:chat --way reread:hermes
      callwright eval model.gguf
      callwright eval --cases rain.yaml
      callwright eval --config fleet.toml --engine ray
    """
    options = _Options(**given)
    if targets[:1] == (_COMPARE,):
        _compare(targets[1:], as_json=options.as_json)
        return
    if len(targets) > 1:
        raise ConfigError(f"Expected one server or file, got {len(targets)}. Two results are compared by: compare A B")
    cases = [case for path in options.own for case in read_cases(path)]
    cases = cases or suite(options.size, groups=options.groups or tuple(GROUPS))
    asked = options.request()
    if options.dry_run:
        _tell_cost(cases, len(asked.ways))
        return
    size = ", ".join(map(str, options.own)) or options.size
    plan = Plan("", digest_of(cases), size, callwright=callwright.__version__)
    at = targets[0] if targets else None
    out, failed = options.out, ""
    if options.engine == "ray" and options.config is None:
        raise ConfigError("--engine ray: it is for the models of a configuration. Give --config FILE.")
    try:
        if options.engine == "ray" and options.config is not None:
            target = config_target(options.config, asked)
            plan = msgspec.structs.replace(plan, target=target.name)
            failed = _measured_on_ray(target, options, cases, plan)
        else:
            target = asyncio.run(_measured(at, options, cases, plan))
    except (click.Abort, KeyboardInterrupt):
        click.echo(f"Stopped. The results so far are in {out}. Run the same command to continue.", err=True)
        raise click.Abort from None
    summary = _reported(out, cases, target)
    chosen = chosen_toml(summary, target.entries)
    if chosen is not None:
        _write(out / _CHOSEN, chosen)
    _tell(summary, out, as_json=options.as_json, is_chosen=chosen is not None)
    if failed:
        raise click.ClickException(failed)
    best = summary.best
    if options.fail_under is not None and (best is None or best.interval.share < options.fail_under):
        ctx.exit(1)


class _Options(Struct, frozen=True, kw_only=True):
    """The options of the command, by name."""

    config: Path | None
    model: str | None
    dialect: str | None
    ways: tuple[str, ...]
    api_key_env: str | None
    fields: tuple[str, ...]
    size: Size
    groups: tuple[str, ...]
    own: tuple[Path, ...]
    faults: str
    at_once: int
    engine: str
    out: Path
    dry_run: bool
    as_json: bool
    fail_under: float | None

    def request(self) -> Asked:
        """The options that apply to all ways."""
        ways = tuple(read_way(way) for way in dict.fromkeys(self.ways))
        return Asked(ways, self.model, self.dialect, self.api_key_env, dict(map(named_value, self.fields)))


async def _measured(at: str | None, options: _Options, cases: Sequence[Case], plan: Plan) -> Target:
    target = await _target(at, options)
    try:
        await target.open()
        plan = msgspec.structs.replace(plan, target=f"{target.name} {options.faults}".strip())
        with ResultFile(options.out, plan) as results:
            await _watched(cases, target, results, options.at_once)
    finally:
        await target.close()
    return target


def _measured_on_ray(target: Target, options: _Options, cases: Sequence[Case], plan: Plan) -> str:
    """Measure on Ray. Returns the errors of servers that failed repeatedly, or an empty string; results of the others
    are reported anyway.
    """
    with ResultFile(options.out, plan) as results:
        missed = _told_cost(cases, target, results)
        how: dict[str, Any] = {"at_once": options.at_once, "timeout_s": _TIMEOUT_S, "others": target.others}
        parts = parts_of(target.entries.values(), missed, options.request().fields, **how)
        progress = _Progress(results, len(missed), options.at_once * max(len(parts), 1))
        with live(progress.lines):
            try:
                for result, records in on_ray(parts) if parts else ():
                    results.add(result, records)
                    progress.add(result)
            except UpstreamError as error:
                return str(error)
    return ""


def _reported(out: Path, cases: Sequence[Case], target: Target) -> Summary:
    """Summarize all results in the folder, and write its page."""
    plan, results = read_results(out)
    found = _ordered(results, cases, list(target.askers))
    summary = summary_of(found)
    _write(out / _REPORT, page(plan, summary, found, read_records(out)))
    return summary


def _ordered(found: Sequence[Result], cases: Sequence[Case], ways: Sequence[str]) -> list[Result]:
    """Sort results by way and case, not by time; ways that were not measured now are last."""
    places = {case.id: place for place, case in enumerate(cases)}
    order = {way: place for place, way in enumerate(ways)}
    return sorted(found, key=lambda one: (order.get(one.way, len(order)), one.way, places[one.case]))


async def _target(at: str | None, options: _Options) -> Target:
    asked, faults = options.request(), options.faults
    if options.config is not None:
        if at is not None or faults:
            raise ConfigError("--config says what is asked: leave out the server, and --faults.")
        return config_target(options.config, asked)
    if at in (None, SIMULATED_UPSTREAM):
        Faults.parse(faults)
        return simulated_target(asked, faults)
    if faults:
        raise ConfigError("--faults is for the simulated model: leave out the server.")
    install_weights(at)
    return file_target(at, asked) if is_file(at) else await url_target(at, asked)


class _Progress:
    """The growing table: earlier results and new ones. `at_once` of the `missed` cases run at a time."""

    def __init__(self, results: ResultFile, missed: int, at_once: int) -> None:
        self._found = dict(results.done)
        self._earlier = len(results.done)
        self._earlier_s = sum(result.seconds for result in results.done.values()) / at_once
        self._asked = 0
        self._missed = missed
        self._at_once = at_once
        self._begun_s = time.monotonic()

    def add(self, result: Result) -> None:
        """Add a new result."""
        self._asked += 1
        self._found[result.key] = result

    def lines(self) -> list[str]:
        """The progress, and the table."""
        return [self._how_far(), "", *lines_of(summary_of(list(self._found.values())))]

    def _how_far(self) -> str:
        ended = self._earlier + self._asked
        spent_s = self._earlier_s + time.monotonic() - self._begun_s
        left_s = seconds_left(self._missed - self._asked, ended, spent_s, self._at_once)
        left = f"{left_s / 60:,.0f} min" if left_s >= 90 else f"{left_s:.0f} s"
        return f"{self._asked:,} of {self._missed:,} asked, {'about' if ended else 'at least'} {left} left"


def _told_cost(cases: Sequence[Case], target: Target, results: ResultFile) -> list[tuple[str, Case]]:
    """Return the missing cases, after printing their cost."""
    missed = missing(cases, target.askers, results, target.together)
    if missed:
        ways = f"{len(target.askers)} ways" if len(target.askers) > 1 else "one way"
        there = len(results.done)
        begun = f"Going on: {there:,} are done, left are" if there else f"Asking in {ways}:"
        click.echo(f"{begun} {cost_of([case for _, case in missed]).summary}.", err=True)
    return missed


async def _watched(cases: Sequence[Case], target: Target, results: ResultFile, at_once: int) -> None:
    """Measure, with a growing table. Ctrl-C ends it; finished results remain stored."""
    progress = _Progress(results, len(_told_cost(cases, target, results)), at_once)
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        with live(progress.lines):
            await run(
                cases,
                target.askers,
                results,
                at_once=at_once,
                timeout_s=_TIMEOUT_S,
                told=progress.add,
                together=target.together,
            )
    except asyncio.CancelledError:
        raise click.Abort from None
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _tell(summary: Summary, out: Path, *, as_json: bool, is_chosen: bool) -> None:
    if as_json:
        _echo_json(summary)
        return
    _, found = read_results(out)
    for line in (*lines_of(summary), "", *failing_lines(found)):
        click.echo(line)
    wrote = f"{out / _REPORT}{f', and the best way as {out / _CHOSEN}' if is_chosen else ''}"
    click.echo(f"\nWrote {wrote}; `callwright replay {out}/turns.jsonl --page` shows what was written.", err=True)


def _tell_cost(cases: Sequence[Case], ways: int) -> None:
    click.echo(f"{'Each way' if ways != 1 else 'The way'}: {cost_of(cases).summary}.")
    if ways > 1:
        click.echo(f"{ways} ways: {ways} times as much.")
    elif not ways:
        click.echo("Which ways there are is found out first, by 10 to 40 short requests to a server.")


def _compare(folders: Sequence[str], *, as_json: bool) -> None:
    if len(folders) != 2:
        raise ConfigError(
            f"compare: expected two folders of results, got {len(folders)}. Example: compare before after"
        )
    runs = [read_results(Path(folder)) for folder in folders]
    pairs: list[tuple[str, str]] = _same_ways(*(list(dict.fromkeys(one.way for one in found)) for _, found in runs))
    if not pairs:
        raise ConfigError("compare: they have no way in common, and more than one each.")
    for first, second in pairs:
        names = (f"{folders[0]} {first}", f"{folders[1]} {second}")
        renamed = [
            msgspec.structs.replace(one, way=name)
            for (_, found), way, name in zip(runs, (first, second), names, strict=True)
            for one in found
            if one.way == way
        ]
        summary = summary_of(renamed)
        if as_json:
            _echo_json(summary)
        else:
            for line in comparison_lines(summary):
                click.echo(line)
            click.echo()


def _same_ways(one: list[str], two: list[str]) -> list[tuple[str, str]]:
    """Ways of the same name; where each run has one only, these."""
    same = [(way, way) for way in one if way in two]
    return same or ([(one[0], two[0])] if len(one) == len(two) == 1 else [])


def _echo_json(summary: Summary) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(summary)).decode())


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror}.") from error
