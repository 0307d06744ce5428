"""A turn of a model that is offered a search in place of too many tools.

The model is asked, its searches are run, and it is asked again, until it answers or calls a tool. The events are those
of one turn without the searches, so no client sees that there was one.
"""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from functools import partial
from itertools import groupby
from typing import Any, Final, Protocol

from msgspec.structs import replace

from callwright.calls.deferred_tools import DeferredTools
from callwright.calls.tool_search import SEARCH_TOOL, search_query
from callwright.conversation import Conversation, Item, Message, Reasoning, TextPart
from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    Problem,
    ReasoningDelta,
    Usage,
)
from callwright.turn.model import Events, Model, OfFallback
from callwright.turn.token_limit import reduce_limit
from callwright.wire.token_estimate import estimated_prompt

_MAX_ROUNDS: Final = 6  # with a search
_MAX_SEARCHES: Final = 8  # in one round
_MAX_IN_VAIN: Final = 2  # rounds in a row
_BETWEEN: Final = "\n\n"  # texts before and after a search


def defers_tools(model: Model, conversation: Conversation) -> bool:
    """Whether the model is offered a search: it has too many tools, and the client has no search of its own."""
    most, tools = model.defer_tools_above, conversation.tools
    if most is None or len(tools) <= most or conversation.shown_tools is not None:
        return False
    return all(tool.name != SEARCH_TOOL.name for tool in tools)


def first_round(model: Model, conversation: Conversation) -> Conversation:
    """The conversation of the first request to the server: with a search, if tools are deferred."""
    if not defers_tools(model, conversation):
        return conversation
    return _conversation_of_round(conversation, DeferredTools(conversation), is_last=not _may_search(conversation))


def estimate_prompt(model: Model, conversation: Conversation) -> int:
    """About how many tokens the first request to the server has, see `estimated_prompt`."""
    return estimated_prompt(first_round(model, conversation), is_native=model.mode == "native")


class RunsRound(Protocol):
    """Makes a round, as `callwright.turn.run.run_turn` makes a turn."""

    def __call__(
        self, model: Model, conversation: Conversation, *, fields: Mapping[str, Any], of_fallback: OfFallback
    ) -> Events: ...


async def run_with_search(
    run: RunsRound, model: Model, conversation: Conversation, *, fields: Mapping[str, Any]
) -> Events:
    """The events of a turn, whose rounds `run` makes. Raises as `run`. If only a fallback defers tools, the model gets
    the conversation as it is, and the turn has further rounds only if that fallback searches.
    """
    given, is_first = conversation, not defers_tools(model, conversation)
    said = _Said()
    deferred = DeferredTools(conversation)
    is_last = not _may_search(conversation)
    in_vain, tried = 0, set[str]()  # rounds in a row that found nothing new; all queries
    for rounds in range(_MAX_ROUNDS + 1):
        if (left := reduce_limit(fields, said.counted)) is None:
            said.ended = Finished("length")
            break
        said.begin()
        searching = _conversation_of_round(conversation, deferred, is_last=is_last)
        of_fallback = partial(_of_fallback, given if is_first else searching, searching)
        async with aclosing(run(model, of_fallback(model), fields=left, of_fallback=of_fallback)) as events:
            async for batch in events:
                if now := [out for event in batch for out in said.take(event)]:
                    yield now
        if is_last or said.is_over:
            break
        is_first = False
        deferred.items += said.items(conversation.prefill)
        conversation = replace(conversation, prefill="")
        queries = [search_query(arguments) for arguments in said.searches[:_MAX_SEARCHES]]
        found = [deferred.search(query) for query in queries]
        in_vain = 0 if any(found) else in_vain + 1
        repeats = tried.issuperset(queries)  # as a weak model does
        is_last = rounds + 1 == _MAX_ROUNDS or in_vain == _MAX_IN_VAIN or (in_vain > 0 and repeats)
        tried |= set(queries)
    yield [said.ended] if said.counted is None else [said.ended, said.counted]


def _of_fallback(given: Conversation, searching: Conversation, model: Model) -> Conversation:
    return searching if defers_tools(model, given) else given


def _may_search(conversation: Conversation) -> bool:
    return conversation.tool_choice in ("auto", "required")


def _conversation_of_round(conversation: Conversation, deferred: DeferredTools, *, is_last: bool) -> Conversation:
    """The conversation of a round. In the last, only tools that were found may be called; if a call is required and
    none was found, all of them.
    """
    found, choice = tuple(deferred.found.values()), conversation.tool_choice
    asked = replace(conversation, items=tuple(deferred.items))
    if is_last and not found and choice == "required":
        return asked
    allowed = None if conversation.allowed_tools is None else (SEARCH_TOOL.name, *deferred.found)
    if is_last and choice in ("auto", "required"):
        allowed, choice = tuple(deferred.found), choice if found else "none"
    if choice == "none":
        allowed = None
    tools = (SEARCH_TOOL, *found)
    return replace(asked, tools=tools, shown_tools=(SEARCH_TOOL,), tool_choice=choice, allowed_tools=allowed)


class _Said:
    """Sorts the events of the rounds: searches are left out, and the other calls numbered without them. `searches` are
    the arguments of those of a round, `ended` its last event, `counted` the tokens of all rounds.
    """

    def __init__(self) -> None:
        self.searches: list[str] = []
        self.ended = Finished("stop")
        self.counted: Usage | None = None
        self.is_over = True
        self._texts: list[ContentDelta | ReasoningDelta] = []
        self._pieces: list[str] = []
        self._numbers: dict[int, int | None] = {}  # of the calls of a round; None for a search
        self._sent: set[type[Event]] = set()  # kinds of text in earlier rounds

    def begin(self) -> None:
        """Begin a round."""
        self._sent |= {type(text) for text in self._texts}
        self.searches, self._texts, self._numbers = [], [], {}

    def items(self, prefill: str) -> list[Item]:
        """The texts of a round. `prefill` began it."""
        texts = [ContentDelta(prefill), *self._texts] if prefill else self._texts
        found = [(kind, "".join(one.text for one in group)) for kind, group in groupby(texts, type)]
        return [
            Reasoning(text) if kind is ReasoningDelta else Message("assistant", (TextPart(text),))
            for kind, text in found
            if text.strip()
        ]

    def take(self, event: Event | Usage) -> Sequence[Event | Usage]:
        """The events to send for an event."""
        match event:
            case Usage():
                self.counted = event if self.counted is None else self.counted.plus(event)
                return []
            case Finished():
                self.ended = event
                has_calls = any(number is not None for number in self._numbers.values())
                self.is_over = has_calls or not self.searches or event.reason in ("length", "content_filter")
                return []
            case ContentDelta() | ReasoningDelta():
                self._texts.append(event)
                kind = type(event)
                if kind in self._sent:
                    self._sent.remove(kind)
                    return [kind(_BETWEEN), event]
            case CallStarted(index, name) if name == SEARCH_TOOL.name:
                self._numbers[index], self._pieces = None, []
                return []
            case CallStarted(index):
                self._numbers[index] = number = sum(one is not None for one in self._numbers.values())
                return [replace(event, index=number)]
            case ArgumentsDelta(index, text):
                if (shown := self._numbers[index]) is not None:
                    return [replace(event, index=shown)]
                self._pieces.append(text)
                return []
            case CallEnded(index):
                if (shown := self._numbers[index]) is not None:
                    return [replace(event, index=shown)]
                self.searches += ["".join(self._pieces)] if event.complete else []
                return []
            case Problem(call=int(index)) if index in self._numbers:
                shown = self._numbers[index]
                return [] if shown is None else [replace(event, call=shown)]
        return [event]
