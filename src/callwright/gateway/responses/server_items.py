"""What a turn can bring beside the events of its model: whole items, and calls that are run here."""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from callwright.events import Event, Usage
from callwright.wire.responses.mcp import McpEnded, McpStarted

__all__ = ["ServerItem", "TurnEvent", "TurnEvents"]


class ServerItem(Struct, frozen=True):
    """An output item that this server made: its fields, and the prefix of its id. `steps` are the types of the events
    between its begin, where it has the fields of `empty`, and its end.
    """

    prefix: str
    fields: dict[str, Any]
    steps: tuple[str, ...] = ()
    empty: dict[str, Any] = {}

    def item(self, new_id: Callable[[str], str]) -> dict[str, Any]:
        """The item with an id."""
        return {"id": new_id(self.prefix), **self.fields}


TurnEvent: TypeAlias = Event | ServerItem | McpStarted | McpEnded | Usage
TurnEvents: TypeAlias = AsyncGenerator[Sequence[TurnEvent], None]  # in batches of what came together
