"""CPU time to read one megabyte of a request body over HTTP, by how the client frames it.

    python bench/chunked.py

Each row is one request in the sizes of read that asyncio uses. A body with a length is the comparison; the others are
the most expensive forms that a client can choose. `answer` is the status of a refusal.
"""

import time
from typing import Any, Final

from callwright.errors import RequestError
from callwright.gateway.process.protocols.reading import RequestReader
from callwright.settings.bounds import MAX_HEAD_BYTES

_READ_BYTES: Final = 262_144
_BODY_BYTES: Final = 1_000_000
_HEAD: Final = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n\r\n"


class _Body:
    """The exchange of a request, as far as the reader knows it."""

    def __init__(self) -> None:
        self.size = 0

    def add(self, piece: bytes) -> None:
        """Count a piece."""
        self.size += len(piece)

    def end_body(self) -> None:
        """Nothing waits for the end."""


def _chunks(data: bytes) -> bytes:
    """One megabyte on the wire, in chunks that each hold `data`."""
    chunk = b"%x\r\n%b\r\n" % (len(data), data)
    return _CHUNKED + chunk * (_BODY_BYTES // len(chunk)) + b"0\r\n\r\n"


BODIES: Final = {
    "with a length": b"content-length: %d\r\n\r\n" % _BODY_BYTES + b"x" * _BODY_BYTES,
    "chunks of 16 kB": _chunks(b"x" * 16_384),
    "chunks of 1 byte": _chunks(b"x"),
    "chunks of CRLF": _chunks(b"\r\n"),
    "chunks of 2 CRLF": _chunks(b"\r\n\r\n"),
    "chunks of 16 kB of CRLF": _chunks(b"\r\n" * 8_192),
    "chunks that look like the last": _chunks(b"0\r\n\r\n"),
}


def read_s(body: bytes) -> tuple[float, int]:
    """Seconds of CPU to read a request with this body, and the status of a refusal, or 0."""

    def begin(*_: Any) -> Any:
        return _Body()

    reader = RequestReader(begin, lambda _: None, MAX_HEAD_BYTES)
    wire, status = _HEAD + body, 0
    reads = [wire[at : at + _READ_BYTES] for at in range(0, len(wire), _READ_BYTES)]
    begin_s = time.process_time()
    try:
        for data in reads:
            at = 0
            while at < len(data):
                at = reader.read(data, at)
    except RequestError as error:
        status = error.status
    return time.process_time() - begin_s, status


def main() -> None:
    """Measure and print one table."""
    print(f"{'':32}{'ms per MB':>12}{'answer':>8}")
    for name, body in BODIES.items():
        taken_s, status = min(read_s(body) for _ in range(3))
        print(f"{name:32}{taken_s * 1_000:12.1f}{status or '':>8}")


if __name__ == "__main__":
    main()
