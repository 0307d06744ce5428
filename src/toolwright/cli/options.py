"""What the commands share: the options that say how a model server is asked, and settings read from them."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, get_args

import click

from toolwright.errors import ConfigError
from toolwright.settings import SlipError, read_settings
from toolwright.turn import AUTO, MODES
from toolwright.upstreams.base import Server

__all__ = ["checked", "option_of", "server_options"]

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])
# Options that have another name than their setting.
_OPTIONS: Final = {"api_key_env": "key-env", "name": "model"}
_SERVER: Final = (
    click.option("--dialect", metavar="D", help="How the model writes calls; `toolwright dialects` lists them."),
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
