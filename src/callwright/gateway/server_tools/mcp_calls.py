"""MCP tool calls within one turn: which need approval, and what comes of those that run."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from msgspec import Struct

from callwright.agent.agent import Limits
from callwright.agent.calls import ReadyCall, prepared
from callwright.agent.events import RunEvent, ToolEnded
from callwright.agent.execution import Execution
from callwright.agent.tools import Tool
from callwright.conversation import Call, CallOutput, Item, TextPart
from callwright.gateway.http import cancel_quietly
from callwright.gateway.request_context import current
from callwright.gateway.server_tools.mcp_servers import OpenServer
from callwright.wire.parsed_request import ParsedRequest
from callwright.wire.server_events import McpEnded, McpListed
from callwright.wire.server_words import call_words, tool_failure, wrong_call

__all__ = ["McpCalls", "PendingMcpCall"]

_PARALLEL: Final = 8
_TOO_MANY: Final = "This call was not run: the request allows no more calls of tools. Answer with what you have."
_NOT_ALLOWED: Final = "This call was not run: the request does not allow this tool now."
Outcomes: TypeAlias = Callable[["PendingMcpCall"], Awaitable[McpEnded]]


class PendingMcpCall(Struct):
    """A call of an MCP tool. `name` is as the model knows it, `id` as the client does. `request_id`: the approved
    request for it.
    """

    index: int
    id: str
    name: str
    arguments: str = ""
    request_id: str | None = None
    ended: McpEnded | None = None

    @property
    def words(self) -> str:
        """The output or error, as the model reads it."""
        assert self.ended is not None
        return call_words(self.ended.output, self.ended.error)

    def items(self) -> tuple[Item, Item]:
        """The call and its output, as the model is shown them now and, read from the answer, in every later
        turn.
        """
        return Call(self.name, self.arguments, id=self.id), CallOutput(self.id, (TextPart(self.words),))


class McpCalls:
    """The MCP tools of one turn, of which `most` calls are run; None for any number."""

    def __init__(self, asked: ParsedRequest, servers: Mapping[str, OpenServer], most: int | None) -> None:
        self._asked = asked
        self._servers = servers
        self._left = most
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

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def lists(self) -> list[McpListed]:
        """The tools of each server, unless an earlier answer has listed them."""
        return [
            McpListed(label, opened.server.tools)
            for label, opened in self._servers.items()
            if label not in self._asked.listed
        ]

    def may_wait(self, name: str) -> bool:
        """Whether valid calls of this tool need approval."""
        return name in self._wanting

    def holds(self, call: PendingMcpCall) -> bool:
        """Whether a call is valid, so that it could run."""
        return isinstance(self._checked(call), ReadyCall)

    @asynccontextmanager
    async def running(self, calls: Sequence[PendingMcpCall]) -> AsyncGenerator[Outcomes, None]:
        """Run calls in parallel; answers a function that awaits the outcome of one."""
        loop = asyncio.get_running_loop()
        ended: dict[str, asyncio.Future[ToolEnded]] = {}
        ready: list[ReadyCall] = []
        for call in calls:
            found = self._ready(call)
            if isinstance(found, str):
                call.ended = McpEnded(None, wrong_call(found))
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

        async def outcome(call: PendingMcpCall) -> McpEnded:
            if call.id in ended:
                waited: set[asyncio.Future[Any]] = {task, ended[call.id]}
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if not ended[call.id].done():
                    task.result()  # raises what went wrong
                call.ended = _ended(ended[call.id].result())
            assert call.ended is not None
            return call.ended

        try:
            yield outcome
        finally:
            if (context := current()) is not None and ready:
                context.elsewhere_s += time.monotonic() - begun_s
            await cancel_quietly(task)

    def _checked(self, call: PendingMcpCall) -> ReadyCall | str:
        """The call, ready to run, or why it cannot."""
        allowed = None if self._asked.frees else self._asked.conversation.allowed_tools
        if call.request_id is None and allowed is not None and call.name not in allowed:
            return _NOT_ALLOWED
        found = prepared(call.index, Call(call.name, call.arguments, id=call.id), self._tools)
        return f"This call was not run. {found} Make it again, corrected." if isinstance(found, str) else found

    def _ready(self, call: PendingMcpCall) -> ReadyCall | str:
        """The same, within the limit on calls."""
        found = self._checked(call)
        if isinstance(found, str) or self._left is None:
            return found
        if not self._left:
            return _TOO_MANY
        self._left -= 1
        return found

    @property
    def are_spent(self) -> bool:
        """Whether the limit on calls is reached."""
        return self._left == 0


def _ended(ended: ToolEnded) -> McpEnded:
    if ended.status == "ok":
        return McpEnded(ended.text)
    return McpEnded(None, tool_failure(ended.text))
