"""HTTP to model servers: a connection pool for each, server-sent events, and failures as errors that name the server.

Knows no API beyond the path: an `EventReader` turns events into deltas.
"""

import asyncio
import os
import re
import socket
from base64 import b64encode
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from io import BytesIO
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

import aiohttp
from msgspec import Struct

from callwright.errors import RequestError, UpstreamError
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.upstreams.sse_lines import SseLines, TooLongLineError

__all__ = [
    "EventReader",
    "HttpUpstream",
    "Timeouts",
    "credentials_in",
    "maybe_too_long",
    "no_connection",
    "told_error",
    "without_credentials",
]

T = TypeVar("T")
D = TypeVar("D")

_MAX_ERROR_BYTES = 1_048_576  # some errors quote the model's output
_MAX_TOLD = 500
_SMALL_BYTES = 65_536
# How long a finished stream may take to close, so that its connection can be used again.
_CLOSING_S = 0.2
# Statuses that blame the request.
_CALLERS_FAULT = (400, 413, 422)
# How servers say that a conversation is too long: OpenAI's code; the words of vLLM, SGLang, llama.cpp, LM Studio.
_TOO_LONG = "context_length_exceeded"
_TOO_LONG_WORDS = re.compile(
    r"maximum context length|model's context length|context window|available context size"
    r"|Context size has been exceeded|greater than the context length|context the overflows"
)
# Redirects are not followed: prompts and keys go only to the server that is configured.
_REDIRECTS = 300
_REFUSALS = 400
_NO_ACCESS = (401, 403)
_NOT_FOUND = 404
_NOT_HERE = (_NOT_FOUND, 405)
_SECRET = 6  # header values from this length on are cut out of error messages
_LISTING_S = 5.0
# Paths of OpenAI's API below `/v1`.
_BELOW_V1 = ("/chat/completions", "/completions", "/models")


class Timeouts(Struct, frozen=True):
    """Seconds to wait for a connection, and between two reads of a streamed answer. An answer that is not streamed may
    take twice as long as such a pause.
    """

    connect_s: float = 10.0
    idle_s: float = 300.0

    @property
    def whole_s(self) -> float:
        """Seconds to wait for an answer that is not streamed."""
        return 2 * self.idle_s


class _Way(Struct):
    """How a request goes out. `is_new`: over a fresh connection, not one that was kept alive."""

    is_new: bool = False


# For the request that is being sent. A context variable, as aiohttp may open the socket in a task of its own.
_sending: ContextVar[_Way | None] = ContextVar("callwright_sending", default=None)


@cache
def _patience(connect_s: float, silent_s: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, sock_connect=connect_s, sock_read=silent_s)


def _new_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    if (way := _sending.get()) is not None:
        way.is_new = True
    family, kind, protocol, *_ = address
    return socket.socket(family, kind, protocol)


class _Failure(Struct):
    error: Any = None


class _Model(Struct):
    id: str


class _ModelList(Struct):
    data: list[_Model]


def without_credentials(url: str) -> str:
    """The URL without user and password, to be shown."""
    return re.sub(r"//[^/@]*@", "//", url)


def credentials_in(url: str) -> list[str]:
    """The secrets of a URL: its password, and the form it has in a basic authentication header."""
    parts = urlsplit(url)
    if not parts.password:
        return []
    user, password = unquote(parts.username or ""), unquote(parts.password)
    return [password, parts.password, b64encode(f"{user}:{password}".encode()).decode()]


def told_error(body: bytes) -> str:
    """The message in an error's body, whatever form a server gave it."""
    return _words(_error_of(body))


class EventReader(Protocol[T, D]):
    """Reads the events of one answer, each decoded as a `kind`. `has_stopped`: a finish reason has come."""

    kind: type[T]
    has_stopped: bool

    def read(self, event: T, deltas: list[D]) -> None:
        """Append the deltas of an event."""
        ...


class HttpUpstream:
    """The connections to one server. `headers` are sent with every request; keys in them never show up in errors."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, timeouts: Timeouts | None = None) -> None:
        self.url = url.rstrip("/")
        self.name = without_credentials(self.url)
        self._headers = dict(headers or {})
        values = [part for value in self._headers.values() for part in value.split()]
        values += credentials_in(self.url)
        self._secrets = [value for value in values if len(value) >= _SECRET and value != "Bearer"]
        self._timeouts = timeouts or Timeouts()
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Nothing to do: connections are opened when they are needed."""

    async def models(self) -> list[str]:
        """The models that `GET /models` lists. Raises `UpstreamError` if the server answers anything else."""
        path = "/models"
        timeout = aiohttp.ClientTimeout(total=_LISTING_S)
        with self._named_failures(_LISTING_S):
            async with self._client().get(self.url + path, timeout=timeout, allow_redirects=False) as response:
                body = await response.read()
                if response.status >= _REDIRECTS:
                    raise self._answered(response, path, self._told(_error_of(body)))
        try:
            return [model.id for model in decode(body, _ModelList).data]
        except NotJsonError as error:
            raise self._lied(f"answered no list of models ({error})", body[:_MAX_TOLD]) from error

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def events(
        self, path: str, body: Mapping[str, Any], reader: EventReader[T, D], headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[list[D], None]:
        """POST and answer what `reader` makes of each event, in batches of what came together; a server that does not
        stream gives one event, its whole answer.

        The stream is over at `data: [DONE]`, or when the server closes it. Raises `UpstreamError` where that was before
        the answer had stopped, and for all else that goes wrong.
        """
        silent_s = self._timeouts.idle_s if body.get("stream") else self._timeouts.whole_s
        with self._named_failures(silent_s):
            async with await self._posted(path, encode(body), headers, silent_s) as response:
                if response.status >= _REDIRECTS:
                    raise await self._refused(response, path, body.get("model"))
                if response.content_type == "text/event-stream":
                    lines = SseLines()
                    async for chunk in response.content.iter_any():
                        read, failure = self._read(lines, chunk, reader)
                        if read:
                            yield read
                        if failure is not None:
                            raise failure
                        if lines.is_over:
                            with suppress(TimeoutError):
                                await asyncio.wait_for(response.content.readany(), _CLOSING_S)
                            break
                    for data in lines.finish():
                        last: list[D] = []
                        reader.read(self._decoded(data, reader.kind), last)
                        yield last
                elif response.content_type == "application/json":
                    whole: list[D] = []
                    reader.read(self._decoded(await response.read(), reader.kind), whole)
                    yield whole
                else:
                    what = f"answered {response.content_type} instead of events"
                    raise self._lied(what, await response.content.read(_MAX_TOLD))
        if not reader.has_stopped:
            raise self.cut()

    async def _posted(
        self, path: str, body: bytes, headers: Mapping[str, str] | None, silent_s: float
    ) -> aiohttp.ClientResponse:
        """The response to a POST, sent once more if a kept-alive connection turns out to be closed.

        Servers close such a connection without notice, as llama.cpp does behind some answers. A request that ends
        without a byte on one was not processed.
        """
        way = _Way()
        token = _sending.set(way)
        try:
            return await self._post(path, body, headers, silent_s)
        except aiohttp.ClientConnectorError:  # there never was a connection
            raise
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            if way.is_new:
                raise
            return await self._post(path, body, headers, silent_s)
        finally:
            _sending.reset(token)

    async def _post(
        self, path: str, body: bytes, headers: Mapping[str, str] | None, silent_s: float
    ) -> aiohttp.ClientResponse:
        return await self._client().post(
            self.url + path,
            # aiohttp sends a file in pieces, so that a large body does not block the event loop.
            data=body if len(body) <= _SMALL_BYTES else BytesIO(body),
            headers=headers,
            allow_redirects=False,
            timeout=_patience(self._timeouts.connect_s, silent_s),
        )

    def cut(self) -> UpstreamError:
        """The error for a stream that ended before a finish reason."""
        return self._failed("ended its stream in the middle of the answer", "cut")

    @contextmanager
    def _named_failures(self, idle_s: float) -> Iterator[None]:
        """Maps aiohttp's errors to an `UpstreamError` that names this server; `idle_s` is the time it may be silent."""
        try:
            yield
        except aiohttp.ConnectionTimeoutError as error:
            waited = f"{self._timeouts.connect_s:g} s"
            raise self._failed(f"could not be reached within {waited}", "unreachable") from error
        except aiohttp.ClientConnectorError as error:
            raise self._failed(f"cannot be reached: {no_connection(error)}", "unreachable") from error
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            raise self._failed(f"cannot be reached: {_reason(error)}", "unreachable") from error
        except TimeoutError as error:
            raise self._failed(f"was silent for too long (more than {idle_s:g} s)", "timeout") from error
        except aiohttp.ClientPayloadError as error:
            raise self._failed("closed the connection in the middle of its answer", "cut") from error
        except aiohttp.ClientError as error:
            raise self._failed(f"does not speak HTTP as expected: {_reason(error)}", "protocol") from error

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers={"content-type": "application/json", "accept": "text/event-stream", **self._headers},
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, socket_factory=_new_socket),
            )
        return self._session

    def _read(self, lines: SseLines, chunk: bytes, reader: EventReader[T, D]) -> tuple[list[D], Exception | None]:
        """The events in a chunk up to the first that is none, and what is wrong with that."""
        read: list[D] = []
        kind = reader.kind
        try:
            for data in lines.feed(chunk):
                reader.read(decode(data, kind) if b'"error"' not in data else self._decoded(data, kind), read)
        except NotJsonError as error:
            return read, self._lied(f"sent an event that its API does not know ({error})", data[:_MAX_TOLD])
        except TooLongLineError as error:
            return read, self._lied(f"sent {error}", error.shown)
        except (RequestError, UpstreamError) as error:
            return read, error
        return read, None

    def _decoded(self, data: bytes, kind: type[T]) -> T:
        try:
            failure = decode(data, _Failure).error if b'"error"' in data else None
            if not failure:
                return decode(data, kind)
        except NotJsonError as error:
            raise self._lied(f"sent an event that its API does not know ({error})", data[:_MAX_TOLD]) from error
        told = self._told(failure)
        if too_long := maybe_too_long(told):
            raise too_long
        reported = self._failed(f"reports an error: {told}", "status")
        reported.said = self._without_secrets(_words(failure))
        raise reported

    async def _refused(
        self, response: aiohttp.ClientResponse, path: str, model: object
    ) -> RequestError | UpstreamError:
        """The error for a status from 300 on: a `RequestError` if the request is to blame, else an `UpstreamError`."""
        failure = _error_of(await response.content.read(_MAX_ERROR_BYTES))
        told = self._told(failure)
        fields = failure if isinstance(failure, dict) else {}
        code = fields.get("code")
        if response.status in (*_CALLERS_FAULT, 500) and (code == _TOO_LONG or _TOO_LONG_WORDS.search(told)):
            return _too_long(told)
        if response.status in _CALLERS_FAULT and not isinstance(failure, _NoJson):
            return RequestError(told, code=self._told(code) if isinstance(code, str) else None, status=400)
        if response.status == _NOT_FOUND and (
            code == "model_not_found" or fields.get("param") == "model" or _names(told, model)
        ):
            return RequestError(told, param="model", code="model_not_found", status=_NOT_FOUND)
        error = self._answered(response, path, told)
        error.said = self._without_secrets(_words(failure))
        return error

    def _answered(self, response: aiohttp.ClientResponse, path: str, told: str) -> UpstreamError:
        """The `UpstreamError` for such a status."""
        what = f"answered {response.status}: {told}"
        if response.status in _NO_ACCESS:
            what = f"refused the gateway's credentials (HTTP {response.status}): {told}"
        elif response.status in _NOT_HERE or response.status < _REFUSALS:
            lacks_v1 = path in _BELOW_V1 and not self.url.endswith("/v1")
            way_out = f"Does its base URL lack the /v1, as in {self.name}/v1?" if lacks_v1 else "Is its base URL right?"
            what = f"answered {response.status} to {response.method} {path}: {told}. {way_out}"
        error = self._failed(what, "status")
        error.status = response.status
        error.retry_after_s = response.headers.get("retry-after")
        return error

    def _told(self, failure: object) -> str:
        """The first words of a server's error, without secrets."""
        return self._without_secrets(_words(failure))[:_MAX_TOLD]

    def _without_secrets(self, words: str) -> str:
        for secret in self._secrets:
            words = words.replace(secret, "…")
        return words

    def _lied(self, what: str, shown: bytes) -> UpstreamError:
        return self._failed(f"{what}: {self._told(_plain(shown))}", "protocol")

    def _failed(self, what: str, fault: Any) -> UpstreamError:
        end = "" if what.endswith("?") else "."
        return UpstreamError(f"The upstream at {self.name} {what}{end}", fault=fault, upstream=self.name)


def no_connection(error: aiohttp.ClientConnectorError) -> str:
    """Why a connection failed, in words."""
    place = f"no connection to {error.host}, port {error.port}"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"{place}: its certificate is not trusted ({error.certificate_error})"
    if isinstance(error, aiohttp.ClientSSLError):
        return f"{place}: it does not speak https:// (is it http://?)"
    reason = error.os_error
    number = reason.errno or 0  # negative if the host name cannot be resolved
    return f"{place} ({os.strerror(number) if number > 0 else reason.strerror or reason})"


def maybe_too_long(told: str) -> RequestError | None:
    """The `RequestError` for a conversation that exceeds the context window, if a server's words say so."""
    return _too_long(told) if _TOO_LONG_WORDS.search(told) else None


def _too_long(told: str) -> RequestError:
    return RequestError(
        f"Your input exceeds the context window of this model. Please adjust your input and try again. (The server "
        f"says: {told}.)",
        param="messages",
        code=_TOO_LONG,
    )


class _NoJson(str):
    """The readable text of an error body that is not JSON."""


def _error_of(body: bytes) -> object:
    """The error in a body: what is under `error`, or all of it."""
    try:
        answer = decode(body)
    except NotJsonError:
        return _NoJson(_plain(body))
    return answer.get("error", answer) if isinstance(answer, dict) else answer


def _names(told: str, model: object) -> bool:
    """Whether an error mentions this model."""
    return bool(model) and re.search(rf"(?<![\w.-]){re.escape(str(model))}(?![\w-])", told) is not None


def _words(failure: object) -> str:
    if isinstance(failure, dict):
        if "msg" in failure and "loc" in failure:  # pydantic's form
            return f"{'.'.join(map(str, failure['loc']))}: {failure['msg']}"
        for key in ("message", "detail", "error"):
            if failure.get(key):
                return _words(failure[key])
    if isinstance(failure, list):
        return "; ".join(map(_words, failure))
    return str(failure).strip().rstrip(".")


def _plain(body: bytes) -> str:
    """The readable text of a body that is not JSON, without HTML tags."""
    text = re.sub(r"<[^>]{0,200}>", " ", body.decode(errors="replace"))
    return " ".join(text.split())[:_MAX_TOLD] or "(nothing)"


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
