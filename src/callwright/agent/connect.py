"""Connects to a model: from its URL and name, or environment variables, to a `Model` for agents."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from callwright.dialects.base import get_dialect
from callwright.dialects.detect import by_name
from callwright.errors import ConfigError, did_you_mean
from callwright.settings.bounds import Bounds
from callwright.turn.model import AUTO, MODES, SIMULATED, UNKNOWN, Mode, Model
from callwright.upstreams.base import Server, Upstream
from callwright.upstreams.base_urls import without_credentials
from callwright.upstreams.chat import ChatUpstream
from callwright.upstreams.completions import RAW_SERVERS, CompletionsUpstream
from callwright.upstreams.http import Timeouts
from callwright.upstreams.retried import Retried
from callwright.upstreams.simulated.model import SimulatedUpstream

_URL: Final = "CALLWRIGHT_URL"
_MODEL: Final = "CALLWRIGHT_MODEL"
_KEY: Final = "CALLWRIGHT_API_KEY"
# Of the clients of OpenAI. Their key goes to their URL only.
_OPENAI_URL: Final = "OPENAI_BASE_URL"
_OPENAI_KEY: Final = "OPENAI_API_KEY"


def connect(
    url: str | None = None,
    model: str | None = None,
    *,
    api_key: str | None = None,
    dialect: str | None = None,
    mode: Mode | None = None,
    server: Server = "openai",
    headers: Mapping[str, str] | None = None,
    fields: Mapping[str, Any] | None = None,
    retries: int = 3,
    deadline_s: float | None = None,
    silent_s: float = 300.0,
    bounds: Bounds | None = None,
    fallbacks: Sequence[Model] = (),
) -> Model:
    """A model of a server with an OpenAI-compatible API. It sends nothing before the first run; each event loop has
    connections of its own, which end with it.

    `url` is its base URL (`http://localhost:8000/v1`), or a name of the simulated model. Without it `CALLWRIGHT_URL`
    counts, or else `OPENAI_BASE_URL`, with the key in `OPENAI_API_KEY`. `model`: or `CALLWRIGHT_MODEL`. `api_key`: or
    `CALLWRIGHT_API_KEY`; an empty one does not count.

    With a `dialect` Callwright writes and parses the calls, in mode `prompt`; `"auto"` finds it by the model's name.
    Mode `raw` renders the whole prompt, for the server's `/completions`. `server` names the kind of server, to use its
    own fields.

    `retries`: how often a failed request is repeated; `deadline_s`: seconds for all of an answer, retries included;
    `silent_s`: seconds in which the server may send nothing. `fields` are sent with each request.
    `fallbacks` are other models, asked in this order if this one fails or its call does not hold. Raises `ConfigError`.
    """
    url, key_variable = (url, _KEY) if url is not None else _url_of_environment()
    if url in SIMULATED:
        own_mode, own_dialect = SIMULATED[url]
        return Model(
            url,
            SimulatedUpstream(),
            url,
            mode=mode or own_mode,
            dialect=dialect or own_dialect,
            fallbacks=tuple(fallbacks),
        )
    if not url.startswith(("http://", "https://")):
        near = did_you_mean(url, SIMULATED)
        raise ConfigError(f"Expected a URL such as http://localhost:8000/v1, got {without_credentials(url)!r}.{near}")
    name = model or os.environ.get(_MODEL)
    if not name:
        raise ConfigError(f"Expected the name of a model: connect({without_credentials(url)!r}, 'name'), or {_MODEL}.")
    given = _headers(headers or {}, os.environ.get(key_variable, "") if api_key is None else api_key)
    mode, dialect = _asked_in(name, mode, dialect)
    upstream = _upstream(url, given, Timeouts(idle_s=silent_s), bounds or Bounds(), mode, server)
    retried = Retried(upstream, retries=retries, deadline_s=deadline_s)
    return Model(name, retried, name, mode=mode, dialect=dialect, fields=dict(fields or {}), fallbacks=tuple(fallbacks))


def _url_of_environment() -> tuple[str, str]:
    """The URL, and the variable that has its key."""
    for variable, key_variable in ((_URL, _KEY), (_OPENAI_URL, _OPENAI_KEY)):
        if (url := os.environ.get(variable)) is not None:
            return url, key_variable
    raise ConfigError(f"Expected the URL of a model's server: connect('http://localhost:8000/v1', …), or {_URL}.")


def _headers(headers: Mapping[str, str], key: str) -> dict[str, str]:
    """The headers of each request, with the key, by lowercase names."""
    given = {name.lower(): value for name, value in headers.items()}
    if key:
        if not key.isprintable() or key != key.strip():
            raise ConfigError("The API key holds a line end, another control character or a space at an end.")
        if "authorization" in given:
            raise ConfigError("The key is given twice, by api_key and in headers: leave one of them out.")
        given["authorization"] = f"Bearer {key}"
    return given


def _asked_in(name: str, mode: Mode | None, dialect: str | None) -> tuple[Mode, str | None]:
    """Mode and dialect."""
    if mode is not None and mode not in MODES:
        raise ConfigError(f"Unknown mode {mode!r}. It can be: {', '.join(MODES)}.")
    if dialect is None:
        if mode in ("prompt", "raw"):
            raise ConfigError(f"Mode {mode!r} needs a dialect: connect(…, dialect='auto'), or its name.")
        return "native", None
    if mode == "native":
        raise ConfigError("In mode 'native' the server reads the calls: leave the dialect out, or the mode.")
    if dialect == AUTO:
        found = by_name(name)
        dialect = found.dialect if found else UNKNOWN
    get_dialect(dialect)  # raises for an unknown name
    return mode or "prompt", dialect


def _upstream(
    url: str, headers: Mapping[str, str], timeouts: Timeouts, bounds: Bounds, mode: Mode, server: Server
) -> Upstream:
    if server not in get_args(Server):
        raise ConfigError(f"Unknown server {server!r}. It can be: {', '.join(get_args(Server))}.")
    if mode != "raw":
        return ChatUpstream(url, headers, timeouts, bounds, server=server)
    flavour = next((one for one in RAW_SERVERS if one == server), None)
    if flavour is None:
        raise ConfigError(f"Server {server!r} has no mode 'raw'. It can be: {', '.join(RAW_SERVERS)}.")
    return CompletionsUpstream(url, headers, timeouts, bounds, flavour=flavour)
