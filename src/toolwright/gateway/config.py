"""The gateway's configuration: `toolwright.toml`, or the command line's short form of it.

Every field is documented in docs/configuration.md; a test compares the two.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from toolwright.aliases import GROUPS, Hints, InferenceRule
from toolwright.detection import Detected, by_name, by_template
from toolwright.dialects.base import get_dialect, read_options
from toolwright.errors import ConfigError, RequestError
from toolwright.gateway.addresses import check_header, check_url
from toolwright.gateway.auto import Auto
from toolwright.gateway.callers import KeyConfig
from toolwright.gateway.logs import LogFormat, LogLevel
from toolwright.probing.advice import Advice, advice
from toolwright.probing.examination import probe
from toolwright.probing.findings import Findings
from toolwright.response_template import ResponseTemplate
from toolwright.settings import SlipError, read_settings
from toolwright.turn import AUTO, MODES, SIMULATED, Mode, Model
from toolwright.upstreams.base import Server, Upstream
from toolwright.upstreams.chat import ChatUpstream
from toolwright.upstreams.completions import CHAT_ONLY, RAW_SERVERS, CompletionsUpstream
from toolwright.upstreams.completions import Flavour as RawServer
from toolwright.upstreams.faults import Faults
from toolwright.upstreams.http import Timeouts, without_credentials
from toolwright.upstreams.pool import Pool
from toolwright.upstreams.simulated import SimulatedUpstream
from toolwright.wire.chat import CONSUMED
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
    "build_models",
    "check_upstream",
    "detected",
    "load_config",
    "simulated_config",
    "with_dialect",
]

ANY_MODEL = "*"
_SIMULATED = "simulated"

_Text: TypeAlias = Annotated[str, Meta(min_length=1)]
_Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=86_400)]

_Count: TypeAlias = Annotated[int, Meta(ge=1)]
# What is found out later than that about a server for mode auto is not worth the wait.
_PROBING_S = 60.0


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[server]`. `max_body_bytes`: larger requests are refused. `heartbeat_s`: a silent stream is kept alive.

    `reasoning`: the field of chat answers that reasoning goes into. `history`: calls and outputs that do not belong
    together are refused as OpenAI does, or mended. `responses`: the dialect of the Responses API. `hosts`: the names
    under which pages and clients may reach a gateway without keys. `max_requests`: more at once are refused.
    `stall_s`: a client that reads nothing for so long is given up. `drain_s`: how long what is under way may go on when
    the gateway is told to end. `metrics`: whether `GET /metrics` is there. `traces`: spans are made where OpenTelemetry
    is installed, or never.
    """

    host: _Text = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8080
    max_body_bytes: Annotated[int, Meta(ge=1)] = 16_777_216
    hosts: tuple[_Text, ...] = ()
    max_requests: _Count = 2_048
    heartbeat_s: _Seconds = 10.0
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
    for servers that are alike, or `simulated`; `model` its name for the model; the dialect `auto` is found by that, or
    by the chat template in the file `template`. `response_template` is a file that declares how the model's output
    reads, for a server that hands on raw text. `server` says which server it is: whose fields are used. `options` are
    the dialect's, `fields` go into every request to the upstream. The key for the upstream comes from the environment
    variable `api_key_env`. `aliases` are groups of parameter names that mean the same, `infer` rules for arguments
    without a name. A call that does not hold is asked for again `retries` times, within `retry_s` seconds.
    `constrain`: whether `server` is sent grammars. `arguments`: how a server that renders natively gets those of calls
    in the history: as text, which is OpenAI's form, or as objects, where it hands them to the chat template as they
    come. `max_requests`: so many at once, the others wait for `queue_s` at most. `faults` (simulated only) makes the
    model misbehave, `sample` makes random calls of what the request allows.
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
    constrain: Literal["auto", "off"] = "auto"
    arguments: Literal["text", "object"] = "text"
    max_requests: _Count | None = None
    queue_s: Annotated[float, Meta(ge=0, le=86_400)] = 5.0
    faults: str = ""
    sample: bool = False

    @property
    def servers(self) -> tuple[str, ...]:
        """Where the model is: one address, or several that are alike."""
        return (self.upstream,) if isinstance(self.upstream, str) else tuple(self.upstream)


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
    if given.mode == AUTO and given.servers != (_SIMULATED,):
        return _auto(given)
    given = with_dialect(given)
    mode: Mode = given.mode if given.mode and given.mode != AUTO else "prompt" if given.dialect else "native"
    if mode not in MODES:
        raise ConfigError(f"Unknown mode {mode!r}. It can be: {', '.join((*MODES, AUTO))}.")
    if mode != "native" and given.dialect is None:
        raise ConfigError(f"Mode {mode!r} needs a dialect: add dialect = 'harmony', or another one.")
    _refuse_ignored(given, mode)
    return _made(given, mode)


def _made(given: ModelConfig, mode: Mode) -> Model:
    model = Model(
        name=given.name,
        upstream=_upstream(given, mode),
        upstream_model=given.model or given.name,
        mode=mode,
        dialect=given.dialect,
        fields=given.fields,
        hints=Hints(
            aliases=(*map(frozenset, given.aliases), *GROUPS),
            inference=tuple(InferenceRule(rule.tool, frozenset(rule.keys)) for rule in given.infer),
        ),
        retries=given.retries,
        retry_s=given.retry_s,
        tells_media=given.media == "tell",
        constrain=given.constrain == "auto",
        object_arguments=given.arguments == "object",
        reads=_response_template(given),
        heeds_choice=given.server != "ollama",
    )
    if given.dialect is None or given.dialect == AUTO:
        return model
    get_dialect(given.dialect)
    return msgspec.structs.replace(model, options=read_options(given.dialect, given.options))


def _response_template(given: ModelConfig) -> ResponseTemplate | None:
    if given.response_template is None:
        return None
    try:
        return ResponseTemplate.load(given.response_template)
    except ConfigError as error:
        raise ConfigError(f"response_template: {error}") from error


def _auto(given: ModelConfig) -> Model:
    """A model whose mode is chosen when it is asked. What would be wrong in one mode only is no mistake here."""
    _refuse_ignored(given, AUTO)
    named = given.dialect if given.dialect != AUTO else None
    if named is None and given.template is not None and (found := detected(given)) is not None:
        named = found.dialect
    model = _made(msgspec.structs.replace(given, dialect=named), "native")
    server: Server | None = given.server if given.server != "openai" else None

    async def examine(name: str) -> Findings:
        """Of several servers of one model, the first that can be used tells for all."""
        for url in given.servers:
            how: dict[str, Any] = {"dialect": named, "server": server, "depth": "mode"}
            findings = await probe(url, model=name, headers=_headers(given), timeout_s=_PROBING_S, **how)
            if advice(findings, server=server).usable:
                break
        return findings

    def build(findings: Findings, advised: Advice) -> Model:
        bases = [url.rstrip("/") for url in given.servers]
        if all(without_credentials(base) != findings.url for base in bases):
            bases = [base if base.endswith("/v1") else f"{base}/v1" for base in bases]
        fields = {name: value for name, value in given.fields.items() if advised.mode != "raw" or name not in CHAT_ONLY}
        chosen = msgspec.structs.replace(
            given,
            upstream=bases,
            dialect=advised.dialect,
            server=advised.server,
            options=given.options if advised.dialect == given.dialect else {},
            fields=fields,
            constrain="auto" if advised.constrain and given.constrain == "auto" else "off",
        )
        return _made(chosen, advised.mode)

    anything = given.name == ANY_MODEL and given.model is None
    return msgspec.structs.replace(
        model,
        dialect=None,
        chooser=Auto(None if anything else model.upstream_model, examine, build, server=server),
    )


def with_dialect(given: ModelConfig) -> ModelConfig:
    """The model with its dialect found, where it is to be found: by the chat template, or by the model's name. For any
    model it stays open until one is asked for.
    """
    if given.dialect != AUTO or (given.name == ANY_MODEL and given.model is None and given.template is None):
        return given
    found = detected(given)
    if found is None:
        raise ConfigError(
            f"dialect 'auto': nothing is known of {given.model or given.name!r}. Name its dialect (`toolwright "
            "dialects` lists them; 'json' works with any model), or give its chat template as template = 'file'."
        )
    return msgspec.structs.replace(given, dialect=found.dialect)


def detected(given: ModelConfig) -> Detected | None:
    """The dialect of a model by its chat template, if it is given, else by its name, with the reason."""
    if given.template is None:
        return by_name(given.model or given.name)
    try:
        return by_template(Path(given.template).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"template: cannot read {given.template}: {error}.") from error


def _refuse_ignored(given: ModelConfig, mode: Mode | Literal["auto"]) -> None:
    """A setting that would change nothing is a mistake: whoever wrote it expects something of it."""
    if given.template is not None and given.dialect is None and mode != AUTO:
        raise ConfigError("template is read to find the dialect: add dialect = 'auto', or leave it out.")
    if given.options and given.dialect == AUTO:
        raise ConfigError("options are one dialect's: name it instead of 'auto', or leave them out.")
    if mode != "native" and given.response_template is not None:
        raise ConfigError(
            f"response_template is read in mode 'native', where the server renders: in mode {mode!r} the dialect "
            "reads. Leave one of them out."
        )
    if mode == "native" and given.dialect is not None:
        raise ConfigError(
            f"In mode 'native' the server renders and reads: leave out dialect = {given.dialect!r}, or choose mode "
            "'prompt' or 'raw'."
        )
    if given.options and given.dialect is None:
        raise ConfigError(
            f"options are a dialect's ({', '.join(given.options)}): add dialect = 'harmony', or another one, or leave "
            "them out. What goes to the server as it is belongs in fields."
        )
    if mode == "raw" and given.server not in RAW_SERVERS:
        raise ConfigError(
            f"server {given.server!r} is asked over its chat endpoint: choose mode 'native' or 'prompt'. Mode 'raw' "
            f"takes {', '.join(RAW_SERVERS)}."
        )
    if given.constrain == "off" and mode == "native" and given.server != "ollama":
        raise ConfigError("constrain: grammars are sent in the modes 'raw' and 'prompt' only: leave it out.")
    if given.constrain == "off" and mode == "prompt" and given.server == "openai":
        raise ConfigError("constrain: no grammar is sent to a server that is not named: leave it out, or add server.")
    if given.arguments == "object" and mode not in ("native", AUTO):
        raise ConfigError("arguments: only in mode 'native' does the server render them: leave it out.")
    if given.faults and given.servers != (_SIMULATED,):
        raise ConfigError("faults are for the simulated model: leave them out, or write upstream = 'simulated'.")
    if given.sample and (given.servers != (_SIMULATED,) or mode == "native"):
        raise ConfigError("sample is for the simulated model in the modes 'raw' and 'prompt': leave it out.")
    for name in given.fields:
        if name in CONSUMED or name == "prompt":
            raise ConfigError(f"fields.{name}: the gateway sets this field itself for each request: leave it out.")
        if mode == "raw" and name in CHAT_ONLY:
            raise ConfigError(
                f"fields.{name}: a completion endpoint does not know this field: leave it out, or see whether the "
                "dialect has such an option."
            )


def _upstream(given: ModelConfig, mode: Mode) -> Upstream:
    if given.servers == (_SIMULATED,):
        return SimulatedUpstream(Faults.parse(given.faults), samples=given.sample)
    for url in given.servers:
        check_upstream(url)
    if twice := next((url for url in given.servers if given.servers.count(url) > 1), None):
        raise ConfigError(f"upstream names {without_credentials(twice)} twice: leave one of them.")
    headers = _headers(given)
    timeouts = Timeouts(given.connect_timeout_s, given.idle_timeout_s)
    upstreams: list[Upstream] = [
        CompletionsUpstream(url, headers, timeouts, flavour=_raw_server(given.server) or "openai")
        if mode == "raw"
        else ChatUpstream(url, headers, timeouts, server=given.server)
        for url in given.servers
    ]
    return upstreams[0] if len(upstreams) == 1 else Pool(upstreams)


def _raw_server(server: Server) -> RawServer | None:
    """The server, if it is one of those that mode raw knows."""
    return next((known for known in RAW_SERVERS if known == server), None)


def _headers(given: ModelConfig) -> dict[str, str]:
    """The headers for the upstream, with its key."""
    headers = dict(given.headers)
    if given.api_key_env:
        key = os.environ.get(given.api_key_env)
        if not key:
            raise ConfigError(f"The environment variable {given.api_key_env} for the upstream's key is not set.")
        headers["authorization"] = f"Bearer {key}"
    _check_headers(given, headers)
    return headers


def check_upstream(url: str) -> None:
    """Raise `ConfigError` for what is no base URL of a server."""
    shown = without_credentials(url)
    check_url(url, f"Upstream {shown!r}: expected 'simulated' or a URL such as http://localhost:8000/v1")


def _check_headers(given: ModelConfig, headers: Mapping[str, str]) -> None:
    """Nothing here may tell a value: it may be a key."""
    places = {
        "headers.authorization": any(name.lower() == "authorization" for name in given.headers),
        "api_key_env": bool(given.api_key_env),
        "the URL of upstream": any("@" in urlsplit(url).netloc for url in given.servers),
    }
    keys = [place for place, has_key in places.items() if has_key]
    if len(keys) > 1:
        raise ConfigError(f"The upstream's key is given more than once, by {' and '.join(keys)}: leave one of them.")
    for name, value in headers.items():
        of_key = name == "authorization" and given.api_key_env
        where = f"The environment variable {given.api_key_env}" if of_key else f"headers.{name}"
        check_header(name, value, where)
