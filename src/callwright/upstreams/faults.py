"""Faults between here and a server, in words and by kind. The messages quote no header."""

import os
import ssl
from typing import Final, Literal, TypeAlias

from callwright.upstreams.answers import UnreadableError
from callwright.upstreams.http_client.errors import (
    BrokenAnswerError,
    BrokenFramingError,
    ClosedError,
    ConnectTimeoutError,
    DisconnectedError,
    EncodingError,
    HttpError,
    NoConnectionError,
    SilentError,
    TooLargeError,
    TooSlowError,
)

Fault: TypeAlias = Literal["unreachable", "cut", "timeout", "protocol"]

FAILURES: Final = (HttpError, UnreadableError, TimeoutError)


def fault_of(error: Exception, connect_s: float, idle_s: float) -> tuple[str, Fault]:
    """The description and kind of one of `FAILURES`. `connect_s` and `idle_s` are the timeouts, in seconds."""
    match error:
        case ConnectTimeoutError():
            return f"could not be reached within {connect_s:g} s", "unreachable"
        case NoConnectionError():
            return f"cannot be reached: {no_connection(error)}", "unreachable"
        case DisconnectedError():
            return "cannot be reached: it closed the connection without an answer", "unreachable"
        case TooLargeError():
            return f"sent {error} (`max_answer_bytes` in [limits])", "protocol"
        case TooSlowError():
            return f"did not come to an end within {idle_s:g} s, byte by byte", "timeout"
        case UnreadableError():
            return str(error), "protocol"
        case TimeoutError() | SilentError():
            return f"was silent for too long (more than {idle_s:g} s)", "timeout"
        case BrokenFramingError():
            return "sent invalid HTTP in the middle of its answer", "cut"
        case ClosedError():
            return "was left: its connections were closed before the end of its answer", "protocol"
        case EncodingError():
            return f"sent an answer that is {error}", "protocol"
        case BrokenAnswerError():
            return "closed the connection in the middle of its answer", "cut"
    return f"does not speak HTTP as expected: {str(error) or type(error).__name__}", "protocol"


def no_connection(error: NoConnectionError) -> str:
    """Why a connection failed, in words."""
    place, reason = f"no connection to {error.host}, port {error.port}", error.reason
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"{place}: its certificate is not trusted ({reason.verify_message})"
    if isinstance(reason, ssl.SSLError):
        return f"{place}: it does not speak https:// (is it http://?)"
    number = reason.errno or 0  # negative if the host name cannot be resolved
    return f"{place} ({os.strerror(number) if number > 0 else reason.strerror or reason})"
