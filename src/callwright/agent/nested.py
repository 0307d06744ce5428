"""Runs of other agents within a call of a tool: they get what is left of the limits, what they used is counted, their
events are handed on, and what a person must decide in them, or the program must mend, ends the call: whatever the tool
makes of it.

Then the tool is called again from its beginning. Its runs are known by their number in the call: the one that waited
goes on, those that had come to their end are not run again, but give the result that they had.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from callwright.errors import RequestError
from callwright.events import Usage


class NeedsDecision(BaseException):  # no error: a tool that catches those does not catch this
    """The nested run `number` of a call waits for a person; `pending` is its state, `agent` the name of who was asked.
    `done` are the results of other runs of the call by their number, each with the agent that was asked.
    """

    def __init__(self, pending: dict[str, Any], number: int, agent: str, done: Mapping[int, tuple[Any, Any]]) -> None:
        super().__init__("a person must decide")
        self.pending = pending
        self.number = number
        self.agent = agent
        self.done = done


class Mistake(BaseException):  # not the tool's, which cannot catch it
    """A nested run cannot begin, or go on, for what the program has to mend: a hidden value that is missing, a decision
    that does not fit. As of a run that is not nested, its `error` is raised.
    """

    def __init__(self, error: RequestError) -> None:
        super().__init__(str(error))
        self.error = error


class Spent(Struct, frozen=True):
    """What nested runs used."""

    usage: Usage = Usage()
    turns: int = 0
    calls: int = 0

    def plus(self, other: "Spent") -> "Spent":
        """Both together."""
        return Spent(self.usage.plus(other.usage), self.turns + other.turns, self.calls + other.calls)


class Done(Struct, frozen=True):
    """The result of a nested run, as plain data. `asked` is the name of the agent that was run, `agent` that of the one
    that answered; `output` is JSON, where it is not what the text says.
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
    """The nested runs of a call that waits: which one waits, who was asked in it, and those that are done by number."""

    number: int = 0
    asked: str | None = None
    done: dict[str, Done] = {}


class Resumed(Struct, frozen=True):
    """A nested run that waited, what was decided, and what it had `spent` by then: that was counted when it waited.
    `runs`: the others of its call.
    """

    pending: Mapping[str, Any]
    decisions: Mapping[str, Any]
    spent: Spent = Spent()
    runs: CallRuns = CallRuns()

    def of(self, number: int, agent: str) -> "Resumed | Done | None":
        """What there is of the run of this number, which is one of `agent`. Raises `RequestError` for another agent."""
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
    """Runs an agent within a call, or gives the result that it had. `ended` gets that of a run however it ends. Raises
    `Mistake`.
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
    """The nested runs of one call. `left` are the limits that they have to keep to. `stopped`: why the call cannot come
    to its end.
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
        """Count a run. Its result counts what it had spent `before` it waited, too."""
        usage, turns = result.usage.minus(before.usage), result.turns - before.turns
        self.spent = self.spent.plus(Spent(usage, turns, result.call_count - before.calls))

    def _left_now(self, before: Spent) -> Any:
        """What the next run may use, together with what it has spent `before`."""
        left = self._left
        used = {
            "turns": self.spent.turns - before.turns,
            "calls": self.spent.calls - before.calls,
            "tokens": self.spent.usage.total_tokens - before.usage.total_tokens,
        }
        less = {name: getattr(left, name) - used[name] for name in used if getattr(left, name) is not None}
        return msgspec.structs.replace(left, **less)
