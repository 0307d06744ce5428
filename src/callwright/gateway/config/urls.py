"""URLs and headers of servers that a configuration names: what is none is told. No value is: it may be a key."""

import re
from urllib.parse import urlsplit

from callwright.errors import ConfigError

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def check_url(url: str, expected: str) -> None:
    """Raises `ConfigError`, which begins with what was `expected`."""
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{expected}, got no http:// or https://.")
    if found := re.search(r"[\s?#]", url):
        raise ConfigError(f"{expected}, got a {found[0]!r} in it.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"{expected}, got an invalid URL: {error}.") from error
    if not host:
        raise ConfigError(f"{expected}, got no host.")
    if port == 0 or parts.netloc.endswith(":"):
        raise ConfigError(f"{expected}, got a port that is none: it goes from 1 to 65535.")


def check_header(name: str, value: str, where: str) -> None:
    """Raises `ConfigError` for what cannot be a header. `where` the value stands."""
    if not _HEADER_NAME.fullmatch(name):
        raise ConfigError(f"headers: {name!r} is not a valid name of an HTTP header. Expected one such as 'x-api-key'.")
    if value != value.strip() or not value.replace("\t", "").isprintable():
        raise ConfigError(
            f"{where}: expected the value of an HTTP header, got one with a line end, another control character or "
            "a space at an end."
        )
