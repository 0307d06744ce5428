"""The gateway's configuration: `toolwright.toml`, or the command line's short form of it.

Every field is documented in docs/configuration.md; a test compares the two.
"""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from toolwright.errors import ConfigError
from toolwright.gateway.callers import KeyConfig
from toolwright.gateway.logs import LogFormat, LogLevel
from toolwright.settings import SlipError, read_settings
from toolwright.turn import SIMULATED, Mode
from toolwright.upstreams.base import Server
from toolwright.upstreams.embedded import EngineOptions
from toolwright.upstreams.gguf import is_file
from toolwright.wire.chat_answer import ReasoningField
from toolwright.wire.limits import Limits
from toolwright.wire.response_answer import Flavour

__all__ = [
    "ANY_MODEL",
    "Config",
    "McpConfig",
    "ModelConfig",
    "RecordConfig",
    "ServerConfig",
    "StoreConfig",
    "load_config",
    "simulated_config",
]

ANY_MODEL = "*"
_SIMULATED = "simulated"

_Text: TypeAlias = Annotated[str, Meta(min_length=1)]
_Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=86_400)]

_Count: TypeAlias = Annotated[int, Meta(ge=1)]


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[server]`. `workers`: processes that serve the port together. `max_body_bytes`: larger requests are refused.
    `heartbeat_s`: a silent stream is kept alive.

    `reasoning`: the field of chat answers that reasoning goes into. `history`: calls and outputs that do not belong
    together are refused as OpenAI does, or mended. `responses`: the dialect of the Responses API. `hosts`: the names
    under which pages and clients may reach a gateway without keys. `max_requests`: more at once are refused.
    `receive_s`: how long the head of a request may take to come, and then its body. `stall_s`: a client that reads
    nothing for so long is given up. `drain_s`: how long what is under way may go on when
    the gateway is told to end. `metrics`: whether `GET /metrics` is there. `traces`: spans are made where OpenTelemetry
    is installed, or never.
    """

    host: _Text = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8080
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    max_body_bytes: Annotated[int, Meta(ge=1)] = 16_777_216
    hosts: tuple[_Text, ...] = ()
    max_requests: _Count = 2_048
    heartbeat_s: _Seconds = 10.0
    receive_s: _Seconds = 60.0
    stall_s: _Seconds = 60.0
    drain_s: Annotated[float, Meta(ge=0, le=86_400)] = 25.0
    reasoning: ReasoningField = "both"
    history: Literal["strict", "mend"] = "strict"
    responses: Flavour = "openai"
    log_level: LogLevel = "info"
    log_format: LogFormat = "plain"
    metrics: bool = True
    traces: Literal["auto", "off"] = "auto"


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[store]`: where responses and conversations are kept.

    `url` is `sqlite:///file.db`, `postgresql://…`, `sqlite://` (in memory), or `none`: then nothing is kept. Responses
    that nothing continues from are erased after `retention_days`.
    """

    url: _Text
    retention_days: Annotated[float, Meta(gt=0, le=36_500)] = 30.0


class RecordConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[record]`: each turn is written into a file below `dir`, as `toolwright replay` reads it.

    In bytes: what one turn may take, when a new file is begun, how much all may take before the oldest goes.
    """

    dir: _Text
    max_turn_bytes: Annotated[int, Meta(ge=1_024)] = 4_194_304
    max_file_bytes: Annotated[int, Meta(ge=1_024)] = 67_108_864
    max_total_bytes: Annotated[int, Meta(ge=1_024)] = 1_073_741_824


class InferenceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[models.infer]]`: an object with all these keys is the arguments of this tool, where several would take it."""

    tool: _Text
    keys: Annotated[list[_Text], Meta(min_length=1)]


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[models]]`: a name that clients use, and what stands behind it.

    `name` `*` takes every name and hands it on. `upstream` is a base URL (`http://localhost:8000/v1`), several of them
    for servers that are alike, a file (`model.gguf`: llama.cpp runs it in this process, as `engine` says) or
    `simulated`; `model` its name for the model; the dialect `auto` is found by that, or by the chat template in the
    file `template` or in the model's own. `response_template` is a file that declares how the model's output reads, for
    a server that hands on raw text. `server` says which server it is: whose fields are used. `options` are the
    dialect's, `fields` go into every request to the upstream. The key for the upstream comes from the environment
    variable `api_key_env`. `aliases` are groups of parameter names that mean the same, `infer` rules for arguments
    without a name. A call that does not hold is asked for again `retries` times, within `retry_s` seconds.
    `balance`: which of several servers is asked: the one that has the `prefix` of the conversation in its cache, or the
    one with the `least` requests. `constrain`: whether `server` is sent grammars. `arguments`: how a server that
    renders natively gets those of calls in the history: as text, which is OpenAI's form, or as objects, where it hands
    them to the chat template as they come. `max_requests`: so many at once, the others wait for `queue_s` at most.
    `faults` (simulated only) makes the model misbehave, `sample` makes random calls of what the request allows.
    """

    name: _Text
    upstream: str | Annotated[list[str], Meta(min_length=1)]
    model: _Text | None = None
    mode: Mode | Literal["auto"] | None = None
    dialect: str | None = None
    template: _Text | None = None
    response_template: _Text | None = None
    server: Server = "openai"
    options: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    headers: dict[str, str] = {}
    api_key_env: str | None = None
    connect_timeout_s: _Seconds = 10.0
    idle_timeout_s: _Seconds = 300.0
    aliases: list[Annotated[list[_Text], Meta(min_length=2)]] = []
    infer: list[InferenceConfig] = []
    retries: Annotated[int, Meta(ge=0, le=5)] = 2
    retry_s: _Seconds = 100.0
    media: Literal["refuse", "tell"] = "refuse"
    balance: Literal["prefix", "least"] = "prefix"
    constrain: Literal["auto", "off"] = "auto"
    arguments: Literal["text", "object"] = "text"
    max_requests: _Count | None = None
    queue_s: Annotated[float, Meta(ge=0, le=86_400)] = 5.0
    engine: EngineOptions | None = None
    faults: str = ""
    sample: bool = False

    @property
    def servers(self) -> tuple[str, ...]:
        """Where the model is: one address, or several that are alike."""
        return (self.upstream,) if isinstance(self.upstream, str) else tuple(self.upstream)

    @property
    def file(self) -> Path | None:
        """The file of a model that is run here."""
        return Path(self.upstream) if isinstance(self.upstream, str) and is_file(self.upstream) else None


class McpConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[mcp]]`: a server of tools that clients may have run here, under this `label` or its `url`.

    It is asked at the `url`, or started by `command`, which gets the environment variables that `env` names. `tools`
    are the names of those that may be used; None = all. `client_headers`: requests may bring their own. A call may
    take `timeout_s`; the model reads `result_chars` characters of what came of it.
    """

    label: Annotated[str, Meta(pattern="^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
    url: _Text | None = None
    command: str | list[_Text] | None = None
    env: list[_Text] = []
    headers: dict[str, str] = {}
    api_key_env: str | None = None
    client_headers: bool = False
    tools: list[_Text] | None = None
    connect_timeout_s: _Seconds = 30.0
    timeout_s: _Seconds = 60.0
    result_chars: Annotated[int, Meta(ge=100)] = 60_000


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole configuration. Without a `store` it keeps responses in memory; the command line names a file."""

    server: ServerConfig = ServerConfig()
    store: StoreConfig | None = None
    record: RecordConfig | None = None
    limits: Limits = Limits()
    keys: tuple[KeyConfig, ...] = ()
    models: tuple[ModelConfig, ...] = ()
    mcp: tuple[McpConfig, ...] = ()


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


def simulated_config(server: ServerConfig, faults: str = "", *, sample: bool = False) -> Config:
    """The simulated model in each way of asking it."""
    given: dict[str, Any] = {"upstream": "simulated", "media": "tell", "faults": faults}
    models = [
        ModelConfig(name=name, mode=mode, dialect=dialect, sample=sample and mode != "native", **given)
        for name, (mode, dialect) in SIMULATED.items()
    ]
    return Config(server=server, models=tuple(models))
