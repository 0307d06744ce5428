"""What a turn can bring beside the events of its model: whole items, and calls that are run here."""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, structs

from callwright.events import Event, Usage
from callwright.wire.responses.event_types import ItemEvent
from callwright.wire.responses.mcp import McpEnded, McpStarted
from callwright.wire.responses.output_types import OutputItem

__all__ = ["ServerItem", "TurnEvent", "TurnEvents"]


class ServerItem(Struct, frozen=True):
    """An output item that this server made, and the prefix of the id that it gets. `steps` are the events between its
    begin, where it has the fields of `empty`, and its end.
    """

    prefix: str
    made: OutputItem
    steps: tuple[type[ItemEvent], ...] = ()
    empty: dict[str, Any] = {}

    def item(self, new_id: Callable[[str], str]) -> OutputItem:
        """The item with an id."""
        return structs.replace(self.made, id=new_id(self.prefix))


TurnEvent: TypeAlias = Event | ServerItem | McpStarted | McpEnded | Usage
TurnEvents: TypeAlias = AsyncGenerator[Sequence[TurnEvent], None]  # in batches of what came together
