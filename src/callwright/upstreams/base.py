"""The interface of an upstream: a model server that gets a request for a generation and streams deltas.

An upstream speaks one server's API and knows no dialects: it forwards the model's text unchanged. It raises
`UpstreamError` if the server fails, and `RequestError` if the server rejects the request.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias, final

from msgspec import Raw, Struct

from callwright.constraints.constraint import Constraint
from callwright.conversation import Conversation
from callwright.events import AnnotationsDelta, AnswerMetadata, FinishReason, RefusalDelta, Usage
from callwright.prompt import Prompt
from callwright.upstreams.timings import RequestTimings

# The servers whose own fields and deviations are known; `openai` is any other.
Server: TypeAlias = Literal["openai", "vllm", "sglang", "llamacpp", "ollama", "lmstudio", "transformers"]
# Those that take no field to constrain an answer by, as far as is known, and those that ignore `tool_choice`.
NO_CONSTRAINTS: Final[tuple[Server, ...]] = ("openai", "transformers")
NO_TOOL_CHOICE: Final[tuple[Server, ...]] = ("ollama", "transformers")


@final
class TextDelta(Struct, frozen=True, gc=False):
    """Text of the model: content from a chat endpoint, the completion of a raw prompt.

    `logprobs` are those of its tokens, as a chat server gave them.
    """

    text: str
    logprobs: Mapping[str, Any] | None = None


@final
class ReasoningTextDelta(Struct, frozen=True, gc=False):
    """Reasoning that the server has separated from the content."""

    text: str


@final
class ToolCallDelta(Struct, frozen=True, gc=False):
    """A piece of a call that the server has parsed.

    `index` is the server's; `id` is sent once, or never; `name` too, or in pieces, or repeatedly.
    """

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""


@final
class UnparsedCallDelta(Struct, frozen=True, gc=False):
    """The server's own parser failed on a call.

    `text` is the model output that the server's error quotes, without text that was already sent; `told` is the message
    of its error.
    """

    text: str
    told: str


@final
class FinishDelta(Struct, frozen=True):
    """The model stopped (`stop`, also after calls), or was stopped by a limit or filter."""

    reason: FinishReason


# Events that originate only from a server: never parsed from text, and forwarded unchanged.
ServerEvent: TypeAlias = RefusalDelta | AnnotationsDelta | AnswerMetadata
Delta: TypeAlias = (
    TextDelta | ReasoningTextDelta | ToolCallDelta | UnparsedCallDelta | ServerEvent | Usage | FinishDelta
)
# A stream of deltas, in batches of what arrived together.
Deltas: TypeAlias = AsyncGenerator[Sequence[Delta], None]


# Answers of an endpoint to which requests are forwarded: an object for a whole answer, one for each event of a stream,
# its values as the server wrote them; then the token counts, if it sends any. In batches.
HandedAnswers: TypeAlias = AsyncGenerator[Sequence[Mapping[str, Raw] | Usage], None]


class GenerationRequest(Struct, frozen=True):
    """One request to a model server.

    `messages` are set in the modes native and prompt, `prompt` in mode raw; `tools` and `tool_choice`, as Chat
    Completions has them, only in mode native; `dialect` in the other two. `stops`, `stop_token_ids` and `stop_texts`
    are the dialect's. `fields` are sent unchanged. `conversation` is the request from which this was built.
    `constraint` is the form of the answer, for servers that can enforce one (modes raw and prompt). `headers` are sent
    in addition to the upstream's own. `streamed`: ask the server to stream. `timings` are filled in for an observer.
    `unsent` are the fields of the request that have no place in this one, such as `logprobs` in mode raw.
    """

    model: str
    conversation: Conversation
    fields: Mapping[str, Any] = {}
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: object = None
    prompt: Prompt | None = None
    dialect: str | None = None
    stops: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    stop_texts: tuple[str, ...] = ()
    constraint: Constraint | None = None
    headers: Mapping[str, str] = {}
    streamed: bool = True
    timings: RequestTimings | None = None
    unsent: frozenset[str] = frozenset()


class Upstream(Protocol):
    """A model server, or a substitute for one."""

    @property
    def name(self) -> str:
        """Its name in error messages: the address without credentials."""
        ...

    async def open(self) -> None:
        """Prepare what takes time, such as loading weights. May be called again. Raises `ConfigError` if that fails."""
        ...

    def stream(self, generation: GenerationRequest) -> Deltas:
        """Request a generation; answers its deltas as they come, in batches. Closing the generator aborts it on the
        server.
        """
        ...

    def hand_on(self, generation: GenerationRequest, path: str) -> HandedAnswers:
        """Send the `fields` of a request unchanged to another endpoint of the server, such as `/embeddings`.

        Of the other attributes only `model`, `headers`, `streamed` and `timings` are used. Closing the generator aborts
        it. Raises `RequestError` (404) if the server has no such endpoint.
        """
        ...

    async def models(self) -> list[str]:
        """The names of the models that it serves, as far as it lists them. Raises `UpstreamError` if it fails."""
        ...

    def window(self, model: str) -> int | None:
        """The context window of a model in tokens, if `models` has found it."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
