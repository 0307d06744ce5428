"""An endpoint as an ASGI application: calls request handlers, and returns errors in the format of the client's API."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from callwright.errors import RequestError, UpstreamError
from callwright.gateway.http import (
    DROPPED_HEADER,
    FALLBACK_HEADER,
    OUR_FAULT,
    ClientDisconnected,
    EventStream,
    error_response,
    store_unavailable,
)
from callwright.gateway.request_context import RequestContext, current
from callwright.gateway.store.store import StoreDownError, StoreError
from callwright.wire.pass_rules import told_dropped

log = logging.getLogger("callwright.gateway")
_FAILED: Final = 400
# In a whole answer: the cost of its turns, in the currency of the configuration.
_COST_HEADER: Final = b"x-callwright-cost"
Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


class Endpoint:
    """What `handler` answers, under the `path` that its route has in the log and the metrics."""

    def __init__(self, handler: Handler, path: str) -> None:
        self.handler = handler
        self.path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        context = current()
        assert context is not None
        context.endpoint = self.path
        request = Request(scope, receive, send)
        try:
            response = await self.handler(request)
        except Exception as error:
            response = self._failed(error, context)
        _identify(response, context)
        await response(scope, receive, send)

    def _failed(self, error: Exception, context: RequestContext) -> Response:
        """The answer to a request that could not be answered."""
        if isinstance(error, ClientDisconnected):
            return Response(status_code=499)
        if isinstance(error, RequestError | UpstreamError):
            log.debug("%s refused: %.500r", self.path, str(error))
            told: RequestError | UpstreamError = error
        elif isinstance(error, StoreDownError):
            log.error("%s refused: %s", self.path, error)
            told = store_unavailable()
        elif isinstance(error, StoreError):
            log.error("%s failed: %s", self.path, error)
            told = OUR_FAULT
        else:
            log.exception("%s failed", self.path)
            told = OUR_FAULT
        context.failed(told)
        return error_response(told)


def _identify(response: Response, context: RequestContext) -> None:
    headers = response.raw_headers
    headers.append((b"x-request-id", context.id.encode()))
    if context.api == "anthropic":
        headers.append((b"request-id", context.id.encode()))
    if names := context.told_dropped:
        headers.append((DROPPED_HEADER.encode(), told_dropped(names).encode("latin-1")))
    if context.latest is not None and (other := context.latest.fallback) is not None and response.status_code < _FAILED:
        headers.append((FALLBACK_HEADER.encode(), other.header))
    if (cost := context.turns.cost) is not None and not isinstance(response, EventStream):
        headers.append((_COST_HEADER, b"%d.%06d" % divmod(cost, 1_000_000)))
