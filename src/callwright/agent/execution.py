"""Runs the calls of one turn: in parallel up to a limit, a sequential tool alone, each within its timeout.

Timeouts hold whatever a tool does: a task that swallows its cancellation is abandoned, and so is a thread. An exception
of a tool is an outcome, even a CancelledError of its own. Hidden arguments are filled here and never disclosed.
"""

import asyncio
import functools
import inspect
import logging
import math
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec

from callwright.agent.agent import Limits, OnError
from callwright.agent.annotations import Context, Failed, From, Result, Retry
from callwright.agent.calls import ReadyCall, fitted
from callwright.agent.events import CallReady, NestedEvent, RunEvent, Status, ToolEnded, ToolProgress, ToolStarted
from callwright.agent.hooks import EndRun, Hooks, apply
from callwright.agent.nested import Mistake, Resumed, RunAgent, Spent, SubRuns
from callwright.agent.results import cut_text, write_result
from callwright.agent.state import INTERRUPTED
from callwright.agent.threads import in_thread
from callwright.agent.tools import Tool
from callwright.calls.history import NOT_RUN
from callwright.conversation import Item
from callwright.errors import RequestError
from callwright.turn.tracing import tool_span

log = logging.getLogger("callwright.agent")

_FAILED: Final = "The tool failed."
# Time for a cancelled tool to clean up.
_CLEANING_S: Final = 1.0
_abandoned: set[asyncio.Task[Any]] = set()


class Execution:
    """The calls of one turn. `emit` takes the events; `ended` are the outcomes so far. `items` is the conversation as
    the calls may see it. `run_agent` runs other agents within a call; `left` are the limits for them, `resumed` those
    that waited, by call.
    """

    def __init__(
        self,
        calls: Sequence[ReadyCall],
        emit: Callable[[RunEvent], None],
        limits: Limits,
        *,
        on_error: OnError = "tell",
        items: Sequence[Item] = (),
        hidden: Mapping[str, Any] | None = None,
        hooks: Sequence[Hooks] = (),
        run_agent: RunAgent | None = None,
        left: Limits | None = None,
        resumed: Mapping[str, Resumed] | None = None,
    ) -> None:
        self._hooks = hooks
        self._run_agent = run_agent
        self._left = limits if left is None else left
        self._resumed = resumed or {}
        self._limits = limits
        self._on_error = on_error
        self._calls = calls
        self._items = items
        self._hidden = hidden or {}
        self._emit = emit
        self._slots = asyncio.Semaphore(limits.parallel)
        self._ended: dict[str, ToolEnded] = {}
        self._running: dict[str, tuple[ReadyCall, asyncio.Task[Any], Context]] = {}
        self._sub_runs: dict[str, SubRuns] = {}

    @property
    def outcomes(self) -> list[ToolEnded]:
        """An outcome for each call, in their order: those that have none were not run, or interrupted."""
        found = []
        for call in self._calls:
            is_begun = call.ready.id in self._running
            status: Status = "interrupted" if is_begun else "not_run"
            none = _tool_ended(call, status, INTERRUPTED if is_begun else NOT_RUN)
            one = self._ended.get(call.ready.id, none)
            spent = self._sub_runs[call.ready.id].spent if call.ready.id in self._sub_runs else Spent()
            found.append(msgspec.structs.replace(one, spent=spent))
        return found

    async def run(self) -> list[ToolEnded]:
        """Run them all; answers `ended`. With `on_error="raise"` it raises the exceptions of tools, and always the
        programming errors of nested runs.
        """
        for group in _groups(self._calls):
            tasks = [asyncio.create_task(self._one(call)) for call in group]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            finally:
                await self._stop(tasks)
            raised = [error for task in tasks if not task.cancelled() and (error := task.exception())]
            if raised:
                raise raised[0]
        return self.outcomes

    async def _stop(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """End what still runs, within a time."""
        if all(task.done() for task in tasks):
            return
        inner = [task for _, task, _ in self._running.values() if not task.done()]
        for task in (*inner, *tasks):
            task.cancel()
        try:
            await asyncio.wait(tasks)
            if inner:
                await asyncio.wait(inner, timeout=_CLEANING_S)
        finally:
            for _, task, context in list(self._running.values()):
                context.is_over = True
                if not task.done():
                    abandon(task)

    async def _one(self, call: ReadyCall) -> None:
        """Run a call and store its outcome."""
        ready = call.ready
        async with self._slots:
            loop = asyncio.get_running_loop()
            context = self._context(call)
            own = call.tool.options.timeout_s
            timeout = self._limits.tool_timeout_s if own is None else own if own < math.inf else None
            begun = loop.time()
            self._emit(ToolStarted(ready.index, ready.id, ready.name))
            task = asyncio.create_task(self._value(call, context), name=f"callwright {ready.name}")
            # If cancelled just as the tool raises, its exception is never retrieved: asyncio would log the traceback.
            task.add_done_callback(_forget)
            self._running[ready.id] = (call, task, context)
            try:
                done, _ = await asyncio.wait({task}, timeout=timeout)
            finally:
                context.is_over = task.done()
            if not done:
                context.is_over = True
                task.cancel()
                abandon(task)
            stopped = self._sub_runs[ready.id].stopped if ready.id in self._sub_runs else None
            if isinstance(stopped, Mistake):
                raise stopped.error
            if stopped is not None:
                ended = msgspec.structs.replace(_tool_ended(call, "waiting", NOT_RUN), app=stopped)
            elif done:
                ended = self._outcome(call, task)
            else:
                ended = _tool_ended(call, "timeout", f"No answer within {timeout:g} s; it may still have taken effect.")
            ended = msgspec.structs.replace(ended, duration_s=loop.time() - begun)
            if isinstance(ended.exception, EndRun):
                raise ended.exception
            if ended.status != "waiting":
                ended = await apply(self._hooks, "after_tool", ended, context)
            self._ended[ready.id] = ended
            if ended.status == "waiting":
                return
            self._emit(ended)
            if self._on_error == "raise" and isinstance(ended.exception, Exception) and ended.text == _FAILED:
                raise ended.exception

    def _outcome(self, call: ReadyCall, task: asyncio.Task[Any]) -> ToolEnded:
        own = call.tool.options.result_chars
        most = self._limits.result_chars if own is None else own
        error = RuntimeError("the tool was cancelled, and not by the run") if task.cancelled() else task.exception()
        if error is None:
            value = task.result()
            try:
                output = write_result(value, most)
            except Exception as raised:
                error = raised
            else:
                data, app = (value.data, value.app) if isinstance(value, Result) else (value, None)
                ended = _tool_ended(call, "ok", output.text)
                return msgspec.structs.replace(ended, value=data, app=app, is_cut=output.is_cut, media=output.media)
        status, text = self._describe_error(call, error)
        return msgspec.structs.replace(_tool_ended(call, status, cut_text(text, most)), exception=error)

    def _describe_error(self, call: ReadyCall, error: BaseException) -> tuple[Status, str]:
        """The status and the message for the model from an exception, without internal details."""
        if isinstance(error, Retry):
            return "retry", f"Make the call again, changed: {_words(error)}"
        if isinstance(error, Failed | EndRun):
            return "failed", _words(error)
        # No text and no traceback: they may contain hidden arguments.
        log.warning("tool %s failed: %s (call %s)", call.ready.name, type(error).__name__, call.ready.id)
        how = self._on_error
        if callable(how) and isinstance(error, Exception):
            return "failed", _in_words(how, error)
        return "failed", _FAILED

    async def _value(self, call: ReadyCall, context: Context) -> Any:
        """The function's result, awaited if needed; for a generator its last value."""
        tool = call.tool
        with tool_span(call.ready.name, call.ready.id, tool.definition.description):
            allowed = await self._before(call, context)
            return allowed if isinstance(allowed, Result) else await self._returned(allowed, tool, context)

    async def _before(self, call: ReadyCall, context: Context) -> ReadyCall | Result:
        """The call as the hooks let it run, or a result in its place."""
        made = await apply(self._hooks, "before_tool", call.ready, context)
        if isinstance(made, Result):
            return made
        if made is call.ready:
            return call
        arguments = made.arguments if isinstance(made, CallReady) else made
        found = fitted(msgspec.structs.replace(call.ready, arguments=arguments), call.tool)
        if isinstance(found, str):
            raise RequestError(f"A hook gave {call.ready.name!r} arguments that do not fit: {found}")
        return found

    async def _returned(self, call: ReadyCall, tool: Tool, context: Context) -> Any:
        try:
            values = {**call.values, **await _filled(tool, self._hidden, context)}
            if _is_async(tool.function):
                value = tool.invoke(values)
            else:
                value = await in_thread(lambda: _drained(tool.invoke(values), context), f"callwright-{tool.name}")
            return await _resolve_value(value, tool, context)
        except SystemExit as error:  # a tool does not end the process
            raise RuntimeError("the tool raised SystemExit") from error

    def _context(self, call: ReadyCall) -> Context:
        loop = asyncio.get_running_loop()
        ready = call.ready

        def report(value: Any) -> None:
            loop.call_soon_threadsafe(tell, value)

        def tell(value: Any) -> None:
            if not context.is_over:
                self._emit(ToolProgress(ready.index, ready.id, ready.name, value))

        subs: SubRuns | None = None
        if self._run_agent is not None:

            def hand_on(event: RunEvent) -> None:
                self._emit(NestedEvent(ready.index, ready.id, ready.name, event))

            subs = SubRuns(self._run_agent, self._left, self._resumed.get(ready.id), hand_on)
            self._sub_runs[ready.id] = subs
        context = Context(
            tool=ready.name,
            call_id=ready.id,
            turn=call.turn,
            attempt=call.attempt,
            items=self._items,
            hidden=self._hidden,
            report=report,
            sub_runs=subs,
        )
        return context


def abandon(task: asyncio.Task[Any]) -> None:
    """Leave a task alone that does not end when it is cancelled: no event loop waits for it at its end."""
    _abandoned.add(task)
    task.add_done_callback(_forget)
    asyncio._unregister_task(task)


def _forget(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()  # else asyncio logs that it was never retrieved


def _groups(calls: Sequence[ReadyCall]) -> list[list[ReadyCall]]:
    """Calls that may run side by side; a sequential one alone."""
    groups: list[list[ReadyCall]] = []
    is_open = False
    for call in calls:
        alone = call.tool.options.sequential
        if is_open and not alone:
            groups[-1].append(call)
        else:
            groups.append([call])
        is_open = not alone
    return groups


async def _filled(tool: Tool, hidden: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The hidden arguments of a call."""
    values: dict[str, Any] = {}
    for parameter in tool.hidden:
        if parameter.source == "context":
            values[parameter.name] = context
        elif isinstance(parameter.source, From):
            values[parameter.name] = await call_function(parameter.source.make, context)
        elif parameter.name in hidden:
            value = hidden[parameter.name]
            is_function = isinstance(value, types.FunctionType | types.MethodType | functools.partial)
            values[parameter.name] = await call_function(value, context) if is_function else value
    return values


async def call_function(function: Callable[..., Any], argument: object) -> Any:
    """Call a function of the program with an argument, if it takes one; it may be async."""
    value = function(argument) if inspect.signature(function).parameters else function()
    return await value if inspect.isawaitable(value) else value


def _is_async(function: Callable[..., Any]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    own = function if inspect.isroutine(function) else type(function).__call__
    return inspect.iscoroutinefunction(own) or inspect.isasyncgenfunction(own)


async def _resolve_value(value: Any, tool: Tool, context: Context) -> Any:
    """Await or drain a returned value until a plain one remains."""
    while True:
        if inspect.isasyncgen(value):
            value = await _drained_async(value, context)
        elif inspect.isawaitable(value):
            value = await value
        elif inspect.isgenerator(value):
            value = await in_thread(functools.partial(_drained, value, context), f"callwright-{tool.name}")
        else:
            return value


def _drained(value: Any, context: Context) -> Any:
    """The value, or a generator's last one; the earlier ones are reported as progress."""
    if not inspect.isgenerator(value):
        return value
    kept: list[Any] = []
    while not context.is_over:
        try:
            one = next(value)
        except StopIteration as stop:
            return stop.value if stop.value is not None else (kept[-1] if kept else None)
        for before in kept:
            context.progress(before)
        kept = [one]
    value.close()
    return None


async def _drained_async(value: Any, context: Context) -> Any:
    kept: list[Any] = []
    async with aclosing(value) as values:
        async for one in values:
            for before in kept:
                context.progress(before)
            kept = [one]
    return kept[-1] if kept else None


def _in_words(how: Callable[[Exception], str], error: Exception) -> str:
    """The program's text for an exception, or a general one if its function fails."""
    try:
        words: object = how(error)
    except Exception as raised:
        log.warning("on_error failed itself: %s, for a %s", type(raised).__name__, type(error).__name__)
        return _FAILED
    if not isinstance(words, str):
        log.warning("on_error gave %s for a %s: expected a text", type(words).__name__, type(error).__name__)
        return _FAILED
    return words


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _tool_ended(call: ReadyCall, status: Status, text: str) -> ToolEnded:
    return ToolEnded(call.ready.index, call.ready.id, call.ready.name, status, text)
