"""HTTP to model servers: a connection pool for each, server-sent events, and failures as errors that name the server.

Knows no API beyond the path: an `EventReader` turns events into deltas.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar, TypeVarTuple

from msgspec import Struct

from callwright.errors import RequestError, UpstreamError
from callwright.settings import bounds
from callwright.settings.bounds import Bounds
from callwright.tolerant_json.codec import NotJsonError, encode
from callwright.upstreams.answers import UnreadableError, is_unfinished, read_json
from callwright.upstreams.base_urls import without_credentials
from callwright.upstreams.faults import FAILURES
from callwright.upstreams.http_client.connections import Connections, Timeouts
from callwright.upstreams.http_client.errors import TooSlowError
from callwright.upstreams.http_client.response import AT_ONCE, Response, whole
from callwright.upstreams.received import Tell
from callwright.upstreams.refusals import reported
from callwright.upstreams.repeated_events import RepeatedEvents
from callwright.upstreams.server_errors import ServerErrors
from callwright.upstreams.sse_lines import ErrorData, SseLines, TooLongLineError

__all__ = [
    "EventReader",
    "HttpUpstream",
    "Timeouts",
]

T = TypeVar("T")
D = TypeVar("D")
R = TypeVar("R")
Given = TypeVarTuple("Given")

_MAX_ERROR_BYTES = 1_048_576  # some errors quote the model's output
# An event of at least this size is decoded in a thread. The decoder itself holds the GIL, but the code around it does
# not.
_LARGE = 1_048_576
# How long a finished stream may take to close, so that its connection can be used again.
_CLOSING_S = 0.2
# Redirects are not followed: prompts and keys go only to the server that is configured.
_REDIRECTS = 300
_LISTING_S = 5.0
_MAX_SHOWN = 500  # bytes
# Bytes that distinguish events from JSON, and how either begins.
_SNIFFED = 8
_EVENTS_BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:").match
_JSON_BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?\s*[{\[]").match
_NO_REASON = "answered without saying why its model stopped (no `finish_reason`)"
_EVENTS = "text/event-stream"
_JSON = "application/json"


class _Model(Struct):
    id: str
    max_model_len: Any = None  # vLLM, SGLang
    context_length: Any = None  # LM Studio and others
    meta: Any = None  # llama.cpp
    owned_by: Any = None

    @property
    def window(self) -> int | None:
        """The context window, by whichever name this server has for it."""
        meta = self.meta if isinstance(self.meta, dict) else {}
        told = (self.max_model_len, self.context_length, meta.get("n_ctx"), meta.get("n_ctx_train"))
        return next((size for size in told if type(size) is int and size > 0), None)


class _ModelList(Struct):
    data: list[_Model]


class EventReader(Protocol[T, D]):
    """Reads the events of one answer, each decoded as a `kind`. `has_stopped`: a finish reason has arrived.

    A `mark` of the kind appears in each event of an answer: an event with a message instead is an error.
    """

    kind: type[T]
    has_stopped: bool

    @property
    def tell(self) -> Tell | None:
        """Reports deviations in an answer; None if an answer must match its API exactly."""
        ...

    def read(self, event: T, deltas: list[D]) -> None:
        """Append the deltas of an event."""
        ...

    def marked_over(self) -> None:
        """Note the end mark of the stream."""
        ...


class HttpUpstream:
    """The connections to one server. `headers` are sent with every request; keys in them never show up in errors."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.name = without_credentials(self.url)
        self._timeouts = timeouts or Timeouts()
        self._errors = ServerErrors(self.url, headers or {}, self._timeouts.connect_s)
        self._limits = bounds or Bounds()
        self._windows: dict[str, int] = {}
        self._owner: Any = None  # of the first model that is listed, which is the server's name for some
        usual = {"content-type": "application/json", "accept": "text/event-stream"}
        self._connections = Connections({**usual, **(headers or {})}, self._timeouts)

    async def open(self) -> None:
        """Nothing to do: connections are opened when they are needed."""

    async def models(self) -> list[str]:
        """The models that `GET /models` lists. Raises `UpstreamError` if the server answers anything else."""
        body = await self._page(self.url, "/models")
        try:
            listed = read_json(body, _ModelList, bounds.MAX_ANSWER_VALUES).data
        except NotJsonError as error:
            raise self._errors.lied(f"answered no list of models ({error})", body[:_MAX_SHOWN]) from error
        except UnreadableError as error:
            raise self._errors.failed(str(error), "protocol") from error
        self._windows = {model.id: window for model in listed if (window := model.window) is not None}
        self._owner = listed[0].owned_by if listed else None
        return [model.id for model in listed]

    async def _page(self, base: str, path: str) -> bytes | bytearray:
        """What `GET` answers. Raises `UpstreamError`."""
        try:
            # One time limit for the request, including a new connection if the server had closed the pooled one.
            async with asyncio.timeout(_LISTING_S):
                response = await self._connections.send("GET", base + path, None, None, _LISTING_S)
                async with response:
                    if response.status >= _REDIRECTS:
                        told = self._errors.clip_message(reported(await self._error_body(response)).words)
                        raise self._errors.answered(response, path, told)
                    return await whole(response, self._limits.max_answer_bytes, _LISTING_S)
        except FAILURES as error:
            raise self._errors.for_failure(error, _LISTING_S) from error

    def window(self, model: str) -> int | None:
        """See `Upstream`. A server that names its only model otherwise means that one."""
        return self._windows.get(model, next(iter(self._windows.values()), None) if len(self._windows) == 1 else None)

    async def close(self) -> None:
        """Close all connections."""
        await self._connections.close()

    async def events(
        self,
        path: str,
        body: Mapping[str, Any],
        reader: EventReader[T, D],
        headers: Mapping[str, str] | None = None,
        instead: Callable[[RequestError | UpstreamError], AsyncGenerator[Sequence[D], None] | None] = lambda _: None,
    ) -> AsyncGenerator[Sequence[D], None]:
        """POST, and yield the deltas of each event, in batches of those that arrived together.

        A server that does not stream gives one event, its whole answer. The stream ends at `data: [DONE]`, or when the
        server closes it. Raises `UpstreamError` if that was before a finish reason, and for any other failure, unless
        there is something to answer `instead`.
        """
        streams = bool(body.get("stream"))
        silent_s = self._timeouts.idle_s if streams else self._timeouts.whole_s
        with _Failures(self._errors, silent_s, instead) as failed:
            sent = await self._connections.send(
                "POST", self.url + path, encode(body), headers, silent_s, wants_all=not streams
            )
            async with sent as response:
                chunk, is_stream = await self._begin(response, path, body, reader)
                if not is_stream:
                    yield await self._whole(response, chunk, reader, silent_s)
                    if reader.has_stopped:
                        return
                    raise self._errors.failed(_NO_REASON, "protocol")
                lines, begun_s = SseLines(bounds.MAX_EVENT_BYTES), 0.0
                known = RepeatedEvents(partial(self._deltas_of, reader))
                while chunk:
                    for part in (chunk,) if len(chunk) <= AT_ONCE else _parts(chunk):
                        if lines.held > _LARGE:
                            read, failure = await asyncio.to_thread(self._read, lines, part, reader, known)
                        else:
                            read, failure = self._read(lines, part, reader, known)
                        if read:
                            yield read
                        if failure is not None:
                            raise failure
                        begun_s = _begun_in_time(begun_s, silent_s) if lines.held else 0.0
                        if part is not chunk:
                            await asyncio.sleep(0)
                    chunk = b"" if lines.is_over else await anext(response, b"")
                if lines.is_over:
                    response.leave(_CLOSING_S)
                    reader.marked_over()
                else:
                    async for batch in self._last_events(response, lines, reader):
                        yield batch
            if not reader.has_stopped:
                raise self.cut()
        if failed.other is not None:
            async for later in _closed_at_end(failed.other):
                yield later

    async def _begin(
        self, response: Response, path: str, body: Mapping[str, Any], reader: EventReader[T, D]
    ) -> tuple[bytes, bool]:
        """The first bytes of an answer, if it may be a stream, and whether it is one. Raises `UpstreamError` for a
        refusal.
        """
        if response.status >= _REDIRECTS:
            refusal = await self._error_body(response)
            raise self._errors.refused(response, refusal, path, body.get("model"))
        response.most = self._limits.max_answer_bytes
        if body.get("stream") or response.content_type != _JSON:
            return await _sniffed(response, reader.tell)
        return b"", False

    async def _last_events(
        self, response: Response, lines: SseLines, reader: EventReader[T, D]
    ) -> AsyncGenerator[list[D], None]:
        """The last events of a stream without an end mark, and the error that broke it off."""
        broken = response.broken
        for data in lines.finish():
            read: list[D] = []
            reader.read(await _beside(len(data), self._last, data, reader, broken), read)
            if read:
                yield read
        if lines.is_over:
            reader.marked_over()
        elif broken is not None:
            raise broken

    async def _whole(self, response: Response, first: bytes, reader: EventReader[T, D], silent_s: float) -> list[D]:
        """The deltas of an answer that is not streamed and begins with `first`."""
        if response.content_type != _JSON and not _JSON_BEGIN(first):
            what = f"answered {response.content_type}, and neither events nor JSON"
            raise self._errors.lied(what, first + await self._error_body(response))
        rest = await whole(response, self._limits.max_answer_bytes, silent_s)
        answer = first + rest if first else rest
        read: list[D] = []
        reader.read(await _beside(len(answer), self._last, answer, reader, None), read)
        if not (read or reader.has_stopped):
            raise self._errors.failed(_NO_REASON, "protocol")
        return read

    async def _error_body(self, response: Response) -> bytes | bytearray:
        """The body of an error, up to the size that is used."""
        most = min(_MAX_ERROR_BYTES, self._limits.max_answer_bytes)
        return await whole(response, most, self._timeouts.idle_s, cut=True)

    def cut(self) -> UpstreamError:
        """The error for a stream that ended before a finish reason."""
        return self._errors.failed("ended its stream in the middle of the answer", "cut")

    def _deltas_of(self, reader: EventReader[T, D], data: bytes) -> list[D]:
        deltas: list[D] = []
        reader.read(read_json(data, reader.kind, bounds.MAX_ANSWER_VALUES, reader.tell), deltas)
        return deltas

    def _read(
        self, lines: SseLines, chunk: bytes, reader: EventReader[T, D], known: RepeatedEvents[D]
    ) -> tuple[list[D], Exception | None]:
        """The events in a chunk up to the first invalid one, and its error."""
        read: list[D] = []
        kind, most = reader.kind, bounds.MAX_ANSWER_VALUES
        mark: bytes = getattr(kind, "mark", b"")
        too_large: TooLongLineError | None = None
        try:
            batch = lines.feed(chunk)
        except TooLongLineError as error:
            batch, too_large = error.before, error
        try:
            for data in batch:
                repeated = known.maybe(data)
                if repeated is not None:
                    read.append(repeated)
                    continue
                before = len(read)
                if mark not in data or b'"error"' in data or type(data) is ErrorData:
                    self._heed(data, reader, read, mark)
                else:
                    reader.read(read_json(data, kind, most, reader.tell), read)
                known.learn(data, read[before:])
        except NotJsonError as error:
            return read, self._errors.unknown(error, data)
        except UnreadableError as error:
            return read, self._errors.failed(str(error), "protocol")
        except (RequestError, UpstreamError) as error:
            return read, error
        return read, self._errors.lied(f"sent {too_large}", too_large.shown) if too_large else None

    def _heed(self, data: bytes, reader: EventReader[T, D], read: list[D], mark: bytes) -> None:
        """Read an event that may be an error. If it also has a part of the answer, that is read first."""
        failure = self._errors.maybe_reported(data, reader.kind, bounds.MAX_ANSWER_VALUES)
        if failure is None:
            reader.read(self._read_answer(data, reader), read)
            return
        if mark and mark in data:
            with suppress(UpstreamError, UnreadableError):  # the error is more informative
                reader.read(self._read_answer(data, reader), read)
        raise failure

    def _read_answer(self, data: bytes | bytearray, reader: EventReader[T, D]) -> T:
        try:
            return read_json(data, reader.kind, bounds.MAX_ANSWER_VALUES, reader.tell)
        except NotJsonError as error:
            raise self._errors.unknown(error, data) from error

    def _last(self, data: bytes | bytearray, reader: EventReader[T, D], broken: Exception | None) -> T:
        """The last event, or a whole answer; if incomplete, it was cut off. `broken`: the cause."""
        if failure := self._errors.maybe_reported(data, reader.kind, bounds.MAX_ANSWER_VALUES):
            raise failure
        try:
            return self._read_answer(data, reader)
        except UpstreamError as error:
            if error.fault == "protocol" and is_unfinished(data):
                raise broken or self.cut()  # noqa: B904  # its cause is what it has
            raise


async def _sniffed(response: Response, tell: Tell | None) -> tuple[bytes, bool]:
    """The first bytes of a body, and whether it is a stream of events.

    If the content type is neither events nor JSON, or the wrong one of the two, the first bytes decide.
    """
    said = response.content_type == _EVENTS
    first = b""
    while len(first.lstrip()) < _SNIFFED and (piece := await anext(response, b"")):
        first += piece
        if said and not _JSON_BEGIN(first):
            return first, True
    is_stream = _EVENTS_BEGIN(first) is not None or (said and not _JSON_BEGIN(first))
    if tell is not None and first.strip() and is_stream != said:
        tell("an answer under a wrong label, read by its first bytes", response.content_type)
    return first, is_stream


async def _beside(size: int, read: Callable[[*Given], R], *given: *Given) -> R:
    """The result of `read`, in a thread if `size` is large."""
    return await asyncio.to_thread(read, *given) if size > _LARGE else read(*given)


class _Failures(Struct, Generic[D]):
    """Names the failures of a request. One with an answer `instead`, `other`, is not raised."""

    errors: ServerErrors
    silent_s: float
    instead: Callable[[RequestError | UpstreamError], AsyncGenerator[Sequence[D], None] | None]
    other: AsyncGenerator[Sequence[D], None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, RequestError | UpstreamError):
            self.other = self.instead(error)
            return self.other is not None
        if isinstance(error, FAILURES):
            raise self.errors.for_failure(error, self.silent_s) from error
        return False


async def _closed_at_end(batches: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    async with aclosing(batches):
        async for batch in batches:
            yield batch


def _begun_in_time(begun_s: float, most_s: float) -> float:
    """When the event began that is not complete: `begun_s`, or now. Raises `TooSlowError` after `most_s` seconds."""
    now_s = asyncio.get_running_loop().time()
    if begun_s and now_s - begun_s > most_s:
        raise TooSlowError
    return begun_s or now_s


def _parts(chunk: bytes) -> Sequence[bytes]:
    """A long chunk in several pieces."""
    return [chunk[at : at + AT_ONCE] for at in range(0, len(chunk), AT_ONCE)]
