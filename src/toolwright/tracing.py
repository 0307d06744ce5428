"""Spans for OpenTelemetry, where its API is installed: `chat {model}` for a turn, `execute_tool {name}` for a call.

Names and attributes are those of the semantic conventions for generative AI (November 2026, status Development). Only
counts, names and settings go into a span, nothing of what was said. What becomes of spans is for the program to say:
without a provider there are none, and a request's trace is handed on as it is. Nothing is imported before the first
turn that could use it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from toolwright.errors import RequestError, UpstreamError
from toolwright.observing import Ended, Observation, Observer
from toolwright.turn import Model

__all__ = ["is_available", "tool_span", "turn_spans", "with_spans"]

_NAME: Final = "toolwright"
# Fields of a request, by the name of their attribute below `gen_ai.request.`, with what they can be.
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


def turn_spans(carrier: Callable[[], Mapping[str, str]] = dict) -> Observer:
    """An observer that makes a span of each turn, and hands its trace on to the upstream.

    The span belongs to the span that is current when the turn begins, else to the trace of `carrier`: the headers of
    the request that is answered.
    """
    from opentelemetry import propagate, trace
    from opentelemetry.trace import SpanKind, Status, StatusCode

    def begun(seen: Observation) -> Ended | None:
        given = carrier()
        if not given and isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            return None  # nobody takes spans, and there is no trace to hand on
        is_inside = trace.get_current_span().get_span_context().is_valid
        parent = None if is_inside else propagate.extract(given)
        span = trace.get_tracer(_NAME).start_span(
            f"chat {seen.upstream_model}", parent, SpanKind.CLIENT, attributes=_asked(seen)
        )
        propagate.inject(seen.headers, trace.set_span_in_context(span, parent))

        def ended() -> None:
            span.set_attributes(_answered(seen))
            if isinstance(seen.error, Exception):
                span.set_status(Status(StatusCode.ERROR, _error_type(seen.error)))
            span.end()

        return ended

    return begun


def with_spans(model: Model) -> Model:
    """The model, each of whose turns is a span; itself where OpenTelemetry is not installed."""
    if not is_available():
        return model
    return msgspec.structs.replace(model, observers=(*model.observers, turn_spans()))


@contextmanager
def tool_span(name: str, call_id: str, description: str | None) -> Iterator[None]:
    """A span around the run of a tool, current meanwhile; nothing where OpenTelemetry is not installed."""
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
    # What a tool raises may hold what it was given: only its type is told.
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


def _asked(seen: Observation) -> dict[str, Any]:
    given: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": seen.upstream,
        "gen_ai.request.model": seen.upstream_model,
        "gen_ai.output.type": "text" if seen.conversation.response_format is None else "json",
    }
    if "://" in seen.upstream:
        parts = urlsplit(seen.upstream)
        given |= {"gen_ai.provider.name": "openai", "server.address": parts.hostname or ""}
        if parts.port is not None:
            given["server.port"] = parts.port
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
    if (usage := seen.usage) is not None:
        given |= {
            "gen_ai.usage.input_tokens": usage.prompt_tokens,
            "gen_ai.usage.output_tokens": usage.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        }
    if seen.problems:
        given["toolwright.problems"] = sorted({problem.kind for problem in seen.problems})
    if len(seen.asked) > 1:
        given["toolwright.retries"] = len(seen.asked) - 1
    if seen.error is not None:
        given["error.type"] = _error_type(seen.error)
    return given


def _error_type(error: BaseException) -> str:
    if isinstance(error, UpstreamError):
        return error.fault
    if isinstance(error, RequestError):
        return error.code or error.type
    return type(error).__name__ if isinstance(error, Exception) else "cancelled"
