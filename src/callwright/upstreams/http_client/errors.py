"""Exceptions of a request to a server.

    HttpError
    ├── NoConnectionError, ConnectTimeoutError   the server was not reached
    ├── DisconnectedError                        it closed the connection before a byte of its answer
    ├── NotHttpError                             its answer has no head
    ├── BrokenAnswerError                        its answer is truncated
    │   └── BrokenFramingError                   … by something that is not HTTP
    ├── EncodingError                            its answer is not compressed as its head claims
    ├── ClosedError                              the connection was closed on this side
    └── SilentError, TooSlowError, TooLargeError a limit is exceeded

Messages never quote a head.
"""


class HttpError(Exception):
    """A request was not answered, or not to its end."""


class NoConnectionError(HttpError):
    """There is no connection to `host`, `port`, for this `reason`."""

    def __init__(self, host: str, port: int, reason: OSError) -> None:
        super().__init__(f"no connection to {host}, port {port}: {reason}")
        self.host = host
        self.port = port
        self.reason = reason


class ConnectTimeoutError(HttpError):
    """There was no connection in time."""


class DisconnectedError(HttpError):
    """The connection ended before a byte of an answer."""


class NotHttpError(HttpError):
    """The answer has no HTTP head; the message is the parser's reason."""


class BrokenAnswerError(HttpError):
    """The connection ended before the answer did."""


class BrokenFramingError(BrokenAnswerError):
    """An answer continues with something that is not HTTP."""


class EncodingError(HttpError):
    """A body that cannot be decompressed; the message has the reason ("not compressed …")."""


class ClosedError(HttpError):
    """The caller has closed the connection, or all of them."""


class SilentError(HttpError):
    """The server was silent for too long."""


class TooSlowError(HttpError):
    """An answer that arrives too slowly to end within its time limit."""


class TooLargeError(HttpError):
    """An answer of more bytes than `most`."""

    def __init__(self, most: int) -> None:
        super().__init__(f"an answer of more than {most:,} bytes")
        self.most = most
