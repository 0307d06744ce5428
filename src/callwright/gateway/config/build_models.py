"""Models from their configuration: the mode, the dialect, the server and how it is asked, or why that cannot be."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from callwright.calls.aliases import GROUPS, ParameterAliases, ToolInferenceRule
from callwright.chat_template.sources import ChatTemplate, read_template, template_of_file
from callwright.dialects.base import read_options
from callwright.dialects.detect import Detected, by_name, options_by_name
from callwright.errors import ConfigError, RequestError, did_you_mean
from callwright.gateway.config.budgets import check_budgets
from callwright.gateway.config.config import (
    ANY_MODEL,
    SIMULATED_UPSTREAM,
    Config,
    ModelConfig,
    file_of,
    path_of,
    servers_of,
)
from callwright.gateway.config.urls import check_header, check_url
from callwright.openai_format.request_rules import RequestRules
from callwright.response_template.template import ResponseTemplate
from callwright.settings.bounds import Bounds
from callwright.turn.endless_text import MOST_REPEATED
from callwright.turn.model import AUTO, MODES, TEMPLATE, Mode, Model
from callwright.upstreams.base import NO_CONSTRAINTS, NO_TOOL_CHOICE, Server, Upstream
from callwright.upstreams.base_urls import possible_base_urls, without_credentials
from callwright.upstreams.chat import ChatUpstream
from callwright.upstreams.completions import CHAT_ONLY, RAW_SERVERS, CompletionsUpstream
from callwright.upstreams.completions import ServerKind as RawServer
from callwright.upstreams.embedded.engine import ENGINE_FIELDS, EmbeddedUpstream
from callwright.upstreams.embedded.gguf import is_file, read_gguf
from callwright.upstreams.http import Timeouts
from callwright.upstreams.pool import Pool
from callwright.upstreams.simulated.faults import Faults
from callwright.upstreams.simulated.model import SimulatedUpstream
from callwright.wire.chat.request import CONSUMED
from callwright.wire.pass_rules import PassRules

_ANY: Final = "*"
# Media that come with the request, or from where everybody can get them.
_MEDIA_URLS: Final = ("data", "https")
# A base model can only continue a text.
_WITHOUT_TEMPLATE: Final = Detected(
    "json",
    "no chat template, and no known name: the conversation is a text with headings, with the tools in words and "
    "examples of their calls",
    (("examples", True),),
)
# What is found out later than that about a server for mode auto is not worth the wait.
_PROBING_S: Final = 60.0


# Returns the model of an entry: the one that exists already, or a new one from the function.
TakesModel: TypeAlias = Callable[[ModelConfig, Callable[[], Model]], Model]


def build_models(config: Config, take: TakesModel = lambda _, build: build()) -> dict[str, Model]:
    """The models by name. Raises `ConfigError` for what cannot work, naming the model."""
    if config.store is not None and config.store.shared_limits and not config.store.url.startswith("postgresql:"):
        raise ConfigError(
            "[store] shared_limits: only gateways with one PostgreSQL can share limits. Name it as the url, or leave "
            "shared_limits out: the workers of one gateway share them anyway."
        )
    check_budgets(config)
    models: dict[str, Model] = {}
    for given in config.models:
        if given.name in models:
            raise ConfigError(f"Two models are called {given.name!r}.")
        try:
            models[given.name] = take(given, partial(_model, given, config))
        except (ConfigError, RequestError) as error:
            raise ConfigError(f"Model {given.name!r}: {error}") from error
    return link_fallbacks(models, config)


def link_fallbacks(models: Mapping[str, Model], config: Config) -> dict[str, Model]:
    """These models of a configuration with their fallbacks, which are among them. Raises `ConfigError` for unknown
    names.
    """
    linked = dict(models)
    for given in config.models:
        if given.fallback:
            found = tuple(_fallback(models, given, number) for number in range(len(given.fallback)))
            linked[given.name] = msgspec.structs.replace(models[given.name], fallbacks=found)
    return linked


def _fallback(models: Mapping[str, Model], given: ModelConfig, number: int) -> Model:
    """One fallback of a model; `*` serves every name."""
    name = given.fallback[number]
    where = f"Model {given.name!r}: fallback"
    if name == given.name or name == ANY_MODEL:
        raise ConfigError(f"{where} names {name!r}: expected the name of another model.")
    if name in given.fallback[:number]:
        raise ConfigError(f"{where} names {name!r} twice: leave one of them.")
    if name in models:
        return models[name]
    if ANY_MODEL in models:
        return models[ANY_MODEL].for_model(name)
    others = [other for other in models if other != given.name]
    there = f"They are: {', '.join(others)}." if others else "There are none: add one under [[models]]."
    raise ConfigError(f"{where}: no other model is called {name!r}.{did_you_mean(name, others)} {there}")


def _pass_rules(given: ModelConfig, has_keys: bool) -> PassRules:
    """What of a request the model's server gets. Whoever has no keys asks for himself."""
    schemes = given.media_urls if given.media_urls is not None else _MEDIA_URLS if has_keys else (_ANY,)
    return PassRules(
        only_known=has_keys,
        fields=frozenset(given.pass_fields),
        media_urls=None if _ANY in schemes else frozenset(schemes),
    )


def default_name(upstream: str) -> str:
    """The name of a model that was given none: a server is asked for any, a file has one."""
    return Path(upstream).stem if is_file(upstream) else ANY_MODEL


def mode_of(given: ModelConfig) -> Mode:
    """The mode of a model, said or not; that it is to be found out counts as not."""
    if given.mode is not None and given.mode != AUTO:
        return given.mode
    return "raw" if file_of(given) else "prompt" if given.dialect else "native"


def _model(given: ModelConfig, config: Config) -> Model:
    _check_labels(given.mcp, [server.label for server in config.mcp])
    if given.mode == AUTO and file_of(given) is None and servers_of(given) != (SIMULATED_UPSTREAM,):
        return _auto(given, config)
    given = with_dialect(given)
    mode = mode_of(given)
    if mode not in MODES:
        raise ConfigError(f"Unknown mode {mode!r}. It can be: {', '.join((*MODES, AUTO))}.")
    if mode != "native" and given.dialect is None:
        raise ConfigError(f"Mode {mode!r} needs a dialect: add dialect = 'harmony', or another one.")
    _refuse_ignored(given, mode)
    return _build_model(given, mode, config)


def _check_labels(wanted: Sequence[str], known: Sequence[str]) -> None:
    for number, label in enumerate(wanted):
        if label not in known:
            there = f"They are: {', '.join(known)}." if known else "There are none."
            raise ConfigError(f"mcp: no server of [[mcp]] has the label {label!r}.{did_you_mean(label, known)} {there}")
        if label in wanted[:number]:
            raise ConfigError(f"mcp names {label!r} twice: leave one of them.")


def _build_model(given: ModelConfig, mode: Mode, config: Config) -> Model:
    in_file = file_of(given) is not None
    model = Model(
        name=given.name,
        upstream=_upstream(given, mode, config.limits),
        upstream_model=given.model or given.name,
        mode=mode,
        dialect=given.dialect,
        fields=given.fields,
        hints=ParameterAliases(
            aliases=(*map(frozenset, given.aliases), *GROUPS),
            inference=tuple(ToolInferenceRule(rule.tool, frozenset(rule.keys)) for rule in given.infer),
        ),
        retries=given.retries,
        retry_s=given.retry_s,
        max_repeats=given.max_repeats,
        defer_tools_above=given.defer_tools_above,
        max_repeated_text=MOST_REPEATED if in_file and given.max_repeated_text is None else given.max_repeated_text,
        describe_media=given.media == "tell",
        constrain=given.constrain == "auto",
        ask_ambiguous=given.ask_ambiguous,
        keeps_reasoning=given.keep_reasoning,
        enforces_schema=given.server not in NO_CONSTRAINTS,
        format_beside_tools=given.server == "openai",
        arguments_as_objects=given.arguments == "object",
        output_parser=_response_template(given),
        supports_tool_choice=given.server not in NO_TOOL_CHOICE,
        accepts=ENGINE_FIELDS if in_file else None,
        requests=RequestRules(is_lenient=given.requests == "lenient"),
        passes=_pass_rules(given, bool(config.keys)),
        mcp=given.mcp,
        input_modalities=given.input_modalities,
    )
    if given.dialect is None or given.dialect == AUTO:
        return model
    by_model = next((found for name in _model_names(given) if (found := options_by_name(given.dialect, name))), {})
    return msgspec.structs.replace(model, options=read_options(given.dialect, {**by_model, **given.options}))


def _model_names(given: ModelConfig) -> Sequence[str]:
    """What a model is called, what tells most first."""
    if (file := file_of(given)) is None:
        return [given.model or given.name]
    return [read_gguf(file).name, file.stem, given.name]


def _response_template(given: ModelConfig) -> ResponseTemplate | None:
    if given.response_template is None:
        return None
    try:
        return ResponseTemplate.load(path_of(given.response_template))
    except ConfigError as error:
        raise ConfigError(f"response_template: {error}") from error


def _auto(given: ModelConfig, config: Config) -> Model:
    """A model whose mode is chosen when it is asked. What would be wrong in one mode only is no mistake here."""
    from callwright.doctor.examine import probe  # here, so that a gateway that asks no server starts without it
    from callwright.doctor.findings import Findings
    from callwright.doctor.recommend import Advice, advice
    from callwright.gateway.config.auto_mode import AutoModeSelector

    _refuse_ignored(given, AUTO)
    named = given.dialect if given.dialect not in (AUTO, TEMPLATE) else None
    flavour: dict[str, object] = {}
    if named is None and given.template is not None and (found := detected(given)) is not None:
        named, flavour = found.dialect, dict(found.options)
    model = _build_model(msgspec.structs.replace(given, dialect=named), "native", config)
    server: Server | None = given.server if given.server != "openai" else None

    async def examine(name: str | None) -> Findings:
        """Of several servers of one model, the first that can be used tells for all."""
        for url in servers_of(given):
            how: dict[str, Any] = {"dialect": named, "server": server, "depth": "mode"}
            findings = await probe(url, model=name, headers=upstream_headers(given), timeout_s=_PROBING_S, **how)
            if advice(findings, server=server).usable:
                break
        return findings

    def build(findings: Findings, advised: Advice) -> Model:
        fields = {name: value for name, value in given.fields.items() if advised.mode != "raw" or name not in CHAT_ONLY}
        chosen = msgspec.structs.replace(
            given,
            upstream=_bases(given, findings.url),
            dialect=advised.dialect,
            server=advised.server,
            options=given.options if advised.dialect == given.dialect else flavour or dict(findings.dialect_options),
            fields=fields,
            constrain="auto" if advised.constrain and given.constrain == "auto" else "off",
        )
        return _build_model(chosen, advised.mode, config)

    anything = given.name == ANY_MODEL and given.model is None
    return msgspec.structs.replace(
        model,
        dialect=None,
        mode_selector=AutoModeSelector(
            None if anything else model.upstream_model,
            examine,
            build,
            shown=None if given.name == ANY_MODEL else given.name,
            server=server,
        ),
    )


def _bases(given: ModelConfig, found: str) -> list[str]:
    """The base URLs of a model's servers, from where one of them was `found`."""
    possible = [possible_base_urls(url) for url in servers_of(given)]
    place = next(urls.index(url) for urls in possible for url in urls if without_credentials(url) == found)
    return [urls[min(place, len(urls) - 1)] for urls in possible]


def with_dialect(given: ModelConfig) -> ModelConfig:
    """The model with its dialect found, where it is to be found: by the chat template, or by the model's name. For any
    model it stays open until one is asked for.
    """
    if file_of(given) and given.dialect is None:
        given = msgspec.structs.replace(given, dialect=AUTO)
    open_ = given.name == ANY_MODEL and given.model is None and given.template is None and not file_of(given)
    if given.dialect not in (AUTO, TEMPLATE) or open_:
        return given
    found = detected(given)
    if found is None:
        raise ConfigError(
            f"dialect 'auto': nothing is known of {given.model or given.name!r}. Name its dialect (`callwright "
            "dialects` lists them; 'json' works with any model), or give its chat template: template = 'file'."
        )
    return msgspec.structs.replace(given, dialect=found.dialect, options={**dict(found.options), **given.options})


def detected(given: ModelConfig) -> Detected | None:
    """The dialect of a model, with the reason: see `callwright.chat_template.detect`. Raises `ConfigError` where
    `template` is asked for and there is none.
    """
    if given.template is None and not file_of(given) and given.dialect != TEMPLATE:
        return by_name(given.model or given.name)
    from callwright.chat_template.detect import by_rendering, detect  # here: it knows how every family writes calls

    at = file_of(given)
    file = read_gguf(at) if at else None
    template = _chat_template(given)
    if given.dialect == TEMPLATE:
        if template is None:
            raise ConfigError("dialect 'template' needs a chat template: add template = 'file'.")
        return by_rendering(template)
    tokens = frozenset(file.tokens) if file is not None else frozenset()
    found = detect(template, _model_names(given), vocabulary=tokens, raw=mode_of(given) == "raw")
    return _WITHOUT_TEMPLATE if found is None and file_of(given) else found


def _chat_template(given: ModelConfig) -> ChatTemplate | None:
    if given.template is not None:
        return read_template(path_of(given.template))
    at = file_of(given)
    file = read_gguf(at) if at else None
    return template_of_file(file) if file is not None and file.template else None


def _refuse_ignored(given: ModelConfig, mode: Mode | Literal["auto"]) -> None:
    """A setting that would change nothing is a mistake: whoever wrote it expects something of it."""
    if (file := file_of(given)) is not None:
        _refuse_ignored_by_file(given, file, mode)
    elif given.engine is not None:
        raise ConfigError("engine is for a model in a file: leave it out, or write upstream = 'model.gguf'.")
    cases = (*_ignored_of_dialect(given, mode), *_ignored_by_mode(given, mode), *_ignored_by_servers(given))
    if why := next((why for is_ignored, why in cases if is_ignored), None):
        raise ConfigError(why)
    for name in given.fields:
        if name in CONSUMED or name == "prompt":
            raise ConfigError(f"fields.{name}: the gateway sets this field itself for each request: leave it out.")
        if mode == "raw" and name in CHAT_ONLY:
            raise ConfigError(
                f"fields.{name}: a completion endpoint does not know this field: leave it out, or see whether the "
                "dialect has such an option."
            )


_Cases: TypeAlias = Iterator[tuple[bool, str]]  # whether something changes nothing, and why


def _ignored_of_dialect(given: ModelConfig, mode: Mode | Literal["auto"]) -> _Cases:
    """What is set of a dialect that is not there, or is not known."""
    yield (
        given.template is not None and given.dialect is None and mode != AUTO,
        "template is read to find the dialect: add dialect = 'auto', or leave it out.",
    )
    yield (
        bool(given.options) and given.dialect == AUTO,
        "options are one dialect's: name it instead of 'auto', or leave them out.",
    )
    yield (
        mode == "native" and given.dialect is not None,
        (
            f"In mode 'native' the server renders and reads: leave out dialect = {given.dialect!r}, or choose mode "
            "'prompt' or 'raw'."
        ),
    )
    yield (
        bool(given.options) and given.dialect is None,
        (
            f"options are a dialect's ({', '.join(given.options)}): add dialect = 'harmony', or another one, or leave "
            "them out. Fields that are sent to the server unchanged belong in fields."
        ),
    )


def _ignored_by_mode(given: ModelConfig, mode: Mode | Literal["auto"]) -> _Cases:
    """What another mode would need."""
    yield (
        mode != "native" and given.response_template is not None,
        (
            f"response_template is read in mode 'native', where the server renders: in mode {mode!r} the dialect "
            "reads. Leave one of them out."
        ),
    )
    yield (
        mode == "raw" and given.server not in RAW_SERVERS,
        (
            f"server {given.server!r} is asked over its chat endpoint: choose mode 'native' or 'prompt'. Mode 'raw' "
            f"takes {', '.join(RAW_SERVERS)}."
        ),
    )
    yield (
        given.constrain == "off" and mode == "native" and given.server != "ollama",
        "constrain: grammars are sent in the modes 'raw' and 'prompt' only: leave it out.",
    )
    yield (
        given.constrain == "off" and mode == "prompt" and given.server in NO_CONSTRAINTS,
        f"constrain: no grammar goes to a server {given.server!r}: leave it out, or add server = another.",
    )
    yield (
        given.arguments == "object" and mode not in ("native", AUTO),
        "arguments: only in mode 'native' does the server render them: leave it out.",
    )


def _ignored_by_servers(given: ModelConfig) -> _Cases:
    """What other servers would need, or more of them; and no repeat."""
    yield (
        given.max_repeats == 1,
        "max_repeats: a single output is not a repeat. Write 2 or more, or 0 for any number of times.",
    )
    yield (
        bool(given.faults) and servers_of(given) != (SIMULATED_UPSTREAM,),
        "faults are for the simulated model: leave them out, or write upstream = 'simulated'.",
    )
    yield (
        given.balance != "prefix" and len(servers_of(given)) == 1,
        "balance is for several servers: leave it out, or write upstream = ['http://…', 'http://…'].",
    )


# What only a server that is connected to has.
_OF_SERVERS: Final = (
    "model",
    "context_length",
    "server",
    "headers",
    "api_key_env",
    "connect_timeout_s",
    "idle_timeout_s",
)


def _refuse_ignored_by_file(given: ModelConfig, file: Path, mode: Mode | Literal["auto"]) -> None:
    if mode != "raw":
        raise ConfigError(f"A model in a file is asked in mode 'raw' only: leave out mode = {mode!r}.")
    if given.name == ANY_MODEL:
        raise ConfigError(f"A model in a file has one name: write name = {file.stem!r}, or another.")
    defaults = ModelConfig(name=given.name, upstream=given.upstream)
    for name in _OF_SERVERS:
        if getattr(given, name) != getattr(defaults, name):
            raise ConfigError(f"{name} is for a model server, and {file.name} is run here: leave it out.")


def _upstream(given: ModelConfig, mode: Mode, bounds: Bounds) -> Upstream:
    if servers_of(given) == (SIMULATED_UPSTREAM,):
        return SimulatedUpstream(Faults.parse(given.faults))
    if (file := file_of(given)) is not None:
        return EmbeddedUpstream(read_gguf(file), given.engine)
    for url in servers_of(given):
        check_upstream(url)
    if twice := next((url for url in servers_of(given) if servers_of(given).count(url) > 1), None):
        raise ConfigError(f"upstream names {without_credentials(twice)} twice: leave one of them.")
    headers = upstream_headers(given)
    timeouts = Timeouts(given.connect_timeout_s, given.idle_timeout_s)
    upstreams: list[Upstream] = [
        CompletionsUpstream(url, headers, timeouts, bounds, flavour=_raw_server(given.server) or "openai")
        if mode == "raw"
        else ChatUpstream(url, headers, timeouts, bounds, server=given.server)
        for url in servers_of(given)
    ]
    return upstreams[0] if len(upstreams) == 1 else Pool(upstreams, keeps=given.balance == "prefix")


def _raw_server(server: Server) -> RawServer | None:
    """The server, if it is one of those that mode raw knows."""
    return next((known for known in RAW_SERVERS if known == server), None)


def upstream_headers(given: ModelConfig) -> dict[str, str]:
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
    expected = "expected 'simulated' or a URL such as http://localhost:8000/v1 (or a model.gguf)"
    check_url(url, f"Upstream {shown!r}: {expected}")


def _check_headers(given: ModelConfig, headers: Mapping[str, str]) -> None:
    """Nothing here may tell a value: it may be a key."""
    places = {
        "headers.authorization": any(name.lower() == "authorization" for name in given.headers),
        "api_key_env": bool(given.api_key_env),
        "the URL of upstream": any("@" in urlsplit(url).netloc for url in servers_of(given)),
    }
    keys = [place for place, has_key in places.items() if has_key]
    if len(keys) > 1:
        raise ConfigError(f"The upstream's key is given more than once, by {' and '.join(keys)}: leave one of them.")
    for name, value in headers.items():
        of_key = name == "authorization" and given.api_key_env
        where = f"The environment variable {given.api_key_env}" if of_key else f"headers.{name}"
        check_header(name, value, where)
