"""`callwright conform`: checks a server or gateway against the published APIs."""

import asyncio
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
import msgspec
from msgspec import Struct

import callwright
from callwright.cli.options import check_server_url
from callwright.cli.progress import status
from callwright.conform.check import Check, Status, Target
from callwright.conform.checks.faults import DIALECTS, NATIVE, baseline, fault_checks
from callwright.conform.model_server import MODEL, model_server
from callwright.conform.report import Report, badge, lines_of, summary
from callwright.conform.run import (
    CHECKS,
    Access,
    Result,
    asker_for,
    choose_checks,
    faults_to_check,
    first_model,
    id_of,
    run,
)
from callwright.doctor.client import Asker
from callwright.errors import CallwrightError, ConfigError, reason_of
from callwright.eval.wires import WIRES, WireName
from callwright.upstreams.base_urls import without_credentials

_COLOURS: Final[dict[Status, str]] = {"holds": "green", "does not": "red", "not shown": "yellow", "not offered": "cyan"}
_PATIENCE_S: Final = 120.0
_PAUSE_S: Final = 1.0
_HOST_ONLY: Final = re.compile(r"https?://[^/?#]+/?")
_FILE: Final = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
_STDOUT: Final = Path("-")


def _wires(_ctx: click.Context, _param: click.Parameter, value: str) -> list[WireName]:
    names = [name.strip() for name in value.split(",") if name.strip()]
    unknown = [name for name in names if name not in WIRES]
    if unknown or not names:
        raise ConfigError(f"--api {value}: expected names out of {', '.join(WIRES)}, separated by commas.")
    return [wire for wire in WIRES if wire in names]


def _badge(_ctx: click.Context, _param: click.Parameter, value: Path | None) -> Path | None:
    if value is not None and value.suffix.lower() != ".svg":
        raise ConfigError(f"--badge {value}: expected a name that ends in .svg: the badge is an SVG image.")
    return value


@click.command()
@click.argument("url", required=False)
@click.option("--model", metavar="NAME", help="The model; without it the first that the server lists.")
@click.option("--key-env", "api_key_env", metavar="VAR", help="Environment variable that holds the server's API key.")
@click.option("--api", "wires", default=",".join(WIRES), show_default=True, callback=_wires, help="The APIs.")
@click.option("--only", multiple=True, metavar="ID", help="Only checks whose ids begin so: chat.tool_choice.")
@click.option("--json", "json_file", type=_FILE, metavar="FILE", help="Also write the report as JSON; `-` for stdout.")
@click.option(
    "--badge", "badge_file", type=_FILE, metavar="FILE.svg", callback=_badge, help="Also write a badge, an SVG image."
)
@click.option(
    "--serve-model",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve a scripted model for the gateway at URL, and check faults of models too.",
)
@click.option("--list", "list_", is_flag=True, help="Print the ids of all checks, and ask nothing.")
@click.pass_context
def conform(
    ctx: click.Context,
    url: str | None,
    model: str | None,
    api_key_env: str | None,
    wires: list[WireName],
    only: Sequence[str],
    json_file: Path | None,
    badge_file: Path | None,
    port: int | None,
    list_: bool,
) -> None:
    """Check tool calling of the server or gateway at URL against OpenAI's and Anthropic's APIs.

    It runs some 180 checks, four requests in parallel. The exit status is 1 if an answer is not as documented, and 2
    if there is nothing to judge: the server is down, refuses each request or has none of these APIs.
    With --serve-model it starts a scripted model server on this port of loopback, waits until the gateway at URL
    forwards a request to it, and also checks the result of 38 faults of models and servers.

    \b
    Examples:
      callwright conform http://localhost:8000/v1
      callwright conform http://localhost:8000/v1 --api chat --only chat.tool_choice --only chat.stream
      callwright conform http://localhost:8000/v1 --json report.json --badge conform.svg
      callwright conform http://localhost:4000/v1 --model scripted --serve-model 9000
    """
    if list_:
        for wire, check in choose_checks(wires, only, dict.fromkeys(WIRES, fault_checks((NATIVE, *DIALECTS)))):
            click.echo(f"{id_of(wire, check)}  {check.title}")
        return
    if url is None:
        raise ConfigError("Expected the URL of a server, such as http://localhost:8000/v1.")
    check_server_url(url, "URL")
    base = f"{url.rstrip('/')}/v1" if _HOST_ONLY.fullmatch(url) else url.rstrip("/")
    key = os.environ.get(api_key_env) if api_key_env else None
    if api_key_env and not key:
        raise ConfigError(f"--key-env: the environment variable {api_key_env} is not set.")
    with status(f"Asking {without_credentials(base)}") as told:
        asked = _Asked(base, model, key, wires, only, port)
        report = asyncio.run(_report(asked, lambda result: told(f"{result.id}: {result.status}")))
    in_stderr = json_file == _STDOUT
    for kind, line in lines_of(report.results):
        click.echo(click.style(line, fg=_COLOURS[kind]) if kind != "holds" else line, err=in_stderr)
    click.echo(f"\n{report.model} at {report.url}: {summary(report)}.", err=in_stderr)
    if json_file is not None:
        _write(json_file, msgspec.json.format(msgspec.json.encode(report.as_json())).decode() + "\n")
    if badge_file is not None:
        _write(badge_file, badge(report))
    ctx.exit(1 if report.counts["does not"] else 0)


class _Asked(Struct, frozen=True):
    base: str
    model: str | None
    key: str | None
    wires: Sequence[WireName]
    only: Sequence[str]
    port: int | None


async def _report(asked: _Asked, told: Callable[[Result], None]) -> Report:
    async with AsyncExitStack() as stack:
        asker = await stack.enter_async_context(asker_for(asked.base, asked.key, 4 * len(CHECKS)))
        faults: Mapping[WireName, Sequence[Check]] = {}
        name = asked.model
        if asked.port is not None:
            forwarded = asyncio.Event()
            address = await stack.enter_async_context(model_server(asked.port, forwarded.set))
            click.echo(
                f"A scripted model is at {address}, named {MODEL}. Waiting for a request from the gateway", err=True
            )
            name = await _wait_for_gateway(asked, asker, forwarded)
            of_model = Target(asked.base, name, secrets=asker.secrets)
            faults = await faults_to_check(of_model, asked.wires, asker)
        name = name or await first_model(asked.base, asker)
        checks = choose_checks(asked.wires, asked.only, faults)
        access = None
        if asked.key is not None:
            bare = await stack.enter_async_context(asker_for(asked.base, None, 4 * len(CHECKS)))
            access = Access(asked.key, bare)
        results = await run(Target(asked.base, name, secrets=asker.secrets), checks, asker, told, access)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return Report(without_credentials(asked.base), name, when, callwright.__version__, results)


async def _wait_for_gateway(asked: _Asked, asker: Asker, forwarded: asyncio.Event) -> str:
    """Send requests until the gateway forwards one to the scripted model; return the model's name at the gateway."""
    ends = time.monotonic() + _PATIENCE_S
    check, told = baseline(NATIVE), ""
    while time.monotonic() < ends:
        try:
            name = asked.model or await first_model(asked.base, asker)
            target = Target(asked.base, name, secrets=asker.secrets)
            (result, *_) = await run(target, [(asked.wires[0], check)], asker, lambda _: None)
            if forwarded.is_set():
                return name
            told = f"{result.status} {result.got}"
        except CallwrightError as error:  # it is not there yet
            told = str(error)
        await asyncio.sleep(_PAUSE_S)
    raise ConfigError(f"{asked.base} forwarded no request to the scripted model in {_PATIENCE_S:g} s. {told}".rstrip())


def _write(file: Path, text: str) -> None:
    if file == _STDOUT:
        click.echo(text, nl=False)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot write {file}: {reason_of(error)}.") from error
