"""What can go wrong with a request to a server, as exceptions.

    HttpError
    ├── NoConnectionError, ConnectTimeoutError   the server was not reached
    ├── DisconnectedError                        it closed the connection before a byte of its answer
    ├── NotHttpError                             its answer has no head
    ├── BrokenAnswerError                        its answer ends before its end
    │   └── BrokenFramingError                   … in something that is no HTTP
    ├── EncodingError                            its answer is compressed otherwise than its head says
    ├── ClosedError                              it was left: the connection was closed here
    └── SilentError, TooSlowError, TooLargeError a bound is passed

Messages never quote what stands in a head.
"""


class HttpError(Exception):
    """A request was not answered, or not to its end."""


class NoConnectionError(HttpError):
    """There is no connection to `host`, `port`; `reason` says why."""

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
    """What came in place of a head is no HTTP; the message is the parser's reason."""


class BrokenAnswerError(HttpError):
    """The connection ended before the answer did."""


class BrokenFramingError(BrokenAnswerError):
    """An answer goes on with something that is no HTTP."""


class EncodingError(HttpError):
    """A body that cannot be decompressed; the message says what of it ("not compressed …")."""


class ClosedError(HttpError):
    """Who asks has closed the connection, or all of them."""


class SilentError(HttpError):
    """The server was silent for too long."""


class TooSlowError(HttpError):
    """An answer that comes, byte by byte, and does not come to its end."""


class TooLargeError(HttpError):
    """An answer of more bytes than `most`."""

    def __init__(self, most: int) -> None:
        super().__init__(f"an answer of more than {most:,} bytes")
        self.most = most
