"""Spans as OpenTelemetry's own SDK exports them: names, attributes, parents, and the trace the upstream is told."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.asking import CHAT, request
from tests.outputs import QUESTION, TOOLS
from tests.running import agent
from tests.servers import Gateway, ModelServer, said, whole
from toolwright.agent.run import run
from toolwright.gateway.config import Config, ModelConfig, ServerConfig

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


@pytest.fixture(scope="session")
def _exporter() -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def spans(_exporter: InMemorySpanExporter) -> InMemorySpanExporter:
    _exporter.clear()
    return _exporter


@pytest.fixture
def gateway(model: ModelServer, spans: InMemorySpanExporter) -> Iterator[str]:
    gateway = Gateway(Config(models=(ModelConfig(name="native", upstream=model.url, model="served/native"),)))
    yield gateway.url
    gateway.stop()


def one(spans: InMemorySpanExporter, name: str) -> ReadableSpan:
    (found,) = [span for span in spans.get_finished_spans() if span.name == name]
    return found


def told(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def test_a_turn_is_a_span_of_the_requests_trace(gateway: str, model: ModelServer, spans: InMemorySpanExporter) -> None:
    model.plays(said("Hi"))
    body = {"model": "native", "messages": [QUESTION], "tools": TOOLS, "temperature": 0.5, "stop": "END", "user": "u-1"}
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}
    assert request(gateway + CHAT, body, headers=headers).status == 200
    span = one(spans, "chat served/native")
    assert span.kind is SpanKind.CLIENT
    assert span.context is not None
    assert span.parent is not None
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == PARENT
    attributes = told(span)
    assert attributes.pop("gen_ai.response.time_to_first_chunk", 0)
    assert attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "served/native",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.output.type": "text",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 0,
        "gen_ai.usage.reasoning.output_tokens": 0,
        "server.address": "127.0.0.1",
        "server.port": model.port,
    }
    # The upstream's spans belong below this one.
    headers = {name.lower(): value for name, value in model.asked[0].headers.items()}
    assert headers["traceparent"] == f"00-{TRACE}-{span.context.span_id:016x}-01"
    assert headers["tracestate"] == "vendor=1"


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_that_fails_says_how(
    gateway: str, model: ModelServer, spans: InMemorySpanExporter, stream: bool
) -> None:
    model.plays(whole({"error": {"message": "the words of the server"}}, 500))
    assert request(gateway + CHAT, {"model": "native", "messages": [QUESTION], "stream": stream}).status == 502
    span = one(spans, "chat served/native")
    assert told(span)["error.type"] == "status"
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "status"
    assert not span.events
    assert span.parent is None


def test_spans_can_be_switched_off(model: ModelServer, spans: InMemorySpanExporter) -> None:
    models = (ModelConfig(name="native", upstream=model.url),)
    gateway = Gateway(Config(server=ServerConfig(traces="off"), models=models))
    model.plays(said("Hi"))
    request(gateway.url + CHAT, {"model": "native", "messages": [QUESTION]})
    gateway.stop()
    assert not spans.get_finished_spans()
    assert "traceparent" not in {name.lower() for name in model.asked[0].headers}


def test_the_tools_of_an_agent_are_spans_beside_its_turns(spans: InMemorySpanExporter) -> None:
    tracer = trace.get_tracer("the program")

    def get_weather(city: str) -> str:
        """The weather in a city."""
        with tracer.start_as_current_span("lookup"):
            return f"sunny in {city}"

    async def break_glass() -> str:
        raise OSError("secret words")

    made = agent(
        [("get_weather", {"city": "Paris"}), ("break_glass", {})], "It is sunny.", tools=[get_weather, break_glass]
    )
    with tracer.start_as_current_span("program"):
        asyncio.run(run(made, "What is the weather?"))
    program, weather = one(spans, "program"), one(spans, "execute_tool get_weather")
    assert weather.kind is SpanKind.INTERNAL
    assert {**told(weather), "gen_ai.tool.call.id": "…"} == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "…",
        "gen_ai.tool.description": "The weather in a city.",
    }
    glass = one(spans, "execute_tool break_glass")
    assert told(glass)["error.type"] == "OSError"
    assert glass.status.status_code is StatusCode.ERROR
    assert "secret words" not in glass.to_json()
    turns = [span for span in spans.get_finished_spans() if span.name == "chat scripted"]
    assert len(turns) == 2
    for span in (weather, glass, *turns):
        assert span.parent == program.context
    assert one(spans, "lookup").parent == weather.context


def test_without_opentelemetry_nothing_of_it_is_looked_for_twice_and_everything_runs() -> None:
    program = (
        "import sys, asyncio\n"
        "sys.modules['opentelemetry'] = None\n"
        "from tests.running import agent\n"
        "from toolwright.agent.run import run\n"
        "def get_time() -> str: return 'noon'\n"
        "print(asyncio.run(run(agent([('get_time', {})], 'Noon.', tools=[get_time]), 'When?')).text)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, encoding="utf-8")
    assert (ran.stdout.strip(), ran.stderr) == ("Noon.", "")


def test_the_package_imports_nothing_of_it() -> None:
    program = "import sys, toolwright, toolwright.gateway.app; print([n for n in sys.modules if 'opentelemetry' in n])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, encoding="utf-8")
    assert ran.stdout.strip() == "[]"
