"""Information about the gateway: its models, whether their servers answer, and the contents that the pages may show."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from typing import Final, Literal

import msgspec
from msgspec import Struct

import callwright
from callwright.dialects.base import dialect_names
from callwright.errors import RequestError, UpstreamError
from callwright.gateway.config.config import InspectLevel, ModelConfig, file_of, servers_of
from callwright.turn.model import AUTO, MODES, Model

_ASKED_EVERY_S: Final = 10.0
_ANSWER_S: Final = 2.0


@cache
def _documentation() -> str | None:
    """The address that the installed package names."""
    try:
        named = metadata("callwright").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    return dict(one.split(", ", 1) for one in named).get("Documentation")


class ModelInfo(Struct, kw_only=True):
    """A model of the configuration. `window`: tokens of its context, if known; `why` it fails."""

    name: str
    mode: str
    dialect: str | None
    server: str
    upstream: str
    window: int | None = None
    state: Literal["well", "failing", "unknown"] = "unknown"
    why: str | None = None


class GatewayInfo(Struct, kw_only=True):
    """The data for the pages. `source`: a gateway, or files of records. `kept`: the number of rows.
    `docs`: the address of the documentation. `config_error`: why a changed configuration was not taken. `has_spending`:
    usage is counted by key, model and day.
    """

    source: Literal["gateway", "files"] = "gateway"
    version: str = callwright.__version__
    inspect: InspectLevel = "full"
    has_keys: bool = False
    is_operator: bool = True
    workers: int = 1
    models: Sequence[ModelInfo] = ()
    mcp: Sequence[str] = ()
    dialects: Sequence[str] = dialect_names()
    modes: Sequence[str] = MODES
    kept: int = 0
    config_error: str | None = None
    has_spending: bool = False
    docs: str | None = msgspec.field(default_factory=_documentation)


class ModelStates:
    """Requests the model lists of the servers, on demand and at most every ten seconds."""

    def __init__(
        self, given: Sequence[ModelConfig], models: Mapping[str, Model], window: Callable[[str], int | None]
    ) -> None:
        """`window` answers that of a model, if it is known by then."""
        self._window = window
        self._given = given
        self._models = models
        self._infos: list[ModelInfo] = []
        self._at_s = -_ASKED_EVERY_S
        self._lock = asyncio.Lock()

    async def infos(self) -> list[ModelInfo]:
        """The models, with the state of their servers."""
        async with self._lock:
            if time.monotonic() - self._at_s >= _ASKED_EVERY_S:
                self._infos = list(await asyncio.gather(*map(self._info, self._given)))
                self._at_s = time.monotonic()
            return self._infos

    async def _info(self, given: ModelConfig) -> ModelInfo:
        model = self._models[given.name]
        is_chosen = model.mode_selector is not None
        first, *_ = servers_of(given)
        info = ModelInfo(
            name=given.name,
            mode=AUTO if is_chosen else model.mode,
            dialect=model.dialect,
            server="in-process" if file_of(given) else given.server if "://" in first else first,
            upstream=model.upstream.name,
        )
        try:
            async with asyncio.timeout(_ANSWER_S):
                await model.upstream.models()
        except TimeoutError:
            info.state, info.why = "failing", f"It has not listed its models within {_ANSWER_S:g} s."
        except (UpstreamError, RequestError) as error:
            info.state, info.why = "failing", str(error)
        else:
            info.state = "well"
        info.window = self._window(given.name)
        return info
