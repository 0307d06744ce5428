"""The gateway's configuration: `toolwright.toml`, or the command line's short form of it.

Every field is documented in docs/configuration.md; a test compares the two.
"""

import os
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from toolwright.dialects.base import get_dialect, read_options
from toolwright.errors import ConfigError, RequestError
from toolwright.settings import SlipError, read_settings
from toolwright.turn import MODES, Mode, Model
from toolwright.upstreams.base import Upstream
from toolwright.upstreams.chat import ChatUpstream
from toolwright.upstreams.completions import CompletionsUpstream, Flavour
from toolwright.upstreams.faults import Faults
from toolwright.upstreams.http import Timeouts
from toolwright.upstreams.simulated import SimulatedUpstream
from toolwright.wire.chat_answer import ReasoningField

__all__ = ["ANY_MODEL", "Config", "ModelConfig", "ServerConfig", "build_models", "load_config", "simulated_config"]

ANY_MODEL = "*"


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[server]`. `max_body_bytes`: larger requests are refused. `heartbeat_s`: a silent stream is kept alive.

    `reasoning`: the field of chat answers that reasoning goes into.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    max_body_bytes: int = 16_777_216
    heartbeat_s: float = 10.0
    reasoning: ReasoningField = "both"


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[models]]`: a name that clients use, and what stands behind it.

    `name` `*` takes every name and hands it on. `upstream` is a base URL (`http://localhost:8000/v1`) or `simulated`;
    `model` its name for the model, `server` which server it is (mode raw needs to know). `options` are the dialect's,
    `fields` go into every request to the upstream. The key for the upstream comes from the environment variable
    `api_key_env`. `faults` (simulated only) makes the model misbehave.
    """

    name: str
    upstream: str
    model: str | None = None
    mode: Mode | None = None
    dialect: str | None = None
    server: Flavour = "openai"
    options: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    headers: dict[str, str] = {}
    api_key_env: str | None = None
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = 300.0
    faults: str = ""


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole configuration."""

    server: ServerConfig = ServerConfig()
    models: tuple[ModelConfig, ...] = ()


def load_config(path: Path) -> Config:
    """Read a TOML file. Raises `ConfigError` that names the file and the field."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no TOML: {error}.") from error
    try:
        config = read_settings(given, Config)
    except SlipError as error:
        raise ConfigError(f"{path}: {error}") from error
    if not config.models:
        raise ConfigError(f"{path} has no models. Add one:\n\n[[models]]\nname = 'my-model'\nupstream = 'http://…/v1'")
    return config


def simulated_config(server: ServerConfig, faults: str = "") -> Config:
    """The simulated model in each way of asking it."""
    ways: tuple[tuple[str, Mode, str | None], ...] = (
        ("simulated", "raw", "harmony"),
        ("simulated-hermes", "raw", "hermes"),
        ("simulated-json", "prompt", "json"),
        ("simulated-native", "native", None),
    )
    models = [
        ModelConfig(name=name, upstream="simulated", mode=mode, dialect=dialect, faults=faults)
        for name, mode, dialect in ways
    ]
    return Config(server=server, models=tuple(models))


def build_models(config: Config) -> dict[str, Model]:
    """The models by name. Raises `ConfigError` for what cannot work, naming the model."""
    models: dict[str, Model] = {}
    for given in config.models:
        if given.name in models:
            raise ConfigError(f"Two models are called {given.name!r}.")
        try:
            models[given.name] = _model(given)
        except (ConfigError, RequestError) as error:
            raise ConfigError(f"Model {given.name!r}: {error}") from error
    return models


def _model(given: ModelConfig) -> Model:
    mode: Mode = given.mode or ("prompt" if given.dialect else "native")
    if mode not in MODES:
        raise ConfigError(f"Unknown mode {mode!r}. It can be: {', '.join(MODES)}.")
    if mode != "native" and given.dialect is None:
        raise ConfigError(f"Mode {mode!r} needs a dialect: add dialect = 'harmony', or another one.")
    model = Model(
        name=given.name,
        upstream=_upstream(given, mode),
        upstream_model=given.model or given.name,
        mode=mode,
        dialect=given.dialect,
        fields=given.fields,
    )
    if given.dialect is None:
        return model
    get_dialect(given.dialect)
    return msgspec.structs.replace(model, options=read_options(given.dialect, given.options))


def _upstream(given: ModelConfig, mode: Literal["native", "prompt", "raw"]) -> Upstream:
    if given.upstream == "simulated":
        return SimulatedUpstream(Faults.parse(given.faults))
    if not given.upstream.startswith(("http://", "https://")):
        raise ConfigError(
            f"Upstream {given.upstream!r}: expected 'simulated' or a URL such as http://localhost:8000/v1"
        )
    if given.api_key_env and "@" in given.upstream.partition("://")[2].partition("/")[0]:
        raise ConfigError("The upstream's URL has credentials and api_key_env names a key: leave out one of them.")
    headers = dict(given.headers)
    if given.api_key_env:
        key = os.environ.get(given.api_key_env)
        if not key:
            raise ConfigError(f"The environment variable {given.api_key_env} for the upstream's key is not set.")
        headers["authorization"] = f"Bearer {key}"
    timeouts = Timeouts(given.connect_timeout_s, given.idle_timeout_s)
    if mode == "raw":
        return CompletionsUpstream(given.upstream, headers, timeouts, flavour=given.server)
    return ChatUpstream(given.upstream, headers, timeouts)
