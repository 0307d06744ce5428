"""`GET /v1/responses/{id}?stream=true`: a response as a stream, again or from a given event.

Background responses of this process, running or recent, have the same events and numbers as before. Any other response
is rebuilt from the store, each text in one piece; if another process is still running it, the stream waits.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping

from starlette.responses import Response

from callwright.errors import RequestError
from callwright.gateway.http import AsWritten, EventStream
from callwright.gateway.responses.event_log import EventLog, not_kept
from callwright.gateway.store.store import ENDED, StoredResponse
from callwright.tolerant_json.codec import encode
from callwright.wire.responses.replay import Replayed, replayed_begin, replayed_rest
from callwright.wire.responses.response import ApiDialect
from callwright.wire.sse import DONE, typed_event

_ASKED_EVERY_S = 1.0


def asked_stream(query: Mapping[str, str]) -> int | None:
    """The number of the event after which a stream begins, -1 for all of it; None if no stream is requested.

    Raises `RequestError` that names the field.
    """
    after = query.get("starting_after")
    wanted = query.get("stream", "false")
    if wanted not in ("true", "false"):
        raise RequestError(
            f"Invalid value: '{wanted}'. Supported values are: 'true' and 'false'.",
            param="stream",
            code="invalid_value",
        )
    if wanted == "false":
        if after is not None:
            raise RequestError(
                "The 'starting_after' parameter is only allowed when 'stream' is true.",
                param="starting_after",
                code="invalid_value",
            )
        return None
    if after is None:
        return -1
    if not (after.isascii() and after.isdigit() and len(after) < 16):
        raise RequestError(
            f"Invalid 'starting_after': expected the number of an event, but got '{after[:40]}' instead.",
            param="starting_after",
            code="invalid_value",
        )
    return int(after)


def logged_stream(id_: str, log: EventLog, after: int, flavour: ApiDialect) -> Response:
    """The buffered events after this number, and later ones. Raises `RequestError` if some were evicted."""
    if after + 1 < log.first:
        raise not_kept(id_, after, log.first)
    told = after

    async def stream() -> AsyncGenerator[list[bytes], None]:
        nonlocal told
        async for batch in log.read(after):
            told += len(batch)
            yield batch
        if told + 1 < log.first:  # a slow reader: some of its events were evicted
            error = not_kept(id_, told, log.first)
            yield [_numbered({"type": "error", "code": error.code, "message": error.message, "param": None}, told + 1)]
        elif flavour == "open_responses":
            yield [DONE]

    def beat() -> bytes:
        return _numbered({"type": "keepalive"}, max(told, 0))  # not part of the log, so it repeats the last number

    return EventStream(stream(), AsWritten(beat))


def stored_stream(
    stored: StoredResponse,
    read: Callable[[], Awaitable[StoredResponse | None]],
    after: int,
    flavour: ApiDialect,
) -> Response:
    """The events of a stored response; `read` reads it again until it has ended. Raises `RequestError` if `after` is
    set: only the process that ran the response knows its numbers.
    """
    if after >= 0:
        raise not_kept(stored.id, after, None)
    numbers = itertools.count()

    def write_events(events: Iterable[Replayed]) -> list[bytes]:
        return [_numbered(event, next(numbers)) for event in events]

    async def stream() -> AsyncGenerator[list[bytes], None]:
        yield write_events(replayed_begin(stored.body))
        found: StoredResponse | None = stored
        while found is not None and found.body["status"] not in ENDED:
            await asyncio.sleep(_ASKED_EVERY_S)
            found = await read()
        if found is None:
            gone = f"Response with id '{stored.id}' was deleted."
            yield write_events([{"type": "error", "code": None, "message": gone, "param": None}])
            return
        yield write_events(replayed_rest(found.body, found.output, flavour))
        if flavour == "open_responses":
            yield [DONE]

    def beat() -> bytes:
        return write_events(replayed_begin(stored.body)[1:])[0]

    return EventStream(stream(), AsWritten(beat))


def _numbered(event: Replayed, number: int) -> bytes:
    kind = str(event["type"])
    return typed_event(kind, encode({"type": kind, "sequence_number": number, **event}))
