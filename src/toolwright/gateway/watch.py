"""Who watches the gateway's requests and turns: metrics, the log, traces and the record, as the configuration says."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from toolwright.gateway.config import Config
from toolwright.gateway.exchanges import Exchange, Exchanges, current, observer
from toolwright.gateway.logs import log_exchange
from toolwright.gateway.metrics import Metrics
from toolwright.gateway.recording import Limits, Recorder
from toolwright.observing import Observer
from toolwright.tracing import is_available, turn_spans
from toolwright.turn import Model

__all__ = ["Watch"]


class Watch:
    """Watches one application. Raises `ConfigError` for a folder of records that cannot be used."""

    def __init__(self, config: Config) -> None:
        self.metrics = Metrics()
        self.exchanges = Exchanges(self.metrics.request_begun, self._ended, keeps_bodies=config.record is not None)
        self._recorder: Recorder | None = None
        if (record := config.record) is not None:
            limits = Limits(record.max_turn_bytes, record.max_file_bytes, record.max_total_bytes)
            self._recorder = Recorder(Path(record.dir), limits, self.metrics.recorded)
        self._traces = config.server.traces == "auto" and is_available()

    def observed(self, name: str, model: Model) -> Model:
        """A model, by its name in the configuration, with all that observe its turns."""
        return msgspec.structs.replace(model, observers=(*model.observers, *self._observers(name)))

    def open(self) -> None:
        """The application starts."""
        if self._recorder is not None:
            self._recorder.open()

    async def close(self) -> None:
        """The application ends; what is to be recorded is."""
        if self._recorder is not None:
            await asyncio.to_thread(self._recorder.close)

    async def show(self, request: Request) -> Response:
        """`GET /metrics`."""
        text, kind = self.metrics.exposition(request.headers.get("accept", ""))
        return Response(text, headers={"content-type": kind})

    def _observers(self, name: str) -> list[Observer]:
        observers = [observer(name), self.metrics.observer(name)]
        if self._traces:
            observers.append(turn_spans(_carrier))
        if self._recorder is not None:
            observers.append(self._recorder.observe)
        return observers

    def _ended(self, exchange: Exchange) -> None:
        self.metrics.request_ended(exchange)
        log_exchange(exchange)


def _carrier() -> Mapping[str, str]:
    exchange = current()
    return exchange.carrier if exchange is not None else {}
