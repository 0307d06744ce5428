"""How uvicorn is set up for the gateway, and which of its protocols are used."""

import asyncio
from typing import Any

import uvicorn
from starlette.applications import Starlette

from callwright.gateway.config.config import Config
from callwright.gateway.connections import Connections
from callwright.gateway.process.protocols.http import HttpProtocol
from callwright.gateway.process.protocols.websocket import BoundedWebSocket


class ProtocolSettings(uvicorn.Config):
    """uvicorn's settings for an application of `create_app`, with the bounds that its protocols hold to."""

    def __init__(self, app: Starlette, config: Config, *, http: type[asyncio.Protocol] | None = None, **more: Any):
        """`http`: another protocol; `more`: for uvicorn."""
        self.connections: Connections = app.state.connections
        super().__init__(
            app,
            http=http or HttpProtocol,
            ws=BoundedWebSocket,
            ws_max_size=config.server.max_body_bytes,
            ws_per_message_deflate=False,  # a small frame must not expand to a large one
            access_log=False,
            **more,
        )
