"""The summary of a conversation, written by its model, to replace the conversation."""

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, Final

from callwright.conversation import Conversation, Message, TextPart
from callwright.errors import UpstreamError
from callwright.events import Event, Usage
from callwright.reading.collect import collect
from callwright.turn.model import Model
from callwright.turn.run import run_turn
from callwright.turn.streams import each

_WISH: Final = (
    "Summarise this conversation so that somebody who has not read it can go on with it. Say what was asked, what was "
    "done and found (with names, paths, numbers and exact wording where they matter), what was decided, and what is "
    "still open. Write the summary only."
)


async def summarised(
    model: Model, conversation: Conversation, fields: Mapping[str, Any], *, today: str
) -> tuple[str, Usage | None]:
    """The summary, and its token usage. Raises `UpstreamError` if the model writes none."""
    wish = Message("user", (TextPart(_WISH),))
    asked = Conversation(items=(*conversation.items, wish), tools=conversation.tools, tool_choice="none")
    kept: list[Event] = []
    usage: Usage | None = None
    fields = {key: value for key, value in fields.items() if key not in ("logprobs", "top_logprobs")}
    async with aclosing(each(run_turn(model, asked, fields, today=today, streamed=False))) as events:
        async for event in events:
            if isinstance(event, Usage):
                usage = event
            else:
                kept.append(event)
    summary = (collect(kept).content or "").strip()
    if not summary:
        raise UpstreamError("The model wrote no summary.", fault="unmet", upstream=model.upstream.name)
    return summary, usage
