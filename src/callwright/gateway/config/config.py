"""The gateway's configuration: `callwright.toml`, or the command line's short form of it.

What stands below a field is what docs/configuration.md and the JSON Schema for editors say of it: `scripts/reference`
writes the one, `callwright config --schema` the other.
"""

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from callwright.errors import ConfigError
from callwright.gateway.config.hooks import HookConfig, PolicyConfig, RedactConfig
from callwright.gateway.config.spending import BudgetConfig, PriceConfig, SpendingConfig, TeamConfig
from callwright.settings.bounds import Bounds
from callwright.settings.errors import SlipError, read_settings
from callwright.settings.expiry import Expiry
from callwright.turn.model import SIMULATED, Modality, Mode
from callwright.upstreams.base import Server
from callwright.upstreams.embedded.engine import EngineOptions
from callwright.upstreams.embedded.gguf import PACKAGED, is_file, packaged_file

ANY_MODEL = "*"
ALL_MODELS: Final = "*"
KEY_NAME: Final = "^[A-Za-z0-9_.@-]{1,64}$"
SIMULATED_UPSTREAM: Final = "simulated"

_Text: TypeAlias = Annotated[str, Meta(min_length=1)]
_Scheme: TypeAlias = Annotated[str, Meta(pattern=r"^([a-z][a-z0-9+.-]*|\*)$")]
_Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=86_400)]
_Count: TypeAlias = Annotated[int, Meta(ge=1)]
_PerMinute: TypeAlias = Annotated[int, Meta(ge=1)]

LogFormat: TypeAlias = Literal["plain", "json"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
InspectLevel: TypeAlias = Literal["off", "metadata", "full"]


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[server]`: how the gateway listens and answers."""

    host: _Text = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8642
    """Port to listen on; `0` for any that is free. No model server listens on the default: 8080 is llama-server's, 8000
    vLLM's, 11434 Ollama's.
    """
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    """Processes that serve the port together, see [deployment](deployment.md#several-workers); not for a model in a
    file, nor with a store in memory.
    """
    max_body_bytes: Annotated[int, Meta(ge=1)] = 16_777_216
    """Larger requests get a 413."""
    hosts: tuple[_Text, ...] = ()
    """Without keys: further host names by which clients and web pages may reach the gateway, such as
    `["gateway.lan"]`; `["*"]` for any, see [security](security.md).
    """
    max_requests: _Count = 2_048
    """Running requests and turns over WebSocket; one more gets a 429 with `retry-after`. Each of several
    workers takes its share. The process raises its limit of open files as they and `max_connections` need, within the
    system's hard limit.
    """
    drain_s: Annotated[float, Meta(ge=0, le=86_400)] = 25.0
    """After SIGTERM or Ctrl-C, how long running requests may continue. Meanwhile `/healthz` answers 503 and new
    requests are rejected; then every answer ends with an error as its last event. A second signal ends them
    immediately.
    """
    history: Literal["strict", "mend"] = "strict"
    """Calls and outputs in the messages that do not match: `strict` rejects them as OpenAI does; `mend` pairs late
    outputs and lost ids, marks calls that were not run, turns orphans into text, and leaves one system message at the
    start.
    """
    log_level: LogLevel = "info"
    """Minimum [log](operations.md#logs) level. Conversation content is logged only at `debug`."""
    log_format: LogFormat = "plain"
    """`plain` lines, or one `json` object a line."""
    metrics: bool = True
    """Whether `GET /metrics` answers [Prometheus](operations.md#metrics)."""
    inspect: InspectLevel | None = None
    """Turns on the [pages](inspection.md): `full`, with content; `metadata`, without it; `off`, none. By default `full`
    on this machine's own addresses without keys and `hosts`, else `metadata`.
    """
    watch: bool = False
    """Whether changes of this file are [applied](operations.md#changes-without-a-restart) when it is saved, besides on
    SIGHUP. Off by default: a file that is half written can be valid, but lack its last tables, such as `[[keys]]`.
    """


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[store]`: the store for responses and conversations."""

    url: _Text
    """`sqlite:///file.db` (four slashes for an absolute path), `postgresql://user:password@host/database` (needs
    psycopg:
    `.venv/bin/python -m pip install '.[postgres]'`; several gateways may share it), `sqlite://` for memory only, `none`
    to store nothing.
    """
    retention_days: Annotated[float, Meta(gt=0, le=36_500)] = 30.0
    """Older responses that no other continues are erased."""
    shared_limits: bool = False
    """Whether `requests_per_minute` and `tokens_per_minute` of keys apply to all gateways with this store together,
    see [deployment](deployment.md#limits-of-keys); PostgreSQL only.
    """


class RecordConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[record]`: each turn is written into a file, as `callwright replay` reads it."""

    dir: _Text
    """The folder; it is created if missing."""
    max_total_bytes: Annotated[int, Meta(ge=1_024)] = 1_073_741_824
    """Above this the oldest files are erased. A file has a third of it, and 64 MiB at most."""


class InferenceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[models.infer]]`: arguments without a name that have all these keys are this tool's."""

    tool: _Text
    """The tool, if several would accept them."""
    keys: Annotated[list[_Text], Meta(min_length=1)]
    """Properties that the arguments must have."""


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[models]]`: a name for clients, and the model with its server."""

    name: _Text
    """The name for clients; `*` matches every name and forwards it."""
    upstream: str | Annotated[list[str], Meta(min_length=1)]
    """Base URL of the server with its `/v1`, a file `model.gguf` to [run in this process](embedded.md), `smollm2` for a
    [small trained model](embedded.md#a-small-trained-model), or `simulated`; a list of URLs for several servers of the
    same model, see [below](#several-servers).
    """
    model: _Text | None = None
    """The server's own name for it; without it, `name`."""
    mode: Mode | Literal["auto"] | None = None
    """`native`: the server renders and parses; `prompt`: the tools are text in the messages and Callwright parses the
    reply; `raw`: Callwright renders the whole prompt for the completion endpoint; `auto`: [chosen](#mode-auto) by
    probing the server. Without it `auto`, with a dialect `prompt`, with a response template `native`, for a file `raw`.
    """
    dialect: str | None = None
    """The model's format, see [dialects](dialects.md); for the modes prompt and raw only. `auto` finds it by the
    model's [chat template](chat-templates.md#which-dialect-a-template-follows), which a GGUF file contains (there it is
    the default), or by its name; the reason is printed at the start. `template`: prompts and calls of the
    [chat template](chat-templates.md) itself, the fallback of `auto`. For `*` it is found for each requested name, and
    is `json` for an unknown one.
    """
    template: _Text | None = None
    """The model's chat template, for the dialects `auto` and `template`: a Jinja file, a `tokenizer_config.json`, a
    model's folder, or a GGUF file.
    """
    response_template: _Text | None = None
    """Mode native: a file that declares how the output is parsed, for a server that renders the tools and returns raw
    text; see [response templates](chat-templates.md#response-templates). The server's own calls still count.
    """
    server: Server = "openai"
    """Which server it is; `openai` is any other. In mode raw (not `ollama`, `lmstudio` and `transformers`) they
    need different fields to keep control tokens in the text; in the other modes it selects the [constraints and
    choices](constraints.md) that the server honours.
    """
    options: dict[str, Any] = {}
    """Options of the [dialect](dialects.md)."""
    fields: dict[str, Any] = {}
    """Fields for every request to the upstream, such as `temperature`; the client's own win. Not those that the
    gateway sets itself (`model`, `messages`, `tools`, `stream`, …).
    """
    pass_fields: tuple[_Text, ...] = ()
    """Request fields that are forwarded in addition to the
    [known ones](openai-fields.md#what-goes-to-the-models-server), such as `["guided_regex"]`; `["*"]` for all. Without
    keys all fields of chat requests are.
    """
    media_urls: tuple[_Scheme, ...] | None = None
    """Schemes of the URLs of images, files and audio, such as `["data", "https", "http"]`; `["*"]` for any, with
    private addresses. With keys the default is `["data", "https"]`, without keys `["*"]`.
    """
    headers: dict[str, str] = {}
    """HTTP headers for the upstream."""
    api_key_env: str | None = None
    """Environment variable with the upstream's key, instead of one in `headers` or in the URL."""
    connect_timeout_s: _Seconds = 10.0
    """How long to wait for a connection."""
    idle_timeout_s: _Seconds = 300.0
    """How long the upstream may be silent; twice as long before a whole answer."""
    aliases: list[Annotated[list[_Text], Meta(min_length=2)]] = []
    """More groups of parameter names that mean the same, such as `[["depot", "warehouse"]]`; a name that the tool
    declares is never taken for another.
    """
    infer: list[InferenceConfig] = []
    """The tool of arguments without a tool name."""
    retries: Annotated[int, Meta(ge=0, le=5)] = 2
    """How often the model tries again after an invalid call or answer; see [the guarantee](guarantee.md).
    """
    retry_s: _Seconds = 100.0
    """Time after which the model is not asked any more."""
    fallback: tuple[_Text, ...] = ()
    """Names of other models, asked in this order if this one fails or its call does not hold after its retries; see
    [another model](operations.md#another-model-when-one-fails).
    """
    max_repeats: Annotated[int, Meta(ge=0, le=1000)] = 4
    """How often in a row a call may have the same output until the model reads a note about the loop; at twice that
    the call is forbidden, see [loops](guarantee.md#loops). 0: unlimited.
    """
    max_repeated_text: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    """An answer that repeats the same text over this many characters is stopped, as at its token limit, with the
    problem [`output_endless`](problems.md). By default 8,192 if the answer is held to a [grammar](constraints.md) or
    the model is in a file, else never. 0: never.
    """
    ask_ambiguous: bool = True
    """Whether the model is asked, once per turn, if a text in its answer is a call or only an example; see
    [the guarantee](guarantee.md#asked-about). Without it such an answer stays text.
    """
    keep_reasoning: bool = True
    """Whether reasoning before a call is [stored and restored](apis.md#reasoning-between-calls) if a client drops it.
    `false` for a server that rejects `reasoning_content` in a history.
    """
    requests: Literal["strict", "lenient"] = "strict"
    """`strict` rejects requests as OpenAI does; `lenient` accepts those that it rejects only for their form, see
    [lenient requests](guarantee.md#lenient-requests).
    """
    media: Literal["refuse", "tell"] = "refuse"
    """Images and files if the prompt is text only (mode raw): a 400 (`refuse`), or a note to the model that they
    exist.
    """
    balance: Literal["prefix", "least"] = "prefix"
    """The choice among several servers, see [below](#several-servers): the one with the `prefix` of the conversation in
    its cache, or the one with the `least` requests.
    """
    constrain: Literal["auto", "off"] = "auto"
    """Modes raw and prompt: if a call or an answer by a `response_format` is required, `server` gets a
    [grammar](constraints.md) that enforces it; `off`: never.
    """
    arguments: Literal["text", "object"] = "text"
    """Mode native: the form of the arguments of calls in the history. `text` is OpenAI's form, which vLLM, SGLang,
    llama.cpp and Ollama turn into objects for the chat template; `object` is for a server that passes them to the
    template unchanged.
    """
    defer_tools_above: Annotated[int, Meta(ge=0, le=10_000)] | None = None
    """With more tools than this in a request, the prompt lists a search in their place, see
    [many tools](operations.md#many-tools). By default all tools are listed.
    """
    mcp: tuple[_Text, ...] = ()
    """Labels of [`[[mcp]]`](#mcp): the model has the tools of these servers in every request, in addition to the
    client's; the [gateway runs them](mcp.md#for-every-client). With `tool_choice` `none` they are not used.
    """
    context_length: _Count | None = None
    """The context window in tokens, prompt and answer together, for the [list of models](apis.md#context-windows); by
    default the server's.
    """
    input_modalities: tuple[Modality, ...] | None = None
    """What its messages may contain, such as `["text", "image"]`, for the list of models:
    [what a model can do](apis.md#what-a-model-can-do). Without it this is unknown; in mode raw it is text.
    """
    max_requests: _Count | None = None
    """Parallel requests to its server; others wait. Divided among several workers."""
    queue_s: Annotated[float, Meta(ge=0, le=86_400)] = 5.0
    """How long they wait before they get a 429 with `retry-after`."""
    price: PriceConfig | None = None
    """The [price](spending.md) of a million tokens, such as `{input = 3.0, output = 15.0, cached_input = 0.3}`."""
    budget: BudgetConfig | None = None
    """The [budget](spending.md#budgets) of the model for all keys together, such as `{cost_per_day = 20.0}`."""
    engine: EngineOptions | None = None
    """For a model in a file."""
    faults: str = ""
    """Simulated only: its mistakes, see [the simulated model](simulated.md)."""


def file_of(model: ModelConfig) -> Path | None:
    """The file of a model that is run here."""
    at = model.upstream
    if not isinstance(at, str) or not is_file(at):
        return None
    return packaged_file(at) if at in PACKAGED else path_of(at)


def servers_of(model: ModelConfig) -> tuple[str, ...]:
    """The addresses of a model: one, or several servers that are alike."""
    return (model.upstream,) if isinstance(model.upstream, str) else tuple(model.upstream)


class KeyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[keys]]`: a client, and what it may use."""

    name: Annotated[str, Meta(pattern=KEY_NAME)]
    """The client's name; its responses and conversations belong to this name, and no other key sees them."""
    sha256: Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$")]
    """The hash of its key, 64 hexadecimal digits; the key itself is not stored."""
    models: tuple[str, ...] = (ALL_MODELS,)
    """The models it may use, `*` for all."""
    fallback: bool = True
    """Whether [another model](operations.md#another-model-when-one-fails) may answer; only one that the key may use
    does.
    """
    operator: bool = False
    """Whether [`/metrics`](operations.md#metrics) shows it all numbers of the gateway; other keys see their own."""
    requests_per_minute: _PerMinute | None = None
    """Requests per minute; above that a 429 with `retry-after` and OpenAI's `x-ratelimit-…` headers.
    The workers of a gateway count together, several gateways each for itself, or all together with `shared_limits` of
    `[store]`.
    """
    tokens_per_minute: _PerMinute | None = None
    """The same for tokens in and out, as the model's server counts them."""
    max_requests: _Count | None = None
    """Parallel requests, instead of `max_requests_per_key` of `[limits]`; above that a 429.
    The workers of a gateway count together.
    """
    team: _Text | None = None
    """The name of the [team](#teams) whose budget it shares."""
    budget: BudgetConfig | None = None
    """Its own [budget](spending.md#budgets), such as `{cost_per_month = 50.0, tokens_per_day = 2_000_000}`."""
    expires: Expiry | None = None
    """When the key stops being valid, such as `2027-01-31` or `2027-01-31T18:00:00Z`; a date alone is its end in UTC.
    From then on requests get a 401, also new turns on an open WebSocket; an answer that has begun is finished.
    """


class McpConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[mcp]]`: an MCP server whose tools the gateway runs for clients."""

    label: Annotated[str, Meta(pattern="^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
    """Its name in requests (`server_label`) without a `server_url`; a letter, then letters, digits, `_` and `-`.
    """
    url: _Text | None = None
    """Address of a server with streamable HTTP; requests may use it as `server_url` too."""
    command: str | list[_Text] | None = None
    """Instead of a `url`: a program with the standard-stream transport, as a command line or a list of words.
    """
    env: list[_Text] = []
    """For a command: names of environment variables of the gateway to pass. By default HOME, PATH and the like only.
    """
    headers: dict[str, str] = {}
    """For a `url`."""
    api_key_env: str | None = None
    """For a `url`: environment variable that holds the key, sent as `Authorization: Bearer`."""
    client_headers: bool = False
    """Requests may have `headers` and `authorization` of their own, which win."""
    tools: list[_Text] | None = None
    """Names of the tools that may be used; without it, all."""
    connect_timeout_s: _Seconds = 30.0
    """For its start and the list of its tools."""
    timeout_s: _Seconds = 60.0
    """How long a call may take."""


class SearchConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[search]`: the engine for [web search](apis.md#web-search); without it there is none."""

    url: _Text | None = None
    """Address of a SearXNG that answers JSON (`search.formats` in its `settings.yml`)."""
    mcp: _Text | None = None
    """Instead of a `url`: the label of an `[[mcp]]` server."""
    tool: _Text | None = None
    """For `mcp`: its tool that takes a query. Its text has the results."""
    headers: dict[str, str] = {}
    """For a `url`."""
    api_key_env: str | None = None
    """For a `url`: environment variable that holds the key, sent as `Authorization: Bearer`."""
    max_results: Annotated[int, Meta(ge=1, le=50)] = 8
    """Pages that the model reads of one search."""
    timeout_s: _Seconds = 15.0
    """How long a search may take."""


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole configuration. Without a `store` it keeps responses in memory; the command line names a file."""

    server: ServerConfig = ServerConfig()
    """How the gateway listens and answers."""
    store: StoreConfig | None = None
    """Where responses and conversations are kept."""
    record: RecordConfig | None = None
    """Where turns are written down."""
    limits: Bounds = Bounds()
    """Limits for a single request."""
    keys: tuple[KeyConfig, ...] = ()
    """The clients."""
    teams: tuple[TeamConfig, ...] = ()
    """Keys that share a budget."""
    spending: SpendingConfig = SpendingConfig()
    """How costs are shown."""
    models: tuple[ModelConfig, ...] = ()
    """The models."""
    mcp: tuple[McpConfig, ...] = ()
    """The servers of tools that are run here."""
    search: SearchConfig | None = None
    """The search engine of the web search."""
    hooks: tuple[HookConfig, ...] = ()
    """Rules of one's own."""
    policies: tuple[PolicyConfig, ...] = ()
    """Which calls of tools are allowed."""
    redact: RedactConfig | None = None
    """Which secrets records and pages do not show."""


def path_of(given: str) -> Path:
    """A path as users write it: `~` is their home, where they have one. Raises `ConfigError` for what no file has."""
    if "\0" in given:
        raise ConfigError(f"{given!r} is not a path: it contains a NUL character. Name a file or a folder.")
    return Path(os.path.expanduser(given))  # Path.expanduser raises for users that nobody knows


def load_config(path: Path) -> Config:
    """Read a TOML file. Raises `ConfigError` that names the file and the field."""
    try:
        given = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from error
    return parse_config(given, path)


@contextmanager
def name_file(path: Path) -> Iterator[None]:
    """Begin errors of a configuration with its file."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def parse_config(content: bytes, path: Path) -> Config:
    """The configuration in the content of a TOML file. Raises `ConfigError` that names the file and the field."""
    try:
        given = tomllib.loads(content.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error
    try:
        config = read_settings(given, Config)
    except SlipError as error:
        raise ConfigError(f"{path}: {error}") from error
    if not config.models:
        raise ConfigError(f"{path} has no models. Add one:\n\n[[models]]\nname = 'my-model'\nupstream = 'http://…/v1'")
    return msgspec.structs.replace(config, models=tuple(map(with_default_mode, config.models)))


def with_default_mode(given: ModelConfig) -> ModelConfig:
    """The model with mode `auto` if no setting decides the mode."""
    deciding = (given.mode, given.dialect, given.template, given.response_template, file_of(given))
    if any(setting is not None for setting in deciding) or servers_of(given) == (SIMULATED_UPSTREAM,):
        return given
    return msgspec.structs.replace(given, mode="auto")


def simulated_config(server: ServerConfig, faults: str = "") -> Config:
    """The simulated model in each way of asking it."""
    given: dict[str, Any] = {"upstream": SIMULATED_UPSTREAM, "media": "tell", "faults": faults}
    models = [
        ModelConfig(name=name, mode=mode, dialect=dialect, **given) for name, (mode, dialect) in SIMULATED.items()
    ]
    return Config(server=server, models=tuple(models))
