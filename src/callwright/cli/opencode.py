"""`callwright opencode`: the configuration with which opencode runs on models of a gateway.

opencode knows the windows of models that models.dev lists. Of any other it must be told, or it sums up only when the
model's server refuses. Which fields it reads is told in docs/clients.md.
"""

import json
import os
from collections.abc import Mapping
from typing import Any, Final

import click

from callwright.cli.gateway_models import DEFAULT_WINDOW, checked_url, unlisted_warning, windows_of
from callwright.errors import ConfigError

_URL: Final = "http://127.0.0.1:8642/v1"
_PROVIDER: Final = "callwright"
_MAX_OUTPUT_TOKENS: Final = 32_000
_OUTPUT_SHARE: Final = 4  # of the window, so much may be an answer
_ANY_KEY: Final = "any"  # without one it asks for a login


@click.command()
@click.option("--model", metavar="NAME", help="The model; without it, all that the gateway serves, the first in use.")
@click.option("--url", metavar="URL", default=_URL, show_default=True, help="The gateway, with its /v1.")
@click.option(
    "--context-window",
    type=click.IntRange(8_192, 100_000_000),
    metavar="TOKENS",
    help=f"How much the model's server takes at once. [default: what the gateway lists, else {DEFAULT_WINDOW}]",
)
@click.option("--key-env", metavar="VAR", help="Environment variable that holds the gateway's API key.")
@click.option("--images", is_flag=True, help="The model sees images.")
def opencode(model: str | None, url: str, context_window: int | None, key_env: str | None, images: bool) -> None:
    """Print the configuration of opencode for this gateway: opencode.json, with the windows of the models.

    \b
    Examples:
      callwright opencode --model simulated > opencode.json
    """
    url = _with_v1(url)
    if key_env is not None and not key_env.isidentifier():
        raise ConfigError(f"--key-env: expected the name of an environment variable, got {key_env!r}.")
    key = os.environ.get(key_env, "") if key_env is not None else ""
    windows = windows_of(model, url, context_window, key)
    if model is not None and (warning := unlisted_warning(model, url, key)):
        click.echo(warning, err=True)
    click.echo(json.dumps(config(windows, url, key_env=key_env, images=images), ensure_ascii=False, indent=2))


def config(windows: Mapping[str, int], url: str, *, key_env: str | None = None, images: bool = False) -> dict[str, Any]:
    """What opencode is told of models, by their names with their windows; the first is in use."""
    first = f"{_PROVIDER}/{next(iter(windows))}"
    return {
        "$schema": "https://opencode.ai/config.json",
        "model": first,
        "small_model": first,  # titles, which would go to another service
        "provider": {
            _PROVIDER: {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Callwright",
                "options": {"baseURL": url, "apiKey": f"{{env:{key_env}}}" if key_env else _ANY_KEY},
                "models": {name: _described(name, window, images=images) for name, window in windows.items()},
            }
        },
    }


def _described(name: str, window: int, *, images: bool) -> dict[str, Any]:
    return {
        "name": name,
        "tool_call": True,
        "attachment": images,
        "limit": {"context": window, "output": min(_MAX_OUTPUT_TOKENS, window // _OUTPUT_SHARE)},
    }


def _with_v1(url: str) -> str:
    url = checked_url(url, _URL)
    if not url.endswith("/v1"):
        raise ConfigError(f"--url: expected the gateway's base URL with its /v1, got {url!r}. Is it {url}/v1?")
    return url
