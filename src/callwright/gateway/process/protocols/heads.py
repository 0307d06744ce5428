"""The head of a request: httptools splits it; a head that it accepts against RFC 9112 is refused here."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from callwright.gateway.process.protocols.refusals import no_request, unknown_coding

Field = tuple[bytes, bytes]
Named = Mapping[bytes, Sequence[bytes]]

_LINE: Final = re.compile(rb"([A-Z-]+) ([!-~]+) HTTP/1\.([01])\r\n")  # httptools accepts RTSP, too
_ABSOLUTE: Final = re.compile(rb"(?i:https?)://([^/?#]*)")
# A name, an address of IPv6 or of a later version, then a port. A comma, which is valid in a name, looks like a list.
_HOST: Final = re.compile(
    rb"(?:(?:[\w.~!$&'()*+;=-]|%[\dA-Fa-f]{2})+|\[(?:[\dA-Fa-f:.]+|[vV][\dA-Fa-f]+\.[\w.~!$&'()*+;=:-]+)\])(?::\d*)?"
)
_CHUNKED: Final = b"chunked"
# The fields that are read before the application is called.
READ_HERE: Final = frozenset(
    b"host content-length transfer-encoding connection upgrade expect x-forwarded-for x-forwarded-proto".split()
)


def read_head(head: bytes, fields: Sequence[Field], named: Named) -> dict[str, Any]:
    """The part of an ASGI scope that a head describes. `named`: the values of the fields in `READ_HERE`. Raises
    `RequestError` if it is no valid head of HTTP/1.1 or 1.0.
    """
    line = _LINE.match(head)
    if line is None:
        raise no_request()
    method, target, minor = line.groups()
    is_old = minor == b"0"
    hosts = named.get(b"host", ())
    if len(hosts) != 1 and (hosts or not is_old):
        raise no_request("one Host header")
    if hosts and hosts[0] and not _HOST.fullmatch(hosts[0]):
        raise no_request("a name or an address in the Host header")
    if b"transfer-encoding" in named:
        _check_codings(named[b"transfer-encoding"], is_old=is_old)
    if method == b"CONNECT":
        raise no_request("another method than CONNECT")
    if target[:1] != b"/" and (target != b"*" or method != b"OPTIONS"):
        absolute = _ABSOLUTE.match(target)
        if absolute is None or not _HOST.fullmatch(absolute[1]):
            raise no_request("a path, or the URL of one, in the first line")
        target = target[absolute.end() :]
        fields = [*(each for each in fields if each[0] != b"host"), (b"host", absolute[1])]  # RFC 9112, 3.2.2
    raw_path, _, query = target.partition(b"#")[0].partition(b"?")
    path = raw_path.decode() or "/"
    return {
        "http_version": "1.0" if is_old else "1.1",
        "method": method.decode(),
        "path": unquote(path) if "%" in path else path,
        "raw_path": raw_path or b"/",
        "query_string": query,
        "headers": fields,
    }


def asks_websocket(asked: Mapping[str, Any], named: Named) -> bool:
    """Whether the connection is to become a WebSocket."""
    changes = [token.strip() for token in b",".join(named.get(b"connection", ())).lower().split(b",")]
    upgrades = b",".join(named.get(b"upgrade", ())).lower()
    is_able = asked["method"] == "GET" and asked["http_version"] == "1.1"
    return is_able and upgrades == b"websocket" and b"upgrade" in changes


def _check_codings(given: Sequence[bytes], *, is_old: bool) -> None:
    """If two servers disagree on the end of a body, a client can hide a second request in it."""
    codings = [coding.strip() for coding in b",".join(given).lower().split(b",")]
    if is_old or codings[-1] != _CHUNKED or _CHUNKED in codings[:-1]:
        raise no_request("a body in chunks by its last transfer coding alone, and HTTP/1.1")
    if len(codings) > 1:
        raise unknown_coding(codings[0])
