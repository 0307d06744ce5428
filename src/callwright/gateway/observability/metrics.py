"""Prometheus metrics at `GET /metrics`: how requests fare, and how well the models call tools.

Each application has a registry of its own. The value of a label is from a closed set or from the configuration: a model
is a configured one (`*` for any other name), an endpoint is a route. A request or turn increases a few numbers; a delta
costs nothing.

If several processes serve one port, `PROMETHEUS_MULTIPROC_DIR` names an empty folder that they share. Then each answers
for all of them.
"""

import os
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.process_collector import ProcessCollector

from callwright.gateway.observability.metrics_gauges import Gauges, Left, OfKey
from callwright.gateway.observability.tallies import Tallies
from callwright.gateway.observability.turn_metrics import OVERHEAD_SECONDS, SECONDS, TurnMetrics
from callwright.gateway.request_context import Refusal, RequestContext
from callwright.turn.observe import Observer
from callwright.upstreams.completions import CHAT_ONLY

MULTIPROCESS: Final = "PROMETHEUS_MULTIPROC_DIR"
_STORE_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)


class Metrics:
    """The metrics of one application. `left` returns the remaining rate limits of the keys."""

    def __init__(self, left: Left = dict) -> None:
        registry = self._registry = CollectorRegistry()
        self._gauges = Gauges(left)
        if MULTIPROCESS not in os.environ:  # several processes: the metrics of one alone mean nothing
            ProcessCollector(registry=registry)
            registry.register(self._gauges)

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"callwright_{name}", about, labels, registry=registry)

        def histogram(name: str, about: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"callwright_{name}", about, labels, buckets=buckets, registry=registry)

        self._in_flight = Gauge(
            "callwright_requests_in_flight",
            "Requests that are being answered.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._body_bytes = Gauge(
            "callwright_body_bytes",
            "Bytes of request bodies in memory, of 64 KiB and more.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._tasks = Gauge(
            "callwright_tasks", "Tasks of the event loop.", registry=registry, multiprocess_mode="livesum"
        )
        self._requests = counter("requests", "Requests answered.", "endpoint", "model", "status")
        self._seconds = histogram(
            "request_seconds", "From a request to the end of its answer.", SECONDS, "endpoint", "model"
        )
        self._refused = counter("refused", "Requests that were refused.", "reason")
        self._overhead = histogram(
            "overhead_seconds",
            "The time of a request in which no upstream, no tool and no place was waited for.",
            OVERHEAD_SECONDS,
            "endpoint",
            "model",
        )
        self._dropped = counter("dropped_fields", "Fields of requests that went to no upstream.", "field")
        self._key_requests = counter("key_requests", "Requests of a key.", "key")
        self._key_tokens = counter("key_tokens", "Tokens of a key.", "key", "kind")
        self._cost = counter("cost", "Cost in the currency of the prices.", "key", "model")
        self._left = counter("clients_left", "Answers whose client left before their end.", "endpoint")
        self._put_back = counter(
            "reasoning_put_back", "Turns in histories that got the reasoning back that clients had dropped.", "model"
        )
        self._mcp_calls = counter("mcp_calls", "Calls of tools of MCP servers.", "server", "outcome")
        self._mcp_seconds = histogram("mcp_seconds", "One call of a tool of an MCP server.", SECONDS, "server")
        self._hooks = counter("hook_verdicts", "Verdicts of hooks.", "hook", "place", "outcome")
        self._store = counter("store_operations", "Transactions of the store.", "operation", "outcome")
        self._store_seconds = histogram("store_seconds", "One transaction of the store.", _STORE_SECONDS, "operation")
        self._records = counter("records", "Turns for --record.", "outcome")
        self._of = Tallies(deferred=MULTIPROCESS not in os.environ)
        self._turns = TurnMetrics(counter, histogram, self._of, self._gauges.pools)

    def exposition(self, accept: str, key: str | None = None) -> tuple[bytes, str]:
        """All metrics as text, and its content type; with a `key`, its own only."""
        self._turns.add()
        self._of.add()
        registry: CollectorRegistry | OfKey = self._registry
        if MULTIPROCESS in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        if key is not None:
            registry = OfKey(registry, key)
        encoder, kind = choose_encoder(accept)
        return encoder(registry), kind

    def loop_runs(self, tasks: int) -> None:
        """Note how many tasks the event loop has now."""
        self._tasks.set(tasks)

    def body_bytes(self, by: int) -> None:
        """Change the size of the request bodies in memory by this number of bytes, which may be negative."""
        self._body_bytes.inc(by)

    # --- who calls ---

    def request_begun(self) -> None:
        """A request has come."""
        self._of[self._in_flight,].inc()

    def request_ended(self, context: RequestContext) -> None:
        """A request was answered, or its client left."""
        self._of[self._in_flight,].inc(-1)
        endpoint, model = context.endpoint, context.label
        self._of[self._requests, endpoint, model, context.status].inc()
        self._of[self._seconds, endpoint, model].observe((context.ended_s or context.begun_s) - context.begun_s)
        if context.has_left:
            self._of[self._left, endpoint].inc()
        if context.refusal is not None:
            self.refused(context.refusal)
        if context.turns.number:
            self._of[self._overhead, endpoint, model].observe(context.overhead_s)
            if context.reasoning_put_back:
                self._of[self._put_back, model].inc(context.reasoning_put_back)
        for field in context.dropped:
            self._of[self._dropped, field if field in CHAT_ONLY else "other"].inc()
        if context.caller:
            self._of[self._key_requests, context.caller].inc()
            for kind, number in zip(("input", "output", "cached"), context.turns.tokens or (), strict=False):
                self._of[self._key_tokens, context.caller, kind].inc(number)

    def refused(self, reason: Refusal) -> None:
        """A request was refused."""
        self._of[self._refused, reason].inc()

    def count_cost(self, key: str, model: str, cost: int) -> None:
        """A generation had a cost, in millionths of the currency. `model` is its name in the configuration."""
        self._of[self._cost, key, model].inc(cost / 1_000_000)

    def mcp_called(self, server: str, outcome: str, seconds: float) -> None:
        """A tool of an MCP server was called; `server` is its label in the configuration."""
        self._of[self._mcp_calls, server, outcome].inc()
        self._of[self._mcp_seconds, server].observe(seconds)

    def hook_judged(self, hook: str, place: str, outcome: str) -> None:
        """A hook was asked; `hook` is its name in the configuration."""
        self._of[self._hooks, hook, place, outcome].inc()

    def store_operation(self, operation: str, seconds: float, *, failed: bool) -> None:
        """The store ran a transaction."""
        self._of[self._store, operation, "failed" if failed else "ok"].inc()
        self._of[self._store_seconds, operation].observe(seconds)

    def recorded(self, outcome: Literal["written", "dropped", "failed"]) -> None:
        """A turn was recorded, or not."""
        self._records.labels(outcome).inc()  # from the thread that writes

    def forget_servers(self, model: str) -> None:
        """Report no server of a model until it is asked again; `model` is its name in the configuration."""
        self._gauges.pools.pop(model, None)

    def observer(self, model: str) -> Observer:
        """An observer that counts the turns of a model; `model` is its name in the configuration."""
        return self._turns.observer(model)
