"""`callwright serve`: starts the gateway, from a configuration file or from options."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import Final, get_args

import click
import msgspec
from click.core import ParameterSource

import callwright
from callwright.cli.config_file import refuse_existing, served_config, write_config
from callwright.cli.loading import loading
from callwright.cli.local_servers import find_upstream
from callwright.cli.options import (
    checked,
    model_settings,
    option_of,
    server_options,
    state_folder,
    told_as_options,
    told_of,
)
from callwright.cli.progress import status
from callwright.cli.served_table import Looked, served_table
from callwright.cli.terminal import is_terminal, width
from callwright.errors import ConfigError
from callwright.gateway.config.build_models import build_models, default_name
from callwright.gateway.config.changes import open_warning
from callwright.gateway.config.config import (
    SIMULATED_UPSTREAM,
    Config,
    InspectLevel,
    ModelConfig,
    RecordConfig,
    ServerConfig,
    StoreConfig,
    load_config,
    name_file,
    servers_of,
    simulated_config,
    with_default_mode,
)
from callwright.gateway.observability.logs import configure as configure_logs
from callwright.turn.model import Model, open_models
from callwright.upstreams.base_urls import without_credentials
from callwright.upstreams.embedded.gguf import is_file
from callwright.upstreams.simulated.faults import Faults

# Names the upstream for scripts and tests, which must not search for a server.
_UPSTREAM_VARIABLE: Final = "CALLWRIGHT_UPSTREAM"


@click.command()
@click.argument("url", required=False)
@click.option(
    "--upstream",
    metavar="URL",
    envvar=_UPSTREAM_VARIABLE,
    show_envvar=True,
    help="The same as URL; or a model.gguf to run, smollm2, or simulated.",
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
    help="Level of detail of the pages at /.  [default: full on this machine's addresses without keys, else metadata]",
)
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the choices to a new file for --config FILE.",
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
    write: Path | None,
    **model: str | None,
) -> None:
    """Start the gateway.

    URL is a model server, with or without /v1. Without it the gateway serves the one that runs on this machine, on the
    port that Ollama, LM Studio, vLLM, SGLang or llama-server uses by default; without a server, a simulated model. Its
    models are probed, and a table shows how each is asked, and why.

    \b
    Examples:
      callwright serve
      callwright serve http://localhost:11434
      callwright serve http://localhost:11434 --write ollama.toml
      callwright serve --upstream http://localhost:8000/v1 --model openai/gpt-oss-120b \\
          --mode raw --dialect harmony --server vllm
      callwright serve --upstream model.gguf
      callwright serve --upstream smollm2
      callwright serve --config callwright.toml
    """
    if write is not None:
        if config is not None:
            raise ConfigError("--config names a file with everything in it: leave out --write.")
        refuse_existing(write)
    asked = {"host": host, "port": port, "workers": workers, "inspect": inspect}
    given = {key: value for key, value in asked.items() if value is not None}
    with_options = partial(_with_options, given=given, store=store, record=record)
    settings = with_options(_settings(_with_url(url, model, is_decided=bool(config or faults)), config, faults))
    configure_logs(settings.server.log_level, settings.server.log_format)
    with told_as_options() if config is None else name_file(config):
        models = _models(settings)
    looked = asyncio.run(_look(settings, models)) if config is None else {}
    if write is not None:
        tables: Mapping[str, Mapping[str, object]] = {
            "server": given,
            "store": {"url": store},
            "record": {"dir": record},
        }
        write_config(write, list(served_config(settings.models, looked, tables)))
    _run(settings, models, looked, config, lambda path: with_options(load_config(path)))


def _with_options(settings: Config, given: Mapping[str, object], store: str | None, record: str | None) -> Config:
    """The settings with these of the command line, which win."""
    server_ = checked({**msgspec.to_builtins(settings.server), **given}, ServerConfig)
    store_ = settings.store or StoreConfig(url=f"sqlite:///{state_folder() / 'responses.db'}")
    if store:
        store_ = msgspec.structs.replace(store_, url=store)
    record_ = settings.record
    if record:
        record_ = msgspec.structs.replace(record_, dir=record) if record_ else RecordConfig(dir=record)
    return msgspec.structs.replace(settings, server=server_, store=store_, record=record_)


def _with_url(url: str | None, given: Mapping[str, str | None], *, is_decided: bool) -> dict[str, str]:
    """The options of the model, with its upstream. That of the environment counts if no other is given: `is_decided`
    if options decide it.
    """
    source = click.get_current_context().get_parameter_source("upstream")
    is_from_environment = source is ParameterSource.ENVIRONMENT
    if is_from_environment and (url is not None or is_decided):
        given = {**given, "upstream": None}
    if url is not None and given["upstream"] is not None:
        raise ConfigError("The upstream is given twice, as URL and as --upstream: leave out one of them.")
    upstream = url or given["upstream"]
    if upstream is None and not is_decided:
        upstream = find_upstream(given["model"])
    found = model_settings({**given, "upstream": upstream})
    is_unnamed = upstream is None or (is_from_environment and upstream == SIMULATED_UPSTREAM)
    if is_unnamed and not is_decided and (options := [name for name in found if name != "upstream"]):
        raise ConfigError(f"--{option_of(options[0])} needs an upstream: add --upstream URL.")
    return found


def _settings(given: dict[str, str], config: Path | None, faults: str) -> Config:
    if config is not None:
        if given or faults:
            raise ConfigError("--config has everything in it: leave out --upstream and its options.")
        return load_config(config)
    upstream = given.get("upstream", SIMULATED_UPSTREAM)
    if upstream == SIMULATED_UPSTREAM and not given.keys() - {"upstream"}:
        with told_of("--faults"):
            Faults.parse(faults)
        return simulated_config(ServerConfig(), faults)
    if faults:
        raise ConfigError("--faults is for the simulated model: leave out --upstream.")
    named = {"name": given.get("model", default_name(upstream)), **given}
    if is_file(upstream):  # which has no name of its own for it
        named.pop("model", None)
    return Config(models=(with_default_mode(checked(named, ModelConfig)),))


def _models(config: Config) -> dict[str, Model]:
    """The models, after all other settings were checked."""
    with loading():  # here, so that the other commands start without it
        from callwright.gateway.process.workers import check_workers

    check_workers(config)
    models = build_models(config)
    asyncio.run(_check_store(config.store))
    return models


async def _look(config: Config, models: Mapping[str, Model]) -> Looked:
    """The findings about the servers of those models whose mode is found out."""
    with loading():
        from callwright.gateway.config.auto_mode import AutoModeSelector

    selectors = {
        name: model.mode_selector for name, model in models.items() if isinstance(model.mode_selector, AutoModeSelector)
    }
    if not selectors:
        return {}
    servers = dict.fromkeys(url for given in config.models for url in servers_of(given))
    asking = f"Asking {', '.join(map(without_credentials, servers))}"
    with status(asking) if is_terminal(sys.stderr) else nullcontext():
        looked = await asyncio.gather(*(selector.look() for selector in selectors.values()))
    return dict(zip(selectors, looked, strict=True))


def _run(
    config: Config, models: Mapping[str, Model], looked: Looked, path: Path | None, load: Callable[[Path], Config]
) -> None:
    """Serve the configuration. If it is from the file at `path`, its changes are applied, as `load` reads them."""
    with loading():
        from callwright.cli.first_look import FirstLook
        from callwright.gateway.app import create_app
        from callwright.gateway.process.hangup import release_hangup
        from callwright.gateway.process.reload import ConfigFile, follow_file, note_hangup
        from callwright.gateway.process.serving import serve as serve_app
        from callwright.gateway.process.sockets import listen_for_each
        from callwright.gateway.process.workers import serve_by_workers

    server = config.server
    file = None
    if path is not None:
        file = ConfigFile(path, partial(load, path))
        note_hangup(file)
    release_hangup()
    with ExitStack() as when_it_ends:
        listeners = [
            when_it_ends.enter_context(one) for one in listen_for_each(server.host, server.port, server.workers)
        ]
        host, port = listeners[0].getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        look = FirstLook(config, shown=looked)

        def ready() -> None:
            _welcome(config, looked, address)
            look.start()

        if server.workers == 1:
            asyncio.run(open_models(models))
            with told_as_options() if path is None else name_file(path):
                app = create_app(config, models)
            serve_app(app, config, listeners[0], ready, None if file is None else partial(follow_file, file))
        else:
            serve_by_workers(config, listeners, ready, file)
        look.check()


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


def _welcome(config: Config, looked: Looked, address: str) -> None:
    from callwright.gateway.observability.observability import inspect_level

    click.echo(f"Callwright {callwright.__version__} at {address}/v1")
    for line in served_table(config.models, looked, width()):
        click.echo(line)
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
    if (warning := open_warning(config)) is not None:
        click.echo(f"  Warning: {warning}", err=True)
