"""The parts of a URL for HTTP: the address to connect to, and the target and headers of a request."""

from base64 import b64encode
from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct

from callwright.upstreams.http_client.errors import NoConnectionError

_PORTS: Final = {"http": 80, "https": 443}
# Characters of a path and its query that need no escape, besides letters and digits; `%` for existing escapes.
_KEPT: Final = "/%:?#[]@!$&'()*+,;=-._~"


class Origin(Struct, frozen=True):
    """The address of a connection."""

    host: str
    port: int
    is_secure: bool


class Target(Struct, frozen=True):
    """`asked`: path and query. `authorization`: that of the user in the URL."""

    origin: Origin
    asked: str
    host: str
    authorization: str | None = None


@lru_cache(maxsize=256)
def target_of(url: str) -> Target:
    """Of an absolute URL for HTTP. Raises `NoConnectionError`."""
    parts = urlsplit(url)
    try:
        port = parts.port or _PORTS[parts.scheme]
        host = (parts.hostname or "").encode("idna").decode()
        if not host.isprintable() or not host:
            raise ValueError("no host")
    except (ValueError, KeyError) as error:
        raise NoConnectionError(parts.hostname or "", 0, OSError(f"no address: {error}")) from error
    shown = f"[{host}]" if ":" in host else host
    host_line = shown if port == _PORTS[parts.scheme] else f"{shown}:{port}"
    authorization = None
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {b64encode(user.encode()).decode()}"
    asked = quote(parts.path or "/", safe=_KEPT) + (f"?{quote(parts.query, safe=_KEPT)}" if parts.query else "")
    return Target(Origin(host, port, parts.scheme == "https"), asked, host_line, authorization)
