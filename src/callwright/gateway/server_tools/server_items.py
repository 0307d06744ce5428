"""What a turn can bring beside the model's events: items made by the server, and MCP calls that run here."""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, structs

from callwright.events import Event, Usage
from callwright.wire.responses.event_types import ItemEvent
from callwright.wire.responses.mcp import McpEnded, McpStarted
from callwright.wire.responses.output_types import OutputItem

__all__ = ["ServerItem", "TurnEvent", "TurnEvents"]


class ServerItem(Struct, frozen=True):
    """An output item that this server made, with the prefix of its id.

    `steps` are the stream events between its begin and its end; at the begin it has the fields of `empty`.
    """

    prefix: str
    made: OutputItem
    steps: tuple[type[ItemEvent], ...] = ()
    empty: dict[str, Any] = {}

    def item(self, new_id: Callable[[str], str]) -> OutputItem:
        """The item, with an id."""
        return structs.replace(self.made, id=new_id(self.prefix))


TurnEvent: TypeAlias = Event | ServerItem | McpStarted | McpEnded | Usage
TurnEvents: TypeAlias = AsyncGenerator[Sequence[TurnEvent], None]  # in batches of what arrived together
