"""`GET /v1/responses/{id}?stream=true`: a response as a stream, once more or from a place on.

What this process makes in the background, or has made a while ago, has the events and the numbers that it had before.
Any other response is told from what is stored, each text in one piece; one that another process makes is waited for.
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
from callwright.wire.sse import DONE, named

_ASKED_EVERY_S = 1.0


def asked_stream(query: Mapping[str, str]) -> int | None:
    """Behind which event a stream is to begin, -1 for all of it; None where no stream is asked for.

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
    """The events that are kept behind this number, and those that come. Raises `RequestError` if some were let go."""
    if after + 1 < log.first:
        raise not_kept(id_, after, log.first)
    told = after

    async def stream() -> AsyncGenerator[list[bytes], None]:
        nonlocal told
        async for batch in log.read(after):
            told += len(batch)
            yield batch
        if told + 1 < log.first:  # a slow reader, for whom not all was kept
            error = not_kept(id_, told, log.first)
            yield [_numbered({"type": "error", "code": error.code, "message": error.message, "param": None}, told + 1)]
        elif flavour == "open_responses":
            yield [DONE]

    def beat() -> bytes:
        return _numbered({"type": "keepalive"}, max(told, 0))  # nobody else sees it: it has no number of its own

    return EventStream(stream(), AsWritten(beat))


def stored_stream(
    stored: StoredResponse,
    read: Callable[[], Awaitable[StoredResponse | None]],
    after: int,
    flavour: ApiDialect,
) -> Response:
    """The events of what is stored; `read` reads it again, as long as it has not ended. Raises `RequestError` where not
    all are wanted: only who has made it knows its numbers.
    """
    if after >= 0:
        raise not_kept(stored.id, after, None)
    numbers = itertools.count()

    def written(events: Iterable[Replayed]) -> list[bytes]:
        return [_numbered(event, next(numbers)) for event in events]

    async def stream() -> AsyncGenerator[list[bytes], None]:
        yield written(replayed_begin(stored.body))
        found: StoredResponse | None = stored
        while found is not None and found.body["status"] not in ENDED:
            await asyncio.sleep(_ASKED_EVERY_S)
            found = await read()
        if found is None:
            gone = f"Response with id '{stored.id}' was deleted."
            yield written([{"type": "error", "code": None, "message": gone, "param": None}])
            return
        yield written(replayed_rest(found.body, found.output, flavour))
        if flavour == "open_responses":
            yield [DONE]

    def beat() -> bytes:
        return written(replayed_begin(stored.body)[1:])[0]

    return EventStream(stream(), AsWritten(beat))


def _numbered(event: Replayed, number: int) -> bytes:
    kind = str(event["type"])
    return named(kind, encode({"type": kind, "sequence_number": number, **event}))
