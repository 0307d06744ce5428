"""The gateway: OpenAI's endpoints over the configured models. Plain ASGI; what outlives a request is in the store."""

from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from callwright.gateway.access.key_counters import KeyCounters
from callwright.gateway.access.middleware import AccessMiddleware
from callwright.gateway.config.config import Config
from callwright.gateway.inspection.turn_source import RecordedTurns
from callwright.gateway.lasting import Lasting
from callwright.gateway.request_context import RequestContextMiddleware
from callwright.gateway.revision import Revision, both
from callwright.gateway.running import RunningGateway
from callwright.turn.model import Model


def create_app(
    config: Config,
    models: Mapping[str, Model] | None = None,
    counters: KeyCounters | None = None,
    worker: int = 0,
    folder: Path | None = None,
    records: RecordedTurns | None = None,
) -> Starlette:
    """The ASGI application of a configuration. Raises `ConfigError` if it cannot work.

    `models`: those of the configuration, if they have been built and opened already. `counters`: the counters for the
    limits of keys, if not in the application itself; it is that of the workers of the configuration, of which this
    is the one with the number `worker`. `folder`: which these workers share, to show their turns as one.
    `records`: recorded turns, shown instead of the turns of a gateway.

    `app.state.running` is the `RunningGateway`, whose `change` replaces the configuration.
    """
    lasting = Lasting(config, counters, worker, folder, records)
    running = RunningGateway(lasting, Revision(config, lasting, models))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await running.open()
        yield
        await running.close()

    contexts = lasting.watch.contexts
    app = _Application(
        running.serve,
        routes=[WebSocketRoute(path, running.socket.serve) for path in both("/v1/responses")],
        lifespan=lifespan,
        middleware=[
            Middleware(RequestContextMiddleware, contexts),
            Middleware(AccessMiddleware, lasting.access, lasting.admission, contexts, lasting.bodies),
        ],
    )
    app.state.running = running
    app.state.admission = lasting.admission
    app.state.connections = lasting.connections
    return app


class _Application(Starlette):
    """Starlette's application, with `http` for all requests over HTTP, and without its exception handlers: endpoints
    and middleware answer theirs.
    """

    def __init__(self, http: ASGIApp, **given: Any) -> None:
        super().__init__(**given)
        self._http = http

    def build_middleware_stack(self) -> ASGIApp:
        """See Starlette."""
        app: ASGIApp = self._route
        for made, args, kwargs in reversed(self.user_middleware):
            app = made(app, *args, **kwargs)
        return app

    def _route(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:  # no coroutine of its own
        return (self._http if scope["type"] == "http" else self.router)(scope, receive, send)
