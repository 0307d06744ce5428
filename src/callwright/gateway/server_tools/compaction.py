"""Compaction of long conversations: the model writes a summary, which then stands in place of the conversation."""

from contextlib import aclosing
from typing import Final

from callwright.aio import each
from callwright.collector import collect
from callwright.conversation import Conversation, Message, TextPart
from callwright.errors import UpstreamError
from callwright.events import Event, Finished, Usage
from callwright.turn.model import Model
from callwright.turn.run import run_turn
from callwright.wire.parsed_request import ParsedRequest
from callwright.wire.server_events import Compacted, TurnEvents

__all__ = ["compacted"]

_WISH: Final = (
    "Summarise this conversation so that somebody who has not read it can go on with it. Say what was asked, what was "
    "done and found (with names, paths, numbers and exact wording where they matter), what was decided, and what is "
    "still open. Write the summary only."
)


async def compacted(model: Model, asked: ParsedRequest, today: str) -> TurnEvents:
    """A turn whose only output is the summary. Raises `UpstreamError` if the model writes no summary."""
    conversation = asked.conversation
    wish = Message("user", (TextPart(_WISH),))
    conversation = Conversation(items=(*conversation.items, wish), tools=conversation.tools, tool_choice="none")
    kept: list[Event] = []
    usage: Usage | None = None
    fields = {key: value for key, value in asked.fields.items() if key not in ("logprobs", "top_logprobs")}
    async with aclosing(each(run_turn(model, conversation, fields, today=today, streamed=False))) as events:
        async for event in events:
            if isinstance(event, Usage):
                usage = event
            else:
                kept.append(event)
    summary = (collect(kept).content or "").strip()
    if not summary:
        raise UpstreamError("The model wrote no summary.", fault="unmet", upstream=model.upstream.name)
    yield [Compacted(summary), Finished("stop")]
    if usage is not None:
        yield [usage]
