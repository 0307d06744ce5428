"""Limits on the data of an MCP server: bytes and values of one answer, its list of tools, their schemas.

The SDK reads answers of any size, also lines from a process. So the bytes are counted on arrival: over HTTP in the
stream of the response, from a process in the decoder of its output, which the SDK makes configurable.
"""

import codecs
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from callwright.schema.size import schema_fault
from callwright.settings import bounds
from callwright.settings.bounds import Bounds

TOO_MUCH: Final = "The tool's server sent more than"
# The encoding of a process's output: UTF-8 in whole lines, each limited in size.
OUTPUT: Final = "callwright_mcp_utf_8"
_VALUES: Final = b",[{"
_LINE: Final = re.compile(rb"[^\n]*\n|[^\n]+")
_BETWEEN_EVENTS: Final = re.compile(rb"(?:\r\n|\r|\n){2}")


class _Count:
    """Counts the bytes and values of one answer."""

    def __init__(self, limits: Bounds) -> None:
        self._limits = limits
        self._bytes = self._values = 0

    def maybe_fault(self, piece: bytes) -> str | None:
        """Count one more piece. Returns an error text above a limit, else None."""
        self._bytes += len(piece)
        if self._bytes > self._limits.max_answer_bytes:
            return f"{TOO_MUCH} {self._limits.max_answer_bytes:,} bytes in one answer (`max_answer_bytes`)."
        self._values += sum(piece.count(byte) for byte in _VALUES)
        if self._values > bounds.MAX_ANSWER_VALUES:
            return f"{TOO_MUCH} {bounds.MAX_ANSWER_VALUES:,} values in one answer."
        return None


def list_fault(tools: list[Any], sizes: int) -> str | None:
    """An error text for a list of the SDK's tools above a limit, else None. They take `sizes` bytes together."""
    if sizes > bounds.MAX_SCHEMA_BYTES:
        return f"its tools take more than {bounds.MAX_SCHEMA_BYTES:,} bytes"
    for tool in tools:
        if fault := schema_fault(tool.input_schema):
            return f"the schema of its tool {str(tool.name)[:64]!r}: {fault.removesuffix('.')}"
    return None


# --- HTTP ---


def bounded_responses(limits: Bounds) -> Callable[[Any], Any]:
    """A hook for the responses of an `httpx2.AsyncClient` that asks for no compression."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):  # type: ignore[misc]  # Any, if the package is not installed
        def __init__(self, response: Any) -> None:
            self._stream = response.stream
            self._is_of_events = response.headers.get("content-type", "").startswith("text/event-stream")
            # The stream of notifications (GET) is endless, so its events are counted separately.
            self._has_end = response.request.method != "GET"

        async def __aiter__(self) -> AsyncIterator[bytes]:
            count = _Count(limits)
            async for piece in self._stream:
                if not self._has_end and _BETWEEN_EVENTS.search(piece):
                    count = _Count(limits)
                if fault := count.maybe_fault(piece):
                    # The SDK forwards the texts of these errors, a different one for each kind of answer.
                    raise httpx2.SSEError(fault) if self._is_of_events else httpx2.StreamError(fault)
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def bound(response: Any) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.DecodingError(
                "it compresses its answers, though it was asked not to", request=response.request
            )
        response.stream = Bounded(response)

    return bound


# --- a process ---

_bounded: ContextVar[tuple[Bounds, Callable[[str], None]]] = ContextVar("callwright_mcp_output")


@contextmanager
def bounded_output(limits: Bounds, failed: Callable[[str], None]) -> Iterator[None]:
    """Apply these limits to `OUTPUT` decoders created within the context. `failed` is called once with an error text;
    nothing more is read after it.
    """
    token = _bounded.set((limits, failed))
    try:
        yield
    finally:
        _bounded.reset(token)


class _Lines(codecs.IncrementalDecoder):
    """Decodes whole lines: a long line is decoded once, not with each piece."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._limits, self._failed = _bounded.get()
        self._count = _Count(self._limits)
        self._line = bytearray()
        self._is_over = False

    def decode(self, piece: Any, final: bool = False) -> str:
        if self._is_over:
            return ""
        whole = bytearray()
        for line in _LINE.findall(piece):
            if fault := self._count.maybe_fault(line):
                self._is_over, self._line = True, bytearray()
                self._failed(fault)
                break
            self._line += line
            if line.endswith(b"\n"):
                whole += self._line
                self._line, self._count = bytearray(), _Count(self._limits)
        return whole.decode("utf-8", self.errors)


def _find_codec(name: str) -> codecs.CodecInfo | None:
    if name != OUTPUT:
        return None
    utf_8 = codecs.lookup("utf-8")
    return codecs.CodecInfo(utf_8.encode, utf_8.decode, incrementaldecoder=_Lines, name=OUTPUT)


codecs.register(_find_codec)
