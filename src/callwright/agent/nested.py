"""Runs of other agents within a tool call.

They get the remaining limits, their usage is counted, and their events are forwarded. A nested run that needs an
approval, or fails because of a programming error, ends the tool call even if the tool catches exceptions. After a
decision the tool is called again from its beginning. Its runs are identified by their number in the call: the one that
waited is resumed, and finished ones return their earlier results.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from callwright.errors import RequestError
from callwright.events import Usage


class NeedsDecision(BaseException):  # not an Exception, so that tools do not catch it
    """The nested run `number` of a call waits for a person; `pending` is its state, `agent` the name of its agent.
    `done`: the results of other runs of the call by number, each with its agent.
    """

    def __init__(self, pending: dict[str, Any], number: int, agent: str, done: Mapping[int, tuple[Any, Any]]) -> None:
        super().__init__("a person must decide")
        self.pending = pending
        self.number = number
        self.agent = agent
        self.done = done


class Mistake(BaseException):  # not the tool's, which cannot catch it
    """A nested run cannot start or resume because of a programming error, such as a missing hidden value or an
    invalid decision. Its `error` is raised as for a run that is not nested.
    """

    def __init__(self, error: RequestError) -> None:
        super().__init__(str(error))
        self.error = error


class Spent(Struct, frozen=True):
    """Usage of nested runs."""

    usage: Usage = Usage()
    turns: int = 0
    calls: int = 0

    def plus(self, other: "Spent") -> "Spent":
        """The sum of both."""
        return Spent(self.usage.plus(other.usage), self.turns + other.turns, self.calls + other.calls)


class Done(Struct, frozen=True):
    """The result of a nested run, as plain data. `asked` is the name of the agent that was run, `agent` that of the one
    that answered; `output` is JSON, if it differs from the text.
    """

    asked: str
    agent: str
    text: str
    stop: str
    detail: str
    turns: int
    usage: Usage
    messages: list[dict[str, Any]]
    call_count: int = 0
    output: str | None = None


class CallRuns(Struct, frozen=True):
    """The nested runs of a call that waits: which one waits, its agent, and the finished ones by number."""

    number: int = 0
    asked: str | None = None
    done: dict[str, Done] = {}


class Resumed(Struct, frozen=True):
    """A nested run that waited, the decisions, and its use (`spent`) by then, which is already counted. `runs`: the
    other runs of its call.
    """

    pending: Mapping[str, Any]
    decisions: Mapping[str, Any]
    spent: Spent = Spent()
    runs: CallRuns = CallRuns()

    def of(self, number: int, agent: str) -> "Resumed | Done | None":
        """The earlier state of run `number`, if any. Raises `RequestError` if its agent was not `agent`."""
        found = self.runs.done.get(str(number), self if number == self.runs.number else None)
        asked = found.asked if isinstance(found, Done) else self.runs.asked
        if found is not None and asked not in (None, agent):
            raise RequestError(
                f"Run {number + 1} of this call was one of {asked!r} before a person decided, and is one of {agent!r} "
                "now. A tool that runs agents has to run the same ones when it is called again.",
                param="pending",
            )
        return found


class RunAgent(Protocol):
    """Runs an agent within a call, or returns its earlier result. `ended` gets the result of a run however it ends.
    Raises `Mistake`.
    """

    async def __call__(
        self,
        agent: Any,
        given: Any,
        left: Any,
        resumed: Resumed | Done | None,
        emit: Any,
        ended: Callable[[Any], None],
    ) -> Any: ...


class SubRuns:
    """The nested runs of one call. `left`: the limits that remain for them. `stopped`: why the call cannot be
    finished, or None.
    """

    def __init__(self, run: RunAgent, left: Any, resumed: Resumed | None, emit: Callable[[Any], None]) -> None:
        self._run = run
        self._left = left
        self._resumed = resumed
        self._emit = emit
        self._begun = 0
        self._done: dict[int, tuple[Any, Any]] = {}
        self.spent = Spent()
        self.stopped: NeedsDecision | Mistake | None = None

    async def run(self, agent: Any, given: Any) -> Any:
        """The result of a run. Raises `NeedsDecision` and `Mistake`."""
        if self.stopped is not None:
            raise self.stopped
        try:
            return await self._next(agent, given)
        except (NeedsDecision, Mistake) as stopped:
            self.stopped = self.stopped or stopped
            raise

    async def _next(self, agent: Any, given: Any) -> Any:
        number = self._begun
        self._begun += 1
        try:
            resumed = None if self._resumed is None else self._resumed.of(number, agent.name)
        except RequestError as error:
            raise Mistake(error) from error
        before = resumed.spent if isinstance(resumed, Resumed) else Spent()
        ended = partial(self._note, before)
        result = await self._run(agent, given, self._left_now(before), resumed, self._emit, ended)
        if result.stop == "pending":
            raise NeedsDecision(result.pending, number, agent.name, self._done)
        self._done[number] = (agent, result)
        return result

    def _note(self, before: Spent, result: Any) -> None:
        """Count a run, without its use `before` it waited, which its result includes."""
        usage, turns = result.usage.minus(before.usage), result.turns - before.turns
        self.spent = self.spent.plus(Spent(usage, turns, result.call_count - before.calls))

    def _left_now(self, before: Spent) -> Any:
        """The limits of the next run, including its use `before` it waited."""
        left = self._left
        used = {
            "turns": self.spent.turns - before.turns,
            "calls": self.spent.calls - before.calls,
            "tokens": self.spent.usage.total_tokens - before.usage.total_tokens,
        }
        less = {name: getattr(left, name) - used[name] for name in used if getattr(left, name) is not None}
        return msgspec.structs.replace(left, **less)
