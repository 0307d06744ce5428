"""HTTP parsed by h11, which is always there."""

import sys

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from callwright.errors import RequestError
from callwright.gateway.process.protocols.http import BoundedHttp
from callwright.gateway.process.protocols.refusals import framing_too_large, head_too_large, no_request

__all__ = ["H11Http"]

_TOO_LARGE = 431


class H11Http(BoundedHttp, H11Protocol):
    """h11 bounds what is not whole by itself; here heads are, exactly."""

    def send_400_response(self, msg: str) -> None:
        """See uvicorn."""
        error: RequestError = no_request()
        if getattr(sys.exception(), "error_status_hint", 0) == _TOO_LARGE:
            error = (head_too_large if self._is_in_head() else framing_too_large)(self._most)
        self._refuse(error)

    def _has_progressed(self) -> bool:
        return self.conn.their_state is not h11.IDLE

    def _is_in_head(self) -> bool:
        return self.cycle is None or self.cycle.response_complete or not self.cycle.more_body

    def _path(self) -> str:
        came, _ = self.conn.trailing_data
        _, _, rest = came.lstrip().partition(b" ")
        return rest.partition(b" ")[0].decode("latin-1")
