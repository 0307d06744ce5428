"""Calls that are run here within one turn, whatever kind of tool they are of: how many may run, and which kind runs
them.

A kind knows its tools and how to run them; `run` knows the turn and no kind.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from callwright.conversation import Call, CallOutput, Item, TextPart
from callwright.events import Event
from callwright.wire.parsed_request import ParsedRequest
from callwright.wire.server_events import ServerEvent

TOO_MANY: Final = "This call was not run: the request allows no more calls of tools. Answer with what you have."
NOT_ALLOWED: Final = "This call was not run: the request does not allow this tool now."


class PendingCall(Struct):
    """A call that runs here. `name` is as the model knows it, `id` as the client does. `request_id`: the approved
    request for it. Afterwards `ended` is the event for the client, `words` the text for the model.
    """

    index: int
    id: str
    name: str
    arguments: str = ""
    request_id: str | None = None
    ended: ServerEvent | None = None
    words: str = ""

    def end(self, ended: ServerEvent, words: str) -> ServerEvent:
        """Set the outcome. Returns its event."""
        self.ended, self.words = ended, words
        return ended

    def items(self) -> tuple[Item, Item]:
        """The call and its output, as the model is shown them now and, read from the answer, in every later
        turn.
        """
        return Call(self.name, self.arguments, id=self.id), CallOutput(self.id, (TextPart(self.words),))


Outcomes: TypeAlias = Callable[[PendingCall], Awaitable[ServerEvent]]


class CallBudget:
    """How many calls of a request are still run, of all kinds together; None for any number."""

    def __init__(self, most: int | None) -> None:
        self._left = most

    @property
    def is_spent(self) -> bool:
        """Whether none is run any more."""
        return self._left == 0

    def take(self) -> bool:
        """Take the place of one call, if there is one."""
        if self._left is None:
            return True
        self._left = max(0, self._left - 1) if (is_free := self._left > 0) else 0
        return is_free


class ServerTools(Protocol):
    """Tools of one kind. `prefix` is that of the ids of its calls."""

    prefix: str

    @property
    def names(self) -> Collection[str]:
        """The tools, as the model knows them."""
        ...

    @property
    def is_spent(self) -> bool:
        """Whether the request allows no more calls of this kind."""
        ...

    def lists(self) -> Sequence[ServerEvent]:
        """The events about the tools that precede the model's answer."""
        ...

    def begins(self, call: PendingCall) -> ServerEvent | None:
        """The event sent when the model begins a call, before its arguments, which are streamed. None: the call is sent
        only when it is complete.
        """
        ...

    def whole(self, call: PendingCall) -> Sequence[Event | ServerEvent]:
        """All events of a call before its outcome."""
        ...

    def asks(self, call: PendingCall) -> ServerEvent | None:
        """The approval request for a call; None if the call needs no approval."""
        ...

    def running(self, calls: Sequence[PendingCall]) -> AbstractAsyncContextManager[Outcomes]:
        """Run calls in parallel; answers a function that awaits the outcome of one. They are awaited in order."""
        ...


class ServerCalls:
    """The tools of all kinds that run here in one turn, within one budget."""

    def __init__(self, kinds: Sequence[ServerTools], budget: CallBudget) -> None:
        self._kinds = kinds
        self._budget = budget

    def __contains__(self, name: object) -> bool:
        return any(name in kind.names for kind in self._kinds)

    def kind(self, name: str) -> ServerTools:
        """The kind of a tool that runs here."""
        return next(kind for kind in self._kinds if name in kind.names)

    @property
    def names(self) -> set[str]:
        """All tools, as the model knows them."""
        return {name for kind in self._kinds for name in kind.names}

    @property
    def spent(self) -> set[str]:
        """The tools that may not be called any more."""
        return {name for kind in self._kinds if kind.is_spent for name in kind.names}

    @property
    def are_spent(self) -> bool:
        """Whether no call is run any more."""
        return self._budget.is_spent

    def lists(self) -> list[ServerEvent]:
        """The events about the tools that precede the model's answer."""
        return [event for kind in self._kinds for event in kind.lists()]

    @asynccontextmanager
    async def running(self, calls: Sequence[PendingCall]) -> AsyncGenerator[Outcomes, None]:
        outcomes: list[tuple[ServerTools, Outcomes]] = []
        async with AsyncExitStack() as stack:
            for kind in self._kinds:
                own = [call for call in calls if call.name in kind.names]
                if own:
                    outcomes.append((kind, await stack.enter_async_context(kind.running(own))))

            async def outcome(call: PendingCall) -> ServerEvent:
                return await next(of for kind, of in outcomes if call.name in kind.names)(call)

            yield outcome


def is_allowed(asked: ParsedRequest, name: str) -> bool:
    """Whether the request allows a tool now."""
    allowed = None if asked.frees else asked.conversation.allowed_tools
    return allowed is None or name in allowed
