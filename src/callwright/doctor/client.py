"""Requests to one server, with limits on time, bytes and parallel requests. Failures are replies, never raised."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.upstreams.base_urls import credentials_in, without_credentials
from callwright.upstreams.faults import no_connection
from callwright.upstreams.http_client.connections import Connections, Timeouts
from callwright.upstreams.http_client.errors import (
    BrokenAnswerError,
    DisconnectedError,
    HttpError,
    NoConnectionError,
    TooLargeError,
)
from callwright.upstreams.refusals import reported

# Far above any list of models or page of properties.
_MAX_BYTES: Final = 4_194_304
_AT_ONCE: Final = 4
_SHOWN: Final = 100
_SECRET: Final = 6  # values of at least this length are never shown
_NO_TIME: Final = "not asked: the time for the examination is over"


class Reply(Struct, frozen=True):
    """An answer, or the reason for its absence (`fault`; then `status` is 0). Names of headers are in lower case."""

    status: int = 0
    headers: Mapping[str, str] = {}
    body: bytes = b""
    fault: str = ""

    @property
    def json(self) -> Any:
        """The value of the body, or None if it is not JSON."""
        try:
            return decode(self.body)
        except NotJsonError:
            return None

    def without(self, secrets: Sequence[str]) -> "Reply":
        """The reply without these values in its body."""
        body = self.body
        for secret in secrets:
            body = body.replace(secret.encode(), "…".encode())
        return replace(self, body=body)

    @property
    def is_page(self) -> bool:
        """Whether it is a web page."""
        return "html" in self.headers.get("content-type", "") or self.body[:64].lstrip()[:1] == b"<"

    @property
    def summary(self) -> str:
        """The fault, or the status and the server's error message."""
        return self.fault or f"HTTP {self.status}: {clipped(reported(self.body).words)}"


class Asker:
    """Connections to the server at a URL. A request may take `request_s` seconds, all of them together `total_s`.
    `secrets` are those in the headers and the URL; `hides`: whether replies have them replaced.
    """

    def __init__(
        self, url: str, headers: Mapping[str, str], *, request_s: float, total_s: float, hides: bool = True
    ) -> None:
        self.headers = dict(headers)
        self.request_s = request_s
        self.requests = 0
        self._ends = time.monotonic() + total_s
        self._free = asyncio.Semaphore(_AT_ONCE)
        values = [part for value in headers.values() for part in value.split()]
        values += credentials_in(url)
        self.secrets = tuple(value for value in values if len(value) >= _SECRET and value != "Bearer")
        self._hides = hides
        # A connection for each request: the server may close an idle one just when the next request is sent.
        self._connections = Connections(self.headers, Timeouts(2 * request_s), keep=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._connections.close()

    @property
    def left_s(self) -> float:
        """The seconds that one more request may take."""
        return min(self.request_s, self._ends - time.monotonic())

    async def get(self, url: str) -> Reply:
        """GET."""
        return await self._ask("GET", url, None)

    async def post(self, url: str, body: Mapping[str, Any] | bytes, headers: Mapping[str, str] | None = None) -> Reply:
        """POST a JSON object, or bytes as they are. `headers`: further ones of this request."""
        return await self._ask("POST", url, body if isinstance(body, bytes) else encode(body), headers)

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None, None]:
        """Slot for a request made by other means: waits until one is free, raises `TimeoutError` on timeout."""
        async with self._free:
            self.requests += 1
            async with asyncio.timeout(max(0.0, self.left_s)):
                yield

    async def _ask(self, method: str, url: str, data: bytes | None, more: Mapping[str, str] | None = None) -> Reply:
        async with self._free:
            left_s = self.left_s
            if left_s <= 0:
                return Reply(fault=_NO_TIME)
            self.requests += 1
            headers = {"content-type": "application/json", **(more or {})} if data is not None else {}
            body, response = bytearray(), None
            try:
                async with asyncio.timeout(left_s):
                    async with await self._connections.send(method, url, data, headers, 2 * left_s) as response:
                        response.most = _MAX_BYTES
                        async for piece in response:
                            body += piece
            except TimeoutError:
                if response is None:
                    return Reply(fault=f"silent for {left_s:.3g} s")
                endless = f"an answer without an end ({len(body):,} bytes in {left_s:.3g} s)"
                return Reply(0, response.headers, bytes(body), endless)
            except (HttpError, OSError, ValueError) as error:
                return Reply(fault=_fault(error))
            if isinstance(response.broken, TooLargeError):
                return Reply(0, response.headers, bytes(body), str(response.broken))
            if response.broken is not None:
                return Reply(0, response.headers, bytes(body), _fault(response.broken))
            reply = Reply(response.status, response.headers, bytes(body))
            return reply.without(self.secrets) if self._hides else reply


def dig(value: object, *path: str | int) -> Any:
    """The value at a path of keys and indices, or None if the path does not exist."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else None
    return value


def clipped(text: str, limit: int = _SHOWN) -> str:
    """A text of a server or a model on one line: truncated, without control characters that move the cursor."""
    line = "".join(char if char.isprintable() else "\ufffd" for char in re.sub(r"\s+", " ", text).strip())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _fault(error: Exception) -> str:
    match error:
        case NoConnectionError():
            return clipped(no_connection(error))
        case DisconnectedError() | OSError():
            return "it closed the connection without an answer"
        case BrokenAnswerError():
            return "it closed the connection in the middle of its answer"
    return f"it does not speak HTTP as expected: {clipped(without_credentials(str(error)) or type(error).__name__)}"
