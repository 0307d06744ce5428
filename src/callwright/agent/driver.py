"""Drives the loop of an agent: executes its commands with a model, tools and a clock, and forwards its events.

Each command is a task that puts its events into one queue. The run ends early if it is cancelled, times
out or fails: then the task is stopped, and the loop gets the partial result.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import aclosing
from contextvars import Context
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from callwright.agent.agent import Agent, Limits
from callwright.agent.annotations import Retry, RunContext
from callwright.agent.answers import AnswerCheck
from callwright.agent.calls import ReadyCall
from callwright.agent.commands import (
    Approve,
    AskModel,
    CheckOutput,
    Command,
    Compact,
    Instruct,
    Interrupt,
    Step,
)
from callwright.agent.events import PartialOutput, RunEnded, RunEvent, RunResult, Stop
from callwright.agent.execution import Execution, abandon, call_function
from callwright.agent.hooks import EndRun, apply
from callwright.agent.loop import Loop
from callwright.agent.nested import RunAgent
from callwright.agent.output import FINAL_TOOL
from callwright.conversation import Item
from callwright.errors import RequestError, is_unmet
from callwright.events import ArgumentsDelta, CallEnded, CallStarted, ContentDelta, Event, Finished, Usage
from callwright.reading.collect import Turn, collect
from callwright.turn.model import Model
from callwright.turn.run import run_turn
from callwright.turn.streams import each
from callwright.turn.summary import summarised
from callwright.turn.tracing import RunSpan, with_spans

if TYPE_CHECKING:
    from callwright.agent.sessions.held import HeldSession  # a run without a session loads no database


T = TypeVar("T")

# Time for a model's server to notice that the client has disconnected.
_CLOSING_S: Final = 5.0
_CANCELLED: Final = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt)

_Steps: TypeAlias = Generator[Step, Any, None]


class _Job:
    """A command that runs as a task; `partial` returns its result so far, for an interrupted run."""

    def __init__(
        self, work: Coroutine[Any, Any, Any], partial: Callable[[], dict[str, Any]], context: Context | None
    ) -> None:
        self.task = asyncio.create_task(work, context=context)
        self.partial = partial

    async def stop(self) -> None:
        """Cancel it, and wait for its end within a time."""
        if not self.task.done():
            self.task.cancel()
            await asyncio.wait({self.task}, timeout=_CLOSING_S)
            if not self.task.done():
                abandon(self.task)
        if self.task.done() and not self.task.cancelled():
            self.task.exception()


class Driver:
    """Executes the commands of a loop and forwards its events. `limits` and `span` are those of the run, whichever
    agent is active. `result` is set at the end. If there is a session `held`, each step is stored in it before the
    next begins.
    """

    def __init__(
        self,
        agent: Agent[Any],
        limits: Limits,
        model_of: Callable[[Agent[Any]], Model],
        hidden: Mapping[str, Any],
        span: RunSpan,
        run_agent: RunAgent,
        *,
        streamed: bool,
        held: "HeldSession | None" = None,
    ) -> None:
        self._agent = agent
        self._limits = limits
        self._held = held
        self._span = span
        self._model_of = model_of
        self._run_agent = run_agent
        self._hidden = hidden
        self._streamed = streamed
        self._today = date.today().isoformat()
        self._queue: asyncio.Queue[RunEvent | None] = asyncio.Queue()  # None: wake up and check the job
        self._stop: tuple[Stop, str] | None = None
        self._clock = asyncio.get_running_loop().time
        self._begun = self._clock()
        self.result: RunResult | None = None

    def seconds(self) -> float:
        """Seconds since the run began."""
        return self._clock() - self._begun

    def watching(self, cancel: asyncio.Event | None, before_s: float) -> "_Watch":
        """Ends the run when `cancel` is set or it times out; `before_s` were used before a person decided."""
        return _Watch(self.interrupt, self._limits.seconds, before_s, cancel)

    def interrupt(self, stop: Stop, detail: str) -> None:
        """End the run with its result so far."""
        self._stop = self._stop or (stop, detail)
        self._queue.put_nowait(None)

    async def events(self, loop: Loop) -> AsyncGenerator[RunEvent, None]:
        """The events of a run."""
        steps = loop.steps()
        job: _Job | None = None
        try:
            step: Step = next(steps)
            while not isinstance(step, RunEnded):
                if not isinstance(step, Command):
                    yield step
                    step = next(steps)
                    continue
                job = self._job(step)
                while not (job.task.done() and self._queue.empty()) and self._stop is None:
                    event = await self._queue.get()
                    if event is not None:
                        yield event
                step = await self._resume(steps, job)
                job = None
                for event in self._drain_events():
                    yield event
            self.result = step.result
            yield step
        except BaseException as error:
            if self.result is not None or inspect.getgeneratorstate(steps) == inspect.GEN_CLOSED:
                raise
            ended = await self._break_off(steps, job, error)
            self.result = ended.result
            if isinstance(error, _CANCELLED):
                raise
            for event in self._drain_events():
                yield event
            yield ended
            if not is_unmet(error):  # the model's fault
                raise

    async def _resume(self, steps: _Steps, job: _Job) -> Step:
        """The next step of the loop, after a job: it gets the result, or the partial one if the run must end."""
        if self._stop is not None:
            await job.stop()
            return steps.throw(Interrupt(*self._stop, **job.partial()))
        error = None if job.task.cancelled() else job.task.exception()
        if isinstance(error, EndRun):
            return steps.throw(Interrupt("stopped", str(error), **job.partial()))
        return steps.send(job.task.result())

    async def _break_off(self, steps: _Steps, job: _Job | None, error: BaseException) -> RunEnded:
        """End the loop after an error, with the partial result of the job."""
        if job is not None:
            try:
                await job.stop()
            except asyncio.CancelledError:  # once more
                abandon(job.task)
        is_cancelled = isinstance(error, _CANCELLED)
        stop: Stop = "cancelled" if is_cancelled else "failed"
        detail = "the run was cancelled" if is_cancelled else str(error)
        ended = steps.throw(Interrupt(stop, detail, **(job.partial() if job else {})))
        assert isinstance(ended, RunEnded)
        return ended

    def _drain_events(self) -> list[RunEvent]:
        """The events still in the queue."""
        found = []
        while not self._queue.empty():
            event = self._queue.get_nowait()
            found += [event] if event is not None else []
        return found

    def _job(self, step: Command) -> _Job:
        emit = self._queue.put_nowait
        context = self._span.context()
        if isinstance(step, AskModel):
            turn = _Asking(emit, step.answer if self._streamed else None)
            agent = step.agent or self._agent
            model = with_spans(self._model_of(agent))
            about = RunContext(agent.name, step.conversation.items, self._hidden)
            ask = partial(turn.ask, model, step, agent, about, self._today, self._streamed)
            job = _Job(self._when_kept(step.items, ask), turn.partial, context)
        elif isinstance(step, Compact):
            job = _Job(self._summary(step), dict, context)
        elif isinstance(step, CheckOutput):
            job = _Job(_checked(step, self._hidden), dict, context)
        elif isinstance(step, Instruct):
            job = _Job(_instructions(step, self._hidden), dict, context)
        elif isinstance(step, Approve):
            job = _Job(_waiting(step.calls), dict, context)
        else:
            agent = step.agent or self._agent
            execution = Execution(
                step.calls,
                emit,
                self._limits,
                on_error=agent.on_error,
                items=step.items,
                hidden=self._hidden,
                hooks=agent.hooks,
                run_agent=self._run_agent,
                left=step.left,
                resumed=step.resumed,
            )
            job = _Job(self._when_kept(step.items, execution.run), lambda: {"ended": execution.outcomes}, context)
        job.task.add_done_callback(lambda _: emit(None))
        return job

    async def _when_kept(self, items: Sequence[Item], work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of `work`, started after the items before it are stored."""
        if self._held is not None:
            await self._held.keep(items)
        return await work()

    async def _summary(self, step: Compact) -> tuple[str, Usage | None]:
        model = with_spans(self._model_of(step.agent))
        made = await summarised(model, step.conversation, step.agent.fields, today=self._today)
        if self._held is not None:
            self._held.begin_anew()
        return made


class _Watch:
    """Calls `interrupt` when the time is over or an event is set."""

    def __init__(
        self,
        interrupt: Callable[[Stop, str], None],
        seconds: float | None,
        before_s: float,
        cancel: asyncio.Event | None,
    ) -> None:
        self._interrupt = interrupt
        self._seconds = seconds
        self._before_s = before_s
        self._cancel = cancel
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        if self._seconds is not None:
            words = f"the run took more than {self._seconds:g} s"
            left = max(0.0, self._seconds - self._before_s)
            self._timer = asyncio.get_running_loop().call_later(left, self._interrupt, "seconds", words)
        if self._cancel is not None:
            self._task = asyncio.create_task(self._wait(self._cancel))

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    async def _wait(self, cancel: asyncio.Event) -> None:
        await cancel.wait()
        self._interrupt("cancelled", "the run was cancelled")


class _Asking:
    """One turn of the model, possibly incomplete."""

    def __init__(self, emit: Callable[[RunEvent], None], answer: AnswerCheck | None) -> None:
        self._emit = emit
        self._events: list[Event] = []
        self._answer = answer if answer is not None and answer.output is not None else None
        self._pieces: list[str] = []
        self._final: set[int] = set()  # the calls that are the answer

    async def ask(
        self, model: Model, step: AskModel, agent: Agent[Any], about: RunContext, today: str, streamed: bool
    ) -> tuple[Turn, Usage | None]:
        """The whole turn and its usage."""
        usage: Usage | None = None
        conversation = await apply(agent.hooks, "before_model", step.conversation, about)
        turn = run_turn(model, conversation, agent.fields, today=today, streamed=streamed)
        async with aclosing(each(turn)) as events:
            async for event in events:
                if isinstance(event, Usage):
                    usage = event
                    continue
                self._events.append(event)
                if not isinstance(event, Finished):
                    self._hand_on(event)
        return await apply(agent.hooks, "after_model", collect(self._events), about), usage

    def _hand_on(self, event: Event) -> None:
        """Emit an event and the partial output from it; a call that carries the answer is not shown as a call."""
        answer = self._answer
        text = ""
        match event:
            case CallStarted(index, name) if answer is not None and answer.by_call and name == FINAL_TOOL:
                self._final.add(index)
                return
            case ArgumentsDelta(index, text) if index in self._final:
                pass
            case CallEnded(index) if index in self._final:
                return
            case _:
                self._emit(event)
                if isinstance(event, ContentDelta) and answer is not None and not answer.by_call:
                    text = event.text
        if text and answer is not None and answer.output is not None:
            self._pieces.append(text)
            self._emit(PartialOutput(text, self._pieces, len(self._pieces), answer.output.partial))

    def partial(self) -> dict[str, Any]:
        """The turn so far, if any, and whether it is complete."""
        is_whole = any(isinstance(event, Finished) for event in self._events)
        return {"turn": collect(self._events) if self._events else None, "is_whole": is_whole}


async def _checked(step: CheckOutput, hidden: Mapping[str, Any]) -> tuple[Any, str | None]:
    """The answer after the hooks, and their message to the model if it must try again."""
    try:
        value = await apply(
            step.agent.hooks, "after_output", step.value, RunContext(step.agent.name, step.items, hidden)
        )
    except Retry as error:
        return step.value, str(error)
    return value, None


async def _instructions(step: Instruct, hidden: Mapping[str, Any]) -> str:
    """The text returned by the agent's instructions function."""
    assert not isinstance(step.agent.instructions, str)
    told = await call_function(step.agent.instructions, RunContext(step.agent.name, step.items, hidden))
    if not isinstance(told, str):
        raise RequestError(f"Agent(instructions=…): the function gave {type(told).__name__}. Expected a text.")
    return told


async def _waiting(calls: Sequence[ReadyCall]) -> set[int]:
    """The indices of the calls that a person must decide on."""
    found: set[int] = set()
    for call in calls:
        wanted = call.tool.options.approve
        if wanted is True or (wanted is not False and await call_function(wanted, call.ready)):
            found.add(call.ready.index)
    return found
