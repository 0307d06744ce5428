"""What can go wrong between here and a server, in words and by its kind. Nothing is told of what stands in a head."""

import os
import re
from typing import Final, Literal, TypeAlias

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError

from callwright.upstreams.answers import UnreadableError
from callwright.upstreams.received import NotHttpError, TooLargeError, TooSlowError

__all__ = ["FAILURES", "fault_of", "no_connection", "not_http"]

Fault: TypeAlias = Literal["unreachable", "cut", "timeout", "protocol"]

FAILURES: Final = (aiohttp.ClientError, TooLargeError, TooSlowError, UnreadableError, TimeoutError)
# aiohttp quotes the line that it cannot read behind its reason.
_QUOTED: Final = re.compile(r":\s+b?['\"].*", re.DOTALL)


def fault_of(error: Exception, connect_s: float, idle_s: float) -> tuple[str, Fault]:
    """What a server did, for one of `FAILURES`. It may take `connect_s` to be reached, and be silent for `idle_s`."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            return f"could not be reached within {connect_s:g} s", "unreachable"
        case aiohttp.ClientConnectorError():
            return f"cannot be reached: {no_connection(error)}", "unreachable"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError():
            return f"cannot be reached: {str(error) or type(error).__name__}", "unreachable"
        case TooLargeError():
            return f"sent {error} (`max_answer_bytes` in [limits])", "protocol"
        case TooSlowError():
            return f"did not come to an end within {idle_s:g} s, byte by byte", "timeout"
        case UnreadableError():
            return str(error), "protocol"
        case TimeoutError():
            return f"was silent for too long (more than {idle_s:g} s)", "timeout"
        case NotHttpError():
            return "sent what is no HTTP in the middle of its answer", "cut"
        case aiohttp.ClientPayloadError(__cause__=ContentEncodingError()):
            return "sent an answer that is not compressed as its head says", "protocol"
        case aiohttp.ClientPayloadError():
            return "closed the connection in the middle of its answer", "cut"
    return f"does not speak HTTP as expected: {not_http(error)}", "protocol"


def not_http(error: Exception) -> str:
    """Why something is no HTTP."""
    said = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return _QUOTED.sub("", said).strip() or type(error).__name__


def no_connection(error: aiohttp.ClientConnectorError) -> str:
    """Why a connection failed, in words."""
    place = f"no connection to {error.host}, port {error.port}"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"{place}: its certificate is not trusted ({error.certificate_error})"
    if isinstance(error, aiohttp.ClientSSLError):
        return f"{place}: it does not speak https:// (is it http://?)"
    reason = error.os_error
    number = reason.errno or 0  # negative if the host name cannot be resolved
    return f"{place} ({os.strerror(number) if number > 0 else reason.strerror or reason})"
