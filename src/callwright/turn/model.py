"""A model that can be asked: its server, and in which mode, dialect and with which options. Knows no configuration
file.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from callwright.calls.aliases import ParameterAliases
from callwright.conversation import Conversation
from callwright.dialects.base import RenderOptions
from callwright.dialects.detect import by_name
from callwright.errors import ConfigError, RequestError, UpstreamError
from callwright.events import Event, Problem, Usage
from callwright.openai_format.request_rules import STRICT, RequestRules
from callwright.reading.parser import Reads
from callwright.turn.observe import Observer
from callwright.turn.place import Limit
from callwright.upstreams.base import Upstream
from callwright.wire.pass_rules import PassRules

Mode: TypeAlias = Literal["native", "prompt", "raw"]
Modality: TypeAlias = Literal["text", "image", "file", "audio"]

MODES: tuple[Mode, ...] = ("native", "prompt", "raw")

# The names of the simulated model, each with the mode and dialect it is asked in.
SIMULATED: Final[Mapping[str, tuple[Mode, str | None]]] = {
    "simulated": ("raw", "harmony"),
    "simulated-hermes": ("raw", "hermes"),
    "simulated-json": ("prompt", "json"),
    "simulated-native": ("native", None),
}

# AUTO as a mode: chosen by the server's abilities; as a dialect: found by the model's name. UNKNOWN: the dialect for
# models whose family is not known.
AUTO: Final[Literal["auto"]] = "auto"
# As a dialect: the format of the model's own chat template.
TEMPLATE: Final = "template"

UNKNOWN: Final = "json"


class Model(Struct, frozen=True):
    """A model that can be asked, under the name `name`, as `upstream_model` of its server.

    `mode`: in `native` the server renders the tools and parses the calls; in `prompt` the tools go into the messages as
    text and the reply is parsed here; in `raw` the whole prompt is rendered here, for a completion endpoint. The last
    two need a `dialect`, with its `options`. `fields` are sent with every request.

    `retries`: maximum number of retries after an invalid call; `retry_s`: no retry begins later than this, in seconds
    from the begin of the turn.

    `max_repeats`: number of times in a row that a call may have the same output before the model is warned, see
    `callwright.turn.repeats`; 0: no limit.

    `max_repeated_text`: an answer that repeats the same text over this many characters is stopped; 0: never,
    None: over 8,192 if a grammar was sent.

    `describe_media`: a raw prompt has a note in place of an image or file; otherwise such a request is refused.
    `constrain`: send a grammar to a server that accepts one, if a call is required (modes raw and prompt).
    `ask_ambiguous`: ask the model about a text that may be a call and may only show one. `enforces_schema`: the server
    is known to hold an answer to the `response_format` of a chat request, so such an answer may stream.
    `format_beside_tools`: it accepts one together with tools, and still makes calls. `arguments_as_objects`: send a
    native server the arguments in a history as objects, not as JSON text. `supports_tool_choice`: False for a server
    without `tool_choice`; it is asked in mode prompt if a call is required. `accepts`: the fields of a request that its
    upstream takes, if known.

    `keeps_reasoning`: a cache of reasoning may restore the model's own in a history from which the client has dropped
    it.

    `output_parser` parses the text of a native server that does not parse itself. `mode_selector` chooses mode and
    dialect when the model is asked (mode `auto`); until then the mode is `native`. `hints` are parameter aliases.
    `observers` are called for each turn. `passes` lists the parts of a request that may go to the server, `requests` is
    how strictly it is read, `mcp` names the MCP servers whose tools each request has; a service that accepts requests
    must apply these. `limit`: maximum number of concurrent generations. `input_modalities`: what its messages may
    contain, if known.

    `defer_tools_above`: with more tools than this, the model is offered a search for them; None: never.

    `fallbacks` are asked in this order, each once, if the model fails or its call or answer does not hold after its
    retries; their own fallbacks are not. `hooks` makes the turns of this model.
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
    max_repeats: int = 0
    max_repeated_text: int | None = None
    describe_media: bool = False
    constrain: bool = True
    ask_ambiguous: bool = True
    keeps_reasoning: bool = True
    enforces_schema: bool = False
    format_beside_tools: bool = True
    arguments_as_objects: bool = False
    supports_tool_choice: bool = True
    accepts: frozenset[str] | None = None
    output_parser: Reads | None = None
    mode_selector: "ModeSelector | None" = None
    observers: tuple[Observer, ...] = ()
    passes: PassRules = PassRules()
    requests: RequestRules = STRICT
    mcp: tuple[str, ...] = ()
    limit: Limit | None = None
    input_modalities: tuple[Modality, ...] | None = None
    defer_tools_above: int | None = None
    fallbacks: "tuple[Model, ...]" = ()
    hooks: "TurnHooks | None" = None

    async def close(self) -> None:
        """Close all connections."""
        await self.upstream.close()
        if self.mode_selector is not None:
            await self.mode_selector.close()

    def for_model(self, name: str) -> "Model":
        """The same for another model of this upstream. A dialect `auto` is found by its name."""
        dialect = self.dialect
        if dialect == AUTO:
            detected = by_name(name)
            dialect = detected.dialect if detected else UNKNOWN
        return replace(self, name=name, upstream_model=name, dialect=dialect)


class TurnHooks(Protocol):
    """Makes the turns of a model, and asks hooks about them."""

    def turn(self, model: Model, conversation: Conversation, run: "RunsTurn") -> "Events":
        """The events of a turn that `run` begins, see `callwright.turn.run.run_turn`."""
        ...


Events: TypeAlias = AsyncGenerator[Sequence[Event | Usage], None]
# The conversation for a fallback.
OfFallback: TypeAlias = Callable[[Model], Conversation]
RunsTurn: TypeAlias = Callable[[Model, Conversation], Events]


class ModeSelector(Protocol):
    """Chooses mode and dialect of a model when it is asked (mode `auto`)."""

    def start(self) -> None:
        """Begin to probe the server, in the background."""
        ...

    async def choose(self, model: Model) -> Model:
        """The model in the mode and dialect to ask it in now."""
        ...

    async def instead(self, model: Model, failure: RequestError | UpstreamError | Problem) -> Model | None:
        """The model in another mode, after a failure or a call that the server could not parse (`call_unread`); None if
        the mode is not to blame.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


async def open_models(models: Mapping[str, Model]) -> None:
    """Open the upstreams of the models, one after the other. Raises `ConfigError` that names the model that fails."""
    for model in models.values():
        try:
            await model.upstream.open()
        except ConfigError as error:
            raise ConfigError(f"Model {model.name!r}: {error}") from error
