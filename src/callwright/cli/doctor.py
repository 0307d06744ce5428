"""`callwright doctor`: finds a model server's abilities, and the configuration to use."""

import asyncio
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import msgspec

from callwright.cli.config_file import advised_table, refuse_existing, write_config
from callwright.cli.options import check_server_url, dialect_option
from callwright.cli.progress import status
from callwright.cli.terminal import width
from callwright.dialects.base import get_dialect
from callwright.doctor.examine import probe
from callwright.doctor.findings import GROUPS, Findings, ProbeResult, Status
from callwright.doctor.page import page
from callwright.doctor.recommend import Advice, advice
from callwright.errors import ConfigError
from callwright.upstreams.base_urls import without_credentials

_COLOURS: Final[dict[Status, str]] = {
    "works": "green",
    "enforced": "green",
    "ignored": "yellow",
    "no call": "yellow",
    "refused": "yellow",
    "unclear": "yellow",
    "error": "red",
}
_STATUS_WIDTH: Final = 8
# For all of it, half of it for one answer: a slow model writes the longest of them, 1,024 tokens, in this time.
_TIMEOUT_S: Final = 60.0


@click.command()
@click.argument("url")
@click.option("--model", metavar="NAME", help="The model; without it the first that the server lists.")
@dialect_option("The format of the model's calls; by default its name decides.")
@click.option("--key-env", "api_key_env", metavar="VAR", help="Environment variable that holds the server's API key.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also write a page.")
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the configuration to a new file for `callwright serve --config FILE`.",
)
def doctor(
    url: str,
    model: str | None,
    dialect: str | None,
    api_key_env: str | None,
    as_json: bool,
    html: Path | None,
    write: Path | None,
) -> None:
    """Examine the model server at URL: what works, what it ignores, and how to configure it.

    It sends 10 to 40 short requests, four at once at most. The exit status is 0 when there is a way to use the
    server, 1 when not.

    \b
    Examples:
      callwright doctor http://localhost:8000
      callwright doctor http://localhost:8000 --model openai/gpt-oss-120b --html report.html
    """
    if write is not None:
        refuse_existing(write)
    check_server_url(url, "URL")
    if dialect is not None:
        get_dialect(dialect)
    api_key = _key(api_key_env)
    with status(f"Asking {without_credentials(url)}") as told:
        findings = asyncio.run(
            probe(
                url,
                model=model,
                api_key=api_key,
                dialect=dialect,
                timeout_s=_TIMEOUT_S,
                watch=lambda result: told(f"{result.probe}: {result.status}"),
            )
        )
    advised = advice(findings, api_key_env=api_key_env)
    if as_json:
        whole = {"findings": findings, "advice": advised}
        click.echo(msgspec.json.format(msgspec.json.encode(whole)).decode())
    else:
        for line in _lines(findings, advised, width()):
            click.echo(line)
    # Last: a page that cannot be written takes nothing of the report.
    if html is not None:
        try:
            html.write_text(page(findings, advised), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"Cannot write {html}: {error.strerror}.") from error
    if write is not None:
        _write(write, findings, advised)
    if not advised.usable:
        click.get_current_context().exit(1)


def _write(file: Path, findings: Findings, advised: Advice) -> None:
    """Write the advised configuration, with its reasons as comments, and print the command that uses it."""
    if not advised.toml:
        click.echo(f"Nothing is written to {file}: no configuration can be advised.", err=True)
        return
    heading = f"# `callwright doctor` wrote this for the server at {findings.url}."
    write_config(file, [heading, *advised_table(advised)])


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise ConfigError(f"--key-env: the environment variable {variable} is not set.")
    return key


def _lines(findings: Findings, advised: Advice, columns: int) -> Iterator[str]:
    facts = findings.facts()
    yield click.style(findings.url, bold=True)
    yield from _columns(facts, columns)
    names = max((len(result.probe) for result in findings.results), default=0)
    for group, title in GROUPS.items():
        results = [result for result in findings.results if result.group == group]
        if results:
            yield ""
            yield click.style(title, bold=True)
            for result in results:
                yield from _row(result, names, columns)
    yield ""
    yield click.style("Advice", bold=True)
    if not advised.usable:
        yield from _paragraph(advised.choices["mode"].reason, columns)
        if findings.evidence:
            yield from _paragraph(f"It answered: {findings.evidence}", columns)
    elif advised.instead:
        yield from _paragraph(advised.instead, columns)
    else:
        yield from _columns([(name, f"{it.value}: {it.reason}") for name, it in advised.choices.items()], columns)
        yield ""
        yield from advised.toml.splitlines()
    yield ""
    yield click.style(findings.cost(), dim=True)


def _paragraph(text: str, columns: int) -> Iterator[str]:
    yield from textwrap.wrap(text, columns, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _columns(pairs: list[tuple[str, str]], columns: int) -> Iterator[str]:
    first = max((len(name) for name, _ in pairs), default=0) + 4
    for name, text in pairs:
        yield from textwrap.wrap(
            text,
            columns,
            initial_indent=f"  {name}".ljust(first),
            subsequent_indent=" " * first,
            break_on_hyphens=False,
        )


def _row(result: ProbeResult, names: int, columns: int) -> Iterator[str]:
    """A result; long evidence is wrapped in its column."""
    indent = 2 + names + 2 + _STATUS_WIDTH + 2
    first, *more = textwrap.wrap(result.evidence, columns - indent, break_on_hyphens=False) or [""]
    status = click.style(result.status.ljust(_STATUS_WIDTH), fg=_COLOURS[result.status])
    yield f"  {result.probe.ljust(names)}  {status}  {first}"
    for line in more:
        yield " " * indent + line
