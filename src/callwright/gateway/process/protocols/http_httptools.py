"""HTTP parsed by httptools, of the extra `fast`."""

from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from callwright.gateway.process.protocols.http import BoundedHttp

__all__ = ["HttpToolsHttp"]

# Requests that a client sends ahead in one go; behind more of them the connection ends. Hardly a client sends any.
_MOST_AHEAD: Final = 16


class HttpToolsHttp(BoundedHttp, HttpToolsProtocol):
    """httptools keeps a header in memory until it is whole, and has no bound."""

    _is_new = True  # whether what comes belongs to a head
    _progressed = False
    _is_full = False  # more requests were sent ahead than are taken
    url = b""  # there is none before the first request

    def on_message_begin(self) -> None:
        """See httptools."""
        self._is_new = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """See httptools: also for the trailers of a body, which are no headers of the request."""
        if self._is_new:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """See httptools."""
        self._is_new, self._progressed = False, True
        if len(self.pipeline) >= _MOST_AHEAD:
            self._is_full = True
        if not self._is_full:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """See httptools."""
        self._progressed = True
        if not self._is_full:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """See httptools."""
        self._is_new, self._progressed = True, True
        if not self._is_full:
            super().on_message_complete()

    def _parse(self, data: bytes) -> None:
        self._progressed = False
        super()._parse(data)
        if self._is_full and self._dropped < 0:
            self._end_behind_answers()

    def _should_upgrade(self) -> bool:
        is_free = self.cycle is None or self.cycle.response_complete  # uvicorn would hand over the answer's connection
        return is_free and super()._should_upgrade()

    def _has_progressed(self) -> bool:
        return self._progressed

    def _is_in_head(self) -> bool:
        return self._is_new

    def _path(self) -> str:
        return self.url.decode("latin-1")
