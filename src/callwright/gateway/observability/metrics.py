"""Prometheus metrics at `GET /metrics`: how requests fare, and how well the models call tools.

Each application has a registry of its own. The value of a label is from a closed set or from the configuration: a model
is a configured one (`*` for any other name), an endpoint is a route. A request or turn increases a few numbers; a delta
costs nothing.

If several processes serve one port, `PROMETHEUS_MULTIPROC_DIR` names an empty folder that they share. Then each answers
for all of them.
"""

import os
from functools import partial
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.process_collector import ProcessCollector

from callwright.calls.tool_search import SEARCH_TOOL
from callwright.conversation import NamedTool
from callwright.errors import UpstreamError
from callwright.events import Usage
from callwright.gateway.observability.metrics_gauges import Gauges, Left, OfKey
from callwright.gateway.observability.repeated_prompts import RepeatedPrompts
from callwright.gateway.observability.tallies import Tallies
from callwright.gateway.request_context import Refusal, RequestContext
from callwright.turn.call_outcome import WITHHELD, call_outcome
from callwright.turn.observe import Ended, Observation, Observer, RequestedTurn
from callwright.upstreams.affinity import conversation_key
from callwright.upstreams.completions import CHAT_ONLY

__all__ = ["MULTIPROCESS", "Metrics"]

MULTIPROCESS: Final = "PROMETHEUS_MULTIPROC_DIR"
# Source: the buckets of OpenTelemetry's semantic conventions for generative AI, November 2026.
_SECONDS: Final = tuple(0.01 * 2**step for step in range(14))
_FIRST_SECONDS: Final = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
_TOKEN_SECONDS: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5)
_OVERHEAD_SECONDS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_TOOLS: Final = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)
_STORE_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)


class Metrics:
    """The metrics of one application. `left` answers what is left of the keys' rate limits."""

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
            "request_seconds", "From a request to the end of its answer.", _SECONDS, "endpoint", "model"
        )
        self._refused = counter("refused", "Requests that were refused.", "reason")
        self._overhead = histogram(
            "overhead_seconds",
            "The time of a request in which no upstream, no tool and no place was waited for.",
            _OVERHEAD_SECONDS,
            "endpoint",
            "model",
        )
        self._dropped = counter("dropped_fields", "Fields of requests that went to no upstream.", "field")
        self._key_requests = counter("key_requests", "Requests of a key.", "key")
        self._key_tokens = counter("key_tokens", "Tokens of a key.", "key", "kind")
        self._left = counter("clients_left", "Answers whose client left before their end.", "endpoint")
        self._turn_seconds = histogram("turn_seconds", "One turn of a model, with all retries.", _SECONDS, "model")
        self._first_seconds = histogram(
            "first_event_seconds", "From the begin of a turn to the first event that goes out.", _FIRST_SECONDS, "model"
        )
        self._held_seconds = histogram(
            "held_seconds",
            "Streams: from the first piece of the upstream to the first event that goes out.",
            _FIRST_SECONDS,
            "model",
        )
        self._token_seconds = histogram(
            "output_token_seconds", "Between two tokens of an answer, by its upstream's count.", _TOKEN_SECONDS, "model"
        )
        self._queue_seconds = histogram(
            "queue_seconds", "How long a place at a model with max_requests was waited for.", _OVERHEAD_SECONDS, "model"
        )
        self._upstream_seconds = histogram(
            "upstream_seconds", "From the sending of a generation to its last piece.", _SECONDS, "model"
        )
        self._tokens = counter("tokens", "Tokens, as the upstream counts them.", "model", "kind")
        self._repeated = counter(
            "repeated_tokens", "Tokens of prompts that the prompt before in the conversation had, too.", "model", "kind"
        )
        self._prompts = RepeatedPrompts()
        self._upstream_errors = counter("upstream_errors", "Failures of the upstream.", "model", "fault")
        self._finished = counter("turns", "Turns by how they ended.", "model", "reason")
        self._calls = counter("calls", "Calls by how well they were made.", "model", "dialect", "outcome")
        self._problems = counter("problems", "What was wrong with answers.", "model", "kind")
        self._retries = counter(
            "retries", "How often a model was asked again, by what was wrong with its answer.", "model", "reason"
        )
        self._ambiguous = counter(
            "ambiguous_calls",
            "Answers whose model was asked whether it meant a call, by its reply.",
            "model",
            "outcome",
        )
        self._put_back = counter(
            "reasoning_put_back", "Turns in histories that got the reasoning back that clients had dropped.", "model"
        )
        self._fallbacks = counter(
            "fallbacks", "How often another server of a pool was asked, or the same one in another way.", "model", "to"
        )
        self._searches = counter("searches", "Searches for tools that models have made.", "model")
        self._choices = counter("choices", "Turns by tool_choice, and whether it was met.", "model", "choice", "kept")
        self._constraints = counter("constraints", "Generations with tools by whose grammar held them.", "model", "by")
        self._tools = histogram("tools_offered", "Tools in a request.", _TOOLS, "model")
        self._mcp_calls = counter("mcp_calls", "Calls of tools of MCP servers.", "server", "outcome")
        self._mcp_seconds = histogram("mcp_seconds", "One call of a tool of an MCP server.", _SECONDS, "server")
        self._store = counter("store_operations", "Transactions of the store.", "operation", "outcome")
        self._store_seconds = histogram("store_seconds", "One transaction of the store.", _STORE_SECONDS, "operation")
        self._records = counter("records", "Turns for --record.", "outcome")
        self._of = Tallies(deferred=MULTIPROCESS not in os.environ)

    def exposition(self, accept: str, key: str | None = None) -> tuple[bytes, str]:
        """All metrics as text, and its content type; with a `key`, its own only."""
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
        """So many bytes of request bodies more are in memory, or less."""
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
        if context.turns:
            self._of[self._overhead, endpoint, model].observe(context.overhead_s)
            if context.reasoning_put_back:
                self._of[self._put_back, model].inc(context.reasoning_put_back)
        for field in context.dropped:
            self._of[self._dropped, field if field in CHAT_ONLY else "other"].inc()
        if context.caller:
            self._of[self._key_requests, context.caller].inc()
            for kind, number in zip(("input", "output", "cached"), context.tokens or (), strict=False):
                self._of[self._key_tokens, context.caller, kind].inc(number)

    def refused(self, reason: Refusal) -> None:
        """A request was refused."""
        self._of[self._refused, reason].inc()

    def mcp_called(self, server: str, outcome: str, seconds: float) -> None:
        """A tool of an MCP server was called; `server` is its label in the configuration."""
        self._of[self._mcp_calls, server, outcome].inc()
        self._of[self._mcp_seconds, server].observe(seconds)

    def store_operation(self, operation: str, seconds: float, *, failed: bool) -> None:
        """The store ran a transaction."""
        self._of[self._store, operation, "failed" if failed else "ok"].inc()
        self._of[self._store_seconds, operation].observe(seconds)

    def recorded(self, outcome: Literal["written", "dropped", "failed"]) -> None:
        """A turn was recorded, or not."""
        self._records.labels(outcome).inc()  # from the thread that writes

    def observer(self, model: str) -> Observer:
        """An observer that counts the turns of a model; `model` is its name in the configuration."""

        def begun(seen: Observation) -> Ended:
            return partial(self._count, model, seen)

        return begun

    # --- a turn ---

    def _count_repeated(self, model: str, seen: Observation, usage: Usage) -> None:
        """How much of the prompt before stands in this one, and how much of that was not in the server's cache."""
        key = conversation_key(model, seen.conversation, seen.fields)
        if key is not None and (repeated := self._prompts.repeated(key, usage.prompt_tokens)):
            self._of[self._repeated, model, "all"].inc(repeated)
            self._of[self._repeated, model, "read_again"].inc(max(0, repeated - usage.cached_tokens))

    def _count(self, model: str, seen: Observation) -> None:
        assert seen.ended_s is not None
        self._of[self._turn_seconds, model].observe(seen.ended_s - seen.begun_s)
        if seen.first_s is not None:
            self._of[self._first_seconds, model].observe(seen.first_s - seen.begun_s)
        self._of[self._finished, model, _reason(seen)].inc()
        if (usage := seen.usage) is not None:
            self._of[self._tokens, model, "input"].inc(usage.prompt_tokens)
            self._of[self._tokens, model, "output"].inc(usage.completion_tokens)
            self._of[self._tokens, model, "cached"].inc(usage.cached_tokens)
            self._of[self._tokens, model, "reasoning"].inc(usage.reasoning_tokens)
            self._count_repeated(model, seen, usage)
        if seen.asked:
            self._count_pace(model, seen)
        if seen.ambiguous is not None:
            self._of[self._ambiguous, model, seen.ambiguous].inc()
        for number, asked in enumerate(seen.asked):
            self._count_asked(model, asked, is_first=number == 0)
        # Also failures that an earlier answer made up for.
        for failure in (*[asked.failure for asked in seen.asked], seen.error if _is_unmet(seen.error) else None):
            if isinstance(failure, UpstreamError):
                self._of[self._upstream_errors, model, failure.fault].inc()
        self._count_calls(model, seen)

    def _count_pace(self, model: str, seen: Observation) -> None:
        """For a stream: the time between tokens, and how long the first event was held back."""
        timings = seen.asked[0].timings
        if timings.first_s is None or not seen.streamed:
            return
        if seen.first_s is not None:
            self._of[self._held_seconds, model].observe(max(0.0, seen.first_s - timings.first_s))
        tokens = seen.usage.completion_tokens if seen.usage is not None else 0
        if len(seen.asked) == 1 and tokens > 1 and timings.ended_s is not None:
            self._of[self._token_seconds, model].observe((timings.ended_s - timings.first_s) / (tokens - 1))

    def _count_asked(self, model: str, asked: RequestedTurn, *, is_first: bool) -> None:
        timings = asked.timings
        self._of[self._upstream_seconds, model].observe(timings.waited_s)
        if timings.queued_s:
            self._of[self._queue_seconds, model].observe(timings.queued_s)
        if asked.again is not None:
            self._of[self._retries, model, asked.again].inc()
        elif not is_first:
            self._of[self._fallbacks, model, "mode"].inc()
        if timings.servers > 1:
            self._of[self._fallbacks, model, "server"].inc(timings.servers - 1)
        if timings.states is not None:
            self._gauges.pools[model] = timings.states

    def _count_calls(self, model: str, seen: Observation) -> None:
        dialect = seen.dialect or "none"
        for call in seen.calls.values():
            self._of[self._calls, model, dialect, call_outcome(call)].inc()
            if call.name == SEARCH_TOOL.name:
                self._of[self._searches, model].inc()
        for problem in seen.problems:
            if problem.call is None and problem.kind in WITHHELD:
                is_cut = seen.reason == "length" and problem.kind != "call_not_allowed"
                self._of[self._calls, model, dialect, "truncated" if is_cut else "refused"].inc()
        if _is_unmet(seen.error):
            self._of[self._calls, model, dialect, "refused"].inc()
        for problem in seen.problems:
            self._of[self._problems, model, problem.kind].inc()
        tools = seen.conversation.tools
        self._of[self._tools, model].observe(len(tools))
        if tools:
            choice, is_kept = _choice(seen)
            self._of[self._choices, model, choice, "yes" if is_kept else "no"].inc()
            for asked in seen.asked:
                ours = "gateway" if asked.timings.constraint is not None else "none"
                self._of[self._constraints, model, "server" if asked.mode == "native" else ours].inc()


def _reason(seen: Observation) -> str:
    if seen.reason is not None:
        return seen.reason
    if seen.error is None:
        return "stop"
    return "failed" if isinstance(seen.error, Exception) else "left"


def _is_unmet(error: BaseException | None) -> bool:
    return isinstance(error, UpstreamError) and error.fault == "unmet"


def _choice(seen: Observation) -> tuple[str, bool]:
    choice = seen.conversation.tool_choice
    if isinstance(choice, NamedTool):
        return "named", any(call.name == choice.name for call in seen.calls.values())
    has_called = bool(seen.calls)
    is_kept = {"auto": True, "none": not has_called, "required": has_called}[choice]
    return ("allowed" if seen.conversation.allowed_tools is not None and choice != "none" else choice), is_kept
