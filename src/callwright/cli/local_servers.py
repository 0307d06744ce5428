"""Which server to serve if none is named: the one that runs on this machine."""

import asyncio
from collections.abc import Mapping

import click

from callwright.cli.terminal import shortened
from callwright.doctor.findings import Findings
from callwright.doctor.local_servers import PORTS, local_servers
from callwright.errors import ConfigError

_SHOWN_MODELS = 60


def find_upstream(model: str | None, ports: Mapping[int, str] = PORTS) -> str | None:
    """The URL of the only model server on this machine, or of the only one that lists `model`. Prints its findings.

    None if there is no server. Raises `ConfigError` if there are several, with the command for each.
    """
    found = asyncio.run(local_servers(ports))
    usable = {url: findings for url, findings in found.items() if not _why_not(findings)}
    for url, findings in found.items():
        if why := _why_not(findings):
            click.echo(f"Not served: {url}. {why}")
    if not usable:
        looked = ", ".join(f"{name} ({port})" for port, name in ports.items())
        click.echo(f"No model server found on this machine. Ports tried: {looked}.")
        click.echo("For a server elsewhere: callwright serve http://HOST:PORT")
        return None
    with_model = [url for url, findings in usable.items() if model in findings.models]
    if len(usable) > 1 and len(with_model) != 1:
        raise ConfigError(_choices(usable))
    url = with_model[0] if len(usable) > 1 else next(iter(usable))
    click.echo(f"Found {usable[url].title()} at {url}")
    return url


def _why_not(findings: Findings) -> str:
    if findings.server == "callwright":
        return "It is a Callwright gateway: clients can use it directly."
    return findings.message


def _choices(usable: Mapping[str, Findings]) -> str:
    lines = [f"{len(usable)} model servers run on this machine. Choose one:"]
    for url, findings in usable.items():
        models = shortened(findings.chat_models or findings.models, _SHOWN_MODELS) or "no models"
        lines += ["", f"  callwright serve {url}", f"      {findings.title()}: {models}"]
    return "\n".join(lines)
