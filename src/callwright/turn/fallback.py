"""Another model in place of the one that was asked: the failures that lead to it, and its name in the answer."""

from typing import Final, final
from urllib.parse import quote

from msgspec import Struct

from callwright.errors import RequestError, UpstreamError
from callwright.events import Problem

# Why the next model is asked if one that is a fallback refuses the request.
REFUSED: Final = "request_refused"
_IN_HEADERS: Final = "!#$&'()*+,-./:=?@[]^_`{|}~"
_BUSY: Final = "rate_limit_exceeded"
_TOO_MANY: Final = 429
# The errors of a request that another model may answer: the conversation is too long for this one, it is gone, or a
# budget for it is used up.
_OF_THIS_MODEL: Final = frozenset(("context_length_exceeded", "model_not_found", "insufficient_quota"))


@final
class Fallback(Struct, frozen=True):
    """Another model that is asked: its name, and why. `reason` is the fault of the server or the code of its error, or
    the kind of the first problem of an answer that does not hold.
    """

    model: str
    reason: str

    @property
    def header(self) -> bytes:
        """The value of a header. Names of models are any text, and a header holds visible ASCII."""
        return f"{quote(self.model, safe=_IN_HEADERS)}; reason={self.reason}".encode()

    def problem(self, asked: str) -> Problem:
        """The problem that reports it to the client that `asked` for a model."""
        return Problem("model_replaced", f"{self.model!r} answers in place of {asked!r}: {self.reason}")


@final
class Rounds(Struct):
    """State shared by the rounds of a turn: after a `fallback`, the next round asks the model that answered."""

    fallback: Fallback | None = None


def reason_to_fall_back(error: RequestError | UpstreamError, *, is_fallback: bool) -> str | None:
    """Why another model may answer what failed with this error; None if the request or the gateway is to blame. A
    request that only a fallback refuses is not wrong.
    """
    if isinstance(error, UpstreamError):
        if error.fault == "stopped":
            return None
        return _BUSY if error.status == _TOO_MANY else error.fault
    if error.code in _OF_THIS_MODEL:
        return error.code
    return _BUSY if error.status == _TOO_MANY else REFUSED if is_fallback else None
