"""OpenTelemetry spans, if its API is installed: `chat {model}` for a turn, `execute_tool {name}` for a tool call,
`invoke_agent {name}` for a run of an agent, and one for each request to the gateway.

Names and attributes follow the semantic conventions for generative AI (November 2026, status Development). A span holds
counts, names and settings, no contents. Without a tracer provider there are no spans, and a request's trace is
forwarded unchanged. OpenTelemetry is not imported before the first turn that could use it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import cache
from importlib.util import find_spec
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import msgspec

from callwright.errors import RequestError, UpstreamError
from callwright.events import Usage
from callwright.turn.model import Model
from callwright.turn.observe import Ended, Observation, Observer

_NAME: Final = "callwright"
_SERVERS_FAULT: Final = 500
# Request fields, with their attribute below `gen_ai.request.` and the types it accepts.
_FIELDS: Final[Mapping[str, tuple[str, tuple[type, ...]]]] = {
    "frequency_penalty": ("frequency_penalty", (int, float)),
    "max_completion_tokens": ("max_tokens", (int,)),
    "max_tokens": ("max_tokens", (int,)),
    "presence_penalty": ("presence_penalty", (int, float)),
    "seed": ("seed", (int,)),
    "temperature": ("temperature", (int, float)),
    "top_k": ("top_k", (int, float)),
    "top_p": ("top_p", (int, float)),
}


@cache
def is_available() -> bool:
    """Whether OpenTelemetry's API is installed."""
    try:
        return find_spec("opentelemetry.trace") is not None
    except ModuleNotFoundError:
        return False


def _state() -> tuple[bool, bool]:
    """Whether a span is current, and whether there is a tracer provider. Asked for each request and turn."""
    trace, proxy = _trace()
    # Without a provider, `get_tracer_provider` reads the environment each time; this does not.
    has_provider = not isinstance(proxy.get_tracer(_NAME), trace.ProxyTracer)
    span = trace.get_current_span()
    return span is not trace.INVALID_SPAN and span.get_span_context().is_valid, has_provider


@cache
def _trace() -> tuple[Any, Any]:
    """The module, and a placeholder for a provider until there is one."""
    from opentelemetry import trace

    trace.get_tracer_provider()  # one that the environment names is loaded
    return trace, trace.ProxyTracerProvider()


RequestEnded: TypeAlias = Callable[[str, int, str | None], None]


def request_span(method: str, carrier: Mapping[str, str]) -> RequestEnded | None:
    """Start a span for a request, as a child of the trace in its headers (`carrier`), and make it current.

    Answers a function that ends it, with route, status and error; call it in the same task. None if there is nothing to
    do: an instrumentation has already made a span, or there is neither a provider nor a trace to pass on.
    """
    is_inside, has_provider = _state()
    if is_inside or not (carrier or has_provider):
        return None
    from opentelemetry import context, propagate, trace
    from opentelemetry.trace import SpanKind, Status, StatusCode

    parent = propagate.extract(carrier)
    span = trace.get_tracer(_NAME).start_span(
        method, parent, SpanKind.SERVER, attributes={"http.request.method": method}
    )
    token = context.attach(trace.set_span_in_context(span, parent))

    def end(route: str, status: int, error: str | None) -> None:
        context.detach(token)
        span.update_name(f"{method} {route}")
        span.set_attributes({"http.route": route, "http.response.status_code": status})
        if error is not None:
            span.set_attribute("error.type", error)
        if status >= _SERVERS_FAULT:
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    return end


def turn_spans(about: Callable[[], Mapping[str, str]] = dict) -> Observer:
    """An observer that makes a span of each turn, and passes the trace on to the upstream in headers.

    The span is a child of the one that is current when the turn begins. `about` answers further attributes.
    """
    from opentelemetry import propagate, trace
    from opentelemetry.trace import SpanKind, Status, StatusCode

    def begin(seen: Observation) -> Ended | None:
        if not any(_state()):
            return None  # no provider, and no trace to pass on
        span = trace.get_tracer(_NAME).start_span(
            f"chat {seen.upstream_model}", kind=SpanKind.CLIENT, attributes={**_request_attributes(seen), **about()}
        )
        propagate.inject(seen.headers, trace.set_span_in_context(span))

        def end() -> None:
            span.set_attributes(_answered(seen))
            if isinstance(seen.error, Exception):
                span.set_status(Status(StatusCode.ERROR, _error_type(seen.error)))
            span.end()

        return end

    return begin


def with_spans(model: Model) -> Model:
    """The model with a span for each turn; unchanged if OpenTelemetry is not installed."""
    if not is_available():
        return model
    return msgspec.structs.replace(model, observers=(*model.observers, turn_spans()))


class RunSpan:
    """A span around a run of an agent; nothing if OpenTelemetry is not installed.

    A run is a generator, which its caller may drive from any task. So the span is current only in tasks that get its
    `context`.
    """

    def __init__(self, name: str, model: Model) -> None:
        self._span: Any = None
        if not is_available():
            return
        from opentelemetry import trace

        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.request.model": model.upstream_model,
            **_server(model.upstream.name),
        }
        if name:
            attributes["gen_ai.agent.name"] = name
        self._span = trace.get_tracer(_NAME).start_span(f"invoke_agent {name}".strip(), attributes=attributes)

    def context(self) -> Context | None:
        """A context for a task, in which the span is current; None for the default, a copy of the caller's."""
        if self._span is None:
            return None
        from opentelemetry import context, trace

        made = copy_context()
        made.run(context.attach, trace.set_span_in_context(self._span))
        return made

    def end(self, usage: Usage | None, stop: str | None, error: BaseException | None) -> None:
        """The run is over. `stop` is its stop reason, if it reached one."""
        if self._span is None:
            return
        from opentelemetry.trace import Status, StatusCode

        self._span.set_attributes(_used(usage))
        if stop is not None:
            self._span.set_attribute("callwright.stop", stop)
        failed = None if error is None else _error_type(error)
        if failed or stop == "failed":
            self._span.set_attribute("error.type", failed or "failed")
        if isinstance(error, Exception) or stop == "failed":
            self._span.set_status(Status(StatusCode.ERROR, failed or "failed"))
        self._span.end()


def note_mcp(method: str, version: str | None, url: str | None) -> None:
    """Add to the current tool span that an MCP server runs the tool: at a `url`, or over the pipes of a process."""
    if not is_available():
        return
    from opentelemetry import trace

    attributes: dict[str, Any] = {"mcp.method.name": method, "network.transport": "tcp" if url else "pipe"}
    if version:
        attributes["mcp.protocol.version"] = version
    if url:
        attributes |= _address(url)
    trace.get_current_span().set_attributes(attributes)


@contextmanager
def tool_span(name: str, call_id: str, description: str | None) -> Iterator[None]:
    """A span around the run of a tool, current while it runs; nothing if OpenTelemetry is not installed."""
    if not is_available():
        yield
        return
    from opentelemetry import trace
    from opentelemetry.trace import Status, StatusCode

    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.type": "function",
    }
    if description:
        attributes["gen_ai.tool.description"] = description
    # The message of a tool's exception may quote its arguments: only the type goes into the span.
    with trace.get_tracer(_NAME).start_as_current_span(
        f"execute_tool {name}", attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield
        except BaseException as error:
            span.set_attribute("error.type", _error_type(error))
            if isinstance(error, Exception):
                span.set_status(Status(StatusCode.ERROR, _error_type(error)))
            raise


def _request_attributes(seen: Observation) -> dict[str, Any]:
    given: dict[str, Any] = {
        "gen_ai.operation.name": seen.operation,
        "gen_ai.request.model": seen.upstream_model,
        **_server(seen.upstream),
        "gen_ai.output.type": "text" if seen.conversation.response_format is None else "json",
    }
    if seen.streamed:
        given["gen_ai.request.stream"] = True
    for field, (name, kinds) in _FIELDS.items():
        if isinstance(value := seen.fields.get(field), kinds):
            given[f"gen_ai.request.{name}"] = value
    if stops := seen.fields.get("stop"):
        given["gen_ai.request.stop_sequences"] = [stops] if isinstance(stops, str) else list(stops)
    return given


def _answered(seen: Observation) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if seen.reason is not None:
        given["gen_ai.response.finish_reasons"] = [seen.reason]
    if seen.first_s is not None:
        given["gen_ai.response.time_to_first_chunk"] = seen.first_s - seen.begun_s
    given |= _used(seen.usage)
    if seen.problems:
        given["callwright.problems"] = sorted({problem.kind for problem in seen.problems})
    if seen.retries:
        given["callwright.retries"] = seen.retries
    if seen.error is not None:
        given["error.type"] = _error_type(seen.error)
    return given


def _used(usage: Usage | None) -> dict[str, int]:
    if usage is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }


def _server(upstream: str) -> dict[str, Any]:
    """Attributes of the server: the API that it speaks, and its address; of the first server of a pool."""
    if "://" not in upstream:
        return {"gen_ai.provider.name": upstream}
    return {"gen_ai.provider.name": "openai", **_address(upstream.partition(", ")[0])}


def _address(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    address = {"server.address": parts.hostname or ""}
    return address if parts.port is None else {**address, "server.port": parts.port}


def _error_type(error: BaseException) -> str:
    if isinstance(error, UpstreamError):
        return error.fault
    if isinstance(error, RequestError):
        return error.code or error.type
    if isinstance(kind := getattr(error, "error_type", None), str):
        return kind
    return type(error).__name__ if isinstance(error, Exception) else "cancelled"
