"""Opaque texts that a client sends back unchanged in a field: `encrypted_content`."""

import base64
import binascii
import zlib
from typing import Final

from callwright.errors import RequestError

_SEAL: Final = "cw1."
_MAX_UNSEALED: Final = 16_777_216
_MOST_TIMES: Final = 8  # as long as it was packed: words are two to four times as long


def sealed(text: str) -> str:
    """A text as `encrypted_content`, which only travels: it is packed, and no secret."""
    packed = zlib.compress(text.encode("utf-8", "replace"), 6)
    return _SEAL + base64.urlsafe_b64encode(packed).decode()


class SealedTexts:
    """The sealed texts of one request: their total unpacked size is bounded. A few kilobytes can hold megabytes.
    `left` is the remaining size in bytes. `swells`: a text was much larger unpacked than packed; results derived from
    it must not be cached.
    """

    def __init__(self, most: int = _MAX_UNSEALED) -> None:
        self._most = self.left = most
        self.swells = False

    def text(self, content: str) -> str | None:
        """See `unsealed`. Raises `RequestError` if their total size is over the limit."""
        text = unsealed(content, self.left)
        if text is None and self._is_ours(content):
            raise RequestError(
                f"The 'encrypted_content' of this request holds more than {self._most:,} bytes in all. Compact the "
                "conversation, or leave out reasoning of earlier turns.",
                param="input",
                code="encrypted_content_too_large",
            )
        self.left -= len((text or "").encode())
        self.swells = self.swells or (text is not None and is_swollen(text, content))
        return text

    def _is_ours(self, content: str) -> bool:
        """Whether it is a sealed text that is only too long. No more of it is unpacked than there is room."""
        packed = _packed(content)
        if packed is None:
            return False
        unpacking = zlib.decompressobj()
        try:
            unpacking.decompress(packed, max(1, self.left))
        except zlib.error:
            return False
        return not unpacking.eof and bool(unpacking.unconsumed_tail)


def is_swollen(text: str, content: str) -> bool:
    """Whether a text is much longer than its packed form, which natural language never is."""
    return len(text) > _MOST_TIMES * len(content)


def unsealed(content: str, most: int = _MAX_UNSEALED) -> str | None:
    """The text that `sealed` packed; None for the content of another server, and for more than `most` bytes."""
    packed = _packed(content)
    if packed is None or most <= 0:
        return None
    unpacking = zlib.decompressobj()
    try:
        unpacked = unpacking.decompress(packed, most)
        return unpacked.decode() if unpacking.eof else None
    except (ValueError, zlib.error):
        return None


def _packed(content: str) -> bytes | None:
    if not content.startswith(_SEAL):
        return None
    try:
        return base64.urlsafe_b64decode(content.removeprefix(_SEAL))
    except (binascii.Error, ValueError):
        return None
