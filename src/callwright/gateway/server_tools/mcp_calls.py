"""MCP tool calls within one turn: which need approval, and the results of those that run."""

import asyncio
import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from callwright.agent.agent import Limits
from callwright.agent.calls import ReadyCall, prepared
from callwright.agent.events import RunEvent, ToolEnded
from callwright.agent.execution import Execution
from callwright.agent.tools import Tool
from callwright.conversation import Call
from callwright.events import ArgumentsDelta, CallEnded, Event
from callwright.gateway.http import cancel_quietly
from callwright.gateway.request_context import current
from callwright.gateway.server_tools.calls import NOT_ALLOWED, TOO_MANY, CallBudget, Outcomes, PendingCall, is_allowed
from callwright.gateway.server_tools.mcp_servers import OpenServer
from callwright.wire.parsed_request import ParsedRequest
from callwright.wire.server_events import McpApprovalAsked, McpEnded, McpListed, McpStarted, ServerEvent
from callwright.wire.server_words import call_words, tool_failure, wrong_call

_PARALLEL: Final = 8


class McpCalls:
    """The MCP tools of one turn: a kind of `ServerTools`."""

    prefix = "mcp"
    is_spent = False  # but for the budget, which all kinds share

    def __init__(self, asked: ParsedRequest, servers: Mapping[str, OpenServer], budget: CallBudget) -> None:
        self._asked = asked
        self._servers = servers
        self._budget = budget
        self._tools: dict[str, Tool] = {}
        self._servers_of: dict[str, OpenServer] = {}  # by the name of the tool
        self._wanting: set[str] = set()  # tools whose calls need approval
        known = {tool.name: tool for tool in (*asked.offer.tools, *asked.offer.searchable)}
        for label, opened in servers.items():
            for listed in opened.server.tools:
                flat = asked.offer.names.flat(listed.name, label)
                self._tools[flat] = opened.tool(listed.name, known[flat])
                self._servers_of[flat] = opened
                if opened.server.asked.wants_approval(listed):
                    self._wanting.add(flat)

    @property
    def names(self) -> Collection[str]:
        return self._tools

    def lists(self) -> list[McpListed]:
        """The tools of each server, unless an earlier answer has listed them."""
        return [
            McpListed(label, opened.server.tools)
            for label, opened in self._servers.items()
            if label not in self._asked.listed
        ]

    def begins(self, call: PendingCall) -> ServerEvent | None:
        """See `ServerTools`. A call that may need approval is reported once it is known whether it does."""
        return None if call.name in self._wanting else McpStarted(call.index, call.id, call.name)

    def whole(self, call: PendingCall) -> Sequence[Event | ServerEvent]:
        return [
            McpStarted(call.index, call.id, call.name, call.request_id),
            ArgumentsDelta(call.index, call.arguments),
            CallEnded(call.index),
        ]

    def asks(self, call: PendingCall) -> ServerEvent | None:
        """See `ServerTools`. A call that could not run is not asked about."""
        is_asked = call.name in self._wanting and isinstance(self._checked(call), ReadyCall)
        return McpApprovalAsked(call.name, call.arguments) if is_asked else None

    @asynccontextmanager
    async def running(self, calls: Sequence[PendingCall]) -> AsyncGenerator[Outcomes, None]:
        """Run calls in parallel; answers a function that awaits the outcome of one."""
        loop = asyncio.get_running_loop()
        ended: dict[str, asyncio.Future[ToolEnded]] = {}
        ready: list[ReadyCall] = []
        for call in calls:
            found = self._ready(call)
            if isinstance(found, str):
                _end(call, McpEnded(None, wrong_call(found)))
            else:
                ready.append(found)
                ended[call.id] = loop.create_future()

        def emit(event: RunEvent) -> None:
            if isinstance(event, ToolEnded):
                ended[event.id].set_result(event)
                opened = self._servers_of[event.name]
                opened.told(opened.config.label, event.status, event.duration_s)

        begun_s = time.monotonic()
        task = asyncio.ensure_future(Execution(ready, emit, Limits(parallel=_PARALLEL)).run())

        async def outcome(call: PendingCall) -> ServerEvent:
            if call.id in ended:
                waited: set[asyncio.Future[Any]] = {task, ended[call.id]}
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if not ended[call.id].done():
                    task.result()  # raises what went wrong
                _end(call, _mcp_ended(ended[call.id].result()))
            assert call.ended is not None
            return call.ended

        try:
            yield outcome
        finally:
            if (context := current()) is not None and ready:
                context.elsewhere_s += time.monotonic() - begun_s
            await cancel_quietly(task)

    def _checked(self, call: PendingCall) -> ReadyCall | str:
        """The call, ready to run, or why it cannot."""
        if call.request_id is None and not is_allowed(self._asked, call.name):
            return NOT_ALLOWED
        found = prepared(call.index, Call(call.name, call.arguments, id=call.id), self._tools)
        return f"This call was not run. {found} Make it again, corrected." if isinstance(found, str) else found

    def _ready(self, call: PendingCall) -> ReadyCall | str:
        """The same, within the limit on calls."""
        found = self._checked(call)
        return found if isinstance(found, str) or self._budget.take() else TOO_MANY


def _end(call: PendingCall, ended: McpEnded) -> None:
    call.end(ended, call_words(ended.output, ended.error))


def _mcp_ended(ended: ToolEnded) -> McpEnded:
    if ended.status == "ok":
        return McpEnded(ended.text)
    return McpEnded(None, tool_failure(ended.text))
