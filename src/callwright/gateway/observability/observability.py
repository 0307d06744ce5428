"""Sets up the observers of requests and turns: metrics, log, traces and record, as configured."""

import asyncio
from collections.abc import Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from callwright.gateway.config.config import Config, InspectLevel, path_of
from callwright.gateway.config.hosts import is_loopback
from callwright.gateway.observability.conversation_ids import ConversationIds
from callwright.gateway.observability.inspector import Inspector
from callwright.gateway.observability.logs import is_quiet, log_request
from callwright.gateway.observability.metrics import Metrics
from callwright.gateway.observability.metrics_gauges import Left
from callwright.gateway.observability.recorder import Recorder
from callwright.gateway.observability.redaction import Redactor
from callwright.gateway.request_context import RequestContext, RequestContexts, current, observer
from callwright.turn.model import Model
from callwright.turn.observe import Observer
from callwright.turn.tracing import is_available, request_span, turn_spans


class Observability:
    """Observes one application. `left` returns the remaining rate limits of the keys. Raises `ConfigError` if the
    folder of records cannot be used.
    """

    def __init__(self, config: Config, left: Left = dict, worker: int = 0) -> None:
        self.metrics = Metrics(left)
        self._worker = worker
        self._conversations = ConversationIds()
        self.inspector: Inspector | None = None
        self.contexts = RequestContexts(self._on_begin, self._on_end)
        self._recorder: Recorder | None = None
        if (record := config.record) is not None:
            folder, told = path_of(record.dir), self.metrics.recorded
            self._recorder = Recorder(folder, record.max_total_bytes, told, self._conversations, Redactor(None))
        self._traces = is_available()

    def inspector_for(self, config: Config) -> Inspector | None:
        """The inspector of a configuration: the present one if the level of detail stays, else a new one. So no turn
        that was recorded at another level is shown.
        """
        level = inspect_level(config)
        if level == "off" or (self.inspector is not None and self.inspector.level == level):
            return None if level == "off" else self.inspector
        return Inspector(level, self._conversations, self._worker, config.server.workers)

    def change(self, inspector: Inspector | None, redactor: Redactor) -> None:
        """Use these from now on, also for turns that are recorded already."""
        self.inspector = inspector
        if inspector is not None:
            inspector.redactor = redactor
        if self._recorder is not None:
            self._recorder.redactor = redactor
        is_full = inspector is not None and inspector.level == "full"
        self.contexts.keeps_bodies = is_full or self._recorder is not None

    def observed(self, name: str, model: Model, inspecting: Observer | None) -> Model:
        """A model with the observers of its turns; `name` is its name in the configuration, `inspecting` records them
        for the pages.
        """
        more = () if inspecting is None else (inspecting,)
        return msgspec.structs.replace(model, observers=(*model.observers, *self._observers(name), *more))

    def open(self) -> None:
        """The application starts."""
        if self._recorder is not None:
            self._recorder.open()

    async def close(self) -> None:
        """Write the pending records when the application ends."""
        if self._recorder is not None:
            await asyncio.to_thread(self._recorder.close)

    async def show(self, request: Request, key: str | None = None) -> Response:
        """The numbers of this gateway, for Prometheus; with a `key`, those of that key only."""
        self.metrics.loop_runs(len(asyncio.all_tasks()))
        text, kind = self.metrics.exposition(request.headers.get("accept", ""), key)
        return Response(text, headers={"content-type": kind})

    def _observers(self, name: str) -> list[Observer]:
        observers = [observer(name), self.metrics.observer(name)]
        if self._traces:
            observers.append(turn_spans(_about))
        if self._recorder is not None:
            observers.append(self._recorder.observe)
        return observers

    def _on_begin(self, context: RequestContext) -> None:
        self.metrics.request_begun()
        if self._traces and not is_quiet(context):
            method = "GET" if context.method == "WEBSOCKET" else context.method
            context.span_ended = request_span(method, context.carrier)

    def _on_end(self, context: RequestContext) -> None:
        if context.span_ended is not None:
            context.span_ended(context.endpoint, context.status, context.error)
        self.metrics.request_ended(context)
        if self.inspector is not None:
            self.inspector.request_ended(context)
        log_request(context)


def inspect_level(config: Config) -> InspectLevel:
    """The level of detail that the pages show."""
    is_private = is_loopback(config.server.host) and not (config.keys or config.server.hosts)
    return config.server.inspect or ("full" if is_private else "metadata")


def _about() -> Mapping[str, str]:
    """The attributes that the request adds to the span of a turn."""
    context = current()
    if context is None:
        return {}
    given = {
        "gen_ai.response.id": context.response_id,
        "gen_ai.conversation.id": context.conversation_id,
        "callwright.request_id": context.id,
    }
    return {name: value for name, value in given.items() if value is not None}
