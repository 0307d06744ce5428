"""What the commands share: the options that say how a model server is asked, and settings read from them."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar, get_args

import click

from callwright.config_errors import SlipError, read_settings
from callwright.errors import ConfigError
from callwright.turn.model import AUTO, MODES
from callwright.upstreams.base import Server

__all__ = ["checked", "option_of", "server_options", "told_as_options"]

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])
# Options that have another name than their setting.
_OPTIONS: Final = {"api_key_env": "key-env", "name": "model"}
# Where an error names the model of the one entry that options make, or one of its settings as a file has it.
_MODEL: Final = re.compile(r"^Model '[^']*': ")
_SETTING: Final = re.compile(r"\b(upstream|name|dialect|mode|server) = '([^']*)'|\b(api_key_env)\b")
_SERVER: Final = (
    click.option("--dialect", metavar="D", help="How the model writes calls; `callwright dialects` lists them."),
    click.option(
        "--mode",
        type=click.Choice((*MODES, AUTO)),
        help="Who renders and reads; default native, with --dialect prompt. auto: what the server does best.",
    ),
    click.option("--server", type=click.Choice(get_args(Server)), help="Which server it is."),
    click.option("--key-env", metavar="VAR", help="Environment variable that holds the upstream's API key."),
)


def server_options(command: Command) -> Command:
    """Give a command the options `--dialect`, `--mode`, `--server` and `--key-env`."""
    for option in reversed(_SERVER):
        command = option(command)
    return command


def option_of(setting: str) -> str:
    """The option that sets a setting, without its dashes."""
    return _OPTIONS.get(setting, setting)


def checked(given: Mapping[str, Any], kind: type[T]) -> T:
    """Options of the command line by the rules of the configuration."""
    try:
        return read_settings(given, kind)
    except SlipError as error:
        raise ConfigError(f"--{option_of(error.path)}: {error.what}") from error


@contextmanager
def told_as_options() -> Iterator[None]:
    """Tell what is wrong with a model that options made in their words: `--dialect json`, not `dialect = 'json'`."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(_SETTING.sub(_as_option, _MODEL.sub("", str(error)))) from error


def _as_option(found: re.Match[str]) -> str:
    option = f"--{option_of(found[1] or found[3])}"
    return option if found[2] is None else f"{option} {found[2]}"
