"""Server-sent events, written so that every reader bears them: one event, one write."""

__all__ = ["DONE", "HEADERS", "comment", "data", "named"]

HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}
DONE = b"data: [DONE]\n\n"


def data(json_text: bytes) -> bytes:
    """One event without a type."""
    return b"data: " + json_text + b"\n\n"


def named(kind: str, json_text: bytes) -> bytes:
    """One event with its type."""
    return b"event: " + kind.encode() + b"\ndata: " + json_text + b"\n\n"


def comment(text: str) -> bytes:
    """A line that readers pass over."""
    return f": {text}\n\n".encode()
