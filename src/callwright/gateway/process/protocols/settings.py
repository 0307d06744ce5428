"""How uvicorn is set up for the gateway, and which of its protocols are used."""

import asyncio
from importlib.util import find_spec
from typing import Any

import uvicorn
from starlette.applications import Starlette

from callwright.gateway.config.config import Config
from callwright.gateway.connections import Connections
from callwright.gateway.process.protocols.websocket import BoundedWebSocket

__all__ = ["ProtocolSettings"]


class ProtocolSettings(uvicorn.Config):
    """uvicorn's settings for an application of `create_app`, with the bounds that its protocols hold to."""

    def __init__(self, app: Starlette, config: Config, *, http: type[asyncio.Protocol] | None = None, **more: Any):
        """`http`: the protocol, if not the fastest that is installed; `more`: for uvicorn."""
        server, self.bounds = config.server, config.limits
        self.connections: Connections = app.state.connections
        self.receive_s = server.receive_s
        super().__init__(
            app,
            http=http or _http_protocol(),
            h11_max_incomplete_event_size=self.bounds.max_head_bytes,
            ws=BoundedWebSocket,
            ws_max_size=server.max_body_bytes,
            ws_per_message_deflate=False,  # a small frame must not stand for a large one
            access_log=False,
            **more,
        )


def _http_protocol() -> type[asyncio.Protocol]:
    if find_spec("httptools") is None:
        from callwright.gateway.process.protocols.http_h11 import H11Http

        return H11Http
    from callwright.gateway.process.protocols.http_httptools import HttpToolsHttp

    return HttpToolsHttp
