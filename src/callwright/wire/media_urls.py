"""Check the media of a request: they must be in the request itself, or at a public address.

This gateway fetches none of it. A model's server may, from inside the network: a client that names `file:///etc/passwd`
or an address of that network would read with the server's access. Host names are not resolved here.
"""

import ipaddress
import re
import socket
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from callwright.conversation import MediaPart
from callwright.errors import RequestError
from callwright.openai_format.errors import quote_list

# Fields of parts that contain neither URL nor data; some server may read any other text as one.
_WORDS: Final = frozenset({"type", "detail", "filename", "format"})
# Fields that contain bare data if they have no scheme; any other text without one is a path.
_DATA: Final = frozenset({"data", "file_data", "file_id", "uuid"})

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*+):")
# Characters that parsers treat differently: a backslash, a space, a control character.
_AMBIGUOUS: Final = re.compile(r"[\\\s\x00-\x1f\x7f]")
_HOST: Final = re.compile(r"[A-Za-z0-9._:\-]+")
_LOCAL: Final = ("localhost", "localdomain", "local", "internal")
_AT_ADDRESSES: Final = ("http", "https", "ws", "wss", "ftp")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


def check_media(part: MediaPart, schemes: Collection[str], *, flat: bool) -> None:
    """Raises `RequestError` for a part whose URL has another scheme, or is not public.

    `flat`: the part has the form of the Responses API, where `image_url` is a text.
    """
    for path, field, text in _texts(part.value):
        fault = _fault(field, text, schemes)
        if fault is not None:
            inner = path[1:] if flat and path[1:] != ("url",) else path[:1] if flat else path
            if part.param.endswith(".source"):  # of Messages, whose blocks have another form than the part
                inner = ("data",) if text.startswith("data:") else ("url",)
            param = ".".join((part.param, *inner)) if part.param else ".".join(inner)
            raise RequestError(
                f"Invalid '{param}': {fault} Send the content itself as a data URL, or have the gateway's 'media_urls' "
                "allow it.",
                param=param,
                code="invalid_value",
            )


def _texts(value: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """The texts in a part that may be read as a place: path, field, text."""
    waiting: list[tuple[tuple[str, ...], str, Any]] = [((), "", value)]
    while waiting:
        path, field, inner = waiting.pop()
        if isinstance(inner, str) and field not in _WORDS:
            yield path, field, inner
        elif isinstance(inner, Mapping):
            waiting += [((*path, str(name)), str(name), it) for name, it in inner.items()]
        elif isinstance(inner, list):
            waiting += [(path, field, it) for it in inner]


def _fault(field: str, text: str, schemes: Collection[str]) -> str | None:
    """Why a text is no place that media may come from."""
    scheme = _SCHEME.match(text)
    if scheme is None:
        return None if field in _DATA and ":" not in text else f"expected {_urls(schemes)}, got no URL."
    name = scheme[1].lower()
    if name not in schemes:
        return f"expected {_urls(schemes)}, got one that begins with '{name}:'."
    if name in _AT_ADDRESSES and not _is_public(text):
        return "expected a URL with a public host, got one that is private, or that can be read in two ways."
    return None


def _urls(schemes: Collection[str]) -> str:
    return f"a URL that begins with {quote_list([f'{scheme}:' for scheme in sorted(schemes)])}" if schemes else "no URL"


def _is_public(url: str) -> bool:
    """Whether the host in a URL is a name that may be anywhere, or a public address, in every way of reading it."""
    if _AMBIGUOUS.search(url):
        return False
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".").lower()
    except ValueError:
        return False
    if "@" in parts.netloc or not _HOST.fullmatch(host) or host.rpartition(".")[2] in _LOCAL:
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:  # 127.1, 0x7f000001, 2130706433: further forms that the system accepts
            address = ipaddress.ip_address(socket.inet_aton(host))
        except OSError:
            return True
    return _is_global(address)


def _is_global(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inside = address.ipv4_mapped or address.sixtofour
        if inside is None and (address in _NAT64 or not int(address) >> 32):
            inside = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inside is not None:
            return _is_global(inside)
    return address.is_global and not address.is_multicast
