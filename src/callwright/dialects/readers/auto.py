"""Reads an output whose format is not known: the markup that stands in it tells which one it is."""

from collections.abc import Iterator
from typing import Final

import msgspec

from callwright.calls.toolset import Toolset
from callwright.dialects.readers.foreign import OPENINGS, read_as, valid_calls
from callwright.events import Event, Problem
from callwright.stream_reader import Parse, StreamReader

__all__ = ["AutoReader"]

# What tells a format but may mean other things, too, so that it is looked for only where none is named.
_HINTS: Final = {
    "<rfl:": "beam",
    "<atem:": "muse",
    "<|channel|>": "harmony",
    "<|start|>assistant": "harmony",
    "<|open|>": "kimi_k3",
    "<|content_invoke_tool_json|>": "inkling",
    "Action:": "cohere_command_r",
    "(": "pythonic",
    "\n{": "functionary_v32",
}
_PLAIN: Final = "json"


class AutoReader(msgspec.Struct, frozen=True):
    """Holds an output to its end, then reads it as the dialect whose markup it holds; as plain JSON calls if none."""

    def parse(self, source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
        """See `CallFormat`."""
        pieces: list[str] = []
        while True:
            pieces.append(source.take(len(source.text)))
            if source.ended:
                break
            yield
        text = "".join(pieces)
        best: list[Event] = []
        for name in _candidates(text):
            events = read_as(text, name, start, tools)
            if not best or _worth(events, tools) > _worth(best, tools):
                best = events
        for event in best:
            source.emit(event)


def _candidates(text: str) -> Iterator[str]:
    """The dialects whose markup stands in a text, in the order in which it does; the plain one is the last."""
    found = sorted((at, mark) for mark in OPENINGS if (at := text.find(mark)) >= 0)
    names = [name for _, mark in found for name in OPENINGS[mark]]
    yield from dict.fromkeys([*names, *(name for mark, name in _HINTS.items() if mark in text), _PLAIN])


def _worth(events: list[Event], tools: Toolset) -> tuple[int, int]:
    """How well a reading went: the calls that hold, and the problems, of which less is more."""
    return len(valid_calls(events, tools)), -sum(isinstance(event, Problem) for event in events)
