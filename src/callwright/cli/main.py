"""The commands. Each shows an example in its help; an error says what was expected and what was meant."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import IO, Any, TypeVar

import click
import msgspec

import callwright
from callwright.api import Parser
from callwright.cli.bulk import bulk
from callwright.cli.chat.command import chat
from callwright.cli.codex import codex
from callwright.cli.config import config as config_command
from callwright.cli.doctor import doctor
from callwright.cli.options import checked, option_of, server_options, told_as_options
from callwright.cli.replay import replay
from callwright.collector import collect
from callwright.dialects.base import dialect_names, get_dialect, read_options
from callwright.dialects.detect import by_name, by_template
from callwright.errors import CallwrightError, ConfigError, RequestError
from callwright.events import FinishReason
from callwright.gateway.access.keys import hash_of, new_key
from callwright.gateway.config.build_models import build_models, default_name, detected, mode_of
from callwright.gateway.config.config import (
    ANY_MODEL,
    Config,
    ModelConfig,
    RecordConfig,
    ServerConfig,
    StoreConfig,
    load_config,
    simulated_config,
)
from callwright.gateway.config.hosts import is_loopback
from callwright.gateway.observability.logs import configure as configure_logs
from callwright.openai_format.messages import read_conversation
from callwright.response_template.template import ResponseTemplate
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.turn.model import AUTO, open_models
from callwright.upstreams.embedded.gguf import is_file
from callwright.upstreams.http import without_credentials
from callwright.wire.errors import json_fault

__all__ = ["main"]

_TOOLS = 'a list of tools as JSON, such as [{"type": "function", "function": {"name": "get_time", "parameters": {…}}}]'
_REQUEST = 'a request as JSON, such as {"messages": [{"role": "user", "content": "hi"}]}'

T = TypeVar("T")


class _Commands(click.Group):
    """A group that maps our errors to one line and an exit status: 2 for what the caller can mend, 1 for the rest."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (ConfigError, RequestError) as error:
            click.echo(" ".join((f"Error: {error}", *getattr(error, "__notes__", ()))), err=True)
            ctx.exit(2)
        except CallwrightError as error:
            click.echo(f"Error: {error}", err=True)
            ctx.exit(1)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(callwright.__version__, prog_name="callwright")
def main() -> None:
    """OpenAI-grade tool calling for any model server."""


main.add_command(bulk)
main.add_command(codex)
main.add_command(config_command)
main.add_command(chat)
main.add_command(doctor)
main.add_command(replay)


@main.command()
@click.option(
    "--upstream", metavar="URL", help="Base URL of an OpenAI-compatible server, with its /v1; or a model.gguf to run."
)
@click.option("--model", metavar="NAME", help="Serve this model only; without it every name is handed on.")
@server_options
@click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="A callwright.toml instead of the above."
)
@click.option("--host", metavar="ADDRESS", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="Port to listen on.  [default: 8080]")
@click.option("--workers", type=click.IntRange(1, 256), metavar="N", help="Processes that serve it.  [default: 1]")
@click.option("--faults", default="", metavar="SPEC", help="Let the simulated model misbehave, e.g. all:0.3.")
@click.option("--sample", is_flag=True, help="Let the simulated model make random calls of what is allowed.")
@click.option("--store", metavar="URL", help="Where responses are kept: sqlite:///FILE, postgresql://…, or none.")
@click.option("--openresponses", is_flag=True, help="Speak the Open Responses dialect on /v1/responses.")
@click.option("--record", metavar="DIR", help="Write each turn into a file there, for `callwright replay`.")
def serve(
    upstream: str | None,
    model: str | None,
    dialect: str | None,
    mode: str | None,
    server: str | None,
    key_env: str | None,
    config: Path | None,
    host: str | None,
    port: int | None,
    workers: int | None,
    faults: str,
    sample: bool,
    store: str | None,
    openresponses: bool,
    record: str | None,
) -> None:
    """Start the gateway. Without an upstream it serves a simulated model.

    \b
    Examples:
      callwright serve
      callwright serve --upstream http://localhost:8000/v1
      callwright serve --upstream http://localhost:8000/v1 --model openai/gpt-oss-120b \\
          --mode raw --dialect harmony --server vllm
      callwright serve --upstream model.gguf
      callwright serve --config callwright.toml
    """
    settings = _settings(upstream, model, dialect, mode, server, key_env, config, faults, sample=sample)
    dialect_ = "open_responses" if openresponses else None
    asked = {"host": host, "port": port, "workers": workers, "responses": dialect_}
    given = {key: value for key, value in asked.items() if value is not None}
    server_ = checked({**msgspec.to_builtins(settings.server), **given}, ServerConfig)
    store_ = settings.store or StoreConfig(url=_default_store())
    if store:
        store_ = msgspec.structs.replace(store_, url=store)
    record_ = settings.record
    if record:
        record_ = msgspec.structs.replace(record_, dir=record) if record_ else RecordConfig(dir=record)
    _run(msgspec.structs.replace(settings, server=server_, store=store_, record=record_), from_file=config is not None)


def _default_store() -> str:
    """A file of the user's own, where programs keep their state."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return f"sqlite:///{Path(state) / 'callwright' / 'responses.db'}"


def _settings(
    upstream: str | None,
    model: str | None,
    dialect: str | None,
    mode: str | None,
    server: str | None,
    key_env: str | None,
    config: Path | None,
    faults: str,
    *,
    sample: bool,
) -> Config:
    short = {"model": model, "dialect": dialect, "mode": mode, "server": server, "api_key_env": key_env}
    given = {key: value for key, value in short.items() if value is not None}
    if config is not None:
        if upstream or given or faults or sample:
            raise ConfigError("--config has everything in it: leave out --upstream and its options.")
        return load_config(config)
    if upstream is None:
        if given:
            raise ConfigError(f"--{option_of(next(iter(given)))} needs an upstream: add --upstream URL.")
        return simulated_config(ServerConfig(), faults, sample=sample)
    for option, asked in (("--faults", faults), ("--sample", sample)):
        if asked:
            raise ConfigError(f"{option} is for the simulated model: leave out --upstream.")
    if is_file(upstream):  # which has no name of its own for it
        given.pop("model", None)
    given |= {"name": default_name(upstream) if model is None else model, "upstream": upstream}
    return Config(models=(checked(given, ModelConfig),))


def _run(config: Config, *, from_file: bool) -> None:
    from callwright.gateway.app import create_app  # here, so that the other commands start without it
    from callwright.gateway.process.serving import serve as serve_app
    from callwright.gateway.process.sockets import listen_for_each
    from callwright.gateway.process.workers import check_workers, serve_by_workers

    server = config.server
    configure_logs(server.log_level, server.log_format)
    check_workers(config)
    with nullcontext() if from_file else told_as_options():
        models = build_models(config)
    asyncio.run(_check_store(config.store))
    with ExitStack() as when_it_ends:
        listeners = [
            when_it_ends.enter_context(one) for one in listen_for_each(server.host, server.port, server.workers)
        ]
        host, port = listeners[0].getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        if server.workers == 1:
            asyncio.run(open_models(models))
            serve_app(create_app(config, models), server, listeners[0], lambda: _welcome(config, address))
        else:
            serve_by_workers(config, listeners, lambda: _welcome(config, address))


async def _check_store(config: StoreConfig | None) -> None:
    """Open the store once, so that what is wrong with it is told before anything is served."""
    from callwright.gateway.store.store import Store

    if config is not None and config.url != "none":
        store = Store(config.url)
        await store.open()
        await store.close()


def _welcome(config: Config, address: str) -> None:
    width = max(len(model.name) for model in config.models)
    click.echo(f"Callwright {callwright.__version__} at {address}/v1")
    for model in config.models:
        mode = model.mode or mode_of(model)
        dialect = model.dialect or (AUTO if model.file else None)
        name = "(any)" if model.name == ANY_MODEL else model.name
        found = detected(model) if dialect == AUTO and model.name != ANY_MODEL else None
        how = f"{mode} {found.dialect if found else dialect}" if dialect else mode
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
    key = "YOUR_KEY" if config.keys else "any"
    click.echo(f"  export OPENAI_BASE_URL={address}/v1 OPENAI_API_KEY={key}")
    if not config.keys and not is_loopback(config.server.host):
        click.echo(
            f"  Warning: whoever reaches {config.server.host} may use this gateway. Give it [[keys]].",
            err=True,
        )


@main.command()
@click.argument("name", default="somebody")
def key(name: str) -> None:
    """Make a key for a client called NAME, and print it, once, with what the configuration says of it.

    \b
    Example:
      callwright key anna
    """
    if not name or not name.isprintable():
        raise ConfigError(f"NAME: expected a name in printable characters, got {name!r}.")
    made = new_key()
    click.echo(f"{made}\n\nThe client sends it; it is written down nowhere else. For the configuration:\n")
    click.echo(f'[[keys]]\nname = {json.dumps(name, ensure_ascii=False)}\nsha256 = "{hash_of(made)}"')


@main.command()
@click.option("--dialect", metavar="D", help="How the model writes calls; see `callwright dialects`.")
@click.option(
    "--response-template",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The declaration of the model's checkpoint instead, also in its tokenizer_config.json.",
)
@click.option("--tools", type=click.File("rb"), metavar="FILE", help="JSON list of tools in OpenAI's shape.")
@click.option("--tool-choice", metavar="CHOICE", help="none, auto, required, or the name of a tool.")
@click.option("--start", type=click.Choice(["assistant", "reasoning", "message"]), help="Where the output begins.")
@click.option("--finish-reason", type=click.Choice(["stop", "length"]), default="stop", help="How the output ended.")
@click.option("--events", is_flag=True, help="Print the events, one JSON object a line, instead of the result.")
@click.argument("output", type=click.File(encoding="utf-8", errors="replace"), default="-")
def parse(
    dialect: str | None,
    response_template: Path | None,
    tools: IO[bytes] | None,
    tool_choice: str | None,
    start: str | None,
    finish_reason: FinishReason,
    events: bool,
    output: IO[str],
) -> None:
    """Read what a model wrote, from OUTPUT or standard input, and print it as one JSON object.

    \b
    Example:
      echo '<tool_call>{"name": "get_time", "arguments": {"tz": "UTC"}}</tool_call>' \\
        | callwright parse --dialect hermes --tools tools.json
    """
    choice: Any = tool_choice
    if tool_choice not in (None, "none", "auto", "required"):
        choice = {"type": "function", "function": {"name": tool_choice}}
    reads = _reads(dialect, response_template)
    parser = Parser(reads, tools=_json(tools, _TOOLS) if tools else None, tool_choice=choice, start=start)
    found = parser.feed(output.read()) + parser.finish(finish_reason)
    if events:
        for event in found:
            click.echo(json.dumps({"event": type(event).__name__, **msgspec.to_builtins(event)}, ensure_ascii=False))
        return
    turn = collect(found)
    calls = [{"name": call.name, "arguments": call.arguments, "complete": call.complete} for call in turn.calls]
    result = {
        "content": turn.content,
        "reasoning": turn.reasoning,
        "calls": calls,
        "finish_reason": turn.finish_reason,
        "problems": msgspec.to_builtins(turn.problems),
    }
    click.echo(json.dumps(result, ensure_ascii=False, indent=2))


def _reads(dialect: str | None, response_template: Path | None) -> str | ResponseTemplate:
    if dialect is not None and response_template is not None:
        raise ConfigError("--dialect and --response-template both say how the output reads: leave out one of them.")
    if response_template is not None:
        return ResponseTemplate.load(response_template)
    if dialect is None:
        raise ConfigError("Nothing says how the output reads: add --dialect hermes, or --response-template FILE.")
    return dialect


@main.command()
@click.option("--dialect", required=True, metavar="D", help="The format to render; see `callwright dialects`.")
@click.option("--option", "-o", "options", multiple=True, metavar="NAME=VALUE", help="An option of the dialect.")
@click.option(
    "--messages", "as_messages", is_flag=True, help="The chat messages of mode prompt instead of a raw prompt."
)
@click.argument("request", type=click.File("rb"), default="-")
def render(dialect: str, options: Sequence[str], as_messages: bool, request: IO[bytes]) -> None:
    """Print the prompt of a chat request (messages, tools, tool_choice), from REQUEST or standard input.

    \b
    Example:
      echo '{"messages": [{"role": "user", "content": "hi"}]}' \\
        | callwright render --dialect harmony -o reasoning_effort=low
    """
    given = _json(request, _REQUEST)
    if not isinstance(given, dict) or "messages" not in given:
        raise RequestError(f"Expected {_REQUEST}, got no messages.")
    conversation = read_conversation(given["messages"], given.get("tools"), given.get("tool_choice"))
    chosen = read_options(dialect, dict(map(_option, options)))
    if as_messages:
        messages = get_dialect(dialect).messages(conversation, chosen)
        click.echo(json.dumps(messages, ensure_ascii=False, indent=2))
    else:
        click.echo(get_dialect(dialect).render(conversation, chosen).text)


@main.command()
@click.option("--model", metavar="NAME", help="Say which dialect a model of this name speaks, and why.")
@click.option("--template", type=click.File(encoding="utf-8"), metavar="FILE", help="The same for a chat template.")
def dialects(model: str | None, template: IO[str] | None) -> None:
    """List the dialects: name, models, source, other names; or say which one a model speaks.

    \b
    Example:
      callwright dialects
    """
    if model is not None or template is not None:
        found = by_template(template.read()) if template is not None else by_name(model or "")
        if found is None:
            raise RequestError("Nothing is known of it. `callwright dialects` lists the dialects; json works with any.")
        click.echo(f"{found.dialect}  ({found.reason})")
        return
    for name in dialect_names():
        dialect = get_dialect(name)
        click.echo(f"{name}\n  models   {dialect.models}\n  source   {dialect.source}")
        click.echo(
            f"  aliases  {', '.join(dialect.aliases)}\n  options  {', '.join(dialect.Options.__struct_fields__)}"
        )


def _json(file: IO[bytes], expected: str) -> Any:
    text = file.read()
    try:
        return decode(text)
    except NotJsonError as error:
        name = "Standard input" if file is sys.stdin.buffer else file.name
        raise RequestError(f"{name} {json_fault(text, error)}. Expected {expected}.") from error


def _option(text: str) -> tuple[str, Any]:
    """`name=value`, the value as JSON where it is JSON, else as text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"expected NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
