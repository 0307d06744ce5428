"""What an upstream is: something that is asked for a generation and answers deltas.

An upstream speaks to one server in that server's words and knows nothing of dialects: the text that it hands on is what
the model wrote. It raises `UpstreamError` for a server that fails, and `RequestError` where the server says that the
request itself was at fault.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from callwright.constraints.constraint import Constraint
from callwright.conversation import Conversation
from callwright.events import FinishReason, Usage
from callwright.prompt import Prompt
from callwright.upstreams.timings import RequestTimings

__all__ = [
    "Delta",
    "Deltas",
    "FinishDelta",
    "GenerationRequest",
    "ReasoningTextDelta",
    "Server",
    "TextDelta",
    "ToolCallDelta",
    "UnparsedCallDelta",
    "Upstream",
]

# The servers whose own fields and failings are known; `openai` is any other.
Server: TypeAlias = Literal["openai", "vllm", "sglang", "llamacpp", "ollama", "lmstudio"]


class TextDelta(Struct, frozen=True, gc=False):
    """More of what the model wrote: an answer in chat, the completion of a raw prompt.

    `logprobs` are those of its tokens, as a chat server gave them.
    """

    text: str
    logprobs: Mapping[str, Any] | None = None


class ReasoningTextDelta(Struct, frozen=True, gc=False):
    """More reasoning, which the server has told apart from the answer."""

    text: str


class ToolCallDelta(Struct, frozen=True, gc=False):
    """More of a call that the server has parsed. `index` is the server's; `id` and `name` come once or not at all."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""


class UnparsedCallDelta(Struct, frozen=True, gc=False):
    """The server's own parser has failed on a call. `text` is what it says that the model wrote, as far as that has not
    come as text before; `told` is what it says itself.
    """

    text: str
    told: str


class FinishDelta(Struct, frozen=True):
    """The model ended (`stop`, also behind calls) or was stopped."""

    reason: FinishReason


Delta: TypeAlias = TextDelta | ReasoningTextDelta | ToolCallDelta | UnparsedCallDelta | Usage | FinishDelta
# A stream of them: what came together is one batch.
Deltas: TypeAlias = AsyncGenerator[Sequence[Delta], None]


class GenerationRequest(Struct, frozen=True):
    """What a model is asked for.

    `messages` are set in the modes native and prompt, `prompt` in mode raw; `tools` and `tool_choice` (Chat shape)
    only in mode native, `dialect` in the others. `fields` are the request's other fields, to be sent as they are.
    `conversation` is what all of it means. `constraint` is what the answer must look like, for servers that can hold a
    model to it (modes raw and prompt). `headers` go with the request, beside the upstream's own. `streamed`: the answer
    is wanted in pieces. `timings`: how it fares is noted there, where somebody watches.
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
    constraint: Constraint | None = None
    headers: Mapping[str, str] = {}
    streamed: bool = True
    timings: RequestTimings | None = None


class Upstream(Protocol):
    """A model server, or what stands in for one."""

    @property
    def name(self) -> str:
        """How errors name it: its address without credentials."""
        ...

    async def open(self) -> None:
        """Make ready what takes time, such as weights to load. Raises `ConfigError` when that cannot be. What has been
        opened can be opened again.
        """
        ...

    def stream(self, generation: GenerationRequest) -> Deltas:
        """Ask, and answer deltas as they come, in batches of what came together. Closing the generator ends the
        generation on the server.
        """
        ...

    async def models(self) -> list[str]:
        """The names of the models that it serves, as far as it tells. Raises `UpstreamError` when it fails."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...
