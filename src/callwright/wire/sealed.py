"""Texts that only travel through a client, as a field that it sends back as it came: `encrypted_content`."""

import base64
import binascii
import zlib
from typing import Final

__all__ = ["sealed", "unsealed"]

_SEAL: Final = "cw1."
_MAX_UNSEALED: Final = 16_777_216


def sealed(text: str) -> str:
    """A text as `encrypted_content`, which only travels: it is packed, and no secret."""
    packed = zlib.compress(text.encode("utf-8", "replace"), 6)
    return _SEAL + base64.urlsafe_b64encode(packed).decode()


def unsealed(content: str) -> str | None:
    """What `sealed` packed; None for the content of another server."""
    if not content.startswith(_SEAL):
        return None
    try:
        packed = base64.urlsafe_b64decode(content.removeprefix(_SEAL))
        unpacking = zlib.decompressobj()
        unpacked = unpacking.decompress(packed, _MAX_UNSEALED)
        return unpacked.decode() if unpacking.eof else None
    except (binascii.Error, ValueError, zlib.error):
        return None
