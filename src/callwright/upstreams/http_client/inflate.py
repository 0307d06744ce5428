"""A body that is compressed, though the request did not ask for it: decompressed in bounded pieces."""

import zlib
from typing import Final

from callwright.upstreams.http_client.errors import BrokenAnswerError, EncodingError

# Maximum bytes of one decompressed piece, whatever the size of the input.
_MOST_AT_ONCE: Final = 262_144
_GZIP: Final = zlib.MAX_WBITS | 16
_ZLIB_METHOD: Final = 8  # RFC 1950: the low bits of a first byte; some servers' "deflate" has no such header


def inflater(encoding: str) -> "Inflater":
    """The decompressor for this `content-encoding`. Raises `EncodingError` if it is unknown."""
    match encoding:
        case "gzip" | "x-gzip":
            return Inflater(_GZIP)
        case "deflate":
            return Inflater(0)
    raise EncodingError("compressed in a way that was not asked for")


class Inflater:
    """Decompresses the pieces of one body; `wbits` as zlib has it, 0: with zlib's head or without."""

    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        self._stream = zlib.decompressobj(wbits) if wbits else None
        self._left = b""  # compressed bytes that have not been read
        self._has_begun = False

    @property
    def holds(self) -> bool:
        """Whether unprocessed input is left."""
        return bool(self._left)

    def next(self, more: bytes) -> bytes:
        """The next decompressed bytes, from the remaining input and `more`. Raises `EncodingError`."""
        data = self._left + more if self._left else more
        if not data:
            return b""
        self._has_begun = True
        if self._stream is None:
            has_head = data[0] & 15 == _ZLIB_METHOD
            self._stream = zlib.decompressobj(zlib.MAX_WBITS if has_head else -zlib.MAX_WBITS)
        elif self._stream.eof:  # gzip may have several members in sequence
            self._stream = zlib.decompressobj(self._wbits or zlib.MAX_WBITS)
        try:
            out = self._stream.decompress(data, _MOST_AT_ONCE)
        except zlib.error as error:
            self._left = b""
            raise EncodingError("not compressed as its head says") from error
        self._left = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        return out

    def finish(self) -> None:
        """End the body. Raises `BrokenAnswerError` if the compressed data is incomplete."""
        if self._has_begun and self._stream is not None and not self._stream.eof:
            raise BrokenAnswerError
