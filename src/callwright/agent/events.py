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
    """A valid call: its tool exists and the arguments match its schema. `arguments` exclude hidden ones."""

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
    """Progress of a tool: from `Context.progress`, or a value of a generator before its last."""

    index: int
    id: str
    name: str
    value: Any


class ToolEnded(Struct, frozen=True):
    """A call has its result. `text` is the result for the model.

    `ok` has a `value`, and in `app` the part for the program only; `retry` and `failed` may have the `exception`.
    `waiting`: a nested run needs a person's decision before it continues. After `timeout` and `interrupted` it may
    still have taken effect; `not_run` and `rejected` never began. `is_cut`: the model reads a part of the value.
    `spent`: usage of other agents' runs within it.
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
    """The conversation had grown too long: the model's summary replaces `count` of its items."""

    summary: str
    count: int


class Retried(Struct, frozen=True):
    """An invalid or failed call: the model gets the reason and may retry."""

    index: int
    id: str
    name: str
    reason: str


class PartialOutput(Struct, frozen=True):
    """More of a typed answer. `text` is the new piece; `value` parses the whole answer so far, on access."""

    text: str
    pieces: list[str]
    count: int
    read: Callable[[str], Any]

    @property
    def value(self) -> Any:
        """The answer so far as plain JSON, which may not be valid yet; None if there is none."""
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

    `output` is the answer, of the agent's `output_type`; where the run did not come to one, `maybe_output` is None.
    `text` is the model's last text, if nobody has to decide first; `last_text` is it in any case. `stop` says why the
    run ended, `detail` the same in words where it was not `completed`. `items` are the conversation, without the
    instructions; each call in it has one output, but for those of a `pending` run. `pending` is then plain JSON data,
    from which `resume` goes on, in another process too: `pending["calls"]` are the calls to decide on. `calls` are the
    calls that were answered, `call_count` how many count for `Limits(calls=…)`: those that were to run, in this run and
    those within it. `agent` is the name of the one that answered.
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
        """The answer. Raises `RequestError` if the run has none."""
        if self.stop != "completed":
            raise RequestError(self.unfinished, param="output")
        answer: Any = self.maybe_output  # which may be None, if its type allows that
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
