"""Observation of one turn, for metrics, traces, logs and records.

`Model.observers` are called when a turn begins; the callbacks they return are called when it has ended. In between the
turn records its progress in an `Observation`. A text delta costs one type check, and the upstream's deltas are stored
only if an observer asks for them. Observers run on the event loop, so they must be quick. One that raises is logged;
the turn continues.
"""

import logging
import time
from asyncio import CancelledError
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from functools import cached_property
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from callwright.calls.aliases import ParameterAliases
from callwright.conversation import Conversation
from callwright.errors import CallwrightError, RequestError, UpstreamError
from callwright.events import (
    AnnotationsDelta,
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    FinishReason,
    Problem,
    ProblemKind,
    ReasoningDelta,
    RefusalDelta,
    Usage,
)
from callwright.reading.parser import Reads
from callwright.turn.fallback import Fallback
from callwright.upstreams.base import (
    Delta,
    GenerationRequest,
    ReasoningTextDelta,
    TextDelta,
    ToolCallDelta,
    UnparsedCallDelta,
)
from callwright.upstreams.timings import RequestTimings

log = logging.getLogger("callwright")
E = TypeVar("E", bound=BaseException)

# Streamed pieces, of which only the arrival is noted.
FLOWING: Final = frozenset((ContentDelta, ReasoningDelta, ArgumentsDelta))


# Outcome of a question to the model about ambiguous calls: run, left as text because they were `shown`, or because no
# reply arrived (`failed`).
AmbiguousOutcome: TypeAlias = Literal["run", "shown", "failed"]


class SeenCall(Struct):
    """A call that was sent, and the kinds of its problems."""

    name: str
    complete: bool = True
    problems: list[str] = []


class Raw(Struct):
    """Deltas of the upstream for one generation and the events parsed of them, verbatim.

    `deltas` have the seconds since the turn began. `room` is how many more characters are stored; it is negative once
    some were dropped. `ended`: `whole`, `failed` (by the upstream), or `left` (the client left).
    """

    begun_s: float
    room: int
    deltas: list[tuple[float, Delta]] = []
    events: list[Event] = []
    ended: Literal["whole", "failed", "left"] = "left"

    def add(self, batch: Sequence[Delta], events: Sequence[Event]) -> None:
        """Store deltas that arrived together and the events parsed of them, while there is room."""
        came_s = time.monotonic() - self.begun_s
        for delta in batch:
            if type(delta) is TextDelta:  # nearly all are, or pieces of arguments
                self.room -= len(delta.text) + 32
            elif type(delta) is ToolCallDelta:
                self.room -= len(delta.arguments) + len(delta.name or "") + 64
            else:
                self.room -= _size(delta)
            if self.room >= 0:
                self.deltas.append((came_s, delta))
        if self.room >= 0:
            self.events += events

    def end(self, ended: Literal["whole", "failed"], events: Sequence[Event]) -> None:
        """The answer is over; `events` are the last."""
        self.ended = ended
        self.events += events


class RequestedTurn(Struct, dict=True):
    """One attempt: a generation that was requested.

    `again` is the problem that caused this retry; None for the first attempt, and after a failure for one in another
    mode, for a shorter request or of another model. `failure` is why the upstream gave no answer, or only a part.
    `fallback`: the other model that was asked.
    """

    generation: GenerationRequest
    timings: RequestTimings
    raw: Raw | None = None
    again: ProblemKind | None = None
    failure: UpstreamError | RequestError | None = None
    fallback: Fallback | None = None

    @property
    def unsent(self) -> frozenset[str]:
        """The fields of the request that did not go to the server."""
        return self.generation.unsent | self.timings.dropped

    @cached_property
    def mode(self) -> Literal["native", "prompt", "raw"]:
        """The mode of this attempt: who renders and parses."""
        if self.generation.dialect is None:
            return "native"
        return "prompt" if self.generation.prompt is None else "raw"


class Observation(Struct):
    """One turn of a model, up to its present state.

    An observer may set two fields when the turn begins: `keeps`, how many characters of the upstream's output to store
    (in `RequestedTurn.raw`), and `headers`, which are sent with every request to the upstream.

    `ambiguous` is the outcome of a question to the model about ambiguous calls; None: not asked. `declined`: the model
    refused to answer.

    `operation` is the kind of request, in OpenTelemetry's words; of any other than `chat` only the request, its outcome
    and its cost are known. `fallback` is the other model that answers now. `secrets` are texts
    that no record may show.

    `mode` and `dialect` are those of the latest attempt. Times are of `time.monotonic`, in seconds; `first_s` is when
    the first event was sent. `error` is the exception that ended the turn: `GeneratorExit` or `CancelledError` if the
    client left.
    """

    model: str
    upstream: str
    upstream_model: str
    mode: str
    dialect: str | None
    output_parser: Reads | None
    hints: ParameterAliases
    conversation: Conversation
    fields: Mapping[str, Any]
    streamed: bool
    operation: str = "chat"
    keeps: int = 0
    headers: dict[str, str] = {}
    begun_s: float = msgspec.field(default_factory=time.monotonic)
    first_s: float | None = None
    ended_s: float | None = None
    asked: list[RequestedTurn] = []
    calls: dict[int, SeenCall] = {}
    problems: list[Problem] = []
    reason: FinishReason | None = None
    usage: Usage | None = None
    error: BaseException | None = None
    ambiguous: AmbiguousOutcome | None = None
    declined: bool = False
    fallback: Fallback | None = None
    secrets: Collection[str] = ()
    endings: "list[Ended]" = []

    @property
    def unsent(self) -> frozenset[str]:
        """The fields of the request that did not go to the server, of any attempt."""
        unsent: frozenset[str] = frozenset()
        for asked in self.asked:
            unsent |= asked.unsent
        return unsent

    @property
    def cost(self) -> int | None:
        """The cost of all attempts, in millionths of the currency; None without a price."""
        costs = [cost for asked in self.asked if (cost := asked.timings.cost) is not None]
        return sum(costs) if costs else None

    @property
    def retries(self) -> int:
        """The number of retries because of the model's answers."""
        return sum(asked.again is not None for asked in self.asked[1:])

    def begin(self, observers: "Sequence[Observer]") -> Self:
        """Call the observers: the turn begins."""
        for observer in observers:
            try:
                ended = observer(self)
            except Exception:
                log.exception("an observer failed at the start of a turn")
                continue
            if ended is not None:
                self.endings.append(ended)
        return self

    def asks(
        self, generation: GenerationRequest, again: ProblemKind | None = None
    ) -> tuple[GenerationRequest, Raw | None]:
        """Begin an attempt, a retry if `again` names a problem.

        Returns the generation to request, and the store for the server's deltas.
        """
        raw = Raw(self.begun_s, self.keeps) if self.keeps else None
        generation = self.requests(generation, again, raw)
        self.mode, self.dialect = self.asked[-1].mode, generation.dialect
        return generation, raw

    def note_piece(self, counted: Sequence[Usage]) -> None:
        """Note another piece of a forwarded answer, and its token counts, if any."""
        now = time.monotonic()
        self.first_s = self.first_s or now
        timings = self.asked[-1].timings
        timings.first_s = timings.first_s or now
        for usage in counted:
            self.usage = usage

    def replied(self, outcome: AmbiguousOutcome) -> None:
        """Note the outcome of a question about ambiguous calls."""
        self.ambiguous = outcome
        self.asked[-1].timings.ended_s = time.monotonic()

    def requests(
        self, generation: GenerationRequest, again: ProblemKind | None = None, raw: Raw | None = None
    ) -> GenerationRequest:
        """A request goes to the server; answers it with the headers and timings of this turn. Without `raw` nothing of
        the reply is stored, and the request is no attempt: a question to the model, or one for another endpoint.
        """
        timings = RequestTimings()
        headers = {**generation.headers, **self.headers} if self.headers else generation.headers
        generation = msgspec.structs.replace(generation, headers=headers, timings=timings)
        self.asked.append(RequestedTurn(generation, timings, raw, again, fallback=self.fallback))
        return generation

    def failed(self, error: UpstreamError | RequestError | TimeoutError) -> None:
        """The latest attempt has failed."""
        if not isinstance(error, TimeoutError):
            self.asked[-1].failure = _without_frames(error)
        self.asked[-1].timings.ended_s = time.monotonic()

    def events(self, batch: Sequence[Event | Usage]) -> None:
        """Note a batch of events that is sent."""
        if self.first_s is None and batch:
            self.first_s = time.monotonic()
        for event in batch:
            if type(event) in FLOWING:
                continue
            if type(event) is CallStarted:
                self.calls[event.index] = SeenCall(event.name)
            elif type(event) is CallEnded:
                self.calls[event.index].complete = event.complete
            elif type(event) is Usage:
                self.usage = event
            elif type(event) is Finished:
                self.reason = event.reason
            elif type(event) is RefusalDelta:
                self.declined = True
            elif type(event) is Problem:
                self.problems.append(event)
                if event.call is not None and event.call in self.calls:
                    self.calls[event.call].problems.append(event.kind)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.error = _without_frames(error) if error is not None else None
        self.ended_s = time.monotonic()
        if self.asked and (last := self.asked[-1].timings).ended_s is None:
            last.ended_s = self.ended_s
        endings, self.endings = self.endings, []  # which know the observation: a circle
        for ended in endings:
            try:
                ended()
            except Exception:
                log.exception("an observer failed at the end of a turn")


def _without_frames(error: E) -> E:
    """A copy for observers. The error itself holds the frames that it went through, and these the observation and all
    that was read of the answer: a circle, whose memory would come back when the garbage collector happens to run.
    """
    return copy(error) if isinstance(error, CallwrightError | TimeoutError | CancelledError | GeneratorExit) else error


Ended: TypeAlias = Callable[[], None]
Observer: TypeAlias = Callable[[Observation], Ended | None]


def _size(delta: Delta) -> int:
    """The rough size of any other delta in a record, in characters."""
    match delta:
        case ReasoningTextDelta(text) | RefusalDelta(text):
            return len(text) + 32
        case AnnotationsDelta(found):
            return len(str(found)) + 32
        case UnparsedCallDelta(text, told):
            return len(text) + len(told) + 32
    return 32
