"""Turns in which the server itself searches for tools: the model asks, finds, and goes on with what it found."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from itertools import groupby
from typing import Any, Final

import msgspec
from msgspec import Struct

from toolwright.conversation import Call, CallOutput, Item, Message, Reasoning, TextPart
from toolwright.events import (
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
from toolwright.gateway.truncation import with_truncation
from toolwright.jsontext import NotJsonError, decode, encode
from toolwright.toolsearch import search_tools
from toolwright.turn import Model
from toolwright.wire.items import found_words, search_id
from toolwright.wire.responses import Asked

__all__ = ["ServerItem", "with_search"]

_MAX_SEARCHES: Final = 8
_SEARCH: Final = "tool_search"


class ServerItem(Struct, frozen=True):
    """An output item that this server made: its fields, and the prefix of its id."""

    prefix: str
    fields: dict[str, Any]

    def item(self, new_id: Callable[[str], str]) -> dict[str, Any]:
        """The item with an id."""
        return {"id": new_id(self.prefix), **self.fields}


async def with_search(
    model: Model, asked: Asked, *, today: str, streamed: bool, truncates: bool
) -> AsyncGenerator[Event | ServerItem | Usage, None]:
    """The events of a turn. A search that the model makes is run here, and the model asked again with what it found;
    where it makes calls beside it, the client answers these first.
    """
    conversation = asked.conversation
    searches_here = asked.offer.search == "server"
    counted: Usage | None = None
    for rounds in range(_MAX_SEARCHES + 1):
        searches = _Searches()
        ended: Finished | None = None
        events = with_truncation(model, conversation, asked.fields, today=today, streamed=streamed, truncates=truncates)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Usage):
                    counted = event if counted is None else counted.plus(event)
                elif isinstance(event, Finished):
                    ended = event
                elif not (searches_here and searches.takes(event)):
                    yield event
        items = [*conversation.items, *searches.said()]
        for search in searches.made:
            query = _query(search)
            found = _found(asked, query)
            for item in _items(asked, query, found):
                yield item
            items += _told(items, query, found)
        if not searches.made or searches.others or rounds == _MAX_SEARCHES:
            if ended is not None:
                yield ended if searches.others or not searches.made else Finished("stop")
            break
        conversation = msgspec.structs.replace(
            conversation, items=tuple(items), tools=asked.offer.tools, tool_choice="auto"
        )
    if counted is not None:
        yield counted


class _Searches:
    """Takes the events of searches out of those of a turn. `made` are their arguments; `others`: it called more."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.others = False
        self._texts: list[ContentDelta | ReasoningDelta] = []
        self._open: int | None = None
        self._arguments: list[str] = []

    def said(self) -> list[Item]:
        """What the model wrote beside its calls, as items."""
        items: list[Item] = []
        for kind, events in groupby(self._texts, type):
            text = "".join(event.text for event in events)
            if text.strip():
                items.append(Reasoning(text) if kind is ReasoningDelta else Message("assistant", (TextPart(text),)))
        return items

    def takes(self, event: Event) -> bool:
        """Whether an event belongs to a search."""
        match event:
            case ContentDelta() | ReasoningDelta():
                self._texts.append(event)
            case CallStarted(index, name):
                self.others = self.others or name != _SEARCH
                if name == _SEARCH:
                    self._open, self._arguments = index, []
                    return True
            case ArgumentsDelta(index, text) if index == self._open:
                self._arguments.append(text)
                return True
            case CallEnded(index, complete) if index == self._open:
                if complete:
                    self.made.append("".join(self._arguments))
                self._open = None
                return True
            case Problem(call=int(index)) if index == self._open:
                return True
        return False


def _query(arguments: str) -> str:
    try:
        value = decode(arguments)
    except NotJsonError:
        return arguments
    return str(value.get("query", "")) if isinstance(value, dict) else arguments


def _found(asked: Asked, query: str) -> list[str]:
    """The names of the tools that a search finds; the model may call them from now on."""
    names = [tool.name for tool in search_tools(asked.offer.searchable, query)]
    for name in names:
        asked.offer.show(name)
    return names


def _items(asked: Asked, query: str, found: Sequence[str]) -> tuple[ServerItem, ServerItem]:
    """A search as items: the call, and the tools that it found."""
    common = {"execution": "server", "call_id": None, "status": "completed"}
    call = ServerItem("tsc", {"type": "tool_search_call", **common, "arguments": {"query": query}})
    tools = [asked.offer.given(name) for name in found]
    return call, ServerItem("tso", {"type": "tool_search_output", **common, "tools": tools})


def _told(before: Sequence[Item], query: str, found: Sequence[str]) -> tuple[Item, Item]:
    """A search as the model is shown it, now and, made of its items, in every later turn."""
    made = sum(isinstance(item, Call) and item.name == _SEARCH for item in before)
    call = Call(_SEARCH, encode({"query": query}).decode(), id=search_id(made))
    return call, CallOutput(call.id, (TextPart(found_words(found)),))
