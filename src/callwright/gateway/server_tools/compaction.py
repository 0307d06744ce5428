"""Compaction of long conversations: the model writes a summary, which then replaces the conversation."""

from callwright.events import Finished
from callwright.turn.model import Model
from callwright.turn.summary import summarised
from callwright.wire.parsed_request import ParsedRequest
from callwright.wire.server_events import Compacted, TurnEvents


async def compacted(model: Model, asked: ParsedRequest, today: str) -> TurnEvents:
    """A turn whose only output is the summary. Raises `UpstreamError` if the model writes no summary."""
    summary, usage = await summarised(model, asked.conversation, asked.fields, today=today)
    yield [Compacted(summary), Finished("stop")]
    if usage is not None:
        yield [usage]
