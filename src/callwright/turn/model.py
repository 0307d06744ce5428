"""A model that can be asked, and how: its server, mode, dialect and options."""

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from callwright.calls.aliases import ParameterAliases
from callwright.dialects.base import RenderOptions
from callwright.dialects.detect import by_name
from callwright.errors import ConfigError, RequestError, UpstreamError
from callwright.events import Problem
from callwright.parser import Reads
from callwright.turn.observe import Observer
from callwright.upstreams.base import (
    Upstream,
)

__all__ = ["AUTO", "MODES", "SIMULATED", "UNKNOWN", "Mode", "ModeSelector", "Model", "open_models"]


Mode: TypeAlias = Literal["native", "prompt", "raw"]

MODES: tuple[Mode, ...] = ("native", "prompt", "raw")

# The simulated model in each way of asking it: mode and dialect by the name that it has then.
SIMULATED: Final[Mapping[str, tuple[Mode, str | None]]] = {
    "simulated": ("raw", "harmony"),
    "simulated-hermes": ("raw", "hermes"),
    "simulated-json": ("prompt", "json"),
    "simulated-native": ("native", None),
}

# A mode that is chosen by what the server can do, or a dialect that is found by the name of the model; and the dialect
# for models that nothing is known of.
AUTO: Final[Literal["auto"]] = "auto"

UNKNOWN: Final = "json"


class Model(Struct, frozen=True):
    """A model that can be asked.

    `mode`: `native`, the server renders and parses; `prompt`, the tools go into the messages as text and the reply
    is read here; `raw`, the whole prompt is rendered here. The last two need a dialect. `fields` are sent with
    every request. A call that does not hold is asked for again `retries` times, the last time after `retry_s` seconds.
    `describe_media`: a raw prompt has words where an image or a file was; otherwise such a request is refused.
    `constrain`: a server that takes grammars gets one where a call is demanded (modes raw and prompt).
    `supports_tool_choice`: the server knows `tool_choice`; one that does not is asked in mode prompt where a call is
    demanded.
    `force_stream`: answers that are wanted whole are fetched as streams, too.
    `arguments_as_objects`: a server that renders natively gets the arguments in a history as objects. `output_parser`
    reads the
    text of a server that renders but does not parse (mode native). `mode_selector`: mode and dialect are chosen when
    the model is asked, by what its server can do; until then the mode is `native`. `observers` see each turn.
    """

    name: str
    upstream: Upstream
    upstream_model: str
    mode: Mode = "native"
    dialect: str | None = None
    options: RenderOptions = RenderOptions()
    fields: Mapping[str, Any] = {}
    hints: ParameterAliases = ParameterAliases()
    retries: int = 2
    retry_s: float = 100.0
    describe_media: bool = False
    constrain: bool = True
    arguments_as_objects: bool = False
    supports_tool_choice: bool = True
    force_stream: bool = False
    output_parser: Reads | None = None
    mode_selector: "ModeSelector | None" = None
    observers: tuple[Observer, ...] = ()

    async def close(self) -> None:
        """Give back all connections."""
        await self.upstream.close()
        if self.mode_selector is not None:
            await self.mode_selector.close()

    def called(self, name: str) -> "Model":
        """The same, for another model of the same upstream: the dialect `auto` is found by its name."""
        dialect = self.dialect
        if dialect == AUTO:
            detected = by_name(name)
            dialect = detected.dialect if detected else UNKNOWN
        return replace(self, name=name, upstream_model=name, dialect=dialect)


class ModeSelector(Protocol):
    """Chooses how a model is asked (mode `auto`)."""

    def start(self) -> None:
        """Begin to find out, in the background."""
        ...

    async def choose(self, model: Model) -> Model:
        """The model as it is to be asked now."""
        ...

    async def instead(self, model: Model, failure: RequestError | UpstreamError | Problem) -> Model | None:
        """Another way to ask a model that has failed, or whose server could not read a call (`call_unread`); None where
        the failure is not of the way.
        """
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...


async def open_models(models: Mapping[str, Model]) -> None:
    """Make ready the models that need it, one after the other. Raises `ConfigError` that names the one that fails."""
    for model in models.values():
        try:
            await model.upstream.open()
        except ConfigError as error:
            raise ConfigError(f"Model {model.name!r}: {error}") from error
