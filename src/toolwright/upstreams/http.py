"""HTTP to model servers: one pool of connections each, server-sent events in, failures named.

Every answer is asked for as a stream, also for clients that want it whole: only then is the text of a generation
that ends in a server's error not lost.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from io import BytesIO
from typing import Any, TypeVar

import aiohttp
from msgspec import Struct

from toolwright.errors import RequestError, UpstreamError
from toolwright.jsontext import NotJsonError, decode, encode

__all__ = ["HttpUpstream", "Timeouts"]

T = TypeVar("T")

# A server that sends more than this without a line end does not speak server-sent events.
_MAX_LINE_BYTES = 16_777_216
_MAX_ERROR_BYTES = 65_536
_MAX_TOLD = 500
# How long a finished stream may take to close, so that its connection can be used again.
_CLOSING_S = 0.2
# What a server answers when the fault is the request's own, not its.
_CALLERS_FAULT = (400, 413, 422)
_NO_ACCESS = (401, 403)
_NOT_FOUND = 404
_SECRET = 6  # header values from this length on are never told


class Timeouts(Struct, frozen=True):
    """Seconds to wait for a connection, and between two pieces of an answer."""

    connect_s: float = 10.0
    idle_s: float = 300.0


class _Failure(Struct):
    error: Any = None


class HttpUpstream:
    """The connections to one server. `headers` go with every request; keys among them are never shown."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, timeouts: Timeouts | None = None) -> None:
        self.url = url.rstrip("/")
        self.name = re.sub(r"//[^/@]*@", "//", self.url)
        self._headers = dict(headers or {})
        values = [part for value in self._headers.values() for part in value.split()]
        self._secrets = [value for value in values if len(value) >= _SECRET and value != "Bearer"]
        self._timeouts = timeouts or Timeouts()
        self._session: aiohttp.ClientSession | None = None

    async def models(self) -> list[str]:
        """What `GET /models` lists; nothing when the server does not answer it."""
        try:
            async with self._client().get(f"{self.url}/models", timeout=aiohttp.ClientTimeout(total=5)) as response:
                listed = decode(await response.read())
            return [model["id"] for model in listed["data"]]
        except (aiohttp.ClientError, TimeoutError, NotJsonError, KeyError, TypeError):
            return []

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def events(self, path: str, body: Mapping[str, Any], kind: type[T]) -> AsyncGenerator[T, None]:
        """POST and answer each event as a `kind`; of a server that does not stream, its whole answer as the only one.

        The stream is over at `data: [DONE]`, or when the server closes it: the caller knows whether that was too early.
        """
        try:
            # A file, because aiohttp sends that in pieces: a large body must not hold up other streams.
            async with self._client().post(self.url + path, data=BytesIO(encode(body))) as response:
                if response.status >= 400:
                    raise await self._refused(response)
                if response.content_type == "text/event-stream":
                    async with aclosing(self._read_events(response)) as events:
                        async for event in events:
                            yield self._decoded(event, kind)
                elif response.content_type == "application/json":
                    yield self._decoded(await response.read(), kind)
                else:
                    what = f"answered {response.content_type} instead of events"
                    raise self._lied(what, await response.content.read(_MAX_TOLD))
        except aiohttp.ConnectionTimeoutError as error:
            waited = f"{self._timeouts.connect_s:g} s"
            raise self._failed(f"could not be reached within {waited}", "timeout") from error
        except (aiohttp.ClientConnectorError, aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            raise self._failed(f"cannot be reached: {_reason(error)}", "unreachable") from error
        except TimeoutError as error:
            waited = f"{self._timeouts.idle_s:g} s"
            raise self._failed(f"was silent for too long (more than {waited})", "timeout") from error
        except aiohttp.ClientPayloadError as error:
            raise self._failed("closed the connection in the middle of its answer", "cut") from error
        except aiohttp.ClientError as error:
            raise self._failed(f"does not speak HTTP as expected: {_reason(error)}", "protocol") from error

    def cut(self) -> UpstreamError:
        """The error for a stream that ended before its answer did."""
        return self._failed("ended its stream in the middle of the answer", "cut")

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers={"content-type": "application/json", "accept": "text/event-stream", **self._headers},
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self._timeouts.connect_s, sock_read=self._timeouts.idle_s
                ),
            )
        return self._session

    async def _read_events(self, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
        rest = b""
        async for chunk in response.content.iter_any():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.startswith(b"data:"):
                    data = line[5:].strip()
                    if data == b"[DONE]":
                        with suppress(TimeoutError):
                            await asyncio.wait_for(response.content.readany(), _CLOSING_S)
                        return
                    yield data
            if len(rest) > _MAX_LINE_BYTES:
                raise self._lied("sent a line of more than 16 MB", rest[:_MAX_TOLD])
        if rest.startswith(b"data:") and rest[5:].strip() != b"[DONE]":
            yield rest[5:].strip()

    def _decoded(self, data: bytes, kind: type[T]) -> T:
        try:
            failure = decode(data, _Failure).error if b'"error"' in data else None
            if not failure:
                return decode(data, kind)
        except NotJsonError as error:
            raise self._lied(f"sent an event that its API does not know ({error})", data[:_MAX_TOLD]) from error
        raise self._failed(f"reports an error: {self._told(failure)}", "status")

    async def _refused(self, response: aiohttp.ClientResponse) -> RequestError | UpstreamError:
        body = await response.content.read(_MAX_ERROR_BYTES)
        status = response.status
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        failure = answer.get("error", answer) if isinstance(answer, dict) else answer
        code = failure.get("code") if isinstance(failure, dict) else None
        told = self._told(_plain(body) if answer is None else failure)
        if status in _NO_ACCESS:
            return self._status_error(f"refused the gateway's credentials (HTTP {status}): {told}", response)
        if answer is None:
            return self._status_error(f"answered {status}: {told}", response)
        if status in _CALLERS_FAULT:
            return RequestError(told, code=code if isinstance(code, str) else None, status=400)
        if status == _NOT_FOUND and isinstance(answer, dict) and "error" in answer:
            return RequestError(told, param="model", code="model_not_found", status=status)
        return self._status_error(f"answered {status}: {told}", response)

    def _status_error(self, what: str, response: aiohttp.ClientResponse) -> UpstreamError:
        error = self._failed(what, "status")
        error.status = response.status
        error.retry_after_s = response.headers.get("retry-after")
        return error

    def _told(self, failure: object) -> str:
        """The words of a server's error, whatever form it has, without what must not be told."""
        told = _words(failure)
        for secret in self._secrets:
            told = told.replace(secret, "…")
        return told

    def _lied(self, what: str, shown: bytes) -> UpstreamError:
        return self._failed(f"{what}: {self._told(_plain(shown))}", "protocol")

    def _failed(self, what: str, fault: Any) -> UpstreamError:
        return UpstreamError(f"The upstream at {self.name} {what}.", fault=fault, upstream=self.name)


def _words(failure: object) -> str:
    if isinstance(failure, dict):
        if "msg" in failure and "loc" in failure:  # pydantic's form
            return f"{'.'.join(map(str, failure['loc']))}: {failure['msg']}"
        for key in ("message", "detail", "error"):
            if failure.get(key):
                return _words(failure[key])
    if isinstance(failure, list):
        return "; ".join(map(_words, failure))[:_MAX_TOLD]
    return str(failure).strip().rstrip(".")[:_MAX_TOLD]


def _plain(body: bytes) -> str:
    """Readable text of a body that is no JSON: without its HTML tags."""
    text = re.sub(r"<[^>]{0,200}>", " ", body.decode(errors="replace"))
    return " ".join(text.split())[:_MAX_TOLD] or "(nothing)"


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
