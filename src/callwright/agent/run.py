"""Running an agent: the loop of `callwright.agent.loop` with a model, tools and a clock.

`stream` is the run; `run`, `run_sync` and `resume` are ways to wait for its end. However a run ends, even if its task
is cancelled, `on_end` gets its result once, with a conversation that can be continued.
"""

import asyncio
import logging
import threading
import warnings
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

from callwright.agent.agent import Agent, Limits, check_team
from callwright.agent.answers import AnswerCheck
from callwright.agent.compaction import Compaction, threshold_of
from callwright.agent.connect import connect
from callwright.agent.decisions import check_decisions
from callwright.agent.driver import Driver
from callwright.agent.events import RunEnded, RunEvent, RunResult
from callwright.agent.loop import Loop
from callwright.agent.nested import Done, Mistake, Resumed
from callwright.agent.replayed import replayed
from callwright.agent.state import State, with_outputs
from callwright.agent.tools import unasked
from callwright.conversation import Conversation, Item, Message, TextPart
from callwright.errors import ApprovalWarning, CallwrightError, RequestError, UpstreamError
from callwright.openai_format.messages import read_messages, write_messages
from callwright.turn.model import Model
from callwright.turn.tracing import RunSpan
from callwright.wire.chat.mend_history import mend_messages

if TYPE_CHECKING:
    from callwright.agent.sessions.held import HeldSession  # a run without a session loads no database
    from callwright.agent.sessions.session import Session


Input: TypeAlias = str | Sequence[Mapping[str, Any]] | RunResult | Mapping[str, Any]
T = TypeVar("T")
log = logging.getLogger("callwright.agent")

# Timeout for asking a model's server for its context window.
_WINDOW_S: Final = 2.0
OnEnd: TypeAlias = Callable[[RunResult], None]


async def run(
    agent: Agent[T],
    input: Input,  # noqa: A002  # the usual name
    *,
    history: RunResult | Sequence[Mapping[str, Any]] | None = None,
    session: "Session | None" = None,
    hidden: Mapping[str, Any] | None = None,
    decisions: Mapping[str, Any] | None = None,
    cancel: asyncio.Event | None = None,
    on_end: OnEnd | None = None,
) -> RunResult[T]:
    """Run an agent until the model answers without a call, a limit is met or a person must decide.

    `input`: a text of the user, Chat messages, or an earlier result to continue; `history` precedes it. With a
    `session` its messages precede it, and the run's messages are added to it. `hidden`: values for hidden parameters,
    by name; a function is called for each call, with the `Context` if it takes it. `cancel`: when it is set the run
    ends with its results so far. Raises `RequestError` for mistakes of the caller before the model is asked,
    `SessionError` for a session that another run has, and `UpstreamError` if the model's server fails.
    """
    given = (agent, input, history, session, hidden, decisions, cancel, on_end)
    result: RunResult | None = None
    async with aclosing(_events(*given, streamed=False)) as events:
        async for event in events:
            if isinstance(event, RunEnded):
                result = event.result
    assert result is not None
    if result.pending is not None and decisions is None:
        _warn_of_unasked(agent, result)
    return result


def _warn_of_unasked(agent: Agent[Any], result: RunResult) -> None:
    """Warn of a call that waits for an approval which the program has not asked for."""
    assert result.pending is not None
    waiting = {call["name"] for call in result.pending["calls"]}
    tools = [tool for one in agent.everyone() for name, tool in one.tools.items() if name in waiting]
    if any(tool.options.approve is unasked for tool in tools):
        warnings.warn(result.unfinished, ApprovalWarning, stacklevel=2)


async def stream(
    agent: Agent[Any],
    input: Input,  # noqa: A002
    *,
    history: RunResult | Sequence[Mapping[str, Any]] | None = None,
    session: "Session | None" = None,
    hidden: Mapping[str, Any] | None = None,
    decisions: Mapping[str, Any] | None = None,
    cancel: asyncio.Event | None = None,
    on_end: OnEnd | None = None,
) -> AsyncGenerator[RunEvent, None]:
    """The same as events while they happen; the last is `RunEnded`. With `decisions` it resumes."""
    given = (agent, input, history, session, hidden, decisions, cancel, on_end)
    async with aclosing(_events(*given, streamed=True)) as events:
        async for event in events:
            yield event


async def resume(
    agent: Agent[T],
    pending: RunResult | Mapping[str, Any],
    decisions: Mapping[str, Any],
    *,
    session: "Session | None" = None,
    hidden: Mapping[str, Any] | None = None,
    cancel: asyncio.Event | None = None,
    on_end: OnEnd | None = None,
) -> RunResult[T]:
    """Continue a run that waits, given as its result or the `pending` of it.

    `decisions`, by the id of the call: True; False or a text, which is the reason for a no; `{"arguments": {…}}` to run
    it with others; `{"always": True}` for this and all later calls of that tool. A missing decision means no.
    """
    return await run(agent, pending, session=session, hidden=hidden, decisions=decisions, cancel=cancel, on_end=on_end)


def run_sync(
    agent: Agent[T],
    input: Input,  # noqa: A002
    *,
    history: RunResult | Sequence[Mapping[str, Any]] | None = None,
    session: "Session | None" = None,
    hidden: Mapping[str, Any] | None = None,
    decisions: Mapping[str, Any] | None = None,
    on_end: OnEnd | None = None,
) -> RunResult[T]:
    """`run` for programs without an event loop; in one that has a loop running, it uses a thread."""
    work = run(agent, input, history=history, session=session, hidden=hidden, decisions=decisions, on_end=on_end)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return _elsewhere(work)


def _elsewhere(work: Coroutine[Any, Any, RunResult]) -> RunResult:
    came: list[RunResult | BaseException] = []

    def body() -> None:
        try:
            came.append(asyncio.run(work))
        except BaseException as error:  # raised again in the calling thread
            came.append(error)

    thread = threading.Thread(target=body, name="callwright run_sync")
    thread.start()
    thread.join()
    if isinstance(came[0], BaseException):
        raise came[0]
    return came[0]


# --- the start of a run ---


def _state(input_: Input, history: Any, decisions: Mapping[str, Any] | None, said: Sequence[Item] = ()) -> State:
    """The state at the start. `said`: the items of a session."""
    if decisions is not None:
        return State.from_pending(_pending(input_))
    before = list(said) if history is None else _items(history, "history")
    if isinstance(input_, str):
        return State([*before, Message("user", (TextPart(input_),))])
    return State([*before, *_items(input_, "input")])


def _pending(input_: Input) -> Any:
    pending = input_.pending if isinstance(input_, RunResult) else input_
    if pending is None:
        raise RequestError("This run does not wait for a decision.", param="pending")
    return pending


@asynccontextmanager
async def _open_session(
    session: "Session | None", input_: Input, history: Any, decisions: Mapping[str, Any] | None
) -> AsyncGenerator["HeldSession | None", None]:
    """The session of a run, if it has one."""
    if session is None:
        yield None
        return
    if history is not None:
        raise RequestError("A session has a history of its own: give the run one of the two.", param="history")
    pending: Sequence[Mapping[str, Any]] | None = None
    if decisions is not None:
        state = State.from_pending(_pending(input_))
        pending = write_messages(Conversation(tuple(state.items)))
    elif isinstance(input_, RunResult | Mapping):
        raise RequestError("With a session the input is what is new: a text, or Chat messages.", param="input")
    async with session.hold(pending) as held:
        yield held


def _items(given: Any, param: str) -> list[Item]:
    """Items of a former run or of Chat messages, with an output for each call."""
    if isinstance(given, RunResult):
        return with_outputs(given.items, {})
    if isinstance(given, Mapping) and "messages" in given:  # a pending run without decisions
        given = given["messages"]
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise RequestError(
            f"Expected a text, a list of messages or a RunResult, got {type(given).__name__}.", param=param
        )
    return list(read_messages(mend_messages(given)))


def _check_hidden(agent: Agent[Any], hidden: Mapping[str, Any]) -> None:
    for tool in [tool for one in agent.everyone() for tool in one.tools.values()]:
        for parameter in tool.hidden:
            if parameter.source == "value" and not parameter.is_optional and parameter.name not in hidden:
                raise RequestError(
                    f"The tool {tool.name!r} needs a hidden value {parameter.name!r}: give it to the run, "
                    f"hidden={{{parameter.name!r}: …}}.",
                    param=f"hidden.{parameter.name}",
                )


class _Models:
    """The models of a run. Those given by name are created for it."""

    def __init__(self) -> None:
        self._own: dict[str, Model] = {}

    def of(self, agent: Agent[Any]) -> Model:
        """The model of an agent."""
        if isinstance(agent.model, Model):
            return agent.model
        if agent.model not in self._own:
            url, _, name = agent.model.partition("#")
            self._own[agent.model] = connect(url, name)
        return self._own[agent.model]

    def answer_of(self, limits: Limits, agent: Agent[Any]) -> AnswerCheck:
        """The check of an agent's answer, within the limits of the run."""
        model = self.of(agent)
        is_native = model.mode == "native"
        return AnswerCheck(agent.output, agent.way(model), limits.retries_per_tool, is_native=is_native)

    async def close(self) -> None:
        """Close the models created here."""
        for model in self._own.values():
            await model.close()


# --- the run ---


async def _events(
    agent: Agent[Any],
    input_: Input,
    history: Any,
    session: "Session | None",
    hidden: Mapping[str, Any] | None,
    decisions: Mapping[str, Any] | None,
    cancel: asyncio.Event | None,
    on_end: OnEnd | None,
    *,
    streamed: bool,
    limits: Limits | None = None,
) -> AsyncGenerator[RunEvent, None]:
    hidden = dict(hidden or {})
    limits = limits or agent.limits
    check_team(agent)
    _check_hidden(agent, hidden)
    models = _Models()
    async with _open_session(session, input_, history, decisions) as held:
        state = _state(input_, history, decisions, held.items if held else ())
        compaction = await _compaction(session, held, models.of(agent)) if session and held else None
        before_s = state.counts.seconds
        span = RunSpan(agent.name, models.of(agent))
        nested = partial(_nested, hidden=hidden, streamed=streamed)
        driver = Driver(agent, limits, models.of, hidden, span, nested, streamed=streamed, held=held)
        answer_of = partial(models.answer_of, limits)
        loop = Loop(agent, state, decisions, answer_of, compaction, limits, driver.seconds)
        end = _End(held, on_end)
        failure: BaseException | None = None
        try:
            with driver.watching(cancel, before_s):
                async with aclosing(driver.events(loop)) as events:
                    async for event in events:
                        if isinstance(event, RunEnded):
                            await end.reach(event.result)
                        yield event
        except BaseException as error:
            failure = error
            raise
        finally:
            result = driver.result
            span.end(result.usage if result else None, result.stop if result else None, failure)
            if result is not None:
                await end.break_off(result)
            await models.close()


class _End:
    """Stores the result of a run in its session and reports it to `on_end`, each once."""

    def __init__(self, held: "HeldSession | None", on_end: OnEnd | None) -> None:
        self._held = held
        self._on_end = on_end

    async def reach(self, result: RunResult) -> None:
        """The run has ended by itself."""
        held, self._held = self._held, None
        if held is not None:
            await held.keep_result(result)
        self._report(result)

    async def break_off(self, result: RunResult) -> None:
        """The run was ended from outside: that error is the one to raise, so a failure to store it is only logged."""
        self._report(result)
        if self._held is not None:
            try:
                await self._held.keep_result(result)
            except CallwrightError as error:
                log.warning("what a run has left could not be kept in its session: %s", error)

    def _report(self, result: RunResult) -> None:
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end(result)


async def _compaction(session: "Session", held: "HeldSession", model: Model) -> Compaction:
    """When the conversation of a session is compacted. The model's server is asked once for its window."""
    name = model.upstream_model
    if session.compact_threshold is None and name not in session.windows:
        if model.upstream.window(name) is None:
            with suppress(TimeoutError, UpstreamError, RequestError):
                async with asyncio.timeout(_WINDOW_S):
                    await model.upstream.models()
        session.windows[name] = model.upstream.window(name)
    threshold = threshold_of(session.compact_threshold, session.windows.get(name))
    return Compaction(threshold, lambda: held.is_nearly_full)


async def _nested(
    agent: Agent[Any],
    given: Any,
    left: Limits,
    resumed: Resumed | Done | None,
    emit: Callable[[RunEvent], None],
    ended: OnEnd,
    *,
    hidden: Mapping[str, Any],
    streamed: bool,
) -> RunResult[Any]:
    """A run within a call, limited by what remains of the outer run's limits. A finished one is not run again. Bad
    input is the tool's error; other errors are the program's (`Mistake`).
    """
    try:
        check_team(agent)
        _check_hidden(agent, hidden)
        if isinstance(resumed, Resumed):
            check_decisions(agent, State.from_pending(resumed.pending), resumed.decisions)
        if isinstance(resumed, Done):
            return replayed(agent, resumed)
    except RequestError as error:
        raise Mistake(error) from error
    limits = _narrowed(agent.limits, left)
    decisions: Mapping[str, Any] | None = None
    if resumed is not None:
        given, decisions = resumed.pending, resumed.decisions
    result: RunResult[Any] | None = None
    run = _events(agent, given, None, None, hidden, decisions, None, ended, streamed=streamed, limits=limits)
    async with aclosing(run) as events:
        async for event in events:
            emit(event)
            if isinstance(event, RunEnded):
                result = event.result
    assert result is not None
    return result


def _narrowed(own: Limits, left: Limits) -> Limits:
    """The smaller of both. The seconds of the outer run are counted there."""
    least: dict[str, Any] = {"turns": min(own.turns, left.turns)}
    for name in ("calls", "tokens"):
        known = [value for value in (getattr(own, name), getattr(left, name)) if value is not None]
        least[name] = min(known, default=None)
    return msgspec.structs.replace(own, **least)
