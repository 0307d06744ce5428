"""The events of a run: those of each turn of the model, and those defined here.

One closed union, `RunEvent`. Each event of a call carries its index in the turn and its id in the conversation; for one
call the order is fixed, between calls it is free. A run ends with `RunEnded`.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias

from msgspec import Struct

from callwright.agent.nested import Spent
from callwright.conversation import Conversation, Item
from callwright.errors import RequestError
from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    FinishReason,
    Problem,
    ReasoningDelta,
    Usage,
)
from callwright.openai_format.messages import write_messages

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")

__all__ = [
    "ApprovalNeeded",
    "ArgumentsDelta",
    "CallEnded",
    "CallReady",
    "CallStarted",
    "Compacted",
    "ContentDelta",
    "HandedOver",
    "NestedEvent",
    "PartialOutput",
    "Problem",
    "ReasoningDelta",
    "Retried",
    "RunEnded",
    "RunEvent",
    "RunResult",
    "Status",
    "Stop",
    "TextDelta",
    "ToolEnded",
    "ToolProgress",
    "ToolStarted",
    "TurnEnded",
]

TextDelta: TypeAlias = ContentDelta
Stop = Literal[
    "completed", "turns", "calls", "tokens", "seconds", "repeated", "pending", "failed", "cancelled", "stopped"
]  # why a run ended
Status = Literal["ok", "retry", "failed", "timeout", "interrupted", "not_run", "rejected", "waiting"]


class CallReady(Struct, frozen=True):
    """A valid call: its tool is known and the arguments match. `arguments` are without hidden ones."""

    index: int
    id: str
    name: str
    arguments: Mapping[str, Any]


class ApprovalNeeded(Struct, frozen=True):
    """A person must agree before this call, and any other of its turn, is run."""

    index: int
    id: str
    name: str
    arguments: Mapping[str, Any]


class ToolStarted(Struct, frozen=True):
    """The function runs."""

    index: int
    id: str
    name: str


class ToolProgress(Struct, frozen=True):
    """Progress of a tool: by `Context.progress`, or a value of a generator before its last."""

    index: int
    id: str
    name: str
    value: Any


class ToolEnded(Struct, frozen=True):
    """A call has its result. `text` is the result for the model.

    `ok` has a `value`, and in `app` data for the program only; `retry` and `failed` may have the `exception`.
    `waiting`: a person must decide in a nested run first. After `timeout` and `interrupted` it may
    still have taken effect; `not_run` and `rejected` never began. `is_cut`: the model reads a part of the value.
    `spent`: usage of runs of other agents in it.
    """

    index: int
    id: str
    name: str
    status: Status
    text: str
    value: Any = None
    app: Any = None
    exception: BaseException | None = None
    duration_s: float = 0.0
    is_cut: bool = False
    media: tuple[Any, ...] = ()
    spent: Spent = Spent()


class NestedEvent(Struct, frozen=True):
    """An event of a run of another agent, within a call."""

    index: int
    id: str
    name: str
    event: "RunEvent"


class HandedOver(Struct, frozen=True):
    """The conversation passes from one agent to another, both by name."""

    before: str
    now: str


class Compacted(Struct, frozen=True):
    """The conversation was too long: the model's summary replaces `count` of its items."""

    summary: str
    count: int


class Retried(Struct, frozen=True):
    """An invalid call: the model read why and may make it again."""

    index: int
    id: str
    name: str
    reason: str


class PartialOutput(Struct, frozen=True):
    """More of an answer with a type. `text` is new; `value` parses all of it so far, on access."""

    text: str
    pieces: list[str]
    count: int
    read: Callable[[str], Any]

    @property
    def value(self) -> Any:
        """The answer so far as plain JSON, not yet validated; None if empty."""
        return self.read("".join(self.pieces[: self.count]))


class TurnEnded(Struct, frozen=True):
    """The model has answered, for the `number`th time in this run (from 1)."""

    number: int
    text: str
    calls: int
    finish_reason: FinishReason
    usage: Usage | None = None


class RunResult(Struct, Generic[T], frozen=True):
    """The result of a run.

    `output` is the answer, of the agent's `output_type`; without an answer `maybe_output` is None. `text` is the
    model's last text, and raises if the run is `pending`; `last_text` never raises. `stop` is why the run ended,
    `detail` the same in words if it was not `completed`. `items` are the conversation, without the instructions; each
    call in it has one output, except in a `pending` run. `pending` is then plain JSON data for `resume`, in another
    process too: `pending["calls"]` are the calls to decide on. `calls` are the answered calls, `call_count` the
    number that counts for `Limits(calls=…)`: those to run, in this run and nested ones. `agent` is the name of the
    agent that answered.
    """

    last_text: str
    items: tuple[Item, ...]
    stop: Stop
    detail: str = ""
    pending: dict[str, Any] | None = None
    usage: Usage = Usage()
    turns: int = 0
    problems: tuple[Problem, ...] = ()
    calls: tuple[ToolEnded, ...] = ()
    call_count: int = 0
    maybe_output: T | None = None
    agent: str = ""

    @property
    def text(self) -> str:
        """The model's last text. Raises `RequestError` if the run waits for a person, so that nothing is answered."""
        if self.pending is not None:
            raise RequestError(self.unfinished, param="text")
        return self.last_text

    @property
    def unfinished(self) -> str:
        """Why the run has no answer, and what to do."""
        if self.pending is None:
            return f"The run has no output: it ended with {self.stop!r} ({self.detail})."
        names = ", ".join(dict.fromkeys(repr(call["name"]) for call in self.pending["calls"]))
        return (
            f"The run has no output: it ended with 'pending', as the call of {names} waits for approval. Approve it: "
            f"resume(agent, result, {{{self.pending['calls'][0]['id']!r}: True}}). For a tool that needs none: "
            "tool(approve=False), mcp_tools(…, approve=False), or readOnlyHint in the MCP server."
        )

    @property
    def output(self) -> T:
        """The answer. Raises `RequestError` if there is none."""
        if self.stop != "completed":
            raise RequestError(self.unfinished, param="output")
        answer: Any = self.maybe_output  # None is possible, if its type allows it
        return answer  # type: ignore[no-any-return]

    def to_messages(self) -> list[dict[str, Any]]:
        """The conversation as Chat messages."""
        return write_messages(Conversation(self.items))


class RunEnded(Struct, frozen=True):
    """The last event of a run."""

    result: RunResult[Any]


RunEvent: TypeAlias = (
    Event
    | PartialOutput
    | CallReady
    | ApprovalNeeded
    | ToolStarted
    | ToolProgress
    | ToolEnded
    | NestedEvent
    | HandedOver
    | Compacted
    | Retried
    | TurnEnded
    | RunEnded
)
