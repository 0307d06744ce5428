"""Names of hosts: which one a URL has, and which ones lead to this machine."""

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit


@lru_cache(maxsize=256)
def host_of(url: str) -> str:
    """The host in a URL, in lower case; empty where it has none."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def is_address(name: str) -> bool:
    """Whether this is a number instead of a name."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=256)
def is_loopback(name: str) -> bool:
    """Whether only this machine reaches a host of this name."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    return is_address(name) and ipaddress.ip_address(name).is_loopback
