"""The connection to one MCP server: one task owns the client; a broken connection is replaced.

The client of the SDK must be left by the task that entered it, and a refused connection ends it for good (mcp 2.3). So
a task enters it, lists the tools and waits; any task may call. A failed call raises `Failed`, worded for the model; a
failed start raises `ConfigError`. A call that may have reached the server is retried only if the server declares the
tool safe to repeat.
"""

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TextIO, TypeAlias

from callwright.agent.execution import abandon
from callwright.agent.mcp.bounds import OUTPUT, TOO_MUCH, bounded_output, list_fault
from callwright.agent.mcp.elicitation import Elicit, answer_of
from callwright.agent.mcp.results import failure
from callwright.agent.mcp.targets import Command, Url, http_transport, missing_program
from callwright.errors import ConfigError
from callwright.settings.bounds import Bounds
from callwright.turn.tracing import note_mcp

log = logging.getLogger("callwright.mcp")

Progress: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None]]

# Codes of JSON-RPC errors. A legacy server that was started anew answers the first of them.
_UNKNOWN_SESSION: Final = -32600
_CLOSED: Final = -32000
_TIMEOUT: Final = -32001
_PAUSES_S: Final = (0.0, 0.25, 1.0)  # before each attempt to connect again
_CLOSING_S: Final = 10.0  # the SDK gives a process 4 s to end
_MAX_PAGES: Final = 100
_LAST_LINES: Final = 5
_NO_ACCESS: Final = (401, 403)
_UNREACHABLE: Final = "The tool's server cannot be reached. The call was not run."
_BROKE: Final = "The connection to the tool's server broke. The call may still have taken effect."


class _UnreachableError(Exception):
    """All attempts to connect failed."""


class _LostError(Exception):
    """The connection broke during a call, which may have reached the server if it `was_sent`."""

    def __init__(self, *, was_sent: bool) -> None:
        super().__init__(_BROKE)
        self.was_sent = was_sent


class Connection:
    """A server that can be called. `tools` are the SDK's, sorted by name, as they were at the start."""

    def __init__(
        self, target: Command | Url, connect_timeout_s: float, bounds: Bounds, elicit: Elicit | None = None
    ) -> None:
        self.on_new_tools: Callable[[list[Any]], None] = lambda _: None
        self._elicit = elicit
        self._target = target
        self._timeout_s = connect_timeout_s
        self._bounds = bounds
        self._loop = asyncio.get_running_loop()
        self._lock = asyncio.Lock()
        self._owner: _Owner | None = None
        self._pinned: dict[str, str] = {}
        self.tools: list[Any] = []
        self.server_name = ""

    async def open(self) -> None:
        """Connect. Raises `ConfigError`."""
        self._owner = owner = await self._started()
        self._take(owner)
        self.server_name = owner.server_name

    async def refresh(self) -> None:
        """List the tools again, over a new connection if the old one broke. Raises `ConfigError`."""
        async with self._lock:
            owner = self._owner
            if owner is not None and not owner.is_over:
                try:
                    async with asyncio.timeout(self._timeout_s):
                        await owner.list_tools()
                except Exception as error:
                    log.info("listing the tools again failed: %s", type(error).__name__)
                else:
                    self._take(owner)
                    return
            if owner is not None:
                await self._drop(owner)
            await self.open()

    async def _started(self) -> "_Owner":
        return await _Owner.started(self._target, self._timeout_s, self._bounds, self._elicit, self._grown)

    def _grown(self, owner: "_Owner") -> None:
        """Handle the server's notice of a changed list: new tools can be called; calls to changed ones are refused."""
        if self._owner is not owner:
            return
        new = [tool for tool in owner.tools if tool.name not in self._pinned]
        self._pinned = {**self._pinned, **{tool.name: owner.forms[tool.name] for tool in new}}
        self.tools += new
        if new:
            self.on_new_tools(new)

    def _take(self, owner: "_Owner") -> None:
        self.tools = sorted(owner.tools, key=lambda tool: str(tool.name))
        self._pinned = owner.forms

    def _words(self, error: BaseException) -> str:
        """The message for the model from an error of the SDK."""
        words = _words(error)
        return self._target.without_secrets(words) if isinstance(self._target, Url) else words

    @property
    def is_stale(self) -> bool:
        """Whether the tools may differ from the listed ones: the connection broke or was replaced."""
        return self._owner is None or self._owner.is_over or self._owner.forms != self._pinned

    @property
    def is_idle(self) -> bool:
        """Whether no call is under way."""
        return self._owner is None or not self._owner.calls

    async def close(self) -> None:
        """Close the connection, and end the server process if it was started here."""
        owner, self._owner = self._owner, None
        if owner is not None:
            await owner.stop()

    def note_call(self) -> None:
        """Record the protocol version and the URL on the span of the tool run."""
        version = None if self._owner is None or self._owner.is_over else self._owner.protocol_version
        note_mcp("tools/call", version, self._target.url if isinstance(self._target, Url) else None)

    async def call(self, name: str, arguments: dict[str, Any], *, is_repeatable: bool, progress: Progress) -> Any:
        """The server's answer. Raises `Failed`."""
        if asyncio.get_running_loop() is not self._loop:
            raise failure("These tools belong to the event loop in which they were made; use `await run(…)` there.")
        was_sent = False
        for _ in range(2):
            try:
                owner = await self._connected(name)
            except _UnreachableError as error:
                raise failure(_BROKE if was_sent else str(error)) from error
            try:
                return await self._call_once(owner, name, arguments, progress)
            except _LostError as lost:
                was_sent = was_sent or lost.was_sent
            if was_sent and not is_repeatable:
                break
        raise failure(_BROKE if was_sent else _UNREACHABLE)

    async def _call_once(self, owner: "_Owner", name: str, arguments: dict[str, Any], progress: Progress) -> Any:
        """The answer over one connection. Raises `Failed`, and `_LostError` if the connection cannot be used again."""
        went_on: list[None] = []
        turn = self._loop.call_soon(went_on.append, None)
        owner.begin_call()
        try:
            answer = await owner.client.call_tool(name, arguments, progress_callback=progress)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                owner.end_call()
                raise
            is_unknown = False
        except Exception as error:
            if TOO_MUCH in str(error):  # the server has run the call
                owner.end_call()
                raise failure(str(error)) from error
            code = getattr(error, "code", None)
            is_unknown = code == _UNKNOWN_SESSION and "session" in str(error).lower()
            if not is_unknown and code != _CLOSED and not owner.is_over and owner.fault is None:
                owner.end_call()
                raise failure(self._words(error)) from error
        else:
            owner.end_call()
            return answer
        finally:
            turn.cancel()
        await self._drop(owner)
        if owner.fault is not None:
            raise failure(owner.fault)
        if owner.refused_with is not None:
            raise failure(f"The tool's server refuses its credentials (HTTP {owner.refused_with}).")
        # A connection that was closed before refuses without a turn of the event loop.
        raise _LostError(was_sent=bool(went_on) and not is_unknown and not owner.was_refused)

    async def _connected(self, name: str) -> "_Owner":
        """The client, replaced if it ended. Raises `Failed` if the tool has changed since it was listed."""
        async with self._lock:
            if self._owner is not None and self._owner.is_over:
                await self._drop(self._owner)
            if self._owner is None:
                self._owner = await self._again()
            if self._owner.forms.get(name) != self._pinned.get(name):
                raise failure("The server has changed or removed this tool since it was connected. It was not run.")
            return self._owner

    async def _again(self) -> "_Owner":
        for pause in _PAUSES_S:
            await asyncio.sleep(pause)
            try:
                return await self._started()
            except ConfigError as error:
                log.info("connecting again failed: %s", error)
        raise _UnreachableError(_UNREACHABLE)

    async def _drop(self, owner: "_Owner") -> None:
        if self._owner is owner:
            self._owner = None
        await owner.stop()


class _Owner:
    """One client, and the task that entered it. `was_refused`: no TCP connection was established. `fault`: why it was
    ended, if the server sent too much. `refused_with`: the status with which the server refused the credentials.
    """

    def __init__(
        self,
        target: Command | Url,
        bounds: Bounds,
        elicit: Elicit | None = None,
        grown: Callable[["_Owner"], None] = lambda _: None,
    ) -> None:
        self._elicit = elicit
        self._grown = grown
        self._listing: set[asyncio.Task[None]] = set()
        self._target = target
        self._bounds = bounds
        self.fault: str | None = None
        self.refused_with: int | None = None
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._reader: threading.Thread | None = None
        self._error: BaseException | None = None
        self._calls = 0
        self._is_shared = False  # by calls that run at the same time
        self.client: Any = None
        self.tools: list[Any] = []
        self.forms: dict[str, str] = {}  # each tool as one text
        self.server_name = ""
        self.protocol_version: str | None = None
        self._task = asyncio.create_task(self._own(), name=f"callwright mcp {target}")

    @staticmethod
    async def started(
        target: Command | Url,
        timeout_s: float,
        bounds: Bounds,
        elicit: Elicit | None,
        grown: Callable[["_Owner"], None],
    ) -> "_Owner":
        """A client that is connected and has its list of tools. Raises `ConfigError`."""
        owner = _Owner(target, bounds, elicit, grown)
        try:
            await asyncio.wait({owner._task, owner._ready}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not owner._ready.done():
                was_over = owner.is_over
                await owner.stop()
        if owner._ready.done():
            return owner
        why = owner._why() if was_over else f"it did not answer within {timeout_s:g} s"
        if owner._reader is not None:
            await asyncio.to_thread(owner._reader.join, 0.5)
        error = ConfigError(f"The MCP server {target} cannot be used: {why}.")
        if owner._last_lines:  # a note for the operator: the message itself must not contain the server's keys
            error.add_note(f"Its last words: {' | '.join(owner._last_lines)}")
        raise error

    @property
    def is_over(self) -> bool:
        """Whether the client has ended."""
        return self._task.done()

    @property
    def was_refused(self) -> bool:
        """Whether it ended because no connection was established, with a single call: then nothing was sent."""
        return type(self._error).__name__ == "ConnectError" and not self._is_shared

    @property
    def calls(self) -> int:
        """Number of calls in progress."""
        return self._calls

    async def list_tools(self) -> None:
        """List the server's tools. Raises `ConfigError` if the list is too large or has too many pages."""
        self.tools, self.forms = await _list_tools(self.client)

    def begin_call(self) -> None:
        """Before each call."""
        self._calls += 1
        self._is_shared = self._is_shared or self._calls > 1

    def end_call(self) -> None:
        """After each call that the connection survived."""
        self._calls -= 1
        self._is_shared = self._is_shared and self._calls > 0

    def _end(self) -> None:
        self._stop.set()
        if not self._ready.done():
            self._task.cancel()

    def _failed(self, fault: str) -> None:
        """End the connection, with any calls in progress, because the server sent too much."""
        self.fault = fault
        self._end()

    async def _answered(self, response: Any) -> None:
        """Note each HTTP response that refuses access: the SDK does not report the status."""
        if response.status_code in _NO_ACCESS:
            self.refused_with = response.status_code

    async def stop(self) -> None:
        """Leave the client within `_CLOSING_S` seconds. Idempotent."""
        self._end()
        await asyncio.wait({self._task}, timeout=_CLOSING_S)
        if not self._task.done():
            self._task.cancel()
            abandon(self._task)

    async def _own(self) -> None:
        try:
            await self._serve()
        except BaseException as error:
            self._error = _innermost(error)
            log.info("MCP server %s: connection ended: %s", self._target, type(self._error).__name__)

    async def _serve(self) -> None:
        import mcp
        from mcp.client import Client

        with self._errors() as errors, bounded_output(self._bounds, self._failed):
            if isinstance(self._target, Url):
                transport = http_transport(self._target, self._bounds, self._answered)
            else:
                program, *arguments = self._target.words
                wanted = mcp.StdioServerParameters(
                    command=program,
                    args=arguments,
                    env=dict(self._target.env),
                    cwd=self._target.cwd,
                    encoding=OUTPUT,
                )
                transport = mcp.stdio_client(wanted, errlog=errors)
            ask = None if self._elicit is None else self._ask_person
            async with Client(transport, message_handler=self._handle_message, elicitation_callback=ask) as client:
                errors.close()  # the process has its own
                self.client = client
                self.server_name = client.server_info.name if client.server_info else ""
                self.protocol_version = str(client.protocol_version)
                await self.list_tools()
                self._ready.set_result(None)
                listening = asyncio.create_task(self._listen(client))
                try:
                    await self._stop.wait()
                finally:
                    for task in (listening, *self._listing):
                        task.cancel()
                    await asyncio.wait({listening, *self._listing})

    async def _ask_person(self, _: Any, params: Any) -> Any:
        """The server asks a person."""
        assert self._elicit is not None
        return await answer_of(self._elicit, self.server_name or str(self._target), params)

    async def _handle_message(self, message: Any) -> None:
        """Handle a notification of a server with a protocol before 2026."""
        if type(message).__name__ == "ToolListChangedNotification" and not self._listing:
            task = asyncio.create_task(self._listed_again())  # its answer arrives after this message
            self._listing.add(task)
            task.add_done_callback(self._listing.discard)

    async def _listen(self, client: Any) -> None:
        """Subscribe to changes of the tool list, if a server with the protocol of 2026 offers that."""
        capabilities = client.server_capabilities
        if not (capabilities and capabilities.tools and capabilities.tools.list_changed):
            return
        with suppress(Exception):  # older servers send notifications; the calls report a lost connection
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    await self._listed_again()

    async def _listed_again(self) -> None:
        try:
            await self.list_tools()
        except Exception as error:
            log.info("MCP server %s: listing the tools again failed: %s", self._target, type(error).__name__)
            return
        self._grown(self)

    def _errors(self) -> TextIO:
        """A pipe for a process's standard error, which is logged; its last lines are stored."""
        reading, writing = os.pipe()

        def read() -> None:
            with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    self._last_lines.append(line.rstrip()[:500])
                    log.debug("%s: %s", self._target, line.rstrip())

        self._reader = threading.Thread(target=read, name="callwright mcp stderr", daemon=True)
        self._reader.start()
        return os.fdopen(writing, "w")

    def _why(self) -> str:
        error = self._error
        if self.fault is not None:
            return self.fault.rstrip(".")
        if isinstance(error, FileNotFoundError) and isinstance(self._target, Command):
            return missing_program(self._target)
        if self.refused_with is not None:
            given = "credentials" if isinstance(self._target, Url) and self._target.headers else "request without any"
            return f"it refused the {given} (HTTP {self.refused_with}). Give its key in `headers`"
        if isinstance(error, asyncio.CancelledError) or error is None:
            return "it ended the connection"
        words = _words(error).rstrip(".")
        return self._target.without_secrets(words) if isinstance(self._target, Url) else words


async def _list_tools(client: Any) -> tuple[list[Any], dict[str, str]]:
    """The tools, and each as JSON by name. Raises `ConfigError` above the limits."""
    found: list[Any] = []
    forms: dict[str, str] = {}
    size = 0
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            forms[tool.name] = tool.model_dump_json()
            size += len(forms[tool.name])
        if fault := list_fault(page.tools, size):
            raise ConfigError(fault)
        found += page.tools
        cursor = page.next_cursor
        if not cursor:
            return found, forms
    raise ConfigError(f"its list of tools does not end: expected at most {_MAX_PAGES} pages, got more")


def _innermost(error: BaseException) -> BaseException:
    """The first error inside nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _words(error: BaseException) -> str:
    """An error of the SDK in words for a model."""
    kind = type(error).__name__
    if getattr(error, "code", None) == _TIMEOUT:
        return "The tool's server did not answer in time. The call may still have taken effect."
    if kind == "ValidationError":
        return "The tool's server answered something that is not of the protocol."
    if kind == "InputRequiredRoundsExceededError":
        return "The tool asks a person for more, and nobody is there to answer."
    with suppress(Exception):
        if words := str(error):
            return words
    return kind
