"""`callwright serve`: starts the gateway, from a configuration file or from options."""

import asyncio
import re
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import get_args

import click
import msgspec

import callwright
from callwright.cli.loading import loading
from callwright.cli.options import (
    checked,
    model_settings,
    option_of,
    server_options,
    state_folder,
    told_as_options,
    told_of,
)
from callwright.dialects.base import TEMPLATE_PREFIX
from callwright.errors import ConfigError
from callwright.gateway.config.build_models import build_models, default_name, detected, mode_of
from callwright.gateway.config.config import (
    ANY_MODEL,
    Config,
    InspectLevel,
    ModelConfig,
    RecordConfig,
    ServerConfig,
    StoreConfig,
    load_config,
    simulated_config,
)
from callwright.gateway.config.hosts import is_loopback
from callwright.gateway.observability.logs import configure as configure_logs
from callwright.turn.model import AUTO, TEMPLATE, open_models
from callwright.upstreams.base_urls import without_credentials
from callwright.upstreams.embedded.gguf import is_file
from callwright.upstreams.simulated.faults import Faults


@click.command()
@click.argument("url", required=False)
@click.option(
    "--upstream",
    metavar="URL",
    help="Base URL of an OpenAI-compatible server, with its /v1; or a model.gguf to run, or smollm2.",
)
@click.option("--model", metavar="NAME", help="Serve this model only; without it every name is forwarded.")
@server_options
@click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="A callwright.toml instead of the above."
)
@click.option("--host", metavar="ADDRESS", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="Port to listen on.  [default: 8642]")
@click.option("--workers", type=click.IntRange(1, 256), metavar="N", help="Processes that serve it.  [default: 1]")
@click.option(
    "--faults",
    default="",
    metavar="SPEC",
    help="Let the simulated model misbehave, e.g. all:0.3; sample: make random calls of what is allowed.",
)
@click.option("--store", metavar="URL", help="Where responses are kept: sqlite:///FILE, postgresql://…, or none.")
@click.option("--record", metavar="DIR", help="Write each turn into a file there, for `callwright replay`.")
@click.option(
    "--inspect",
    type=click.Choice(get_args(InspectLevel)),
    help="What the pages at / show of turns.  [default: full on this machine's addresses without keys, else metadata]",
)
def serve(
    url: str | None,
    config: Path | None,
    host: str | None,
    port: int | None,
    workers: int | None,
    faults: str,
    store: str | None,
    record: str | None,
    inspect: InspectLevel | None,
    **model: str | None,
) -> None:
    """Start the gateway. Without an upstream it serves a simulated model.

    URL is a model server, with or without /v1: how each of its models is asked is found out when it is first used.

    \b
    Examples:
      callwright serve
      callwright serve http://localhost:11434
      callwright serve --upstream http://localhost:8000/v1
      callwright serve --upstream http://localhost:8000/v1 --model openai/gpt-oss-120b \\
          --mode raw --dialect harmony --server vllm
      callwright serve --upstream model.gguf
      callwright serve --upstream smollm2
      callwright serve --config callwright.toml
    """
    settings = _settings(model_settings(_with_url(url, model)), config, faults)
    asked = {"host": host, "port": port, "workers": workers, "inspect": inspect}
    given = {key: value for key, value in asked.items() if value is not None}
    server_ = checked({**msgspec.to_builtins(settings.server), **given}, ServerConfig)
    store_ = settings.store or StoreConfig(url=f"sqlite:///{state_folder() / 'responses.db'}")
    if store:
        store_ = msgspec.structs.replace(store_, url=store)
    record_ = settings.record
    if record:
        record_ = msgspec.structs.replace(record_, dir=record) if record_ else RecordConfig(dir=record)
    _run(msgspec.structs.replace(settings, server=server_, store=store_, record=record_), from_file=config is not None)


def _with_url(url: str | None, given: dict[str, str | None]) -> dict[str, str | None]:
    """The options with the upstream of the argument. Its mode is `auto` unless the options decide it."""
    if url is None:
        return given
    if given.get("upstream") is not None:
        raise ConfigError("The upstream is given twice, as URL and as --upstream: leave out one of them.")
    if re.fullmatch(r"https?://[^/?#]+/?", url):
        url = f"{url.rstrip('/')}/v1"
    decided = is_file(url) or any(given.get(name) is not None for name in ("mode", "dialect", "template"))
    return {**given, "upstream": url} | ({} if decided else {"mode": AUTO})


def _settings(given: dict[str, str], config: Path | None, faults: str) -> Config:
    if config is not None:
        if given or faults:
            raise ConfigError("--config has everything in it: leave out --upstream and its options.")
        return load_config(config)
    upstream = given.get("upstream")
    if upstream is None:
        if given:
            raise ConfigError(f"--{option_of(next(iter(given)))} needs an upstream: add --upstream URL.")
        with told_of("--faults"):
            Faults.parse(faults)
        return simulated_config(ServerConfig(), faults)
    if faults:
        raise ConfigError("--faults is for the simulated model: leave out --upstream.")
    named = {"name": given.get("model", default_name(upstream)), **given}
    if is_file(upstream):  # which has no name of its own for it
        named.pop("model", None)
    return Config(models=(checked(named, ModelConfig),))


def _run(config: Config, *, from_file: bool) -> None:
    with loading():  # here, so that the other commands start without it
        from callwright.cli.first_look import FirstLook
        from callwright.gateway.app import create_app
        from callwright.gateway.process.serving import serve as serve_app
        from callwright.gateway.process.sockets import listen_for_each
        from callwright.gateway.process.workers import check_workers, serve_by_workers

    server = config.server
    configure_logs(server.log_level, server.log_format)
    with nullcontext() if from_file else told_as_options():
        check_workers(config)
        models = build_models(config)
        asyncio.run(_check_store(config.store))
    with ExitStack() as when_it_ends:
        listeners = [
            when_it_ends.enter_context(one) for one in listen_for_each(server.host, server.port, server.workers)
        ]
        host, port = listeners[0].getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        look = FirstLook(config)

        def ready() -> None:
            _welcome(config, address)
            look.start()

        if server.workers == 1:
            asyncio.run(open_models(models))
            with nullcontext() if from_file else told_as_options():
                app = create_app(config, models)
            serve_app(app, config, listeners[0], ready)
        else:
            serve_by_workers(config, listeners, ready)
        look.check()


def _short(dialect: str) -> str:
    """A dialect's name for display: that of a template without its number, which means nothing to a reader."""
    return TEMPLATE if dialect.startswith(TEMPLATE_PREFIX) else dialect


async def _check_store(config: StoreConfig | None) -> None:
    """Open the store once, so that errors in it are reported before the gateway starts."""
    from callwright.gateway.store.store import Store

    if config is not None and config.url != "none":
        store = Store(config.url)
        try:
            await store.open()
        except ConfigError as error:  # it may be the default store
            raise ConfigError(f"{error} Name another with --store URL, or keep nothing with --store none.") from error
        await store.close()


def _welcome(config: Config, address: str) -> None:
    from callwright.gateway.observability.observability import inspect_level

    width = max(len(model.name) for model in config.models)
    click.echo(f"Callwright {callwright.__version__} at {address}/v1")
    for model in config.models:
        mode = model.mode or mode_of(model)
        dialect = model.dialect or (AUTO if model.file else None)
        name = "(any)" if model.name == ANY_MODEL else model.name
        found = detected(model) if dialect in (AUTO, TEMPLATE) and (model.template or model.name != ANY_MODEL) else None
        how = f"{mode} {_short(found.dialect) if found else dialect}" if dialect else mode
        where = ", ".join(map(without_credentials, model.servers))
        click.echo(f"  {name:{width}}  {how:16} {where}{f'  ({found.reason})' if found else ''}")
    if config.store is not None:
        where = without_credentials(config.store.url).removeprefix("sqlite:///")
        kept = {"none": "are not kept", "sqlite://": "are kept in memory"}.get(where, f"are kept in {where}")
        click.echo(f"  responses and conversations {kept}")
    if config.server.workers > 1:
        click.echo(f"  by {config.server.workers} processes")
    if config.record is not None:
        click.echo(f"  turns are recorded, word for word, in {config.record.dir}")
    shown = {"off": "no turns", "metadata": "turns, without what was said", "full": "turns, with all that was said"}
    click.echo(f"  pages: {address}/ ({shown[inspect_level(config)]})")
    key = "YOUR_KEY" if config.keys else "any"
    click.echo(f"  export OPENAI_BASE_URL={address}/v1 OPENAI_API_KEY={key}")
    if not config.keys and not is_loopback(config.server.host):
        click.echo(
            f"  Warning: whoever reaches {config.server.host} may use this gateway. Give it [[keys]].",
            err=True,
        )
