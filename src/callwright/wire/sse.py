"""Server-sent events, written so that every reader bears them.

Some readers lose an event of which they read the end apart from the rest. So no write cuts one, and events that come
together share a write only as far as it fits into a packet.
"""

from collections.abc import Sequence
from typing import Final

# What of a packet of 1,500 bytes is left for a body, with room for the frame of a chunk.
_PACKET_BYTES: Final = 1_400

HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}
DONE = b"data: [DONE]\n\n"


def data(json_text: bytes) -> bytes:
    """One event without a type."""
    return b"data: " + json_text + b"\n\n"


def typed_event(kind: str, json_text: bytes) -> bytes:
    """One event with its type."""
    return b"event: " + kind.encode() + b"\ndata: " + json_text + b"\n\n"


def comment(text: str) -> bytes:
    """A line that readers pass over."""
    return f": {text}\n\n".encode()


def packed(events: Sequence[bytes]) -> list[bytes]:
    """Group complete events into writes."""
    whole = b"".join(events)
    if len(whole) <= _PACKET_BYTES:
        return [whole] if whole else []
    writes: list[bytes] = []
    waiting: list[bytes] = []
    size = 0
    for event in events:
        if waiting and size + len(event) > _PACKET_BYTES:
            writes.append(b"".join(waiting))
            waiting, size = [], 0
        waiting.append(event)
        size += len(event)
    return [*writes, b"".join(waiting)] if size else writes
